"""Renaming: giving something another path on the same file system."""

from __future__ import annotations

import errno
import os

from holdfast.sandbox import Access

from .paths import failure, join, real_path
from .resolver import Resolver, Spot


def rename(resolver: Resolver, source: bytes, destination: bytes) -> None:
    """Give a file, a link or a directory another path; a file that has it is replaced.

    With rules, what is moved must be writable with all that is in it, and so must its new place: what a rule
    is about stays where it is.
    """
    with resolver.spot(source) as old, resolver.spot(destination) as new:
        _check(resolver, old)
        _check(resolver, new)
        os.rename(old.name, new.name, src_dir_fd=old.directory, dst_dir_fd=new.directory)


def _check(resolver: Resolver, spot: Spot) -> None:
    resolver.check_spot(spot, Access.WRITE)
    if resolver.ruled:
        path = join(real_path(spot.directory), spot.name)
        if not resolver.allows_below(path, Access.WRITE):
            raise failure(errno.EROFS)
