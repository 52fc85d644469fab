"""Lines: what is read does not depend on how the stream was cut."""

from __future__ import annotations

from holdfast.wire.jsonrpc import Lines, LineTooLong

from .draw import Draw, pieces

SEEDS = (b"\x0c\x02\x01\x04{}\r\nabc\n\nx", b"\x02\x00abc\n", b"\x08\x01\x03ab\r\n\r\r\n")


def check(data: bytes) -> None:
    draw = Draw(data)
    limit, count = draw.below(40), draw.below(7)
    cuts = bytes((count, *(draw.byte() for _ in range(count))))
    stream = draw.rest()

    assert read(pieces(stream, Draw(cuts)), limit) == model(stream, limit)


def model(data: bytes, limit: int) -> tuple[list[bytes], bytes | None]:
    """Slow and plain: the lines, and the rest, or None if one line is too long."""
    *lines, rest = data.split(b"\n")
    found: list[bytes] = []
    for line in lines:
        if len(line) > limit:
            return found, None
        found.append(line.removesuffix(b"\r"))
    return found, None if len(rest) > limit else rest.removesuffix(b"\r")


def read(chunks: list[bytes], limit: int) -> tuple[list[bytes], bytes | None]:
    lines = Lines(limit=limit)
    found: list[bytes] = []
    try:
        for chunk in chunks:
            for line in lines.feed(chunk):
                found.append(line)
        return found, lines.rest()
    except LineTooLong:
        return found, None
