"""The two sides of a copy: this file system, and the files of a host, in the same words.

A writer's file has its final name only once it is complete, if the side allows it.
Here it is written under another name and renamed.  A server has no word for that:
there it is written in place, and removed again if it cannot be completed.
"""

from __future__ import annotations

import contextlib
import os
import stat
from typing import Protocol

from holdfast.errors import FileFailed, HoldfastError
from holdfast.files import Files, OpenFile, Purpose

from .failure import Failure


class Kind:
    """What a path leads to."""

    FILE = "file"
    DIRECTORY = "directory"
    OTHER = "other"
    MISSING = "missing"


class Writer(Protocol):
    """A file that is being written."""

    async def write(self, offset: int, data: bytes) -> None: ...

    async def complete(self) -> None:
        """It is all there."""

    async def give_up(self) -> None:
        """It will not be: leave nothing behind."""


class Side(Protocol):
    """Where files are."""

    def absolute(self, path: str) -> str: ...

    async def kind(self, path: str) -> str: ...

    async def is_link(self, path: str) -> bool: ...

    async def names(self, path: str) -> list[str]:
        """What is in a directory, in order."""

    async def make_directory(self, path: str) -> None:
        """Make it, with all above it; it may be there already."""

    async def size(self, path: str) -> int: ...

    async def mode(self, path: str) -> int | None:
        """Who may do what with a file; None if this side has no word for it."""

    async def reader(self, path: str) -> OpenFile: ...

    async def writer(self, path: str, mode: int | None = None) -> Writer:
        """A file to be written; ``mode`` is that of one that is new, if the side has a word for it."""


class Near:
    """This file system, as this program sees it."""

    def absolute(self, path: str) -> str:
        return os.path.abspath(path)

    async def kind(self, path: str) -> str:
        try:
            mode = os.stat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return Kind.MISSING
        return Kind.DIRECTORY if stat.S_ISDIR(mode) else Kind.FILE if stat.S_ISREG(mode) else Kind.OTHER

    async def is_link(self, path: str) -> bool:
        return stat.S_ISLNK(os.lstat(path).st_mode)

    async def names(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    async def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    async def size(self, path: str) -> int:
        return os.stat(path).st_size

    async def mode(self, path: str) -> int | None:
        return stat.S_IMODE(os.stat(path).st_mode)

    async def reader(self, path: str) -> OpenFile:
        return _NearReader(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    async def writer(self, path: str, mode: int | None = None) -> Writer:
        # As with cp: the user's mask applies, and nobody is made another user.
        return _NearWriter(path, 0o666 if mode is None else mode & 0o777)


class _NearReader:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    async def read(self, offset: int, length: int) -> bytes:
        return os.pread(self._fd, length, offset)

    async def write(self, offset: int, data: bytes) -> None:
        raise NotImplementedError

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class _NearWriter:
    def __init__(self, path: str, mode: int) -> None:
        # Through a link to what it leads to, as any program would write.
        self._path = os.path.realpath(path)
        self._part: str | None = f"{self._path}.{os.getpid()}.part"
        self._mode: int | None = None
        with contextlib.suppress(FileNotFoundError):
            before = os.stat(self._path).st_mode
            self._mode = stat.S_IMODE(before)
            if not stat.S_ISREG(before):
                self._part = None  # A device or a pipe: written as it is, in order.
        flags = os.O_WRONLY | os.O_CLOEXEC
        if self._part is not None:
            flags |= os.O_CREAT | os.O_TRUNC
        try:
            self._fd = os.open(self._part or self._path, flags, mode)
        except OSError as error:
            # The other name is our affair.
            raise OSError(error.errno, error.strerror, path) from None

    async def write(self, offset: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            whole = self._part is None
            count = os.write(self._fd, rest) if whole else os.pwrite(self._fd, rest, offset)
            offset, rest = offset + count, rest[count:]

    async def complete(self) -> None:
        if self._part is not None and self._mode is not None:
            # It is another file now; who may use it stays the same.
            os.fchmod(self._fd, self._mode)
        self._close()
        if self._part is not None:
            os.replace(self._part, self._path)

    async def give_up(self) -> None:
        self._close()
        if self._part is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._part)

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class Far:
    """The files of a host."""

    def __init__(self, files: Files, cwd: str) -> None:
        self._files = files
        self._cwd = cwd

    def absolute(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._cwd, path or "."))

    async def kind(self, path: str) -> str:
        try:
            found = await self._files.metadata(path)
        except FileFailed as error:
            if error.number in (2, 20):  # ENOENT, ENOTDIR
                return Kind.MISSING
            raise
        return Kind.DIRECTORY if found.directory else Kind.FILE if found.file else Kind.OTHER

    async def is_link(self, path: str) -> bool:
        return (await self._files.metadata(path)).link

    async def names(self, path: str) -> list[str]:
        return sorted(entry.name for entry in await self._files.list(path))

    async def make_directory(self, path: str) -> None:
        await self._files.make_directory(path, recursive=True)

    async def size(self, path: str) -> int:
        return (await self._files.metadata(path)).size

    async def mode(self, path: str) -> int | None:
        """The protocol has no word for it."""
        return None

    async def reader(self, path: str) -> OpenFile:
        return await self._files.open(path, Purpose.READ)

    async def writer(self, path: str, mode: int | None = None) -> Writer:
        return _FarWriter(self._files, path, await self._files.open(path, Purpose.REPLACE))


class _FarWriter:
    def __init__(self, files: Files, path: str, file: OpenFile) -> None:
        self._files = files
        self._path = path
        self._file = file

    async def write(self, offset: int, data: bytes) -> None:
        await self._file.write(offset, data)

    async def complete(self) -> None:
        self._file.close()

    async def give_up(self) -> None:
        self._file.close()
        try:
            await self._files.remove(self._path, recursive=False, force=True)
        except HoldfastError:
            raise Failure(f"the copy broke off, and part of it may be left at {self._path}") from None
