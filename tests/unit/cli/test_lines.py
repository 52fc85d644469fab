"""The last lines of what a process said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cli.lines import LastLines
from holdfast.model import Chunk, Stream


def last(count: int, *pieces: bytes) -> bytes:
    kept = LastLines(count)
    for number, piece in enumerate(pieces, 1):
        kept.add(Chunk(number, Stream.STDOUT, piece))
    return b"".join(chunk.data for chunk in kept.take())


@pytest.mark.parametrize(
    ("count", "pieces", "rest"),
    [
        (0, (b"a\nb\n",), b""),
        (1, (), b""),
        (1, (b"a\nb\n",), b"b\n"),
        (1, (b"a\nb",), b"b"),
        (2, (b"a\n", b"b\n", b"c\n"), b"b\nc\n"),
        (2, (b"a\nb", b"b\nc", b"\n"), b"bb\nc\n"),
        (9, (b"a\nb\n",), b"a\nb\n"),
        (1, (b"\n\n\n",), b"\n"),
    ],
)
def test_so_many_lines_are_kept(count: int, pieces: tuple[bytes, ...], rest: bytes) -> None:
    assert last(count, *pieces) == rest


def test_the_number_and_the_stream_of_a_cut_piece_stay() -> None:
    kept = LastLines(1)
    kept.add(Chunk(5, Stream.STDERR, b"a\nb\n"))

    assert kept.take() == [Chunk(5, Stream.STDERR, b"b\n")]
    assert kept.take() == []


def test_no_more_is_kept_than_is_needed() -> None:
    kept = LastLines(2)
    for number in range(1000):
        kept.add(Chunk(number, Stream.STDOUT, b"x\n"))

    assert len(kept._kept) <= 4


@given(st.integers(1, 5), st.lists(st.sampled_from([b"a", b"\n", b"b\n", b"\nc", b"a\nb\n"])))
def test_however_it_is_cut_the_lines_are_those_of_the_text(count: int, pieces: list[bytes]) -> None:
    lines = b"".join(pieces).splitlines(keepends=True)

    assert last(count, *pieces) == b"".join(lines[-count:])
