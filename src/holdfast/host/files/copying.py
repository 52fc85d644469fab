"""Copying files, links and whole trees."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator

from holdfast.errors import FileRefused
from holdfast.sandbox import Access

from .making import make_all, make_one
from .reach import Reach, Spot, failure, join, open_beneath, real_path, split
from .whole import write_all

_STEP = 1 << 30
"""Bytes that the kernel is asked to copy at once."""

_PIECE = 1 << 20
"""The same where we have to do it."""

_CANNOT = frozenset({errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EPERM, errno.EOPNOTSUPP, errno.EBADF})
"""What the kernel says to pairs of files that it cannot copy by itself."""

_INSIDE = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PLAIN = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def copy(reach: Reach, source: bytes, destination: bytes, *, recursive: bool) -> None:
    """Copy a file with its mode, a link as it is, or a directory with all that is in it."""
    with reach.find(source, last=False) as found:
        mode = os.fstat(found).st_mode
        if stat.S_ISDIR(mode):
            if not recursive:
                raise FileRefused("fs/copy requires recursive: true when sourcePath is a directory")
            _copy_tree(reach, found, destination)
        elif stat.S_ISLNK(mode):
            with reach.spot(destination) as spot:
                _copy_link(reach, found, spot)
        elif stat.S_ISREG(mode):
            _copy_file(reach, found, lambda mode: reach.create(destination, mode, flags=0))
        else:
            raise FileRefused("fs/copy only supports regular files, directories, and symlinks")


# One thing.


def _copy_link(reach: Reach, found: int, spot: Spot) -> None:
    target = os.readlink(b"", dir_fd=found)
    if reach.ruled:
        with contextlib.suppress(FileNotFoundError):
            os.stat(spot.name, dir_fd=spot.directory, follow_symlinks=False)
            reach.check_spot(spot, Access.READ)
            raise failure(errno.EEXIST)
        reach.check_spot(spot, Access.WRITE)
    os.symlink(target, spot.name, dir_fd=spot.directory)


def _copy_file(reach: Reach, found: int, create: Callable[[int], int]) -> None:
    """Copy to a file that ``create`` opens, given its mode, and does not empty."""
    source = reach.reopen(found, os.O_RDONLY)
    try:
        facts = os.fstat(source)
        mode = stat.S_IMODE(facts.st_mode)
        target = create(mode & 0o777)
        try:
            there = os.fstat(target)
            if os.path.samestat(facts, there):
                return  # Emptied first, as by the reference, it would be lost.
            if stat.S_ISREG(there.st_mode):
                # Before the bytes, which others may not be meant to see.
                os.fchmod(target, mode & 0o777)
                os.ftruncate(target, 0)
            transfer(source, target)
            if stat.S_ISREG(there.st_mode) and mode > 0o777:
                os.fchmod(target, mode)  # Last: writing would take these bits away.
        finally:
            os.close(target)
    finally:
        os.close(source)


def transfer(source: int, target: int) -> None:
    """Copy the rest of a file, without bringing it here if the kernel can do that."""
    by_kernel = True
    while True:
        if by_kernel:
            try:
                by_kernel = os.copy_file_range(source, target, _STEP) > 0
            except OSError as error:
                if error.errno not in _CANNOT:
                    raise
                by_kernel = False
            # At the end, or at what looks like it in files of the kernel's own.
            continue
        data = os.read(source, _PIECE)
        if not data:
            return
        write_all(target, data)


# A tree.


def _copy_tree(reach: Reach, found: int, destination: bytes) -> None:
    source_path = real_path(found)
    if join(_future(destination), b"").startswith(join(source_path, b"")):
        raise FileRefused("fs/copy cannot copy a directory to itself or one of its descendants")
    root = make_all(reach, destination)
    try:
        pending = [b"."]
        while pending:
            below = pending.pop()
            _copy_directory(reach, found, root, below, pending)
    finally:
        os.close(root)


def _future(path: bytes) -> bytes:
    """Where something would be that is made at a path."""
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


def _copy_directory(reach: Reach, source: int, target: int, below: bytes, pending: list[bytes]) -> None:
    """Copy what is in one directory; directories in it are made and put aside."""
    with _open(source, below) as here, _open(target, below) as there:
        path = real_path(here) if reach.ruled else b""
        fd = os.open(b".", _INSIDE, dir_fd=here)
        try:
            with os.scandir(fd) as scan:
                for entry in scan:
                    name = os.fsencode(entry.name)
                    if reach.ruled:
                        reach.check(join(path, name), Access.READ)
                    if _copy_entry(reach, here, Spot(there, name)):
                        pending.append(join(below, name))
        finally:
            os.close(fd)


@contextlib.contextmanager
def _open(root: int, below: bytes) -> Iterator[int]:
    fd = open_beneath(root, below)
    try:
        yield fd
    finally:
        os.close(fd)


def _copy_entry(reach: Reach, source: int, spot: Spot) -> bool:
    """Copy one name to the same in another directory; True for a directory that was made."""
    found = os.open(spot.name, _PLAIN, dir_fd=source)
    try:
        mode = os.fstat(found).st_mode
        if stat.S_ISLNK(mode):
            _copy_link(reach, found, spot)
        elif stat.S_ISREG(mode):
            _copy_file(reach, found, lambda mode: _create(reach, spot, mode))
        elif stat.S_ISDIR(mode):
            _make(reach, spot)
            return True
    finally:
        os.close(found)
    return False


def _create(reach: Reach, spot: Spot, mode: int) -> int:
    reach.check_spot(spot, Access.WRITE)
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    return os.open(spot.name, flags, mode, dir_fd=spot.directory)


def _make(reach: Reach, spot: Spot) -> None:
    """A directory, which may be there already.  A link to one is none: it could lead anywhere."""
    try:
        make_one(reach, spot)
    except FileExistsError:
        if not stat.S_ISDIR(os.stat(spot.name, dir_fd=spot.directory, follow_symlinks=False).st_mode):
            raise
