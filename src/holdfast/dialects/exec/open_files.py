"""What one connection has to do with files: handles of open ones, a watch, and locks of paths."""

from __future__ import annotations

from holdfast.config import FileLimits
from holdfast.errors import FileRefused, HandleTaken, LimitReached, UnknownHandle
from holdfast.files import FileWatch, OpenFile

from .path_locks import PathLocks


class Handles:
    """The names that a client gave to its open files."""

    __slots__ = ("_files", "_limits")

    def __init__(self, limits: FileLimits) -> None:
        self._limits = limits
        # None while it is being opened.
        self._files: dict[str, OpenFile | None] = {}

    def __len__(self) -> int:
        return len(self._files)

    def check(self, name: str) -> None:
        """Raise if this cannot be the name of an open file."""
        if len(name.encode()) > self._limits.handle_bytes:
            words = f"file handle ID must not exceed {self._limits.handle_bytes} bytes"
            raise FileRefused(words, bound="file.handle_bytes")

    def reserve(self, name: str) -> None:
        """Take a name for a file that is about to be opened."""
        if name in self._files:
            raise HandleTaken(name)
        if len(self._files) >= self._limits.handles:
            raise LimitReached("file handles of one connection", self._limits.handles, name="file.handles")
        self._files[name] = None

    def put(self, name: str, file: OpenFile) -> None:
        self._files[name] = file

    def get(self, name: str) -> OpenFile:
        file = self._files.get(name)
        if file is None:
            raise UnknownHandle(name)
        return file

    def drop(self, name: str) -> None:
        """Close a file, if there is one, and free its name."""
        file = self._files.pop(name, None)
        if file is not None:
            file.close()

    def close(self) -> None:
        for name in list(self._files):
            self.drop(name)


class MissingWatch:
    """The watch of one connection.  A newer one takes the place of the last."""

    __slots__ = ("_latest", "_watch")

    def __init__(self) -> None:
        self._latest = 0
        self._watch: FileWatch | None = None

    def begin(self, number: int) -> bool:
        """End the last watch for one of this number; False if that is not a newer one."""
        if number <= self._latest:
            return False
        self.stop()
        self._latest = number
        return True

    def is_latest(self, number: int) -> bool:
        return number == self._latest

    def put(self, watch: FileWatch) -> None:
        self._watch = watch

    def stop(self) -> None:
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.stop()


class ConnectionFiles:
    """What one connection has to do with files.  Ends with it."""

    __slots__ = ("handles", "locks", "missing")

    def __init__(self, limits: FileLimits) -> None:
        self.locks = PathLocks(limits.connection_calls)
        self.handles = Handles(limits)
        self.missing = MissingWatch()

    def close(self) -> None:
        self.handles.close()
        self.missing.stop()
