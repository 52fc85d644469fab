"""Lines under random cuts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.wire.lines import Lines, LineTooLong

pytestmark = pytest.mark.slow

streams = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"bcd", b"\0", b"{}"]), max_size=40).map(
    b"".join
)
LIMIT = 12


def model(data: bytes) -> tuple[list[bytes], bytes | None]:
    """Slow and plain: the lines, and the rest, or None if one line is too long."""
    *lines, rest = data.split(b"\n")
    found: list[bytes] = []
    for line in lines:
        if len(line) > LIMIT:
            return found, None
        found.append(line.removesuffix(b"\r"))
    return found, None if len(rest) > LIMIT else rest.removesuffix(b"\r")


def read(chunks: list[bytes]) -> tuple[list[bytes], bytes | None]:
    lines = Lines(limit=LIMIT)
    found: list[bytes] = []
    try:
        for chunk in chunks:
            for line in lines.feed(chunk):
                found.append(line)
        return found, lines.rest()
    except LineTooLong:
        return found, None


@given(data=streams, cuts=st.lists(st.integers(0, 100), max_size=10))
@settings(max_examples=300, deadline=None)
def test_lines_do_not_depend_on_how_the_stream_is_cut(data: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]

    assert read([data[start:end] for start, end in pairwise(edges)]) == model(data)


@given(data=streams)
@settings(max_examples=60, deadline=None)
def test_lines_are_the_same_with_a_cut_at_every_position(data: bytes) -> None:
    for cut in range(len(data) + 1):
        assert read([data[:cut], data[cut:]]) == model(data)
