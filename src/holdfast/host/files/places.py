"""Paths as the kernel has them, in bytes, and where what is open is."""

from __future__ import annotations

import errno
import os

_PATH_MOST = 4096
"""Bytes of a path, with one for its end: the kernel takes no longer ones."""


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
