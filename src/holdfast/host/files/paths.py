"""Paths in bytes, and the ways to what they name: without links, or with them for whoever is bound by rules.

procfs has links that lead to whatever a process has open, wherever that is: into
other namespaces, and past every rule about paths.  So no link of procfs is followed,
and nothing of a process is passed through, not even on the way to somewhere else.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from functools import cache

from . import procfs

_PATH_MOST = 4096
"""Bytes of a path, with one for its end: the kernel takes no longer ones."""

MOST_LINKS = 40
"""As many as the kernel follows in one path."""

_HERE = -100
"""In place of a directory: the one that the server is in."""

_PATH = os.O_PATH | os.O_CLOEXEC
_DIRECTORY = _PATH | os.O_DIRECTORY

_SHARED = stat.S_ISVTX | stat.S_IWOTH

_OPENAT2 = 437
"""The number of ``openat2``, on every machine: it came after the numbers were made alike."""

NO_SYMLINKS = 0x04
BENEATH = 0x08

_libc = ctypes.CDLL(None, use_errno=True)


def failure(number: int) -> OSError:
    """The system's error with this number."""
    return OSError(number, os.strerror(number))


def check_length(path: bytes) -> None:
    """Raise what the kernel says of a path that is too long, before anything is done with it."""
    if len(path) >= _PATH_MOST:
        raise failure(errno.ENAMETOOLONG)


def real_path(fd: int) -> bytes:
    """Where the kernel says that an open file is.

    Raises:
        OSError: It is nowhere any more.
    """
    if os.fstat(fd).st_nlink == 0:
        raise failure(errno.ENOENT)
    return os.readlink(b"/proc/self/fd/%d" % fd)


def join(directory: bytes, name: bytes) -> bytes:
    return directory + name if directory.endswith(b"/") else directory + b"/" + name


def split(path: bytes) -> tuple[bytes, bytes]:
    """The directory and the name; the root has no name."""
    directory, _, name = path.rpartition(b"/")
    return directory or b"/", name


# The call that walks a path at once, and that Python does not have.


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_resolved(directory: int, path: bytes, flags: int, resolve: int) -> int:
    """Open a path, relative to a directory, that is only resolved as ``resolve`` allows.

    Raises:
        OSError: With ENOSYS if the kernel does not have this.
    """
    how = _How(flags | os.O_CLOEXEC, 0, resolve)
    fd: int = _libc.syscall(
        ctypes.c_long(_OPENAT2), ctypes.c_int(directory), path, ctypes.byref(how), ctypes.sizeof(how)
    )
    if fd < 0:
        raise failure(ctypes.get_errno())
    return fd


def is_missing(error: OSError) -> bool:
    """Whether the kernel does not have this call, or a filter keeps it from us."""
    return error.errno in (errno.ENOSYS, errno.EPERM)


# With links.


def open_path(path: bytes, *, start: int | None = None, last: bool = True) -> int:
    """What is at a path, as a descriptor that opens nothing; with ``last`` a link at its end is followed.

    Args:
        start: The directory that a relative path is relative to.

    Raises:
        OSError: It is not there, or is part of a process.
    """
    flags = _PATH if last else _PATH | os.O_NOFOLLOW
    try:
        fd = open_resolved(_HERE if start is None else start, path, flags, NO_SYMLINKS)
    except FileNotFoundError:
        raise
    except OSError:
        # There is a link on the way, or the kernel cannot do this; or it says what is wrong with
        # something that is not there for us.
        return follow_links(path, start=start, last=last)
    return visible(fd)


def visible(fd: int) -> int:
    """The descriptor, unless it is one of a process: then it is closed, and was not there."""
    try:
        if procfs.is_visible(fd):
            return fd
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    raise failure(errno.ENOENT)


def follow_links(path: bytes, *, start: int | None = None, last: bool = True) -> int:
    """Walk name by name: for links, and for kernels that cannot resolve a path at once."""
    fd = _first(path, start)
    names = _names(path)
    links = 0
    try:
        while names:
            name = names.pop()
            below = visible(os.open(name, _PATH | os.O_NOFOLLOW, dir_fd=fd))
            if not stat.S_ISLNK(os.fstat(below).st_mode) or not (names or last):
                os.close(fd)
                fd = below
                continue
            links += 1
            target = _target(fd, below)
            if links > MOST_LINKS:
                raise failure(errno.ELOOP)
            names += _names(target)
            if target.startswith(b"/"):
                os.close(fd)
                fd = _first(target, None)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _first(path: bytes, start: int | None) -> int:
    if start is None or path.startswith(b"/"):
        return os.open(b"/", _DIRECTORY)
    return os.dup(start)


def _names(path: bytes) -> list[bytes]:
    """The names of a path, the first one last; behind a slash at the end there has to be a directory."""
    names = [name for name in path.split(b"/") if name]
    if path.endswith(b"/"):
        names.append(b".")
    return names[::-1]


def _target(directory: int, link: int) -> bytes:
    """Where a link leads to.  Closes its descriptor."""
    try:
        if not may_follow(os.fstat(directory), os.fstat(link)):
            raise failure(errno.EACCES)
        return os.readlink(b"", dir_fd=link)
    finally:
        os.close(link)


# Without links.


def open_beneath(directory: int | None, path: bytes) -> int:
    """A directory, for relative paths only, on a way without links: from the root, or below a directory."""
    try:
        if directory is None:
            return open_resolved(_HERE, path, _DIRECTORY, NO_SYMLINKS)
        return open_resolved(directory, path, _DIRECTORY, NO_SYMLINKS | BENEATH)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise failure(errno.ENOTDIR) from None
        if not is_missing(error):
            raise
    return step_by_step(directory, path)


def step_by_step(directory: int | None, path: bytes) -> int:
    """Walk without links, for kernels that cannot resolve a path at once."""
    fd = os.open(b"/", _DIRECTORY) if directory is None else os.dup(directory)
    for name in filter(None, path.split(b"/")):
        try:
            below = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd


# What the kernel refuses in directories that everybody may write to.  Somebody may have put a link or a file
# there for others to fall into.  The kernel looks at that when it follows a link, and when it opens a file
# that it was asked to make; whoever follows links and looks for files by himself has to do the same.


def may_follow(directory: os.stat_result, link: os.stat_result) -> bool:
    """Whether the kernel would follow a link in this directory."""
    return (
        not strictness("protected_symlinks")
        or directory.st_mode & _SHARED != _SHARED
        or link.st_uid in (os.geteuid(), directory.st_uid)
    )


def may_write(directory: os.stat_result, file: os.stat_result) -> bool:
    """Whether the kernel would open a file in this directory for somebody who would also have made it."""
    kept = strictness("protected_regular")
    shared_with = stat.S_IWOTH | (stat.S_IWGRP if kept > 1 else 0)
    return (
        not kept
        or not directory.st_mode & stat.S_ISVTX
        or not directory.st_mode & shared_with
        or file.st_uid in (os.geteuid(), directory.st_uid)
    )


@cache
def strictness(setting: str) -> int:
    """How strict the kernel is; where that cannot be read, as strict as it can be."""
    try:
        with open(f"/proc/sys/fs/{setting}", "rb") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 2
