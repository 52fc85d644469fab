"""Runs work side by side, a bounded part of it at once, and gives the results in order.

What must hold:

1. At most ``limit`` pieces of work run at once, and at most ``_AHEAD * limit`` have begun whose result was
   not given.
2. When the generator ends, however that is, no work of it runs any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Any, Generic, TypeVar

T = TypeVar("T")

AT_ONCE = 16
"""Commands that run at once by default: enough to keep a host busy, few enough not to fill it."""

_AHEAD = 4
"""Results that are held while an earlier one is not there, for each piece of work that may run."""


async def in_order(
    work: Callable[[T], Awaitable[object]],
    items: Iterable[T],
    *,
    limit: int,
    passes: tuple[type[Exception], ...] = (),
) -> AsyncGenerator[Any, None]:
    """Give the results of ``work`` for each item, in the order of the items.

    Args:
        passes: Errors that are given in place of a result.  Others are raised at their place.
    """
    window = _Window(work, items, limit=limit)
    try:
        while await window.has_next():
            found = window.take()
            if isinstance(found, _Failure):
                if not isinstance(found.error, passes):
                    raise found.error
                yield found.error
            else:
                yield found
    finally:
        await window.end()


class _Failure:
    """An error in place of a result."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class _Window(Generic[T]):
    """The work that has begun, and the results that were not given yet."""

    def __init__(self, work: Callable[[T], Awaitable[object]], items: Iterable[T], *, limit: int) -> None:
        self._work = work
        self._items = iter(items)
        self._limit = limit
        self._taken = self._given = self._busy = 0
        self._is_over = False
        self._results: dict[int, object] = {}
        self._news = asyncio.Event()  # There is another result, or a worker has ended.
        self._room = asyncio.Event()  # A result was given.
        self._workers: list[asyncio.Task[None]] = []
        self._add_worker()

    def _add_worker(self) -> None:
        self._busy += 1
        self._workers.append(asyncio.create_task(self._work_on()))

    async def _work_on(self) -> None:
        """Work on one item after the other, until there is none."""
        try:
            while True:
                while self._taken - self._given >= _AHEAD * self._limit:
                    self._room.clear()
                    await self._room.wait()
                if self._is_over:
                    return
                # Nothing waits from here to the work, so no two workers take the same number.
                number = self._taken
                try:
                    item = next(self._items)
                except StopIteration:
                    self._is_over = True
                    return
                except Exception as error:  # noqa: BLE001  (code of the caller; raised in its place)
                    self._is_over = True
                    self._results[number] = _Failure(error)
                    return
                self._taken += 1
                if len(self._workers) < self._limit:
                    self._add_worker()
                self._results[number] = await self._attempt(item)
                self._news.set()
        finally:
            self._busy -= 1
            self._news.set()

    async def _attempt(self, item: T) -> object:
        try:
            return await self._work(item)
        except Exception as error:  # noqa: BLE001  (it is raised in its place in the order)
            return _Failure(error)

    async def has_next(self) -> bool:
        """Wait for the next result in order; return False if there is none."""
        while self._given not in self._results:
            if not self._busy:
                return False
            self._news.clear()
            await self._news.wait()
        return True

    def take(self) -> object:
        """Return the next result, and make room for another one."""
        found = self._results.pop(self._given)
        self._given += 1
        self._room.set()
        return found

    async def end(self) -> None:
        """End what still runs."""
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
