"""The output that is kept: numbered, bounded, the newest."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from holdfast.engine.ring import Budget, Ring, Share
from holdfast.model import Chunk, Gap, Stream
from tests.fakes.durable import RingMaker, ring_makers

MUCH = 1 << 40


def chunk(seq: int, size: int = 1) -> Chunk:
    return Chunk(seq, Stream.STDOUT, b"x" * size)


maker: list[RingMaker] = [Ring]


@pytest.fixture(params=["memory", "arena"], autouse=True)
def _form(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test here is about both: whoever reads cannot tell where output is retained."""
    with ring_makers(request.param) as maker[0]:
        yield


def ring(*chunks: Chunk, limit: int = MUCH, most: int = 1000, budget: Budget | None = None) -> Ring:
    made = maker[0](limit=limit, chunks=most, budget=budget or Budget(MUCH))
    for one in chunks:
        made.append(one)
    return made


def kept(of: Ring) -> list[int]:
    """The numbers of what is kept."""
    return [one.seq for one in of.after(0)]


# What is kept.


def test_chunks_are_kept_whole_and_in_order() -> None:
    chunks = [chunk(1, 10), chunk(2, 1), chunk(3, 7)]

    made = ring(*chunks)

    assert made.after(0) == chunks
    assert made.total == 18


def test_over_the_limit_the_oldest_are_dropped_until_the_rest_fits() -> None:
    made = ring(chunk(1, 4), chunk(2, 4), chunk(3, 4), limit=12)
    assert kept(made) == [1, 2, 3]

    made.append(chunk(4, 5))

    assert (kept(made), made.total) == ([3, 4], 9)


def test_the_newest_chunk_stays_whatever_its_size() -> None:
    made = ring(chunk(1, 4), chunk(2, 100), limit=12)

    assert (kept(made), made.total) == ([2], 100)


def test_a_limit_of_nothing_keeps_nothing() -> None:
    """Not even the newest: whoever asks for this has another place for it."""
    budget = Budget(100)
    made = ring(chunk(1, 4), chunk(2, 100), limit=0, budget=budget)

    assert (kept(made), made.total, budget.used) == ([], 0, 0)
    assert list(made.after(0, limit=5)) == []


def test_a_limit_that_is_raised_from_nothing_keeps_what_comes_then() -> None:
    made = ring(chunk(1), limit=0)

    made.limit = 10
    made.append(chunk(2))

    assert kept(made) == [2]


def test_no_more_chunks_are_kept_than_allowed() -> None:
    """One-byte writes cost far more than their bytes."""
    made = ring(*(chunk(seq) for seq in range(1, 11)), most=3)

    assert (kept(made), made.total) == ([8, 9, 10], 3)


def test_a_lower_limit_takes_effect_with_trim() -> None:
    made = ring(*(chunk(seq, 10) for seq in range(1, 6)))

    made.limit = 25
    made.trim()

    assert (kept(made), made.total) == ([4, 5], 20)


def test_a_higher_limit_keeps_more_from_now_on() -> None:
    made = ring(chunk(1, 10), chunk(2, 10), limit=10)

    made.limit = 30
    made.append(chunk(3, 10))
    made.append(chunk(4, 10))

    assert kept(made) == [2, 3, 4]


def test_dropping_for_a_long_time_keeps_exactly_the_newest() -> None:
    """The list is rebuilt now and then; nobody may notice."""
    made = ring(limit=50)
    for seq in range(1, 5000):
        made.append(chunk(seq))
        assert made.total == min(seq, 50)
        assert kept(made) == list(range(max(1, seq - 49), seq + 1))


# The budget.


def test_rings_share_a_budget_and_whoever_adds_drops_its_own() -> None:
    budget = Budget(30)
    quiet = ring(chunk(1, 10), budget=budget)
    busy = ring(chunk(1, 10), chunk(2, 10), budget=budget)

    busy.append(chunk(3, 10))

    assert (kept(quiet), kept(busy), budget.used) == ([1], [2, 3], 30)


def test_each_piece_costs_something_beside_its_bytes_and_gives_it_back() -> None:
    """A child that writes byte by byte takes more memory than it has bytes."""
    budget = Budget(300, piece=100)
    made = ring(*(chunk(seq, 1) for seq in range(1, 6)), budget=budget)

    assert (kept(made), made.total, made.cost, budget.used) == ([4, 5], 2, 202, 202)
    made.close()
    assert budget.used == 0


def test_over_the_budget_the_newest_chunk_of_a_ring_stays() -> None:
    budget = Budget(30)
    ring(chunk(1, 30), budget=budget)

    small = ring(chunk(1, 5), chunk(2, 5), budget=budget)

    assert (kept(small), budget.used) == ([2], 35)


def test_a_closed_ring_gives_the_budget_back_and_keeps_nothing_any_more() -> None:
    """A process that was forgotten may still have said something: nobody will ask for it."""
    budget = Budget(100)
    made = ring(chunk(1, 10), chunk(2, 20), chunk(3, 30), limit=50, budget=budget)
    assert budget.used == 50

    made.close()
    made.append(chunk(4, 7))

    assert (kept(made), made.total, budget.used) == ([], 0, 0)


