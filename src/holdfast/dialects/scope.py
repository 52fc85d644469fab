"""The names a client gave its processes (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from holdfast.errors import LimitReached, NameTaken

T = TypeVar("T")


class Starting:
    """A name whose process is on its way."""

    __slots__ = ("_cancel", "cancelled", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.cancelled = False
        self._cancel: Callable[[], object] | None = None

    def cancel(self) -> None:
        """Give the start up.  May be called twice."""
        if not self.cancelled:
            self.cancelled = True
            if self._cancel is not None:
                self._cancel()

    def cancel_with(self, cancel: Callable[[], object]) -> None:
        """Say how the start is given up."""
        self._cancel = cancel


class Scope(Generic[T]):
    """Names to whatever the dialect keeps per process."""

    __slots__ = ("_entries", "_limit")

    def __init__(self, *, limit: int) -> None:
        self._limit = limit
        self._entries: dict[str, T | Starting] = {}

    def reserve(self, name: str) -> Starting:
        """Take a name while its process starts.

        Raises:
            NameTaken: It belongs to another.
            LimitReached: There are too many.
        """
        if name in self._entries:
            raise NameTaken(name)
        if len(self._entries) >= self._limit:
            raise LimitReached("processes of one client", self._limit)
        starting = Starting(name)
        self._entries[name] = starting
        return starting

    def settle(self, starting: Starting, entry: T) -> None:
        """The process runs."""
        self._entries[starting.name] = entry

    def release(self, name: str) -> None:
        """The name is free again."""
        del self._entries[name]

    def find(self, name: str) -> T | Starting | None:
        return self._entries.get(name)

    def __iter__(self) -> Iterator[T | Starting]:
        return iter(list(self._entries.values()))
