"""What a reader is given; the contract has the rest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from holdfast.engine.ring import Budget, Ring, is_news, page
from holdfast.model import Chunk, Exit, Gap, Kind, Outcome, Stream
from tests.fakes.durable import RingMaker, ring_makers

END = Exit(0, Outcome(Kind.EXIT, 0))


maker: list[RingMaker] = [Ring]


@pytest.fixture(params=["memory", "arena"], autouse=True)
def _form(request: pytest.FixtureRequest) -> Iterator[None]:
    with ring_makers(request.param) as maker[0]:
        yield


def ring(*sizes: int, limit: int = 100) -> Ring:
    made = maker[0](limit=limit, chunks=100, budget=Budget(10**6))
    for number, size in enumerate(sizes, 1):
        made.append(Chunk(number, Stream.STDOUT, bytes(size)))
    return made


def test_without_a_limit_the_reader_knows_everything() -> None:
    found = page(ring(1, 2), 0, None, next_seq=9, end=END, closed=True)

    assert ([chunk.seq for chunk in found.chunks], found.next_seq) == ([1, 2], 9)
    assert (found.exit, found.closed, found.gap) == (END, True, None)


def test_with_a_limit_the_reader_goes_on_behind_what_it_got() -> None:
    found = page(ring(1, 2), 0, 1, next_seq=9, end=None, closed=False)

    assert ([chunk.seq for chunk in found.chunks], found.next_seq) == ([1], 2)


def test_what_is_missing_is_told() -> None:
    found = page(ring(60, 60, 60), 1, None, next_seq=4, end=None, closed=False)

    assert found.gap == Gap(2, 2, 60)


@pytest.mark.parametrize(
    ("after", "end", "closed", "news"),
    [(0, None, False, False), (0, END, False, True), (1, END, False, False), (9, END, True, True)],
)
def test_an_exit_that_was_seen_is_no_news(
    after: int,
    end: Exit | None,
    closed: bool,  # noqa: FBT001
    news: bool,  # noqa: FBT001
) -> None:
    found = page(ring(), after, None, next_seq=2, end=end, closed=closed)

    assert is_news(found, after) == news
