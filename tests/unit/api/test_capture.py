"""What is kept of an output."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.api.capture import _SLACK, CaptureBuffer, Coding, HeadTail

BYTES = Coding()
TEXT = Coding(text=True)


def kept(shape: HeadTail | None, *pieces: bytes, coding: Coding = BYTES) -> tuple[bytes | str, int]:
    buffer = CaptureBuffer(shape)
    for piece in pieces:
        buffer.add(piece)
    return buffer.finish(coding)


def test_bytes_stay_bytes_unless_somebody_wants_text() -> None:
    assert kept(None, b"a\r", b"\n") == (b"a\r\n", 0)
    assert kept(None, b"a\r\nb\rc", coding=TEXT) == ("a\nb\nc", 0)
    assert kept(None, b"\xff", coding=Coding(errors="replace")) == ("\ufffd", 0)
    assert Coding(encoding="utf-16-le").encode("a") == b"a\0"
    assert Coding().encode(b"a") == b"a"


def test_what_fits_is_whole() -> None:
    assert kept(HeadTail(3, 2), b"ab", b"cde") == (b"abcde", 0)
    assert kept(HeadTail(3, 2)) == (b"", 0)


def test_the_middle_is_left_out_and_counted() -> None:
    assert kept(HeadTail(3, 2), b"ab", b"cd", b"efg") == (b"abc\n[... 2 bytes omitted ...]\nfg", 2)
    assert kept(HeadTail(0, 2, marker=""), b"abc") == (b"bc", 1)
    assert kept(HeadTail(2, 0, marker="{omitted}{}"), b"abc") == (b"ab1{}", 1)


def test_a_character_that_is_cut_in_two_is_left_out_whole() -> None:
    """Else the rest of it would be an error, or a riddle."""
    assert kept(HeadTail(2, 2, marker="|"), "a€b€c".encode(), coding=TEXT) == ("a|c", 7)


def test_an_encoding_that_does_not_show_where_characters_begin_is_cut_at_the_byte() -> None:
    latin = Coding(encoding="latin-1")

    assert kept(HeadTail(1, 2, marker="|"), "äöüß".encode("latin-1"), coding=latin) == ("ä|üß", 1)


def test_however_much_is_said_no_more_is_held() -> None:
    buffer = CaptureBuffer(HeadTail(10, 10))

    for _ in range(1000):
        buffer.add(b"x" * 10_000)
        assert len(buffer._head) + len(buffer._tail) <= 20 + _SLACK + 10_000

    data, omitted = buffer.finish(BYTES)
    assert (len(data), omitted) == (20 + len("\n[... 9999980 bytes omitted ...]\n"), 9_999_980)


@given(
    text=st.text(alphabet="aä€😀", max_size=30),
    head=st.integers(0, 12),
    tail=st.integers(0, 12),
    cut=st.integers(0, 40),
)
def test_what_is_kept_and_what_is_left_out_are_the_whole(text: str, head: int, tail: int, cut: int) -> None:
    data = text.encode()

    found, omitted = kept(HeadTail(head, tail, marker="|"), data[:cut], data[cut:], coding=TEXT)

    assert isinstance(found, str)
    first, _, last = found.partition("|")
    assert text.startswith(first)
    assert text.endswith(last)
    assert len(first.encode()) + omitted + len(last.encode()) == len(data)
    assert omitted <= max(0, len(data) - head - tail) + 6


def test_sizes_are_not_negative() -> None:
    with pytest.raises(ValueError, match="at least 0"):
        CaptureBuffer(HeadTail(-1, 5))
