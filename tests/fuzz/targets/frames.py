"""WebSocket frames of clients and of servers: what is read does not depend on the packets it came in."""

from __future__ import annotations

from holdfast.wire.websocket import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    FrameReader,
    Violation,
    client_header,
    close_frame,
    close_reason,
    header,
)

from .draw import Draw, pieces

Event = tuple[int, bytes]

MESSAGE = 300
"""A limit that a short case can go over."""

SEEDS = (
    b"\x00\x00\x81\x82\0\0\0\0hi",
    b"\x00\x03\x01\x05\x09\x01\x81\1\2\3\4a\x89\x80\0\0\0\0\x80\x81\0\0\0\0b",
    b"\x01\x00\x81\x02hi\x82\x00\x88\x02\x03\xe8\x8a\x01x",
    b"\x01\x02\x01\x03\x01\x01a\x80\x01b\x81\x7e\x00\xc8" + b"x" * 200,
    b"\x00\x00\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x00\x01\x04\x88\x85\0\0\0\0\x03\xe8\xc3\xa9x",
)


def check_client(data: bytes) -> None:
    """What a server reads."""
    _check(data, masked=True)


def check_server(data: bytes) -> None:
    """What a client reads."""
    _check(data, masked=False)


def _check(data: bytes, *, masked: bool) -> None:
    draw = Draw(data)
    draw.byte()
    count = draw.below(7)
    cuts = bytes((count, *(draw.byte() for _ in range(count))))
    stream = draw.rest()
    whole, end = _read([stream], masked=masked)

    assert _read(pieces(stream, Draw(cuts)), masked=masked) == (whole, end)
    assert sum(len(payload) for _, payload in whole) <= len(stream)
    for op, payload in whole:
        assert op in (TEXT, BINARY, CLOSE, PING, PONG)
        assert len(payload) <= (125 if op >= CLOSE else MESSAGE)
        if op == TEXT and masked:
            payload.decode()
        if op == CLOSE:
            _check_close(payload)
    again = b"".join(
        (client_header if masked else header)(op, len(payload)) + payload for op, payload in whole
    )
    assert _read([again], masked=masked) == (whole, "open")


def _check_close(payload: bytes) -> None:
    try:
        code = close_reason(payload)
    except Violation:
        return
    assert 1000 <= code <= 4999


def _read(chunks: list[bytes], *, masked: bool) -> tuple[list[Event], str]:
    frames = FrameReader(MESSAGE, masked=masked)
    events: list[Event] = []
    waiting = b""
    try:
        for chunk in chunks:
            waiting = chunk if masked else waiting + chunk
            for op, payload in frames.feed(memoryview(waiting)):
                events.append((op, bytes(payload)))
            if not masked:
                waiting = waiting[frames.parsed :]
    except Violation as violation:
        # What the peer is told of it is a frame, too.
        ours = FrameReader(MESSAGE, masked=False)
        ((op, told),) = ours.feed(memoryview(close_frame(violation.code, violation.reason)))
        assert (op, close_reason(told)) == (CLOSE, violation.code)
        return events, f"{violation.code.name}: {violation.reason}"
    return events, "open"
