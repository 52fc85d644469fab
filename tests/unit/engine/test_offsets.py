"""Where in a ring the bytes of each stream are: however it is asked, and whatever was dropped."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.engine import offsets
from holdfast.engine.offsets import RANGE_MOST, STRIDE, read_range
from holdfast.engine.ring import Budget, Ring
from holdfast.model import Chunk, Stream
from holdfast.ranges import OutputRange
from tests.fakes.durable import RingMaker, ring_makers

OUT, ERR, PTY = Stream.STDOUT, Stream.STDERR, Stream.PTY
MUCH = 1 << 40

maker: list[RingMaker] = [Ring]


@pytest.fixture(params=["memory", "arena"], autouse=True)
def _form(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test here is about both: whoever asks cannot tell where output is retained."""
    with ring_makers(request.param) as maker[0]:
        yield


def ring(limit: int = MUCH) -> Ring:
    return maker[0](limit=limit, chunks=50_000, budget=Budget(MUCH))


def say(made: Ring, chunks: list[tuple[Stream, bytes]], first: int = 1) -> dict[Stream, bytes]:
    """Have a process say this; return all of each stream."""
    said = {OUT: b"", ERR: b"", PTY: b""}
    for seq, (stream, data) in enumerate(chunks, first):
        made.append(Chunk(seq, stream, data))
        said[stream] += data
    return said


def ask(made: Ring, stream: Stream, offset: int = 0, length: int = MUCH) -> OutputRange:
    found = None
    while found is None:
        found = read_range(made, stream, offset, length, until=MUCH, ended=False)
    return found


def whole(made: Ring, stream: Stream) -> bytes:
    """What is kept, one answer after the other."""
    found = ask(made, stream)
    at, data = found.first_offset, b""
    while at < found.total:
        found = ask(made, stream, at)
        assert found.data
        data += found.data
        at = found.next
    return data


def test_a_stream_that_says_nothing_is_empty() -> None:
    assert ask(ring(), OUT) == OutputRange(OUT, 0, b"", 0, 0, 0, ended=False)


def test_bytes_are_counted_for_each_stream_by_itself() -> None:
    made = ring()
    say(made, [(OUT, b"abc"), (ERR, b"12"), (OUT, b"def"), (ERR, b"345")])

    assert ask(made, OUT, 2, 3) == OutputRange(OUT, 2, b"cde", 5, 6, 0, ended=False)
    assert ask(made, ERR, 1, 9) == OutputRange(ERR, 1, b"2345", 5, 5, 0, ended=False)


def test_behind_the_end_there_is_nothing_yet() -> None:
    made = ring()
    say(made, [(OUT, b"abc")])

    found = ask(made, OUT, 7)

    assert (found.data, found.next, found.total) == (b"", 7, 3)
    assert not found.is_lost


def test_what_was_dropped_is_told_and_nothing_is_shifted() -> None:
    made = ring(limit=6)
    say(made, [(OUT, b"abc"), (ERR, b"12"), (OUT, b"def"), (ERR, b"345")])

    lost, kept = ask(made, OUT, 1), ask(made, OUT, 3)

    assert (lost.data, lost.first_offset, lost.next, lost.is_lost) == (b"", 3, 3, True)
    assert (kept.data, kept.is_lost) == (b"def", False)
    assert (ask(made, ERR, 2).data, ask(made, ERR, 0).first_offset) == (b"345", 2)


def test_an_answer_has_a_bound() -> None:
    made = ring()
    said = say(made, [(OUT, bytes([number % 256]) * 4000) for number in range(300)])

    found = ask(made, OUT)

    assert len(found.data) == RANGE_MOST
    assert whole(made, OUT) == said[OUT]


