"""What has to be watched so that nothing can appear, or go, unnoticed."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field

from holdfast.files import MOST_MISSING

from . import kernel
from .paths import failure

MOST_NAMES = 64
"""Names of one path, as in the reference: each directory of it is watched."""

APPEARS = kernel.IN_CREATE | kernel.IN_MOVED_TO
_GONE = kernel.IN_MOVE_SELF | kernel.IN_DELETE_SELF
_CHANGES = kernel.IN_MODIFY | kernel.IN_ATTRIB | _GONE

_PLAIN = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_SILENT = (b"/proc", b"/sys")
"""File systems whose names come and go without news."""


@dataclass(slots=True)
class Target:
    """Something to be watched."""

    fd: int
    mask: int
    names: set[bytes] = field(default_factory=set)
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
        target = made.targets[path] = Target(fd, _GONE)
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
