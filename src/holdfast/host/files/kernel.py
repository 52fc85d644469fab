"""System calls that Python does not have: opening without links, times of birth, watches."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from holdfast.value import value

_libc = ctypes.CDLL(None, use_errno=True)

# Opening.

_OPENAT2 = 437
"""The number of ``openat2``, on every machine: it came after the numbers were made alike."""

NO_SYMLINKS = 0x04
BENEATH = 0x08


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
        _fail()
    return fd


def _fail() -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))


# File systems.

_PROC_MAGIC = 0x9FA0
_STATFS_MOST = 256
"""Bytes of ``struct statfs`` on any machine."""


def is_procfs(fd: int) -> bool:
    """Whether what is open is on a file system that shows processes."""
    buffer = ctypes.create_string_buffer(_STATFS_MOST)
    if _libc.fstatfs(fd, buffer):
        _fail()
    # The first field has four bytes or eight, and its last ones come first or last.
    return _PROC_MAGIC in struct.unpack_from("=II", buffer)


# Times.

_AT_EMPTY_PATH = 0x1000
_STATX_BTIME = 0x800
_STATX = struct.Struct("I76xqI")
"""``stx_mask``, and seconds and nanoseconds of ``stx_btime`` at byte 80."""


def birth_time(fd: int) -> int:
    """When a file was made, in nanoseconds since 1970; 0 if nobody knows."""
    buffer = ctypes.create_string_buffer(256)
    try:
        failed = _libc.statx(fd, b"", _AT_EMPTY_PATH, _STATX_BTIME, buffer)
    except AttributeError:  # An old C library.
        return 0
    if failed:
        return 0
    mask, seconds, nanoseconds = _STATX.unpack_from(buffer)
    return seconds * 10**9 + nanoseconds if mask & _STATX_BTIME else 0


# Watches.

IN_MODIFY = 0x2
IN_ATTRIB = 0x4
IN_MOVED_TO = 0x80
IN_CREATE = 0x100
IN_DELETE_SELF = 0x400
IN_MOVE_SELF = 0x800
IN_Q_OVERFLOW = 0x4000
IN_IGNORED = 0x8000
_IN_MASK_ADD = 0x2000_0000
_EVENT = struct.Struct("iIII")
_READ = 64 * 1024


@value
class Event:
    """Something has happened to a watched file, or in a watched directory."""

    watch: int
    """Which; -1 if events were lost."""
    mask: int
    name: bytes


class Inotify:
    """The kernel's news of files."""

    def __init__(self) -> None:
        fd: int = _libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if fd < 0:
            _fail()
        self.fd = fd

    def add(self, fd: int, mask: int) -> int:
        """Watch what an open file is; the same number for the same file, and then for more."""
        path = b"/proc/self/fd/%d" % fd
        watch: int = _libc.inotify_add_watch(self.fd, path, ctypes.c_uint32(mask | _IN_MASK_ADD))
        if watch < 0:
            _fail()
        return watch

    def remove(self, watch: int) -> None:
        """Watch no longer; the kernel may have given up by itself."""
        _libc.inotify_rm_watch(self.fd, watch)

    def read(self) -> list[Event]:
        """What has happened; nothing if nothing has."""
        try:
            data = os.read(self.fd, _READ)
        except BlockingIOError:
            return []
        events, at = [], 0
        while at < len(data):
            watch, mask, _, size = _EVENT.unpack_from(data, at)
            at += _EVENT.size + size
            events.append(Event(watch, mask, data[at - size : at].rstrip(b"\0")))
        return events

    def close(self) -> None:
        os.close(self.fd)


def is_missing(error: OSError) -> bool:
    """Whether the kernel does not have what was asked for."""
    return error.errno in (errno.ENOSYS, errno.EPERM)
