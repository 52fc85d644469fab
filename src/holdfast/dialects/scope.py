"""The names a client gave its processes (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from holdfast.errors import LimitReached, NameTaken

T = TypeVar("T")


class Starting:
    """A name whose process is on its way."""

    __slots__ = ("_cancel", "_waiting", "cancelled", "name", "request")

    def __init__(self, name: str, request: Any = None) -> None:
        self.name = name
        self.request = request
        """What the dialect wants to remember of the request."""
        self.cancelled = False
        self._cancel: Callable[[], object] | None = None
        self._waiting: list[Callable[[], object]] = []

    def cancel(self) -> None:
        """Give the start up.  May be called twice."""
        if not self.cancelled:
            self.cancelled = True
            if self._cancel is not None:
                self._cancel()

    def cancel_with(self, cancel: Callable[[], object]) -> None:
        """Say how the start is given up."""
        self._cancel = cancel

    def when_settled(self, then: Callable[[], object]) -> None:
        """Have ``then`` called when the process runs, or will not."""
        self._waiting.append(then)

    def settled(self) -> None:
        """Tell those who wait."""
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()


class Scope(Generic[T]):
    """Names to whatever the dialect keeps per process."""

    __slots__ = ("_entries", "_limit", "_what")

    def __init__(self, *, limit: int, what: str = "processes of one client") -> None:
        """``what`` are the entries, in the words of an error."""
        self._limit = limit
        self._what = what
        self._entries: dict[str, T | Starting] = {}

    def reserve(self, name: str, request: Any = None) -> Starting:
        """Take a name while its process starts.

        Raises:
            NameTaken: It belongs to another.
            LimitReached: There are too many.
        """
        if name in self._entries:
            raise NameTaken(name)
        if len(self._entries) >= self._limit:
            raise LimitReached(self._what, self._limit)
        starting = Starting(name, request)
        self._entries[name] = starting
        return starting

    def settle(self, starting: Starting, entry: T) -> None:
        """The process runs."""
        self._entries[starting.name] = entry
        starting.settled()

    def replace(self, name: str, entry: T) -> None:
        """Keep something else under this name."""
        self._entries[name] = entry

    def release(self, name: str) -> None:
        """The name is free again."""
        entry = self._entries.pop(name)
        if isinstance(entry, Starting):
            entry.settled()

    def find(self, name: str) -> T | Starting | None:
        return self._entries.get(name)

    def __iter__(self) -> Iterator[T | Starting]:
        return iter(list(self._entries.values()))
