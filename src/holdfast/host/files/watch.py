"""Watches on files: the kernel's news of them, and what has to be watched so that nothing goes unnoticed."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import struct
from collections.abc import Sequence

from holdfast.files import MOST_MISSING
from holdfast.value import record, value

from .paths import failure

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

_libc = ctypes.CDLL(None, use_errno=True)

MOST_NAMES = 64
"""Names of one path, as in the reference: each directory of it is watched."""

APPEARS = IN_CREATE | IN_MOVED_TO
_GONE = IN_MOVE_SELF | IN_DELETE_SELF
_CHANGES = IN_MODIFY | IN_ATTRIB | _GONE

_PLAIN = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_SILENT = (b"/proc", b"/sys")
"""File systems whose names come and go without news."""


# The kernel's news.


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
            raise failure(ctypes.get_errno())
        self.fd = fd

    def add(self, fd: int, mask: int) -> int:
        """Watch what an open file is; the same number for the same file, and then for more."""
        path = b"/proc/self/fd/%d" % fd
        watch: int = _libc.inotify_add_watch(self.fd, path, ctypes.c_uint32(mask | _IN_MASK_ADD))
        if watch < 0:
            raise failure(ctypes.get_errno())
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


# What has to be watched.


@record
class Target:
    """Something to be watched."""

    fd: int
    mask: int
    names: set[bytes]
    """Of a directory: the names that somebody waits for."""


class Plan:
    """What has to be watched.  Holds a descriptor for each target until it is closed."""

    def __init__(self) -> None:
        self.targets: dict[bytes, Target] = {}
        """By path."""

    def close(self) -> None:
        for target in self.targets.values():
            os.close(target.fd)
        self.targets.clear()


def plan(missing: Sequence[bytes], present: bytes | None) -> Plan | None:
    """What to watch for the paths to appear and for ``present`` to change or go; None if that cannot be done.

    It cannot if one of the paths is there, if there is a link or a file on the way,
    or if the file system has no news.
    """
    if not missing or len(missing) > MOST_MISSING:
        return None
    made = Plan()
    try:
        for path in missing:
            _plan_missing(made, path)
        if present is not None:
            _plan_present(made, present)
    except OSError:
        made.close()
        return None
    except BaseException:
        made.close()
        raise
    return made


def _plan_missing(made: Plan, path: bytes) -> None:
    names = path.strip(b"/").split(b"/")
    if len(names) > MOST_NAMES:
        raise failure(errno.EOPNOTSUPP)
    directory = _target(made, b"/", None, b"/")
    here = b""
    for name in names:
        try:
            below = _target(made, here + b"/" + name, directory, name)
        except FileNotFoundError:
            if _is_silent(directory.fd):
                raise failure(errno.EOPNOTSUPP) from None
            directory.mask |= APPEARS
            directory.names.add(name)
            return
        if not stat.S_ISDIR(os.fstat(below.fd).st_mode):
            raise failure(errno.ENOTDIR)
        directory, here = below, here + b"/" + name
    raise failure(errno.EEXIST)


def _plan_present(made: Plan, path: bytes) -> None:
    directory = _target(made, b"/", None, b"/")
    here = b""
    for name in filter(None, path.split(b"/")):
        here += b"/" + name
        directory = _target(made, here, directory, name)
    mode = os.fstat(directory.fd).st_mode
    if stat.S_ISLNK(mode):
        raise failure(errno.ELOOP)
    directory.mask |= _GONE if stat.S_ISDIR(mode) else _CHANGES


def _target(made: Plan, path: bytes, directory: Target | None, name: bytes) -> Target:
    target = made.targets.get(path)
    if target is None:
        fd = os.open(name, _PLAIN, dir_fd=None if directory is None else directory.fd)
        target = made.targets[path] = Target(fd, _GONE, set())
    return target


def _is_silent(fd: int) -> bool:
    device = os.fstat(fd).st_dev
    for path in _SILENT:
        with contextlib.suppress(OSError):
            # Where it is not mounted it is a directory like any other.
            if os.stat(path).st_dev == device != os.stat(b"/").st_dev:
                return True
    return False


def appeared(missing: Sequence[bytes]) -> bool:
    """Whether one of the paths is there."""
    return any(os.path.lexists(path) for path in missing)
