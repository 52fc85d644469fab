"""Bytes to lines, however they were cut."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import holdfast
from holdfast.api.lines import TextLines
from holdfast.errors import OutOfTurn, OutputGap


class Source:
    """Gives these pieces, one per read; raises those that are errors."""

    def __init__(self, *pieces: bytes | OutputGap) -> None:
        self._pieces = list(pieces)

    async def read(self, n: int = -1) -> bytes:
        piece = self._pieces.pop(0) if self._pieces else b""
        if isinstance(piece, OutputGap):
            raise piece
        return piece


async def lines_of(*pieces: bytes, universal: bool = True, limit: int = 1000) -> list[str]:
    return [line async for line in TextLines(Source(*pieces), universal=universal, limit=limit)]


async def test_lines_have_their_newlines_and_the_last_one_may_have_none() -> None:
    assert await lines_of(b"one\ntw", b"o\n\nthree") == ["one\n", "two\n", "\n", "three"]
    assert await lines_of() == []


async def test_every_end_of_a_line_is_one_if_that_is_wanted() -> None:
    """A terminal writes CR LF, a progress bar CR."""
    pieces = b"10%\r20%\r", b"\n\x0b\xe2\x80\xa8done\r"

    assert await lines_of(*pieces) == ["10%\n", "20%\n", "\x0b\u2028done\n"]
    assert await lines_of(*pieces, universal=False) == ["10%\r20%\r\n", "\x0b\u2028done\r"]


async def test_what_is_no_text_is_shown_as_such() -> None:
    assert await lines_of(b"\xff\n", "ä".encode()[:1]) == ["\ufffd\n", "\ufffd"]


async def test_a_long_line_comes_in_pieces_and_is_not_held() -> None:
    source = Source(*[b"x" * 1000] * 100, b"end\nabc\n")
    lines = TextLines(source, limit=3)

    pieces = []
    async for piece in lines:
        pieces.append(piece)
        assert len(lines._rest) <= 3
        assert sum(map(len, lines._ready)) <= 1010

    assert pieces[-3:] == ["xen", "d\n", "abc\n"]
    assert "".join(pieces) == "x" * 100_000 + "end\nabc\n"


@given(text=st.text(alphabet="aä€😀\n", max_size=40), cuts=st.lists(st.integers(0, 120), max_size=8))
async def test_it_does_not_matter_how_the_bytes_were_cut(text: str, cuts: Sequence[int]) -> None:
    data = text.encode()
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in pairwise(places)]

    assert await lines_of(*pieces) == text.splitlines(keepends=True)


async def test_a_gap_is_told_where_it_is_and_ends_a_line() -> None:
    """Else two halves would be taken for a line that nobody has written."""
    lines = TextLines(Source(b"one\nhal\xc3", OutputGap(2, 3, 10), b"\xa4f\n"))

    found: list[str | OutputGap] = []
    for _ in range(2):
        try:
            async for line in lines:
                found.append(line)
        except OutputGap as gap:
            found.append(gap)

    assert [each if isinstance(each, str) else "gap" for each in found] == [
        "one\n",
        "hal\ufffd",
        "gap",
        "\ufffdf\n",
    ]


async def test_what_cannot_be_is_refused_at_once() -> None:
    async with holdfast.local() as host:
        silent = await host.start(["true"], stdout=holdfast.DEVNULL)
        process = await host.start(["true"])

        with pytest.raises(OutOfTurn, match="dropped"):
            silent.lines()
        with pytest.raises(ValueError, match="limit"):
            process.lines(limit=0)
        with pytest.raises(LookupError):
            process.lines(encoding="no such")
