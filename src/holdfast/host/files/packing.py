"""Packing a tree into an archive, which is made while it is read and never is in memory as a whole."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Generator, Iterator

from holdfast.errors import FileFailed, FileRefused, HoldfastError
from holdfast.files import OMITTED_MOST, TreeCount
from holdfast.model import to_text

from . import tar
from .paths import failure, join, opened_beneath, procfs_names, real_path
from .resolver import Resolver
from .tar import ArchiveMember, MemberKind

_PLAIN = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

_PIECE = 1 << 18
"""Bytes of a file that are read at once."""

_UNSIZED_MOST = 1 << 20
"""Bytes of a file that says it is empty, as those of the kernel do."""

_WAITING_MOST = 16 << 20
"""Bytes of the paths of directories that were found and not yet looked into."""


class TreeArchive:
    """The archive of what is at or below a directory, for one reader that goes from its beginning to its end.

    It has what a list of each directory would show.  Links are packed as they are.  What is neither a file,
    a directory nor a link is left out, and so is what goes while the archive is made.
    """

    def __init__(self, resolver: Resolver, path: bytes) -> None:
        """
        Raises:
            OSError: There is no such directory.
        """
        self._resolver = resolver
        self._path = path
        self._root = resolver.take(path)
        self._pieces = self._make()
        self._rest = b""
        self._position = 0
        self._ended = False
        self._error: HoldfastError | None = None
        self._waiting = 0
        self._lonely = False  # Whether the last header is about what was left out: some member has to follow.
        self._omitted: list[str] = []
        self._files = 0
        self._bytes = 0
        if not stat.S_ISDIR(os.fstat(self._root).st_mode):
            self.close()
            raise failure(errno.ENOTDIR)

    @property
    def count(self) -> TreeCount:
        """What has been packed so far."""
        return TreeCount(self._files, self._bytes, tuple(self._omitted), self._ended)

    def read(self, offset: int, length: int) -> bytes:
        """Return the next bytes; fewer than asked for only at the end.

        Raises:
            FileFailed: Something could not be read, or ``offset`` is not where the last read has ended.
            FileRefused: A file became shorter.
        """
        if self._error is not None:
            raise self._error
        if self._ended and offset >= self._position:
            return b""
        if offset != self._position:
            raise FileFailed(errno.ESPIPE)
        pieces, size = [self._rest], len(self._rest)
        try:
            while size < length and not self._ended:
                piece = next(self._pieces, None)
                if piece is None:
                    self._ended = True
                else:
                    pieces.append(piece)
                    size += len(piece)
        except HoldfastError as error:
            self._error = error
            raise
        found = b"".join(pieces)
        found, self._rest = found[:length], found[length:]
        self._ended &= not self._rest
        self._position += len(found)
        return found

    def write(self, offset: int, data: bytes) -> None:
        """Raise: an archive is read."""
        raise FileFailed(errno.EBADF)

    def close(self) -> None:
        """Close everything that is open.  May be called twice."""
        self._pieces.close()
        root, self._root = self._root, -1
        if root >= 0:
            os.close(root)

    # How it is made.

    def _make(self) -> Generator[bytes, None, None]:
        with self._about(b""):
            mode = os.fstat(self._root).st_mode & 0o777
        root = ArchiveMember(MemberKind.DIRECTORY, (), mode)
        yield tar.header(root)
        waiting = [b""]
        while waiting:
            below = waiting.pop()
            self._waiting -= len(below)
            with self._about(below):
                yield from self._directory(below, waiting)
        if self._lonely:
            yield tar.header(root)
        yield tar.END

    def _directory(self, below: bytes, waiting: list[bytes]) -> Iterator[bytes]:
        """Yield what is in one directory; directories in it are added to ``waiting``."""
        try:
            fd = self._open(below)
        except FileNotFoundError:
            return
        try:
            real = real_path(fd) if self._resolver.ruled else b""
            seen = procfs_names(fd) if self._resolver.ruled else None
            with os.scandir(fd) as scan:
                for entry in scan:
                    name = os.fsencode(entry.name)
                    if seen is not None and name not in seen:
                        continue
                    if self._resolver.ruled and not self._resolver.shows(join(real, name)):
                        continue
                    path = join(below, name) if below else name
                    with self._about(path):
                        yield from self._entry(fd, name, path, waiting)
        finally:
            os.close(fd)

    def _open(self, below: bytes) -> int:
        with opened_beneath(self._root, below or b".") as here:
            self._resolver.inspect(here)
            return os.open(b".", _LISTED, dir_fd=here)

    def _entry(self, directory: int, name: bytes, path: bytes, waiting: list[bytes]) -> Iterator[bytes]:
        if len(path) >= tar.LONGEST:
            raise failure(errno.ENAMETOOLONG)
        try:
            found = os.open(name, _PLAIN, dir_fd=directory)
        except FileNotFoundError:
            return
        try:
            mode = os.fstat(found).st_mode
            parts = tuple(path.split(b"/"))
            if stat.S_ISDIR(mode):
                self._waiting += len(path)
                if self._waiting > _WAITING_MOST:
                    raise FileRefused(f"there are too many directories in {to_text(self._path)!r}")
                waiting.append(path)
                yield self._header(ArchiveMember(MemberKind.DIRECTORY, parts, mode & 0o777))
            elif stat.S_ISLNK(mode):
                target = os.readlink(b"", dir_fd=found)
                yield self._header(ArchiveMember(MemberKind.LINK, parts, 0o777, 0, target))
            elif stat.S_ISREG(mode):
                self._resolver.inspect(found)
                yield from self._file(self._resolver.reopen(found, os.O_RDONLY), parts)
            else:
                self._lonely = True
                if len(self._omitted) < OMITTED_MOST:
                    self._omitted.append(to_text(path))
                yield tar.omitted(path)
        finally:
            os.close(found)

    def _header(self, member: ArchiveMember) -> bytes:
        self._lonely = False
        return tar.header(member)

    def _file(self, fd: int, parts: tuple[bytes, ...]) -> Iterator[bytes]:
        """Yield a file, as long as it is now."""
        try:
            facts = os.fstat(fd)
            size, first = facts.st_size, b""
            if not size:
                while (piece := os.read(fd, _PIECE)) and len(first) < _UNSIZED_MOST:
                    first += piece
                size = len(first)
            yield self._header(ArchiveMember(MemberKind.FILE, parts, facts.st_mode & 0o777, size)) + first
            done = len(first)
            while done < size:
                piece = os.read(fd, min(_PIECE, size - done))
                if not piece:
                    path = join(self._path, b"/".join(parts))
                    raise FileRefused(f"{to_text(path)!r} became shorter while it was read")
                done += len(piece)
                yield piece
            self._files += 1
            self._bytes += size
            yield tar.padding(size)
        finally:
            os.close(fd)

    @contextlib.contextmanager
    def _about(self, name: bytes) -> Iterator[None]:
        """Have an error name the path that it is about."""
        try:
            yield
        except HoldfastError:
            raise
        except OSError as error:
            path = join(self._path, name) if name else self._path
            raise FileFailed(error.errno or errno.EIO, to_text(path)) from error
