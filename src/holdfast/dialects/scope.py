"""The names a client gave its processes, and what ended ones have left behind (pure)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from holdfast.backend import HostedProcess
from holdfast.config import MIB
from holdfast.errors import LimitReached, NameTaken
from holdfast.model import Leftovers

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
        """Set the function that cancels the start."""
        self._cancel = cancel

    def when_settled(self, then: Callable[[], object]) -> None:
        """Have ``then`` called when the process runs, or will not."""
        self._waiting.append(then)

    def settled(self) -> None:
        """Call everybody who waits for the start: the process runs, or it will not."""
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()


def _size(name: str) -> int:
    return len(name.encode(errors="surrogatepass"))


class Scope(Generic[T]):
    """The names that a client gave its processes, each with what the dialect keeps of the process."""

    __slots__ = ("_entries", "_limit", "_more", "_most_bytes", "_name", "_what", "size")

    def __init__(
        self,
        *,
        limit: int,
        most_bytes: int = 64 * MIB,
        what: str = "processes of one client",
        name: str = "",
    ) -> None:
        """
        Args:
            most_bytes: Of all names together.
            what: The entries, in the words of an error.
            name: What their limit is called; that of the bytes is beside it.
        """
        self.size = 0
        """Bytes of all names."""
        self._limit = limit
        self._most_bytes = most_bytes
        self._what = what
        self._name = name
        self._entries: dict[str, T | Starting] = {}
        self._more: dict[str, int] = {}  # Bytes that are remembered beside some of the names.

    def reserve(self, name: str, request: Any = None, *, size: int = 0) -> Starting:
        """Take a name while its process starts.

        Args:
            size: Bytes of what is remembered beside the name; they count as its own.

        Raises:
            NameTaken: It belongs to another.
            LimitReached: There are too many.
        """
        if name in self._entries:
            raise NameTaken(name)
        if len(self._entries) >= self._limit:
            raise LimitReached(self._what, self._limit, name=self._name)
        whole = _size(name) + size
        if self.size + whole > self._most_bytes:
            part = self._name.partition(".")[0]
            raise LimitReached("bytes of names", self._most_bytes, name=f"{part}.name_bytes")
        self.size += whole
        if size:
            self._more[name] = size
        starting = Starting(name, request)
        self._entries[name] = starting
        return starting

    def settle(self, starting: Starting, entry: T) -> None:
        """Put the process that runs now under its name, and call those who wait for its start."""
        self._entries[starting.name] = entry
        starting.settled()

    def replace(self, name: str, entry: T) -> None:
        """Keep something else under this name."""
        self._entries[name] = entry

    def release(self, name: str) -> None:
        """The name is free again."""
        entry = self._entries.pop(name)
        self.size -= _size(name) + self._more.pop(name, 0)
        if isinstance(entry, Starting):
            entry.settled()

    def find(self, name: str) -> T | Starting | None:
        return self._entries.get(name)

    @property
    def names(self) -> list[str]:
        """All names, the oldest first."""
        return list(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[T | Starting]:
        return iter(list(self._entries.values()))


class Room:
    """Bytes that several share."""

    __slots__ = ("_name", "_what", "left", "size")

    def __init__(self, size: int, what: str, *, name: str) -> None:
        """``what`` are the bytes in the words of an error; ``name`` is what their limit is called."""
        self.size = size
        self.left = size
        self._what = what
        self._name = name

    @property
    def taken(self) -> int:
        return self.size - self.left

    def take(self, size: int) -> None:
        """
        Raises:
            LimitReached: There is not so much left; nothing was taken.
        """
        if size > self.left:
            raise LimitReached(self._what, self.size, name=self._name)
        self.left -= size

    def give(self, size: int) -> None:
        self.left += size


class Strays:
    """Ended processes whose clients have forgotten them, and whose leftovers must not be."""

    __slots__ = ("_processes", "_tidy_at")

    def __init__(self) -> None:
        self._processes: list[HostedProcess] = []
        self._tidy_at = 16

    def keep(self, process: HostedProcess) -> None:
        """Remember ``process``, if it has left anybody behind."""
        if not process.has_leftovers:
            return
        if len(self._processes) >= self._tidy_at:
            self._processes = [each for each in self._processes if each.has_leftovers]
            self._tidy_at = 2 * len(self._processes) + 16
        self._processes.append(process)

    def __iter__(self) -> Iterator[HostedProcess]:
        return iter(self._processes)

    def end(self) -> None:
        """End everything that these processes have left behind."""
        for process in self.take():
            process.forget(Leftovers.END)

    def take(self) -> list[HostedProcess]:
        """Hand the processes over to the caller, who ends them."""
        processes, self._processes = self._processes, []
        return processes
