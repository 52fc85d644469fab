"""Lines under random cuts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.effort import effort
from tests.fuzz.targets.lines import model, read

pytestmark = pytest.mark.slow

streams = st.lists(st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"bcd", b"\0", b"{}"]), max_size=40).map(
    b"".join
)
LIMIT = 12


@given(data=streams, cuts=st.lists(st.integers(0, 100), max_size=10))
@effort(300)
def test_lines_do_not_depend_on_how_the_stream_is_cut(data: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]

    assert read([data[start:end] for start, end in pairwise(edges)], LIMIT) == model(data, LIMIT)


@given(data=streams)
@effort(60)
def test_lines_are_the_same_with_a_cut_at_every_position(data: bytes) -> None:
    for cut in range(len(data) + 1):
        assert read([data[:cut], data[cut:]], LIMIT) == model(data, LIMIT)
