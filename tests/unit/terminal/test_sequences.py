"""Cutting a terminal's output into text and control sequences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.terminal.sequences import LONGEST, Sequences

ESC = b"\x1b"

WHOLE = [
    b"\x1b[m",
    b"\x1b[1;31m",
    b"\x1b[?1049h",
    b"\x1b[2 q",
    b"\x1b[6\r\nn",
    b"\x1b]0;title\x07",
    b"\x1b]0;title\x1b\\",
    b"\x1bP$qm\x1b\\",
    b"\x1b_Ga=q\x1b\\",
    b"\x1b(B",
    b"\x1b#8",
    b"\x1bc",
    b"\x1b7",
    b"\x1b[12\x18",
]

pieces = st.sampled_from(
    [*WHOLE, b"text", b"\r\n", "漢字".encode(), b"\x1b[", b"\x1b", b"\x1b]0;", b"\x07", b"\\"]
)
streams = st.lists(pieces | st.binary(max_size=6), max_size=12).map(b"".join)


def cut(stream: bytes, size: int) -> tuple[list[bytes], bytes, bytes]:
    """The sequences of a stream that comes in pieces of this size, the text beside them, and what is held."""
    sequences = Sequences()
    found, text = [], b""
    for start in range(0, len(stream), size):
        for is_sequence, piece in sequences.feed(stream[start : start + size]):
            if is_sequence:
                found.append(piece)
            else:
                text += piece
    return found, text, sequences.held


@pytest.mark.parametrize("sequence", WHOLE)
def test_a_sequence_is_one_piece_however_it_comes(sequence: bytes) -> None:
    stream = b"before" + sequence + b"after"

    for size in range(1, len(stream) + 1):
        assert cut(stream, size) == ([sequence], b"beforeafter", b"")


@given(streams, st.integers(1, 9))
def test_the_cut_of_the_stream_makes_no_difference(stream: bytes, size: int) -> None:
    assert cut(stream, size) == cut(stream, len(stream) or 1)


@given(streams, st.integers(1, 9))
def test_nothing_is_lost_or_moved(stream: bytes, size: int) -> None:
    sequences = Sequences()
    passed = b""
    for start in range(0, len(stream), size):
        passed += b"".join(piece for _, piece in sequences.feed(stream[start : start + size]))

    assert passed + sequences.rest() == stream


def test_an_escape_character_breaks_a_sequence_off() -> None:
    assert cut(b"\x1b[12\x1b[m", 1) == ([b"\x1b[12", b"\x1b[m"], b"", b"")


def test_a_sequence_that_is_too_long_is_passed_on_in_parts() -> None:
    """A picture may be of megabytes; what holds it back would hold it all."""
    stream = b"\x1bP" + b"x" * (3 * LONGEST) + b"\x1b\\" + b"\x1b[m"
    sequences = Sequences()
    most, found = 0, []
    for start in range(0, len(stream), 1000):
        found += [piece for is_sequence, piece in sequences.feed(stream[start : start + 1000]) if is_sequence]
        most = max(most, len(sequences.held))

    assert found == [b"\x1b[m"]
    assert most <= LONGEST
    assert [piece for is_sequence, piece in Sequences().feed(stream) if is_sequence] == [b"\x1b[m"]
