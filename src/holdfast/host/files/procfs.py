"""What requests may see of procfs, which shows the server's own memory, variables and open files.

procfs is recognized by the kind of the file system, and a place in it by its mount, never by a path: it may
be mounted anywhere, and parts of it at other paths.
"""

from __future__ import annotations

import ctypes
import os
import re
import struct

READABLE = frozenset(
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

_libc = ctypes.CDLL(None, use_errno=True)


def is_procfs(fd: int) -> bool:
    """Whether an open file is on procfs."""
    buffer = ctypes.create_string_buffer(_STATFS_MOST)
    if _libc.fstatfs(fd, buffer):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    # The kind is the first field, of four or eight bytes, in the byte order of the machine.
    return _PROC_MAGIC in struct.unpack_from("=II", buffer)


def has_only(fd: int) -> frozenset[bytes] | None:
    """Return the names that may be seen in an open directory; None if it is on another file system."""
    if not is_procfs(fd):
        return None
    return READABLE if place(fd) == b"/" else frozenset()


def is_visible(fd: int) -> bool:
    """Whether a request that rules bind may see an open file.  Files of other file systems it may."""
    if not is_procfs(fd):
        return True
    where = place(fd)
    return where is not None and (where == b"/" or where[1:] in READABLE)


def is_memory(fd: int) -> bool:
    """Whether an open file is the memory of a process, or may be."""
    if not is_procfs(fd):
        return False
    where = place(fd)
    if where is None:  # It is mounted in another namespace: there is only its name to go by.
        return os.path.basename(os.readlink(b"/proc/self/fd/%d" % fd)) == b"mem"
    return _MEMORY.fullmatch(where) is not None


def place(fd: int) -> bytes | None:
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