def test_single_bytes_are_joined_as_far_as_one_look_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may write them one by one, and others have their turn."""
    monkeypatch.setattr(offsets, "_PIECES", STRIDE)
    made = ring()
    said = say(made, [((OUT, ERR)[seq % 3 == 0], bytes([seq % 256])) for seq in range(20 * STRIDE)])

    assert len(ask(made, ERR).data) < len(said[ERR])
    assert (whole(made, OUT), whole(made, ERR)) == (said[OUT], said[ERR])


def test_the_first_look_at_much_takes_several_turns() -> None:
    made = ring()
    said = say(made, [(OUT, b"x")] * 5000 + [(ERR, b"late")])

    assert read_range(made, ERR, 0, 4, until=MUCH, ended=False) is None
    assert ask(made, ERR).data == b"late"
    assert whole(made, OUT) == said[OUT]


def test_whoever_talks_on_is_not_waited_for() -> None:
    made = ring()
    say(made, [(OUT, b"x")] * (STRIDE * 40))

    found = None
    while found is None:
        found = read_range(made, OUT, 0, 10, until=STRIDE * 20, ended=False)

    assert STRIDE * 20 <= found.total < STRIDE * 40


def test_marks_stay_true_when_what_they_count_was_dropped() -> None:
    made = ring(limit=3000)
    expected = {OUT: b"", ERR: b""}
    for turn in range(20):
        chunks = [((OUT, ERR)[(seq + turn) % 2], b"%d," % seq) for seq in range(400)]
        said = say(made, chunks, turn * 400 + 1)
        expected = {stream: expected[stream] + said[stream] for stream in (OUT, ERR)}
        for stream in (OUT, ERR):
            first = ask(made, stream).first_offset
            assert whole(made, stream) == expected[stream][first:]
            assert first > 0 or turn < 10


def test_output_that_nobody_wanted_counts() -> None:
    """With a limit of 0 it is not kept; what is kept later has its true place all the same."""
    made = ring(limit=0)
    say(made, [(OUT, b"abc"), (ERR, b"12")])
    nothing = ask(made, OUT)
    made.retain(100)
    for seq, stream, data in ((3, OUT, b"def"), (4, ERR, b"3")):
        made.append(Chunk(seq, stream, data))

    assert (nothing.total, nothing.first_offset) == (3, 3)
    assert ask(made, OUT, 3) == OutputRange(OUT, 3, b"def", 6, 6, 3, ended=False)
    assert ask(made, ERR, 0) == OutputRange(ERR, 0, b"", 2, 3, 2, ended=False)


def test_a_limit_that_comes_and_goes_makes_no_holes() -> None:
    made = ring()
    say(made, [(OUT, b"abc")])
    made.retain(0)
    say(made, [(OUT, b"def")], 2)
    between = ask(made, OUT)
    made.retain(100)
    say(made, [(OUT, b"ghi")], 3)

    assert between.total == 6
    assert ask(made, OUT, 6) == OutputRange(OUT, 6, b"ghi", 9, 9, 6, ended=False)


CHUNKS = st.lists(st.tuples(st.sampled_from([OUT, ERR]), st.integers(1, 9)), min_size=1, max_size=60)


@given(chunks=CHUNKS, limit=st.integers(1, 120), cuts=st.sets(st.integers(0, 300), max_size=8))
@settings(deadline=None, max_examples=60)
@pytest.mark.parametrize("form", ["memory", "arena"])
def test_any_partition_of_what_is_kept_is_the_whole(
    form: str, chunks: list[tuple[Stream, int]], limit: int, cuts: set[int]
) -> None:
    """Compared with a model that keeps everything."""
    with ring_makers(form) as make:
        made = make(limit=limit, chunks=50_000, budget=Budget(MUCH))
        said = say(made, [(stream, bytes([n]) * size) for n, (stream, size) in enumerate(chunks)])
        kept = {OUT: b"", ERR: b""}
        for chunk in made.after(0):
            kept[chunk.stream] += chunk.data

        for stream in (OUT, ERR):
            first, total = ask(made, stream).first_offset, len(said[stream])
            assert total - first == len(kept[stream])
            places = sorted({first, *(cut for cut in cuts if first < cut < total), total})
            parts = [ask(made, stream, start, end - start) for start, end in pairwise(places)]
            assert b"".join(part.data for part in parts) == kept[stream] == said[stream][first:]
            assert all(part.total == total and part.first_offset == first for part in parts)
