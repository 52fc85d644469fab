"""Output without what a terminal would answer."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.terminal.queries import QueryFilter, is_query

QUERIES = [
    b"\x1b[c",
    b"\x1b[0c",
    b"\x1b[>c",
    b"\x1b[=c",
    b"\x1b[5n",
    b"\x1b[6n",
    b"\x1b[?6n",
    b"\x1b[?996n",
    b"\x1b[x",
    b"\x1b[?2026$p",
    b"\x1b[4$p",
    b"\x1b[>q",
    b"\x1b[>0q",
    b"\x1b[?u",
    b"\x1b[?4m",
    b"\x1b[14t",
    b"\x1b[18t",
    b"\x1b[21t",
    b"\x1b[?1;1;0S",
    b"\x1b[1$w",
    b"\x1b[1;1;1;1;1;1*y",
    b"\x1b]10;?\x07",
    b"\x1b]11;?\x1b\\",
    b"\x1b]4;1;?\x07",
    b"\x1b]52;c;?\x07",
    b"\x1b]21;foreground=?\x1b\\",
    b"\x1b]1337;ReportCellSize\x07",
    b"\x1bP$qm\x1b\\",
    b"\x1bP+q544e\x1b\\",
    b"\x1b_Ga=q,i=31,s=1,v=1;AAAA\x1b\\",
    b"\x1bZ",
]

ACTIONS = [
    b"\x1b[m",
    b"\x1b[2J",
    b"\x1b[?1049h",
    b"\x1b[?25l",
    b"\x1b[>4;2m",
    b"\x1b[>1u",
    b"\x1b[=1;1u",
    b"\x1b[<u",
    b"\x1b[u",
    b"\x1b[2 q",
    b"\x1b[!p",
    b"\x1b[22;0t",
    b"\x1b[8;24;80t",
    b"\x1b[3S",
    b"\x1b[>4n",
    b"\x1b]0;what now?\x07",
    b"\x1b]2;?\x07",
    b"\x1b]8;;http://host/?q=?\x1b\\",
    b"\x1b]10;#ffffff\x07",
    b"\x1b]52;c;aGVsbG8=\x07",
    b"\x1b]7;file://host/?\x07",
    b"\x1bPq#0;2;0;0;0\x1b\\",
    b"\x1b(0",
    b"\x1b7",
    b"\x1bc",
]


@pytest.mark.parametrize("sequence", QUERIES)
def test_a_query_is_taken_out(sequence: bytes) -> None:
    assert is_query(sequence)
    assert QueryFilter().feed(b"before" + sequence + b"after") == b"beforeafter"


@pytest.mark.parametrize("sequence", ACTIONS)
def test_what_changes_the_screen_is_passed_on(sequence: bytes) -> None:
    stream = b"before" + sequence + b"after"

    assert not is_query(sequence)
    assert QueryFilter().feed(stream) == stream


def test_an_enquiry_is_taken_out() -> None:
    assert QueryFilter().feed(b"a\x05b") == b"ab"


def test_control_characters_within_a_query_take_effect() -> None:
    assert QueryFilter().feed(b"a\x1b[6\r\nnb") == b"a\r\nb"


def test_the_beginning_of_a_sequence_is_held_back_until_it_is_known() -> None:
    queries = QueryFilter()

    assert queries.feed(b"a\x1b[6") == b"a"
    assert queries.feed(b"nb") == b"b"
    assert queries.feed(b"\x1b[1") == b""
    assert queries.rest() == b"\x1b[1"


@pytest.mark.parametrize(
    ("stream", "passed"),
    [
        (b"\x1b[\x1b[c6n", b"6n"),
        (b"\x1b\x1b[cZ", b"Z"),
        (b"\x1b]0;a\x1b[cb\x07", b"\x1b]0;a\x1b\\b\x07"),
    ],
)
def test_what_a_query_broke_off_does_not_go_on_behind_it(stream: bytes, passed: bytes) -> None:
    assert QueryFilter().feed(stream) == passed


streams = st.lists(
    st.sampled_from(
        [*QUERIES, *ACTIONS, b"text", b"\r\n", b"\x05", b"\x1b", b"\x1b[", b"\x1b]4;1;", b"\x07", b"6n", b"Z"]
    )
    | st.binary(max_size=4),
    max_size=12,
).map(b"".join)


@given(streams, st.lists(st.integers(0, 120), max_size=12))
def test_the_cut_of_the_stream_makes_no_difference(stream: bytes, cuts: list[int]) -> None:
    whole, cut = QueryFilter(), QueryFilter()
    places = [0, *sorted(place for place in cuts if place < len(stream)), len(stream)]

    expected = whole.feed(stream)
    found = b"".join(cut.feed(stream[a:b]) for a, b in pairwise(places))

    assert found == expected
    assert cut.rest() == whole.rest()


@given(streams)
def test_a_filtered_stream_has_no_query_left(stream: bytes) -> None:
    """Taking one out must not put the halves of another together."""
    once = QueryFilter()
    passed = once.feed(stream) + once.rest()
    again = QueryFilter()

    assert again.feed(passed) + again.rest() == passed
