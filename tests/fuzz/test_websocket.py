"""Frames under random cuts: what a client said does not depend on how it was cut into packets."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.wire import websocket as frames
from holdfast.wire.websocket import BINARY, CONTINUATION, PING, PONG, TEXT, FrameReader, Violation, header
from tests.fakes.effort import effort

pytestmark = pytest.mark.slow

Event = tuple[int, bytes]


def frame(op: int, payload: bytes, mask: bytes, *, final: bool = True) -> bytes:
    head = bytearray(header(op, len(payload), final=final))
    head[1] |= 0x80
    return bytes(head) + mask + bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    return [data[start:end] for start, end in pairwise(edges)]


masks = st.binary(min_size=4, max_size=4)
texts = st.text(max_size=200).map(str.encode)
controls = st.tuples(st.sampled_from([PING, PONG]), st.binary(max_size=125))


@st.composite
def messages(draw: st.DrawFn) -> tuple[bytes, list[Event]]:
    """One message, possibly in fragments with control frames between them."""
    op = draw(st.sampled_from([TEXT, BINARY]))
    payload = draw(texts if op == TEXT else st.binary(max_size=300))
    parts = pieces(payload, draw(st.lists(st.integers(0, 1000), max_size=3)))
    data, events = b"", []
    for index, part in enumerate(parts):
        final = index == len(parts) - 1
        data += frame(CONTINUATION if index else op, part, draw(masks), final=final)
        if not final and draw(st.booleans()):
            control = draw(controls)
            data += frame(*control, draw(masks))
            events.append(control)
    return data, [*events, (op, payload)]


conversations = st.lists(messages(), max_size=5)


def read(chunks: list[bytes]) -> list[Event]:
    frames = FrameReader(1 << 20)
    return [event for chunk in chunks for event in frames.feed(memoryview(chunk))]


@given(conversation=conversations, cuts=st.lists(st.integers(0, 5000), max_size=12))
@effort(150)
def test_messages_do_not_depend_on_the_packets_they_came_in(
    conversation: list[tuple[bytes, list[Event]]], cuts: list[int]
) -> None:
    data = b"".join(part for part, _ in conversation)
    events = [event for _, part in conversation for event in part]

    assert read(pieces(data, cuts)) == events


@given(conversation=conversations)
@effort(25)
def test_a_cut_at_any_position_changes_nothing(conversation: list[tuple[bytes, list[Event]]]) -> None:
    data = b"".join(part for part, _ in conversation)[:600]
    whole = read([data])

    for cut in range(len(data) + 1):
        assert read([data[:cut], data[cut:]]) == whole


@given(payload=st.binary(max_size=300), mask=masks)
@effort(100)
def test_masking_twice_gives_the_payload_back(payload: bytes, mask: bytes) -> None:
    masked = frames.unmask(memoryview(payload), mask)

    assert frames.unmask(memoryview(masked), mask) == payload
    assert frames._with_integers(memoryview(payload), mask) == masked


def outcome(chunks: list[bytes]) -> tuple[list[Event], str]:
    """What was read, and how it ended."""
    frames = FrameReader(2000)
    events: list[Event] = []
    try:
        for chunk in chunks:
            for event in frames.feed(memoryview(chunk)):
                events.append(event)
    except Violation as violation:
        return events, f"{violation.code.name}: {violation.reason}"
    return events, "open"


@given(data=st.binary(max_size=200), cuts=st.lists(st.integers(0, 300), max_size=6))
@effort(300)
def test_noise_is_read_or_refused_the_same_however_it_is_cut(data: bytes, cuts: list[int]) -> None:
    """Nothing but a violation may come out of bytes that are no frames."""
    assert outcome(pieces(data, cuts)) == outcome([data])


@given(
    conversation=conversations, at=st.integers(0, 5000), byte=st.integers(0, 255), cut=st.integers(0, 5000)
)
@effort(200)
def test_one_wrong_byte_is_judged_the_same_however_it_is_cut(
    conversation: list[tuple[bytes, list[Event]]], at: int, byte: int, cut: int
) -> None:
    data = bytearray(b"".join(part for part, _ in conversation) + b"\x81\x80\0\0\0\0")
    data[at % len(data)] = byte

    assert outcome(pieces(bytes(data), [cut])) == outcome([bytes(data)])
