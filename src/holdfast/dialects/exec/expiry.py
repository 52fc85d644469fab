"""A queue of what ends when its time is over (pure, clock passed in)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

_GRAIN = 1 / 128
"""Things that come within this part of the delay end together: thousands cost little more than one."""


class Expiry(Generic[T]):
    """A queue in the order of the deadlines, because all have the same delay."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._queue: deque[_Slice[T]] = deque()

    def add(self, item: T, now: float) -> None:
        if not self._queue or now - self._queue[-1].begin > self._delay * _GRAIN:
            self._queue.append(_Slice(now))
        last = self._queue[-1]
        last.items.append(item)
        last.deadline = now + self._delay

    def __iter__(self) -> Iterator[tuple[T, float]]:
        """Give everything that is here, with its deadline, in the order of the deadlines."""
        for part in self._queue:
            for item in part.items:
                yield item, part.deadline

    def due(self, now: float) -> Iterator[T]:
        """Take out, one by one, what has reached its deadline."""
        while self._queue and self._queue[0].deadline <= now:
            if self._queue[0].items:
                yield self._queue[0].items.popleft()
            else:
                self._queue.popleft()

    @property
    def next_deadline(self) -> float | None:
        return self._queue[0].deadline if self._queue else None


class _Slice(Generic[T]):
    """What came within one grain of time, and ends when the last of it is due."""

    __slots__ = ("begin", "deadline", "items")

    def __init__(self, begin: float) -> None:
        self.begin = self.deadline = begin
        self.items: deque[T] = deque()
