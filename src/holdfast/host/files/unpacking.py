"""Unpacking an archive below a directory, as its bytes arrive, so that nothing lands anywhere else.

What must hold:

1. Everything is made by its name in a directory that was reached from the root of the tree without links, and
   without leaving the tree.  So neither a link of the archive nor one that is there already leads elsewhere.
2. A file or link that has the name of a member is replaced, never written through.  A directory is never
   replaced.
3. A link leads out of the tree only if whoever unpacks allows that.
4. A file that did not arrive as a whole is removed, and until it has nobody else can read it.
5. Only permission bits are set, and only on what was made here.  Nothing becomes set-uid.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator

from holdfast.errors import FileFailed, FileRefused, HoldfastError
from holdfast.files import OMITTED_MOST, TreeCount
from holdfast.model import to_text
from holdfast.sandbox import Access

from . import tar
from .content import write_all
from .making import make_all, make_one
from .paths import failure, join, open_beneath
from .resolver import Resolver, Spot
from .tar import ArchiveMember, MemberKind, OmittedMember, TarReader

_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_TRIES = 3
"""Times that a name is freed for a member, while others may be taking it."""

_CLOSED_MOST = 10_000
"""Directories whose mode is only set at the end, because nothing could be made in them afterwards."""


class TreeExtraction:
    """An archive that is being unpacked, for one writer that goes from its beginning to its end."""

    def __init__(self, resolver: Resolver, path: bytes, *, outside_links: bool) -> None:
        """Make the directory at ``path``, with those above it; it may be there already.

        Args:
            outside_links: Whether links may lead out of the tree.
        """
        self._resolver = resolver
        self._path = path
        self._outside_links = outside_links
        self._is_new = not _is_there(resolver, path)
        self._root = make_all(resolver, path)
        self._reader = TarReader()
        self._position = 0
        self._error: HoldfastError | None = None
        self._here: tuple[tuple[bytes, ...], int] | None = None  # The directory of the last member.
        self._file: tuple[int, ArchiveMember] | None = None
        self._closed_modes: dict[tuple[bytes, ...], int] = {}
        self._omitted: list[str] = []
        self._files = 0
        self._bytes = 0

    @property
    def count(self) -> TreeCount:
        """What has been unpacked so far; what is omitted was so by whoever has packed."""
        return TreeCount(self._files, self._bytes, tuple(self._omitted), self._reader.done)

    def read(self, offset: int, length: int) -> bytes:
        """Raise: this is written."""
        raise FileFailed(errno.EBADF)

    def write(self, offset: int, data: bytes) -> None:
        """Unpack what these bytes complete.

        Raises:
            FileFailed: Something could not be made, or ``offset`` is not where the last bytes have ended.
            FileRefused: It is no archive, or a hostile one.  The members before are there.
        """
        if self._error is not None:
            raise self._error
        if offset != self._position:
            raise FileFailed(errno.ESPIPE)
        self._position += len(data)
        try:
            for found in self._reader.feed(data):
                self._take(found)
            if self._reader.done:
                self._close_directories()
        except HoldfastError as error:
            self._error = error
            raise

    def close(self) -> None:
        """Close everything that is open, and remove what is not complete.  May be called twice."""
        if self._file is not None and self._here is not None:
            (fd, member), self._file = self._file, None
            with contextlib.suppress(OSError):
                found = os.stat(member.path[-1], dir_fd=self._here[1], follow_symlinks=False)
                if os.path.samestat(found, os.fstat(fd)):  # Nobody has taken the name meanwhile.
                    os.unlink(member.path[-1], dir_fd=self._here[1])
            os.close(fd)
        self._leave()
        root, self._root = self._root, -1
        if root >= 0:
            os.close(root)

    # Members.

    def _take(self, found: ArchiveMember | OmittedMember | bytes) -> None:
        if isinstance(found, bytes):
            assert self._file is not None
            fd, member = self._file
            with _about(self._path, member.path):
                write_all(fd, found)
            if self._reader.between:
                self._end_file()
        elif isinstance(found, OmittedMember):
            if len(self._omitted) < OMITTED_MOST:
                self._omitted.append(to_text(found.name))
        else:
            with _about(self._path, found.path):
                self._make(found)
            if self._file is not None and not found.size:
                self._end_file()

    def _make(self, member: ArchiveMember) -> None:
        if member.kind is MemberKind.DIRECTORY:
            self._directory(member)
            return
        if member.kind is MemberKind.LINK and not self._outside_links and not tar.stays_inside(member):
            target = member.target.decode("utf-8", "replace")
            raise FileRefused(
                f"{to_text(member.name)!r} is a link that leads out of the tree, to {target!r};"
                " outside links were not asked for"
            )
        spot = Spot(self._enter(member.path[:-1]), member.path[-1])
        self._resolver.check_spot(spot, Access.WRITE)
        if member.kind is MemberKind.LINK:
            _fresh(spot, lambda: os.symlink(member.target, spot.name, dir_fd=spot.directory))
        else:
            fd = _fresh(spot, lambda: os.open(spot.name, _MAKE, 0o600, dir_fd=spot.directory))
            self._file = fd, member

    def _end_file(self) -> None:
        """Give the last file, which is complete, its mode."""
        assert self._file is not None
        (fd, member), self._file = self._file, None
        try:
            with _about(self._path, member.path):
                os.fchmod(fd, member.mode)
        finally:
            os.close(fd)
        self._files += 1
        self._bytes += member.size

    # Directories.

    def _directory(self, member: ArchiveMember) -> None:
        if not member.path:
            if self._is_new:
                self._is_new = False
                fd = os.open(b".", _DIRECTORY, dir_fd=self._root)
                self._set_mode(fd, (), member.mode)
            return
        spot = Spot(self._enter(member.path[:-1]), member.path[-1])
        try:
            make_one(self._resolver, spot)
        except FileExistsError:
            if not stat.S_ISDIR(os.stat(spot.name, dir_fd=spot.directory, follow_symlinks=False).st_mode):
                raise failure(errno.ENOTDIR) from None
            return
        self._set_mode(os.open(spot.name, _DIRECTORY, dir_fd=spot.directory), member.path, member.mode)

    def _set_mode(self, fd: int, path: tuple[bytes, ...], mode: int) -> None:
        """Set the mode of a directory, and close it.  Until the end we can make something in it."""
        try:
            self._resolver.inspect(fd, Access.WRITE)
            os.fchmod(fd, os.fstat(fd).st_mode & stat.S_ISGID | mode | stat.S_IRWXU)
        finally:
            os.close(fd)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            if len(self._closed_modes) >= _CLOSED_MOST:
                raise FileRefused("the archive has too many directories that cannot be written to")
            self._closed_modes[path] = mode

    def _close_directories(self) -> None:
        """Set the modes of directories in which nothing can be made any more, the inner ones first."""
        self._leave()
        for path in sorted(self._closed_modes, key=len, reverse=True):
            with _about(self._path, path):
                above = open_beneath(self._root, b"/".join(path[:-1]) or b".")
                try:
                    fd = os.open(path[-1] if path else b".", _DIRECTORY, dir_fd=above)
                finally:
                    os.close(above)
                try:
                    self._resolver.inspect(fd, Access.WRITE)
                    os.fchmod(fd, os.fstat(fd).st_mode & stat.S_ISGID | self._closed_modes[path])
                finally:
                    os.close(fd)

    def _enter(self, path: tuple[bytes, ...]) -> int:
        """Return a descriptor of a directory of the tree; it stays open until another one is entered."""
        if self._here is not None and self._here[0] == path:
            return self._here[1]
        self._leave()
        try:
            fd = open_beneath(self._root, b"/".join(path) or b".")
        except FileNotFoundError:
            fd = self._make_above(path)
        self._here = path, fd
        return fd

    def _make_above(self, path: tuple[bytes, ...]) -> int:
        """Make a directory that the archive has not named, with those above it."""
        fd = os.dup(self._root)
        for name in path:
            try:
                with contextlib.suppress(FileExistsError):
                    make_one(self._resolver, Spot(fd, name))
                below = open_beneath(fd, name)
            finally:
                os.close(fd)
            fd = below
        return fd

    def _leave(self) -> None:
        here, self._here = self._here, None
        if here is not None:
            os.close(here[1])


def _fresh(spot: Spot, make: Callable[[], int | None]) -> int:
    """Make something under a name, in place of a file or link that has it."""
    for _ in range(_TRIES):
        try:
            return make() or 0
        except FileExistsError:
            with contextlib.suppress(FileNotFoundError):
                found = os.stat(spot.name, dir_fd=spot.directory, follow_symlinks=False)
                if stat.S_ISDIR(found.st_mode):
                    raise failure(errno.EISDIR) from None
                os.unlink(spot.name, dir_fd=spot.directory)
    raise failure(errno.EEXIST)


def _is_there(resolver: Resolver, path: bytes) -> bool:
    try:
        os.close(resolver.take(path))
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _about(root: bytes, path: tuple[bytes, ...]) -> Iterator[None]:
    """Have an error name the path that it is about."""
    try:
        yield
    except HoldfastError:
        raise
    except OSError as error:
        raise FileFailed(error.errno or errno.EIO, to_text(join(root, b"/".join(path)))) from error
