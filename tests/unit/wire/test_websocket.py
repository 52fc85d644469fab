"""WebSocket frames as a server reads and writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.wire.websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    SHORT_TEXT,
    TEXT,
    CloseCode,
    FrameReader,
    Violation,
    accept_key,
    close_frame,
    close_reason,
    fragments,
    header,
)
from tests.fakes.work import peak_memory

MASK = b"\x01\x80\x00\xfe"

Event = tuple[int, bytes]


def masked(payload: bytes) -> bytes:
    return bytes(byte ^ MASK[index % 4] for index, byte in enumerate(payload))


def frame(op: int, payload: bytes = b"", *, final: bool = True) -> bytes:
    """A frame as a client sends it."""
    head = bytearray(header(op, len(payload), final=final))
    head[1] |= 0x80
    return bytes(head) + MASK + masked(payload)


def reader(*, limit: int = 3000) -> FrameReader:
    return FrameReader(limit)


def read(frames: FrameReader, chunks: Iterable[bytes]) -> list[Event]:
    return [event for chunk in chunks for event in frames.feed(memoryview(chunk))]


def violation(data: bytes, frames: FrameReader | None = None) -> tuple[CloseCode, str]:
    with pytest.raises(Violation) as caught:
        read(frames or reader(), [data])
    return caught.value.code, caught.value.reason


CONVERSATION = [
    (frame(TEXT, b'{"id":1}'), [(TEXT, b'{"id":1}')]),
    (frame(TEXT), [(TEXT, b"")]),
    (frame(BINARY, b"\xff\x00"), [(BINARY, b"\xff\x00")]),
    (frame(TEXT, "é😀".encode()), [(TEXT, "é😀".encode())]),
    (frame(PING, b"hello"), [(PING, b"hello")]),
    (frame(PONG, b"a" * 125), [(PONG, b"a" * 125)]),
    (frame(TEXT, b"x" * 126), [(TEXT, b"x" * 126)]),
    (frame(TEXT, b"a", final=False), []),
    (frame(PING, b"q"), [(PING, b"q")]),
    (frame(CONTINUATION, final=False), []),
    (frame(CONTINUATION, b"b"), [(TEXT, b"ab")]),
    (frame(BINARY, b"\xc3", final=False) + frame(CONTINUATION, b"\x28"), [(BINARY, b"\xc3\x28")]),
    (frame(CLOSE, b"\x03\xe8bye"), [(CLOSE, b"\x03\xe8bye")]),
]
"""Bytes of a client, and what they complete."""

STREAM = b"".join(data for data, _ in CONVERSATION)
EVENTS = [event for _, events in CONVERSATION for event in events]


def test_frames_are_read_whole() -> None:
    assert read(reader(), [STREAM]) == EVENTS


def test_frames_are_read_byte_by_byte() -> None:
    assert read(reader(), (bytes([byte]) for byte in STREAM)) == EVENTS


def test_a_frame_is_given_as_soon_as_it_is_complete_and_a_tail_is_kept() -> None:
    """The first bytes of the next frame must not hold it back, nor be lost."""
    frames, tail, carried = reader(), 1, 0

    for data, events in CONVERSATION[:-1]:
        # All but what the step before has brought, and one byte of the next.
        at = STREAM.index(data)
        assert read(frames, [STREAM[at + carried : at + len(data) + tail]]) == events
        carried = tail

    last, events = CONVERSATION[-1]
    assert read(frames, [last[carried:]]) == events


def test_the_caller_may_use_its_buffer_again() -> None:
    """A transport reads into one buffer over and over."""
    frames, buffer = reader(), bytearray(frame(TEXT, b"first") + frame(TEXT, b"second")[:8])

    found = list(frames.feed(memoryview(buffer)))
    buffer[:] = bytes(len(buffer))
    found += read(frames, [frame(TEXT, b"second")[8:]])

    assert found == [(TEXT, b"first"), (TEXT, b"second")]


@pytest.mark.parametrize("size", [5, 126, 65_535, 65_536])
def test_a_length_may_be_written_with_more_bytes_than_it_needs(size: int) -> None:
    payload = b"x" * size
    long_form = b"\x81\xff" + size.to_bytes(8, "big") + MASK + masked(payload)

    assert read(reader(limit=1 << 20), [long_form]) == [(TEXT, payload)]
    assert read(reader(limit=1 << 20), [long_form[:5], long_form[5:12], long_form[12:]]) == [(TEXT, payload)]
    if size < 65_536:
        middle_form = b"\x81\xfe" + size.to_bytes(2, "big") + MASK + masked(payload)
        assert read(reader(limit=1 << 20), [middle_form]) == [(TEXT, payload)]


def test_a_character_may_be_cut_between_fragments() -> None:
    first, second = "é".encode()[:1], "é".encode()[1:]

    assert read(reader(), [frame(TEXT, first, final=False), frame(CONTINUATION, second)]) == [
        (TEXT, "é".encode())
    ]


def test_a_message_may_come_in_any_number_of_fragments() -> None:
    """Also empty ones, which count for nothing against the limit of a message."""
    parts = [
        frame(TEXT, final=False),
        *[frame(CONTINUATION, final=False)] * 5000,
        frame(CONTINUATION, b"end"),
    ]

    assert read(reader(limit=3), [b"".join(parts)]) == [(TEXT, b"end")]


# What may not be.


@pytest.mark.parametrize(
    ("data", "code", "reason"),
    [
        (b"\x81\x05hello", 1002, "frames from a client must be masked"),
        (b"\xc1\x80", 1002, "reserved bits are set"),
        (b"\xa1\x80", 1002, "reserved bits are set"),
        (b"\x91\x80", 1002, "reserved bits are set"),
        (b"\x83\x80", 1002, "unknown opcode 3"),
        (b"\x8b\x80", 1002, "unknown opcode 11"),
        (b"\x89\xfe\x00\x7e", 1002, "a control frame is too long or fragmented"),
        (b"\x09\x80", 1002, "a control frame is too long or fragmented"),
        (b"\x80\x80", 1002, "fragments are out of order"),
        (b"\x82\xfe\x0b\xb9", 1009, "message is over the limit of 3000 bytes"),
        (b"\x81\xff\x80" + bytes(7), 1009, "message is over the limit of 3000 bytes"),
    ],
)
def test_a_frame_is_refused_by_its_header_alone(data: bytes, code: int, reason: str) -> None:
    """Nobody makes us collect a payload that we will refuse."""
    assert violation(data) == (code, reason)


@pytest.mark.parametrize("op", [TEXT, BINARY])
def test_a_message_may_not_begin_inside_another(op: int) -> None:
    data = frame(TEXT, b"a", final=False) + frame(op, b"b")

    assert violation(data) == (CloseCode.PROTOCOL_ERROR, "fragments are out of order")


@pytest.mark.parametrize(
    "data",
    [
        frame(TEXT, b"\xff"),
        frame(TEXT, b"\xc3"),
        frame(TEXT, b"ok\xed\xa0\x80"),
        frame(TEXT, b"\xc3", final=False) + frame(CONTINUATION, b"\x28"),
    ],
)
def test_a_text_must_be_utf8(data: bytes) -> None:
    assert violation(data) == (CloseCode.INVALID_TEXT, "a text message is not UTF-8")


def test_what_came_before_a_violation_is_still_given() -> None:
    events = reader().feed(memoryview(frame(TEXT, b"good") + b"\x81\x00"))

    assert next(events) == (TEXT, b"good")
    with pytest.raises(Violation):
        next(events)


def test_a_message_takes_no_more_memory_for_coming_in_many_fragments() -> None:
    """The smaller the fragments, the more an object for each would cost."""
    data = memoryview(frame(TEXT, b"ab", final=False) + frame(CONTINUATION, b"cd", final=False) * 10_000)
    reader = FrameReader(len(data))

    assert peak_memory(lambda: list(reader.feed(data))) < 200_000


def test_a_frame_of_exactly_the_limit_passes() -> None:
    assert read(reader(limit=200), [frame(BINARY, b"x" * 200)]) == [(BINARY, b"x" * 200)]


@pytest.mark.parametrize("size", [64 << 20, (64 << 20) + 1])
def test_one_frame_may_be_as_long_as_a_message_and_no_longer(size: int) -> None:
    """The common case, one frame of text, skips most checks; it must not skip this one."""
    frames = reader(limit=64 << 20)
    data = b"\x81\xff" + size.to_bytes(8, "big")

    if size > 64 << 20:
        assert violation(data, frames)[0] is CloseCode.TOO_BIG
    else:
        assert read(frames, [data]) == []


def test_a_message_is_bounded_over_all_its_fragments() -> None:
    frames, first = reader(limit=15), frame(TEXT, b"x" * 10, final=False)

    assert read(frames, [first, frame(CONTINUATION, b"y" * 5)]) == [(TEXT, b"x" * 10 + b"y" * 5)]
    assert read(frames, [first]) == []
    assert violation(b"\x80\x86", frames) == (CloseCode.TOO_BIG, "message is over the limit of 15 bytes")


# Out.


@pytest.mark.parametrize(
    ("length", "head"),
    [
        (0, b"\x81\x00"),
        (125, b"\x81\x7d"),
        (126, b"\x81\x7e\x00\x7e"),
        (65_535, b"\x81\x7e\xff\xff"),
        (65_536, b"\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00"),
    ],
)
def test_a_header_uses_the_shortest_form(length: int, head: bytes) -> None:
    assert header(TEXT, length) == head


def test_the_header_of_a_fragment_is_not_final() -> None:
    assert header(CONTINUATION, 3, final=False) == b"\x00\x03"


def test_the_table_of_short_headers_agrees_with_the_rule() -> None:
    assert list(SHORT_TEXT) == [header(TEXT, length) for length in range(126)]


def test_a_close_frame_says_why() -> None:
    assert close_frame(CloseCode.GOING_AWAY, "bye") == b"\x88\x05\x03\xe9bye"


def test_a_long_reason_is_cut_between_characters() -> None:
    """A control frame holds 125 bytes, two of them the code."""
    data = close_frame(CloseCode.NORMAL, "a" * 122 + "é")

    assert data == b"\x88\x7c\x03\xe8" + b"a" * 122


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (b"", CloseCode.NO_STATUS),
        (b"\x03\xe8", 1000),
        (b"\x03\xe9bye", 1001),
        (b"\x0b\xb8x", 3000),
        (b"\x13\x87", 4999),
    ],
)
def test_the_code_of_a_close_frame_is_read(payload: bytes, code: int) -> None:
    assert close_reason(payload) == code


@pytest.mark.parametrize(
    "payload", [b"\x03", b"\x03\xe7", b"\x03\xed", b"\x03\xee", b"\x03\xf7", b"\x07\xd0", b"\x13\x88"]
)
def test_an_ill_formed_close_frame_is_a_violation(payload: bytes) -> None:
    """One byte is no code, and some codes may not be sent."""
    with pytest.raises(Violation) as caught:
        close_reason(payload)

    assert (caught.value.code, caught.value.reason) == (CloseCode.PROTOCOL_ERROR, "ill-formed close frame")


def test_a_close_reason_must_be_utf8() -> None:
    with pytest.raises(Violation) as caught:
        close_reason(b"\x03\xe8\xff")

    assert caught.value.code is CloseCode.INVALID_TEXT


@pytest.mark.parametrize(
    ("key", "accept"),
    [
        ("dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
        ("x", "JVxkmtKFjDcI/Pm/AGPEKSN6wT8="),
        ("", "Kfh9QIsMVZcl6xEPYxPHzW8SZ8w="),
    ],
)
def test_a_key_is_answered_with_its_proof(key: str, accept: str) -> None:
    assert accept_key(key) == accept


@pytest.mark.parametrize(("size", "sizes"), [(1, [1]), (4, [4]), (5, [4, 1]), (12, [4, 4, 4])])
def test_a_message_in_fragments_is_the_message(size: int, sizes: list[int]) -> None:
    data = bytes(range(size))
    frames = list(fragments(data, 4, first=True, last=True))
    ops = [head[0] & 0x0F for head, _ in frames]

    assert b"".join(part for _, part in frames) == data
    assert [len(part) for _, part in frames] == [head[1] for head, _ in frames] == sizes
    assert ops == [TEXT, *[CONTINUATION] * (len(sizes) - 1)]
    assert [head[0] >> 7 for head, _ in frames] == [*[0] * (len(sizes) - 1), 1]


def test_a_message_that_goes_on_neither_begins_nor_ends() -> None:
    ((head, _),) = fragments(b"x", 4, first=False, last=False)

    assert head[0] == CONTINUATION


def test_no_more_frames_are_looked_at_than_were_asked_for() -> None:
    """Whoever reads has others to serve, and a frame that completes nothing takes its time, too."""
    data = (
        frame(TEXT, b"a", final=False) + frame(CONTINUATION, b"b") + frame(PING, b"c") + frame(TEXT, b"d")[:3]
    )
    frames = reader()
    found: list[tuple[list[Event], bool]] = []
    for chunk in (data, b"", b"", b"", frame(TEXT, b"d")[3:]):
        events = list(frames.feed(memoryview(chunk), 1))
        found.append((events, frames.left))

    assert found == [
        ([], True),
        ([(TEXT, b"ab")], True),
        ([(PING, b"c")], True),
        ([], False),
        ([(TEXT, b"d")], False),
    ]


FIRST = st.sampled_from([0x81, 0x81, 0x81, 0x01, 0x80, 0x82, 0x88, 0x89, 0xC1, 0x83])
SECOND = st.one_of(st.integers(0, 255), st.sampled_from([0x80 | 5, 0x80 | 126, 0x80 | 127, 5, 126, 127]))


@given(
    first=FIRST,
    second=SECOND,
    extended=st.sampled_from([b"", b"\0\5", b"\0\x7e", b"\1\0", b"\0" * 7 + b"\5"]),
    rest=st.binary(max_size=300),
    exact=st.booleans(),
)
def test_a_message_that_is_read_as_a_whole_is_what_would_be_read_otherwise(
    *, first: int, second: int, extended: bytes, rest: bytes, exact: bool
) -> None:
    """And nothing that is no such message is taken for one, whatever its header says."""
    if exact:
        second, extended = (
            (0x80 | len(rest), b"") if len(rest) < 126 else (0xFE, len(rest).to_bytes(2, "big"))
        )
    data = bytes((first, second)) + extended + b"\1\2\3\4" + rest

    whole = outcome(lambda: [(TEXT, reader().whole(memoryview(data)))])

    if whole != [(TEXT, None)]:
        assert outcome(lambda: read(reader(), [data])) == whole
    else:
        assert not (exact and first == 0x81)


def outcome(action: Callable[[], object]) -> object:
    """What came of it, or which rule the peer broke."""
    try:
        return action()
    except Violation as broken:
        return broken.code, broken.reason


@pytest.mark.parametrize("before", [frame(TEXT, b"a", final=False), frame(TEXT, b"ab")[:-1]])
def test_nothing_is_read_as_a_whole_behind_the_beginning_of_something_else(before: bytes) -> None:
    frames = reader()
    read(frames, [before])

    assert frames.whole(memoryview(frame(TEXT, b"b"))) is None


def test_nothing_over_the_limit_is_read_as_a_whole() -> None:
    assert reader(limit=9).whole(memoryview(frame(TEXT, b"123456789"))) == b"123456789"
    assert reader(limit=9).whole(memoryview(frame(TEXT, b"1234567890"))) is None