# What is given to a reader.


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (None, [1, 2, 3]),
        (0, [1]),  # The first is given whatever its size.
        (1, [1]),
        (9, [1]),
        (10, [1]),  # Exactly full: nothing more, not even an empty chunk.
        (11, [1]),
        (14, [1]),
        (15, [1, 2]),
        (16, [1, 2]),
        (20, [1, 2, 3]),
        (10**9, [1, 2, 3]),
    ],
)
def test_a_limit_stops_before_the_chunk_that_would_go_over_it(limit: int | None, expected: list[int]) -> None:
    made = ring(chunk(1, 10), chunk(2, 5), chunk(3, 5))

    assert [one.seq for one in made.after(0, limit=limit)] == expected


def test_a_limit_counts_from_where_the_reader_is() -> None:
    made = ring(*(chunk(seq, 10) for seq in range(1, 6)))

    assert [one.seq for one in made.after(2, limit=20)] == [3, 4]


def test_reading_takes_nothing_away() -> None:
    made = ring(chunk(1), chunk(2))

    assert made.after(0) == made.after(0)
    assert made.after(0, limit=1) == made.after(0, limit=1)


def test_what_was_given_does_not_change_when_the_ring_does() -> None:
    made = ring(chunk(1), chunk(2), limit=2)
    given = made.after(0)

    made.append(chunk(3))
    made.close()

    assert given == [chunk(1), chunk(2)]


def test_an_empty_ring_gives_nothing() -> None:
    assert list(ring().after(0)) == []
    assert list(ring().after(7, limit=3)) == []


def test_every_number_is_found_with_the_exits_number_missing_anywhere() -> None:
    """The exit has a number of the same series and no chunk, so that there is one hole at the most."""
    for last in range(1, 9):
        for hole in range(last + 2):
            numbers = [seq for seq in range(1, last + 1) if seq != hole]
            for dropped in range(len(numbers)):
                made = ring(*map(chunk, numbers), limit=len(numbers) - dropped)
                for after in range(last + 3):
                    expected = [seq for seq in numbers[dropped:] if seq > after]
                    assert [one.seq for one in made.after(after)] == expected


def test_a_ring_does_what_the_rules_say_for_any_sequence_of_steps() -> None:
    """The rules, written down as simply as can be, against a long random life."""
    for seed in range(20):
        dice = random.Random(seed)  # noqa: S311 (a seeded draw, so that a failure can be repeated)
        limit, most = dice.randrange(1, 200), dice.randrange(1, 40)
        made, model, seq = ring(limit=limit, most=most), list[Chunk](), 0
        hole = dice.randrange(1, 400)
        for _ in range(400):
            seq += 2 if seq + 1 == hole else 1
            one = chunk(seq, dice.choice((1, 2, 5, 50)))
            made.append(one)
            model.append(one)
            while len(model) > 1 and (sum(len(c.data) for c in model) > limit or len(model) > most):
                del model[0]
            after = dice.randrange(seq + 2)
            assert made.after(after) == [c for c in model if c.seq > after]
            assert made.total == sum(len(c.data) for c in model)


# A share of the budget.


def test_what_a_share_uses_counts_in_the_whole() -> None:
    whole = Budget(100)
    one, other = Share(whole), Share(whole)

    first, second = ring(chunk(1, 30), budget=one), ring(chunk(1, 20), budget=other)
    assert (one.used, other.used, whole.used) == (30, 20, 50)
    first.close()
    assert (one.used, other.used, whole.used) == (0, 20, 20)
    second.close()

    assert (other.used, whole.used) == (0, 0)


def test_whoever_goes_beyond_its_share_drops_its_own_oldest_and_nobody_elses() -> None:
    whole = Budget(1000)
    small, other = Share(whole, 5), Share(whole)
    beside = ring(chunk(1, 500), budget=other)

    made = ring(*(chunk(seq, 2) for seq in range(1, 6)), budget=small)

    assert [one.seq for one in made.after(0)] == [4, 5]
    assert made.gap(0) == Gap(1, 3, 6)
    assert (small.used, beside.total, beside.gap(0)) == (4, 500, None)


def test_two_rings_of_a_share_have_it_together() -> None:
    share = Share(Budget(1000), 6)
    first, second = ring(chunk(1, 2), chunk(2, 2), budget=share), ring(chunk(1, 2), budget=share)

    second.append(chunk(2, 2))

    assert (first.total, second.total, share.used) == (4, 2, 6)


def test_a_share_without_a_bound_of_its_own_ends_where_the_whole_does() -> None:
    whole = Budget(10)
    one, other = Share(whole), Share(whole, 100)
    ring(chunk(1, 6), budget=other)

    made = ring(*(chunk(seq, 2) for seq in range(1, 6)), budget=one)

    assert ([each.seq for each in made.after(0)], whole.used) == ([4, 5], 10)


def test_the_last_chunk_stays_whatever_the_share_is() -> None:
    """As with every other bound: who reads gets something."""
    made = ring(chunk(1, 9), chunk(2, 9), budget=Share(Budget(MUCH), 0))

    assert [each.seq for each in made.after(0)] == [2]


def test_a_bound_that_changes_counts_from_the_next_chunk_on() -> None:
    share = Share(Budget(MUCH), 100)
    made = ring(chunk(1, 40), chunk(2, 40), budget=share)

    share.most = 50
    assert made.total == 80
    made.append(chunk(3, 10))

    assert (made.total, share.used) == (50, 50)
    share.most = None
    made.append(chunk(4, 90))
    assert made.total == 140
