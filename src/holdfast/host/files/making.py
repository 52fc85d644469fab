"""Making directories, with all directories above them, and files that were not there."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from holdfast.errors import FileUnsupported
from holdfast.sandbox import Access

from .paths import failure
from .resolver import Resolver, Spot

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_MODE = 0o777
"""The mode of a new directory, before the umask."""

_PRIVATE = 0o600
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC


def make_directory(resolver: Resolver, path: bytes, *, recursive: bool) -> None:
    """Make a directory.  If ``recursive``, make those above it, too, and it may exist already."""
    if recursive:
        os.close(make_all(resolver, path))
    elif path == b"/":
        raise failure(errno.EEXIST) if resolver.follow else FileUnsupported("directory already exists")
    else:
        with resolver.spot(path) as spot:
            make_one(resolver, spot)


def make_one(resolver: Resolver, spot: Spot) -> None:
    """Make a directory by its name.  That the name is taken is said before that it is forbidden."""
    if resolver.ruled:
        with contextlib.suppress(FileNotFoundError):
            os.stat(spot.name, dir_fd=spot.directory, follow_symlinks=False)
            resolver.check_spot(spot, Access.READ)
            raise failure(errno.EEXIST)
        resolver.check_spot(spot, Access.WRITE)
    os.mkdir(spot.name, _MODE, dir_fd=spot.directory)


def make_all(resolver: Resolver, path: bytes) -> int:
    """Make a directory and all above it.  Return a descriptor of it, for relative paths only.

    They are made one by one through descriptors, so that each is made in the one that was just made.
    """
    try:
        return _find(resolver, path)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
    names = path.strip(b"/").split(b"/")
    fd = os.open(b"/", _DIRECTORY)
    try:
        for index, name in enumerate(names):
            below = _step(resolver, fd, name, last=index == len(names) - 1)
            os.close(fd)
            fd = below
        return resolver.admit(os.dup(fd))
    finally:
        os.close(fd)


def _find(resolver: Resolver, path: bytes) -> int:
    """Return a descriptor of a directory that exists."""
    fd = resolver.take(path)
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise failure(errno.ENOTDIR)


def _step(resolver: Resolver, directory: int, name: bytes, *, last: bool) -> int:
    """Return a descriptor of a directory by its name, which is made if it does not exist."""
    try:
        return resolver.enter(name, start=directory)
    except FileNotFoundError:
        pass
    except OSError as error:
        if last and resolver.follow and error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise failure(errno.EEXIST) from None
        raise
    spot = Spot(directory, name)
    resolver.check_spot(spot, Access.WRITE)
    try:
        os.mkdir(name, _MODE, dir_fd=directory)
    except FileExistsError:
        # Somebody has made it meanwhile, or it is a link that leads nowhere.
        try:
            return resolver.enter(name, start=directory)
        except FileNotFoundError:
            raise failure(errno.EEXIST) from None
    return os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)


class NewFile:
    """A file that was made for us, open for writing; only its owner may read it."""

    def __init__(self, fd: int, spot: Spot) -> None:
        """Both descriptors become ours."""
        self.fd = fd
        self._spot = spot

    def discard(self) -> None:
        """Remove it, unless its name leads to something else by now, and close it."""
        try:
            name, directory = self._spot.name, self._spot.directory
            there = os.stat(name, dir_fd=directory, follow_symlinks=False)
            if os.path.samestat(there, os.fstat(self.fd)):
                os.unlink(name, dir_fd=directory)
        finally:
            self.close()

    def close(self) -> None:
        """Close it.  May be called twice."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(self._spot.directory)
            os.close(fd)

    def __del__(self) -> None:
        with contextlib.suppress(OSError):
            self.close()


def make_file(resolver: Resolver, path: bytes) -> NewFile:
    """Make a file where there is nothing, not even a link."""
    with resolver.spot(path) as spot:
        resolver.check_spot(spot, Access.WRITE)
        fd = os.open(spot.name, _NEW_FILE, _PRIVATE, dir_fd=spot.directory)
        try:
            os.fchmod(fd, _PRIVATE)  # Whatever the umask is.
            return NewFile(fd, Spot(os.dup(spot.directory), spot.name))
        except BaseException:
            os.close(fd)
            raise
