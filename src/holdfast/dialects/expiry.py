"""Things that end a fixed time after they were put here (pure, clock passed in)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Expiry(Generic[T]):
    """A queue in the order of the deadlines, because all have the same delay."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._queue: deque[tuple[float, T]] = deque()

    def add(self, item: T, now: float) -> None:
        self._queue.append((now + self._delay, item))

    def due(self, now: float) -> Iterator[T]:
        """Take out, one by one, what has reached its deadline."""
        while self._queue and self._queue[0][0] <= now:
            yield self._queue.popleft()[1]

    @property
    def next_deadline(self) -> float | None:
        return self._queue[0][0] if self._queue else None
