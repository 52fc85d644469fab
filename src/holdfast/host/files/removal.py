"""Removing files, links and whole trees."""

from __future__ import annotations

import errno
import os
import stat
from itertools import islice

from holdfast.errors import FileRefused, FileUnsupported
from holdfast.sandbox import Access

from .paths import failure, join, real_path
from .resolver import Resolver, Spot

_BATCH = 1000
"""Names that are read from a directory at a time, so that a large directory takes little memory."""

_INSIDE = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def remove(resolver: Resolver, path: bytes, *, recursive: bool, force: bool) -> None:
    """Remove a file, a link or a directory.  With ``force`` it need not exist."""
    if recursive and not resolver.follow:
        raise FileUnsupported("recursive no-follow removal is unsupported")
    try:
        with resolver.spot(path) as spot:  # The root is in no directory, so it is never removed.
            _remove(resolver, spot, recursive=recursive)
    except FileNotFoundError:
        if not force:
            raise


def _remove(resolver: Resolver, spot: Spot, *, recursive: bool) -> None:
    """Remove what a name stands for, if the rules allow that for it and for everything below it."""
    mode = os.stat(spot.name, dir_fd=spot.directory, follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode) and not resolver.follow:
        resolver.check_spot(spot, Access.READ)
        raise FileRefused("path contains a symbolic link")
    resolver.check_spot(spot, Access.WRITE)
    if not stat.S_ISDIR(mode):
        os.unlink(spot.name, dir_fd=spot.directory)
        return
    if resolver.ruled and not resolver.allows_below(join(real_path(spot.directory), spot.name), Access.WRITE):
        raise failure(errno.EROFS)
    if recursive:
        _empty(spot)
    os.rmdir(spot.name, dir_fd=spot.directory)


def _empty(spot: Spot) -> None:
    """Remove everything in a directory.

    It holds one descriptor, however deep the tree is.  On the way up it checks that the directory above is
    the one from which it came: somebody may move a part of the tree elsewhere meanwhile.
    """
    fd = os.open(spot.name, _INSIDE, dir_fd=spot.directory)
    above: list[tuple[bytes, int, int]] = []
    try:
        while True:
            deeper = _sweep(fd)
            if deeper is not None:
                facts = os.fstat(fd)
                below = os.open(deeper, _INSIDE, dir_fd=fd)
                above.append((deeper, facts.st_dev, facts.st_ino))
            elif above:
                name, *identity = above.pop()
                below = os.open(b"..", _INSIDE, dir_fd=fd)
                facts = os.fstat(below)
                if [facts.st_dev, facts.st_ino] != identity:
                    os.close(below)
                    raise failure(errno.ESTALE)
                os.rmdir(name, dir_fd=below)
            else:
                return
            os.close(fd)
            fd = below
    finally:
        os.close(fd)


def _sweep(fd: int) -> bytes | None:
    """Remove files and links from a directory.  Return a directory that is in it; None if it is empty."""
    while True:
        with os.scandir(fd) as scan:
            batch = [
                (os.fsencode(entry.name), entry.is_dir(follow_symlinks=False))
                for entry in islice(scan, _BATCH)
            ]
        if not batch:
            return None
        for name, is_directory in batch:
            if is_directory:
                return name
            os.unlink(name, dir_fd=fd)
