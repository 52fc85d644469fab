"""WebSocket frames as a client writes and reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.wire.websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    CloseCode,
    FrameReader,
    Violation,
    client_header,
    close_frame,
    close_payload,
    header,
)

SIZES = (0, 1, 125, 126, 65_535, 65_536, 70_000)


def reader(*, limit: int = 1 << 20) -> FrameReader:
    return FrameReader(limit, masked=False)


def frame(op: int, payload: bytes = b"", *, final: bool = True) -> bytes:
    """A frame as a server sends it."""
    return header(op, len(payload), final=final) + payload


def fed(data: bytes, step: int, frames: FrameReader | None = None) -> list[tuple[int, bytes]]:
    """What is read of ``data``, if so many bytes come at once; what is not complete is given again."""
    frames = frames or reader()
    found, waiting = [], b""
    for start in range(0, len(data), step):
        waiting += data[start : start + step]
        found += [(op, bytes(payload)) for op, payload in frames.feed(memoryview(waiting))]
        waiting = waiting[frames.parsed :]
    return found


# Out.


@pytest.mark.parametrize(
    ("op", "size"), [*((TEXT, size) for size in SIZES), (PING, 0), (PING, 125), (PONG, 7), (CLOSE, 125)]
)
def test_what_a_client_sends_is_what_a_server_reads(op: int, size: int) -> None:
    """The mask is there, as the standard wants it, and changes nothing."""
    payload = b"x" * size
    server = FrameReader(1 << 20)

    head = client_header(op, size)

    assert head[1] & 0x80
    assert head[-4:] == bytes(4)
    assert list(server.feed(memoryview(head + payload))) == [(op, payload)]


@pytest.mark.parametrize(
    ("reason", "payload"),
    [
        ("", b"\x03\xe8"),
        ("bye", b"\x03\xe8bye"),
        ("x" * 200, b"\x03\xe8" + b"x" * 123),
        ("\u2603" * 50, b"\x03\xe8" + "\u2603".encode() * 41),
    ],
)
def test_the_reason_of_a_close_is_cut_between_characters(reason: str, payload: bytes) -> None:
    assert close_payload(CloseCode.NORMAL, reason) == payload
    assert close_frame(CloseCode.NORMAL, reason) == header(CLOSE, len(payload)) + payload


# In.


@given(
    texts=st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=200), max_size=5),
    step=st.integers(1, 300),
)
def test_messages_of_a_server_are_read_however_they_are_cut(texts: list[str], step: int) -> None:
    data = b"".join(frame(TEXT, text.encode()) for text in texts)

    assert fed(data, step) == [(TEXT, text.encode()) for text in texts]


@pytest.mark.parametrize(
    ("size", "step"), [*((size, 4096) for size in SIZES), (0, 1), (126, 1), (70_000, 1 << 20)]
)
def test_every_length_is_read(size: int, step: int) -> None:
    payload = b"y" * size

    assert fed(frame(BINARY, payload) + frame(PING, b"!"), step) == [(BINARY, payload), (PING, b"!")]


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_fragments_are_put_together_with_control_in_between(step: int) -> None:
    data = (
        frame(TEXT, b"one ", final=False)
        + frame(PING, b"?")
        + frame(CONTINUATION, "\u2603".encode()[:1], final=False)
        + frame(CONTINUATION, "\u2603".encode()[1:])
    )

    assert fed(data, step) == [(PING, b"?"), (TEXT, "one \u2603".encode())]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x81\x80\0\0\0\0", "frames from a server must not be masked"),
        (b"\x81\xfe\0\x7e\0\0\0\0", "frames from a server must not be masked"),
        (b"\xc1\x00", "reserved bits are set"),
        (b"\x83\x00", "unknown opcode 3"),
        (b"\x80\x00", "fragments are out of order"),
        (b"\x01\x00\x81\x00", "fragments are out of order"),
        (b"\x09\x00", "a control frame is too long or fragmented"),
        (b"\x88\x7e\x00\x7e", "a control frame is too long or fragmented"),
        (header(TEXT, 90_001), "message is over the limit of 90000 bytes"),
        (
            frame(TEXT, b"x" * 50_000, final=False) + header(CONTINUATION, 50_000),
            "message is over the limit of 90000 bytes",
        ),
    ],
)
def test_a_server_that_breaks_the_rules_is_found_out_by_the_header(data: bytes, reason: str) -> None:
    with pytest.raises(Violation) as caught:
        fed(data, len(data), reader(limit=90_000))

    assert caught.value.reason == reason
