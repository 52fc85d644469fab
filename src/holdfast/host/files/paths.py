"""Paths in bytes, and how they are walked: without links, or with links for requests that rules bind.

procfs has links that lead to whatever a process has open, wherever that is: into other namespaces, and past
every rule about paths.  So a walk under rules follows no link of procfs, and passes through nothing that
belongs to a process, not even on the way to something else.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import stat
import struct
from collections.abc import Iterator
from functools import cache

_PATH_MOST = 4096
"""Bytes of the longest path that the kernel takes, with the NUL at its end."""

MOST_LINKS = 40
"""Links that the kernel follows in one path at most."""

_HERE = -100
"""``AT_FDCWD``: a relative path is relative to the working directory."""

_PATH = os.O_PATH | os.O_CLOEXEC
_DIRECTORY = _PATH | os.O_DIRECTORY

_SHARED = stat.S_ISVTX | stat.S_IWOTH

_OPENAT2 = 437
"""The number of ``openat2``, on every machine: it came after the numbers were made alike."""

NO_SYMLINKS = 0x04
BENEATH = 0x08

_libc = ctypes.CDLL(None, use_errno=True)


def failure(number: int) -> OSError:
    """Return the system's error with this number."""
    return OSError(number, os.strerror(number))


def check_length(path: bytes) -> None:
    """Raise the kernel's error about a path that is too long, before anything is done with it."""
    if len(path) >= _PATH_MOST:
        raise failure(errno.ENAMETOOLONG)


def real_path(fd: int) -> bytes:
    """Return the path that the kernel knows for an open file.

    Raises:
        OSError: The file was removed and has no path any more.
    """
    if os.fstat(fd).st_nlink == 0:
        raise failure(errno.ENOENT)
    return os.readlink(b"/proc/self/fd/%d" % fd)


def join(directory: bytes, name: bytes) -> bytes:
    """Return the path of a name in a directory."""
    return directory + name if directory.endswith(b"/") else directory + b"/" + name


def split(path: bytes) -> tuple[bytes, bytes]:
    """Return the directory of a path and the name in it; the name of the root is empty."""
    directory, _, name = path.rpartition(b"/")
    return directory or b"/", name


def future_path(path: bytes) -> bytes:
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


# ``openat2``, which walks a path in one call, and which Python does not have.


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_resolved(directory: int, path: bytes, flags: int, resolve: int) -> int:
    """Open a path, relative to a directory; the kernel refuses what ``resolve`` forbids.

    Raises:
        OSError: Among others, with ENOSYS if the kernel does not have the call.
    """
    how = _How(flags | os.O_CLOEXEC, 0, resolve)
    fd: int = _libc.syscall(
        ctypes.c_long(_OPENAT2), ctypes.c_int(directory), path, ctypes.byref(how), ctypes.sizeof(how)
    )
    if fd < 0:
        raise failure(ctypes.get_errno())
    return fd


def is_missing(error: OSError) -> bool:
    """Whether an error says that the kernel does not have ``openat2``, or that a filter forbids it."""
    return error.errno in (errno.ENOSYS, errno.EPERM)


# Walks that follow links.


def open_path(path: bytes, *, start: int | None = None, last: bool = True) -> int:
    """Return a descriptor of what is at a path.  It stands for the file, and opens nothing.

    Args:
        start: The directory that a relative path is relative to.
        last: Whether a link at the end of the path is followed.

    Raises:
        OSError: Nothing is there, or something that belongs to a process.
    """
    flags = _PATH if last else _PATH | os.O_NOFOLLOW
    try:
        fd = open_resolved(_HERE if start is None else start, path, flags, NO_SYMLINKS)
    except FileNotFoundError:
        raise
    except OSError:
        # There is a link on the way, or the kernel does not have the call.  Or the error is about something
        # that belongs to a process: then the walk below finds that it is not there.
        return follow_links(path, start=start, last=last)
    return visible(fd)


def visible(fd: int) -> int:
    """Return the descriptor.  If it belongs to a process, close it, and raise that nothing is there."""
    try:
        if is_visible(fd):
            return fd
    except BaseException:
        os.close(fd)
        raise
    os.close(fd)
    raise failure(errno.ENOENT)


def follow_links(path: bytes, *, start: int | None = None, last: bool = True) -> int:
    """Do what ``open_path`` does, name by name: for paths with links, and for kernels without ``openat2``."""
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
    """Return a descriptor of the directory in which a walk begins."""
    if start is None or path.startswith(b"/"):
        return os.open(b"/", _DIRECTORY)
    return os.dup(start)


def _names(path: bytes) -> list[bytes]:
    """Return the names of a path, the last one first.  A final slash counts as ``.``, as for the kernel."""
    names = [name for name in path.split(b"/") if name]
    if path.endswith(b"/"):
        names.append(b".")
    return names[::-1]


def _target(directory: int, link: int) -> bytes:
    """Return the target of a link.  Closes the descriptor of the link."""
    try:
        if not may_follow(os.fstat(directory), os.fstat(link)):
            raise failure(errno.EACCES)
        return os.readlink(b"", dir_fd=link)
    finally:
        os.close(link)


