"""The two sides of a copy behind one interface: this file system, and the files of a host.

A file that is written to this file system gets its name when it is complete: it is written under another
name and renamed.  Not every server can rename, so there a file is written in place, and removed if it cannot
be completed.

What must hold on this file system: other programs may write to the same directory.  Files that they create
there, under any name, are neither written to nor mistaken for ours.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from enum import Enum
from secrets import token_hex
from typing import Protocol

from holdfast.api.files import HostFiles
from holdfast.errors import FileFailed, HoldfastError
from holdfast.files import OpenFile, Purpose
from holdfast.wording import counted

from .report import Failure


class PathKind(Enum):
    """What a path leads to, through links."""

    FILE = "file"
    DIRECTORY = "directory"
    OTHER = "other"
    """A device, a pipe or a socket."""
    MISSING = "missing"


class FileReader(Protocol):
    """A file that is being read."""

    async def size(self) -> int:
        """Return the size that the file reports now.  Files of the kernel, as in /proc, report anything."""

    async def read(self, offset: int, length: int) -> bytes:
        """Return up to ``length`` bytes from ``offset`` on, at least one; none at the end of the file."""

    def close(self) -> None:
        """Close the file.  May be called twice."""


class FileWriter(Protocol):
    """A file that is being written."""

    async def write(self, offset: int, data: bytes) -> None:
        """Write all of ``data`` at ``offset``."""

    async def complete(self, size: int) -> None:
        """Close the file, of which ``size`` bytes were written, and give it its name.

        Raises:
            Failure: The file has another size.
        """

    async def discard(self) -> None:
        """Close the file and remove it."""


class CopySide(Protocol):
    """A file system that files are copied from or to."""

    def absolute(self, path: str) -> str:
        """Return the path with the current directory of this side in front, and without ``..``."""

    async def kind(self, path: str) -> PathKind:
        """Find out what a path leads to."""

    async def is_link(self, path: str) -> bool:
        """Whether the path itself is a symbolic link."""

    async def names(self, path: str) -> list[str]:
        """Return the names in a directory, sorted."""

    async def make_directory(self, path: str) -> None:
        """Create a directory and those above it, as far as they do not exist."""

    async def mode(self, path: str) -> int | None:
        """Return the permission bits of a file; None if this side does not report them."""

    async def reader(self, path: str) -> FileReader:
        """Open a file to read it."""

    async def writer(self, path: str, mode: int | None = None) -> FileWriter:
        """Open a file to write it.

        Args:
            mode: The permission bits of a file that is new, if this side can set them.
        """


class LocalSide:
    """This file system.  Implements ``CopySide``."""

    def absolute(self, path: str) -> str:
        return os.path.abspath(path)

    async def kind(self, path: str) -> PathKind:
        try:
            mode = os.stat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return PathKind.MISSING
        return (
            PathKind.DIRECTORY
            if stat.S_ISDIR(mode)
            else PathKind.FILE
            if stat.S_ISREG(mode)
            else PathKind.OTHER
        )

    async def is_link(self, path: str) -> bool:
        return stat.S_ISLNK(os.lstat(path).st_mode)

    async def names(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    async def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    async def mode(self, path: str) -> int | None:
        return stat.S_IMODE(os.stat(path).st_mode)

    async def reader(self, path: str) -> FileReader:
        return _LocalReader(os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    async def writer(self, path: str, mode: int | None = None) -> FileWriter:
        return _LocalWriter(path, mode)


class _LocalReader:
    def __init__(self, fd: int) -> None:
        self._fd = fd

    async def size(self) -> int:
        return os.fstat(self._fd).st_size

    async def read(self, offset: int, length: int) -> bytes:
        return os.pread(self._fd, length, offset)

    def close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class _LocalWriter:
    def __init__(self, path: str, permissions: int | None) -> None:
        # As with cp, set-user-ID bits are not copied.
        self._permissions = None if permissions is None else permissions & 0o777
        mode = 0o666 if self._permissions is None else self._permissions
        # A link is followed, as by any program that writes to it.
        self._path = _followed(path) if os.path.islink(path) else os.path.realpath(path)
        self._part: str | None = os.path.join(os.path.dirname(self._path), f".holdfast-{token_hex(8)}.part")
        self._mode: int | None = None
        with contextlib.suppress(FileNotFoundError):
            before = os.stat(self._path).st_mode
            self._mode = stat.S_IMODE(before)
            if not stat.S_ISREG(before):
                self._part = None  # A device or a pipe: written in place, in order.
        flags = os.O_WRONLY | os.O_CLOEXEC
        if self._part is not None:
            # Only a new file: one that has the name already is not ours.
            flags |= os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            # It may replace a file that is secret, so until then only we may read it.
            mode = mode if self._mode is None else 0o600
        try:
            self._fd = os.open(self._part or self._path, flags, mode)
        except OSError as error:
            # The user knows the path, not the temporary name.
            raise OSError(error.errno, error.strerror, path) from None

    async def write(self, offset: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            in_order = self._part is None
            count = os.write(self._fd, rest) if in_order else os.pwrite(self._fd, rest, offset)
            if count == 0:
                raise OSError(errno.EIO, os.strerror(errno.EIO), self._path)
            offset, rest = offset + count, rest[count:]

    async def complete(self, size: int) -> None:
        if self._part is not None:
            _check_length(self._path, os.fstat(self._fd).st_size, size)
            if self._mode is not None:
                # It is another file now, with the permissions of the one that it replaces.
                os.fchmod(self._fd, self._mode)
            elif self._permissions is not None:
                os.fchmod(self._fd, self._permissions)  # Whatever the umask is.
        self._close()
        if self._part is not None:
            os.replace(self._part, self._path)

    async def discard(self) -> None:
        self._close()
        if self._part is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._part)

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _followed(path: str) -> str:
    """Return the path that a link leads to, if the system lets us write through the link.

    In directories such as /tmp the system does not follow links of other users.  To open the path that such
    a link leads to would bypass that.
    """
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
    except FileNotFoundError:
        raise Failure(f"{path} is a link that leads nowhere; remove it, or name where it leads") from None
    except OSError as error:
        if error.errno != errno.ENXIO:  # A pipe without a reader.  The link was followed.
            raise
    return os.path.realpath(path)


def _check_length(path: str, length: int, size: int) -> None:
    if length != size:
        raise Failure(f"{length} of {counted(size, 'byte')} arrived at {path}")


class HostSide:
    """The files of a host.  Implements ``CopySide``."""

    def __init__(self, files: HostFiles, cwd: str) -> None:
        self._files = files
        self._cwd = cwd

    def absolute(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._cwd, path or "."))

    async def kind(self, path: str) -> PathKind:
        try:
            found = await self._files.metadata(path)
        except FileFailed as error:
            if error.number in (errno.ENOENT, errno.ENOTDIR):
                return PathKind.MISSING
            raise
        return PathKind.DIRECTORY if found.directory else PathKind.FILE if found.file else PathKind.OTHER

    async def is_link(self, path: str) -> bool:
        return (await self._files.metadata(path)).link

    async def names(self, path: str) -> list[str]:
        return sorted(entry.name for entry in await self._files.list(path))

    async def make_directory(self, path: str) -> None:
        await self._files.make_directory(path, recursive=True)

    async def mode(self, path: str) -> int | None:
        """Return the permission bits; None if it is a server that does not tell them."""
        return (await self._files.metadata(path)).permissions

    async def reader(self, path: str) -> FileReader:
        return _HostReader(self._files, path, await self._files.open(path, Purpose.READ))

    async def writer(self, path: str, mode: int | None = None) -> FileWriter:
        permissions = None if mode is None else mode & 0o777
        file = await self._files.open(path, Purpose.REPLACE, permissions=permissions)
        return _HostWriter(self._files, path, file)


class _HostReader:
    def __init__(self, files: HostFiles, path: str, file: OpenFile) -> None:
        self._files = files
        self._path = path
        self._file = file

    async def size(self) -> int:
        return (await self._files.metadata(self._path)).size

    async def read(self, offset: int, length: int) -> bytes:
        return await self._file.read(offset, length)

    def close(self) -> None:
        self._file.close()


class _HostWriter:
    def __init__(self, files: HostFiles, path: str, file: OpenFile) -> None:
        self._files = files
        self._path = path
        self._file = file

    async def write(self, offset: int, data: bytes) -> None:
        await self._file.write(offset, data)

    async def complete(self, size: int) -> None:
        found = await self._files.metadata(self._path)
        if found.file:  # A device has no length.
            _check_length(self._path, found.size, size)
        self._file.close()

    async def discard(self) -> None:
        self._file.close()
        try:
            await self._files.remove(self._path, recursive=False, force=True)
        except HoldfastError:
            raise Failure(f"the copy broke off, and part of it may be left at {self._path}") from None
