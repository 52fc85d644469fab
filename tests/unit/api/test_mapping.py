"""Work side by side, with results in order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import aclosing

import pytest

from holdfast.api.mapping import in_order
from tests.fakes.process import PATIENCE, eventually


class Work:
    """Work that goes on until it is let go, and knows what runs."""

    def __init__(self) -> None:
        self.running: set[int] = set()
        self.begun: list[int] = []
        self.most = 0
        self.ends: dict[int, asyncio.Event] = {}

    def end(self, *items: int) -> None:
        for item in items:
            self.ends.setdefault(item, asyncio.Event()).set()

    async def __call__(self, item: int) -> int:
        self.begun.append(item)
        self.running.add(item)
        self.most = max(self.most, len(self.running))
        try:
            await self.ends.setdefault(item, asyncio.Event()).wait()
            if item < 0:
                raise LookupError(item)
            return item * 10
        finally:
            await asyncio.sleep(0)  # As the end of a process, this takes a while.
            self.running.discard(item)


async def test_results_come_in_the_order_of_the_items() -> None:
    work = Work()
    results = in_order(work, range(3), limit=3)

    first = asyncio.create_task(anext(results))
    await eventually(lambda: len(work.running) == 3)
    work.end(2, 1)
    await eventually(lambda: work.running == {0})
    assert not first.done()
    work.end(0)

    assert [await first, *[result async for result in results]] == [0, 10, 20]


async def test_no_more_runs_at_once_than_may() -> None:
    work = Work()
    work.end(*range(50))

    assert [result async for result in in_order(work, range(50), limit=4)] == [n * 10 for n in range(50)]
    assert work.most == 4


async def test_what_is_ahead_of_a_slow_result_is_bounded() -> None:
    """Items are taken as they are needed, and results are not piled up."""
    taken = []

    def items() -> Iterator[int]:
        for item in range(1000):
            taken.append(item)
            yield item

    work = Work()
    work.end(*range(1, 1000))
    results = in_order(work, items(), limit=2)
    first = asyncio.create_task(anext(results))
    await eventually(lambda: len(work.begun) == 8)
    await eventually(lambda: work.running == {0})
    assert taken == list(range(8))
    work.end(0)

    assert [await first, *[result async for result in results]] == [n * 10 for n in range(1000)]
    assert work.most == 2


async def test_an_error_is_raised_in_its_place_and_ends_what_runs() -> None:
    work = Work()
    work.end(1, -2)
    results = in_order(work, [1, -2, 3, 4], limit=4)

    assert await anext(results) == 10
    with pytest.raises(LookupError):
        await anext(results)
    assert work.running == set()
    assert [result async for result in results] == []


async def test_an_error_is_given_in_its_place_if_that_is_wanted() -> None:
    work = Work()
    work.end(1, -2, 3)

    found = [result async for result in in_order(work, [1, -2, 3], limit=2, passes=(LookupError,))]

    assert [found[0], type(found[1]), found[2]] == [10, LookupError, 30]


async def test_an_error_of_whoever_gives_the_items_comes_after_the_results_before_it() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise OSError("no list")

    work = Work()
    work.end(1, 2)
    results = in_order(work, items(), limit=3)

    assert [await anext(results), await anext(results)] == [10, 20]
    with pytest.raises(OSError, match="no list"):
        await anext(results)


async def test_whoever_leaves_ends_what_runs() -> None:
    work = Work()
    work.end(0)

    async with aclosing(in_order(work, range(9), limit=3)) as results:
        async for _ in results:
            break
        await eventually(lambda: len(work.running) == 3)

    assert work.running == set()


async def test_an_iteration_that_is_dropped_ends_what_runs() -> None:
    """Nobody closes a generator by hand."""
    work = Work()
    work.end(0)

    async for _ in in_order(work, range(9), limit=3):
        break

    async with asyncio.timeout(PATIENCE):
        await eventually(lambda: not work.running)


async def test_cancelling_ends_what_runs_before_it_returns() -> None:
    work = Work()

    async def whole() -> None:
        async for _ in in_order(work, range(9), limit=3):
            pass

    task = asyncio.create_task(whole())
    await eventually(lambda: len(work.running) == 3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert work.running == set()


async def test_nothing_gives_nothing_however_much_may_run() -> None:
    work = Work()

    assert [result async for result in in_order(work, [], limit=10**9)] == []
