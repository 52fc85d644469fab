"""Watches on files: inotify, and what has to be watched so that no change goes unnoticed."""

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
"""Names that a path may have.  Each directory on it is watched; the reference has the same bound."""

APPEARS = IN_CREATE | IN_MOVED_TO
_GONE = IN_MOVE_SELF | IN_DELETE_SELF
_CHANGES = IN_MODIFY | IN_ATTRIB | _GONE

_PLAIN = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_SILENT = (b"/proc", b"/sys")
"""File systems in which names come and go without an event."""


# inotify, which Python does not have.


@value
class Event:
    """An event of a watched file, or in a watched directory."""

    watch: int
    """The number of the watch; -1 if events were lost."""
    mask: int
    """What has happened, as bits of the constants above."""
    name: bytes
    """The name in the watched directory; empty if the event is about the watched file itself."""


class Inotify:
    """A queue of the kernel's events about files.  No method of it waits."""

    def __init__(self) -> None:
        fd: int = _libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if fd < 0:
            raise failure(ctypes.get_errno())
        self.fd = fd

    def add(self, fd: int, mask: int) -> int:
        """Watch an open file; return the number of the watch.  It is the same for the same file."""
        path = b"/proc/self/fd/%d" % fd
        watch: int = _libc.inotify_add_watch(self.fd, path, ctypes.c_uint32(mask | _IN_MASK_ADD))
        if watch < 0:
            raise failure(ctypes.get_errno())
        return watch

    def remove(self, watch: int) -> None:
        """End a watch.  The kernel may have ended it by itself."""
        _libc.inotify_rm_watch(self.fd, watch)

    def read(self) -> list[Event]:
        """Return the events that have come since the last call."""
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
        """End all watches."""
        os.close(self.fd)


# What has to be watched.


@record
class Target:
    """A file or directory to be watched."""

    fd: int
    """A descriptor that stands for it."""
    mask: int
    """The events to watch for."""
    names: set[bytes]
    """In a directory, the names whose appearance is waited for."""


class Plan:
    """Everything that has to be watched for one request.  Holds descriptors until it is closed."""

    def __init__(self) -> None:
        self.targets: dict[bytes, Target] = {}
        """The targets, by their paths."""

    def close(self) -> None:
        """Close the descriptors of all targets."""
        for target in self.targets.values():
            os.close(target.fd)
        self.targets.clear()


def plan(missing: Sequence[bytes], present: bytes | None) -> Plan | None:
    """Plan what to watch for one of ``missing`` to appear, or for ``present`` to change or to go.

    Return None if that cannot be watched: one of the paths is there, a link or a file is on the way, or the
    file system has no events.
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
    """Watch the directories on a path, and the first name that is missing for its appearance."""
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
    """Watch the directories on a path, and what is at its end for changes."""
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
    """Return the target of a path, which is added if the plan does not have it."""
    target = made.targets.get(path)
    if target is None:
        fd = os.open(name, _PLAIN, dir_fd=None if directory is None else directory.fd)
        target = made.targets[path] = Target(fd, _GONE, set())
    return target


def _is_silent(fd: int) -> bool:
    """Whether an open directory is on a file system without events."""
    device = os.fstat(fd).st_dev
    for path in _SILENT:
        with contextlib.suppress(OSError):
            # If nothing is mounted there, it is an ordinary directory.
            if os.stat(path).st_dev == device != os.stat(b"/").st_dev:
                return True
    return False


def appeared(missing: Sequence[bytes]) -> bool:
    """Whether there is something at one of the paths."""
    return any(os.path.lexists(path) for path in missing)
