"""Copying files, links and whole trees."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator

from holdfast.errors import FileRefused
from holdfast.sandbox import Access

from .content import write_all
from .making import make_all, make_one
from .paths import check_length, failure, join, open_beneath, real_path, split
from .resolver import Resolver, Spot

_STEP = 1 << 30
"""Bytes that the kernel is asked to copy with one call."""

_PIECE = 1 << 20
"""Bytes that are read and written at once where the kernel cannot copy."""

_CANNOT = frozenset({errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EPERM, errno.EOPNOTSUPP, errno.EBADF})
"""Errors of ``copy_file_range`` for files that the kernel cannot copy by itself."""

_INSIDE = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PLAIN = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def copy(resolver: Resolver, source: bytes, destination: bytes, *, recursive: bool) -> None:
    """Copy a file with its mode, a link as a link, or a directory with everything in it."""
    with resolver.find(source, last=False) as found:
        mode = os.fstat(found).st_mode
        if stat.S_ISDIR(mode):
            if not recursive:
                raise FileRefused("fs/copy requires recursive: true when sourcePath is a directory")
            _copy_tree(resolver, found, destination)
        elif stat.S_ISLNK(mode):
            with resolver.spot(destination) as spot:
                _copy_link(resolver, found, spot)
        elif stat.S_ISREG(mode):
            _copy_file(resolver, found, lambda mode: resolver.create(destination, mode, flags=0))
        else:
            raise FileRefused("fs/copy only supports regular files, directories, and symlinks")


# Single files and links.


def _copy_link(resolver: Resolver, found: int, spot: Spot) -> None:
    """Make a link with the target of another one.  An error says first that the name is taken."""
    target = os.readlink(b"", dir_fd=found)
    if resolver.ruled:
        with contextlib.suppress(FileNotFoundError):
            os.stat(spot.name, dir_fd=spot.directory, follow_symlinks=False)
            resolver.check_spot(spot, Access.READ)
            raise failure(errno.EEXIST)
        resolver.check_spot(spot, Access.WRITE)
    os.symlink(target, spot.name, dir_fd=spot.directory)


def _copy_file(resolver: Resolver, found: int, create: Callable[[int], int]) -> None:
    """Copy a file to the one that ``create`` opens, given the mode of a new file, and does not empty."""
    source = resolver.reopen(found, os.O_RDONLY)
    try:
        facts = os.fstat(source)
        mode = stat.S_IMODE(facts.st_mode)
        target = create(mode & 0o777)
        try:
            there = os.fstat(target)
            if os.path.samestat(facts, there):
                return  # A file that is copied to itself must not be emptied first.
            # Before the bytes are there, which other users may not be meant to see.
            os.fchmod(target, mode & 0o777)
            os.ftruncate(target, 0)
            transfer(source, target)
            # A set-uid copy must give the rights of the same owner as the original.  Under rules no copy is
            # set-uid, because another request may be writing to it.
            same = (there.st_uid, there.st_gid) == (facts.st_uid, facts.st_gid)
            if mode > 0o777 and same and not resolver.ruled:
                os.fchmod(target, mode)  # At the end, because writing clears these bits.
        finally:
            os.close(target)
    finally:
        os.close(source)


def transfer(source: int, target: int) -> None:
    """Copy the rest of a file to another one; the kernel does it without us, if it can."""
    by_kernel = True
    while True:
        if by_kernel:
            try:
                by_kernel = os.copy_file_range(source, target, _STEP) > 0
            except OSError as error:
                if error.errno not in _CANNOT:
                    raise
                by_kernel = False
            # It was the end, or seemed to be: files of procfs look empty to this call.  So read on.
            continue
        data = os.read(source, _PIECE)
        if not data:
            return
        write_all(target, data)


# Whole trees.


def _copy_tree(resolver: Resolver, found: int, destination: bytes) -> None:
    """Copy a directory and everything below it, one directory after the other."""
    check_length(destination)
    source_path = real_path(found)
    if join(_future(destination), b"").startswith(join(source_path, b"")):
        raise FileRefused("fs/copy cannot copy a directory to itself or one of its descendants")
    root = make_all(resolver, destination)
    try:
        pending = [b"."]
        while pending:
            below = pending.pop()
            _copy_directory(resolver, found, root, below, pending)
    finally:
        os.close(root)


def _future(path: bytes) -> bytes:
    """Return the path, without links, of what would be made at a path: only a part of that may exist."""
    rest = b""
    while True:
        with contextlib.suppress(OSError):
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                return join(real_path(fd), rest) if rest else real_path(fd)
            finally:
                os.close(fd)
        path, name = split(path)
        rest = join(name, rest) if rest else name


def _copy_directory(resolver: Resolver, source: int, target: int, below: bytes, pending: list[bytes]) -> None:
    """Copy the contents of one directory.  Directories in it are made, and added to ``pending``."""
    with _open(source, below) as here, _open(target, below) as there:
        path = real_path(here) if resolver.ruled else b""
        fd = os.open(b".", _INSIDE, dir_fd=here)
        try:
            with os.scandir(fd) as scan:
                for entry in scan:
                    name = os.fsencode(entry.name)
                    if resolver.ruled:
                        resolver.check(join(path, name), Access.READ)
                    if _copy_entry(resolver, here, Spot(there, name)):
                        pending.append(join(below, name))
        finally:
            os.close(fd)


@contextlib.contextmanager
def _open(root: int, below: bytes) -> Iterator[int]:
    """Give a descriptor of a directory below another one, for a ``with`` block."""
    fd = open_beneath(root, below)
    try:
        yield fd
    finally:
        os.close(fd)


def _copy_entry(resolver: Resolver, source: int, spot: Spot) -> bool:
    """Copy one entry of a directory to ``spot``.  Return whether it is a directory, which was only made."""
    found = os.open(spot.name, _PLAIN, dir_fd=source)
    try:
        resolver.inspect(found)
        mode = os.fstat(found).st_mode
        if stat.S_ISLNK(mode):
            _copy_link(resolver, found, spot)
        elif stat.S_ISREG(mode):
            _copy_file(resolver, found, lambda mode: resolver.create_at(spot, mode, flags=0))
        elif stat.S_ISDIR(mode):
            _make(resolver, spot)
            return True
    finally:
        os.close(found)
    return False


def _make(resolver: Resolver, spot: Spot) -> None:
    """Make a directory, which may exist already.  A link to one does not count: it could lead anywhere."""
    try:
        make_one(resolver, spot)
    except FileExistsError:
        if not stat.S_ISDIR(os.stat(spot.name, dir_fd=spot.directory, follow_symlinks=False).st_mode):
            raise