# Walks that refuse links.


def open_beneath(directory: int | None, path: bytes) -> int:
    """Return a descriptor of a directory, for relative paths only.  No part of the path may be a link.

    Args:
        directory: The path is relative to this directory, and stays below it; None for an absolute path.
    """
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
    """Do what ``open_beneath`` does, name by name: for kernels without ``openat2``."""
    fd = os.open(b"/", _DIRECTORY) if directory is None else os.dup(directory)
    for name in filter(None, path.split(b"/")):
        try:
            below = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd


@contextlib.contextmanager
def opened_beneath(root: int, below: bytes) -> Iterator[int]:
    """Give a descriptor of a directory below another one, for a ``with`` block."""
    fd = open_beneath(root, below)
    try:
        yield fd
    finally:
        os.close(fd)


# Directories that everybody may write to.  Somebody may have put a link or a file there as a trap.  The
# kernel checks for that when it follows a link, and when it opens a file with O_CREAT.  This module walks
# links by itself, and ``Resolver`` opens before it makes, so both have to make the same checks.


def may_follow(directory: os.stat_result, link: os.stat_result) -> bool:
    """Whether the kernel would follow this link in this directory."""
    return (
        not strictness("protected_symlinks")
        or directory.st_mode & _SHARED != _SHARED
        or link.st_uid in (os.geteuid(), directory.st_uid)
    )


def may_write(directory: os.stat_result, file: os.stat_result) -> bool:
    """Whether the kernel would open this file in this directory for writing, with O_CREAT."""
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
    """Return the level of a setting in ``/proc/sys/fs``; the strictest, if it cannot be read."""
    try:
        with open(f"/proc/sys/fs/{setting}", "rb") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 2


# What requests may see of procfs, which shows the server's own memory, variables and open files.  It is
# recognized by the kind of the file system, and a place in it by its mount, never by a path: it may be
# mounted anywhere, and parts of it at other paths.

PROCFS_READABLE = frozenset(
    (
        b"cpuinfo",
        b"diskstats",
        b"filesystems",
        b"loadavg",
        b"meminfo",
        b"stat",
        b"swaps",
        b"uptime",
        b"version",
        b"vmstat",
    )
)
"""Files about the host that say the same to everybody, and for which reading has no effect."""

_MOUNT = re.compile(rb"mnt_id:\s*(\d+)")
_ESCAPED = re.compile(rb"\\([0-7]{3})")
_MEMORY = re.compile(rb"/\d+/(?:task/\d+/)?mem")

_PROC_MAGIC = 0x9FA0
_STATFS_MOST = 256
"""Bytes of ``struct statfs`` on any machine."""


def is_procfs(fd: int) -> bool:
    """Whether an open file is on procfs."""
    buffer = ctypes.create_string_buffer(_STATFS_MOST)
    if _libc.fstatfs(fd, buffer):
        raise failure(ctypes.get_errno())
    # The kind is the first field, of four or eight bytes, in the byte order of the machine.
    return _PROC_MAGIC in struct.unpack_from("=II", buffer)


def procfs_names(fd: int) -> frozenset[bytes] | None:
    """Return the names that may be seen in an open directory; None if it is on another file system."""
    if not is_procfs(fd):
        return None
    return PROCFS_READABLE if procfs_place(fd) == b"/" else frozenset()


def is_visible(fd: int) -> bool:
    """Whether a request that rules bind may see an open file.  Files of other file systems it may."""
    if not is_procfs(fd):
        return True
    where = procfs_place(fd)
    return where is not None and (where == b"/" or where[1:] in PROCFS_READABLE)


def is_memory(fd: int) -> bool:
    """Whether an open file is the memory of a process, or may be."""
    if not is_procfs(fd):
        return False
    where = procfs_place(fd)
    if where is None:  # It is mounted in another namespace: there is only its name to go by.
        return os.path.basename(os.readlink(b"/proc/self/fd/%d" % fd)) == b"mem"
    return _MEMORY.fullmatch(where) is not None


def procfs_place(fd: int) -> bytes | None:
    """Return the path of an open file in its file system, as ``/1/mem``; None if we do not see its mount."""
    path = os.readlink(b"/proc/self/fd/%d" % fd)
    with open(f"/proc/self/fdinfo/{fd}", "rb") as file:
        number = _MOUNT.search(file.read())
    with open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            fields = line.split(b" ", 5)
            if number is not None and fields[0] == number[1]:
                return _inside(_plain(fields[3]), _plain(fields[4]), path)
    return None


def _inside(root: bytes, point: bytes, path: bytes) -> bytes | None:
    """Return a path below a mount point as seen from the root of the file system; None if it is not below."""
    point = point.rstrip(b"/")
    if path != (point or b"/") and not path.startswith(point + b"/"):
        return None
    return root.rstrip(b"/") + path[len(point) :].rstrip(b"/") or b"/"


def _plain(field: bytes) -> bytes:
    """Return a path of ``mountinfo`` without its escapes for blanks and other characters."""
    return _ESCAPED.sub(lambda found: bytes((int(found[1], 8),)), field)
