"""Lists of what is in a directory, and walks through everything below it."""

from __future__ import annotations

import heapq
import os
import stat
from collections import deque
from collections.abc import Iterator

from holdfast.errors import TooManyEntries
from holdfast.files import DirEntry, Walk, WalkEntry, WalkError, WalkTerms
from holdfast.host.environ import to_text
from holdfast.value import record

from . import procfs
from .paths import join, real_path
from .resolver import Resolver

_ITEM = 64
"""Bytes that an entry or an error of a walk counts for, beside its texts."""


@record
class Item:
    """A name in a directory, and the kind of file that it names."""

    name: bytes
    directory: bool
    """Whether it is a directory, or a link to one."""
    file: bool
    """Whether it is a regular file, or a link to one."""
    link: bool


def listed(resolver: Resolver, path: bytes, *, limit: int) -> list[DirEntry]:
    """Return the entries of a directory, in the order of the file system.

    Raises:
        TooManyEntries: There are more than ``limit``.  The error says how many.
    """
    entries: list[DirEntry] = []
    count = 0
    for item in items(resolver, path):
        count += 1
        if count <= limit:
            entries.append(DirEntry(to_text(item.name), item.directory, item.file))
    if count > limit:
        raise TooManyEntries(count, limit)
    return entries


def items(resolver: Resolver, path: bytes) -> Iterator[Item]:
    """Yield what a request may see in a directory, without links to what is not there or may not be seen."""
    with resolver.find(path) as found:
        fd = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=found)
    try:
        real = real_path(fd) if resolver.ruled else b""
        names = procfs.has_only(fd) if resolver.ruled else None
        with os.scandir(fd) as scan:
            for entry in scan:
                if names is not None and os.fsencode(entry.name) not in names:
                    continue
                item = _item(resolver, fd, real, entry)
                if item is not None:
                    yield item
    finally:
        os.close(fd)


def _item(resolver: Resolver, directory: int, real: bytes, entry: os.DirEntry[str]) -> Item | None:
    """Return an entry of a directory, whose path is ``real``; None if the request may not see it."""
    name = os.fsencode(entry.name)
    if resolver.ruled and not resolver.shows(join(real, name)):
        return None
    if not entry.is_symlink():
        return Item(
            name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False), link=False
        )
    try:
        target = resolver.admit(resolver.open(name, start=directory))
    except OSError:
        return None
    try:
        mode = os.fstat(target).st_mode
    finally:
        os.close(target)
    return Item(name, stat.S_ISDIR(mode), stat.S_ISREG(mode), link=True)


def walk(resolver: Resolver, path: bytes, terms: WalkTerms) -> Walk:
    """Return what is below a directory, level by level; nothing if the path is not a directory."""
    with resolver.find(path) as found:
        is_directory = stat.S_ISDIR(os.fstat(found).st_mode)
        real = real_path(found) if terms.follow else b""
    with resolver.find(path, last=terms.follow) as found:
        is_directory = is_directory and stat.S_ISDIR(os.fstat(found).st_mode)
    walking = _Walking(resolver, terms)
    if is_directory:
        walking.enter(path, real, 0)
        walking.run()
    return walking.walk


class _Walking:
    """A walk that is under way, level by level, within the bounds of its terms."""

    def __init__(self, resolver: Resolver, terms: WalkTerms) -> None:
        self.walk = Walk([], [], truncated=False)
        self._resolver = resolver
        self._terms = terms
        self._queue: deque[tuple[bytes, int]] = deque()
        self._entered = 0
        self._seen: set[bytes] = set()
        self._looked_at = 0
        self._weight = 0

    def enter(self, path: bytes, real: bytes, depth: int) -> None:
        """Put a directory into the queue, unless it is too deep, was entered before, or too many were."""
        if depth > self._terms.depth:
            return
        if self._terms.follow:
            if real in self._seen:
                return
            self._seen.add(real)
        if self._entered >= self._terms.directories:
            self.walk.truncated = True
            return
        self._entered += 1
        self._queue.append((path, depth))

    def run(self) -> None:
        """Walk until the queue is empty or a bound is reached."""
        while self._queue:
            path, depth = self._queue.popleft()
            room = self._terms.entries - self._looked_at
            try:
                found, more = _smallest(items(self._resolver, path), room)
            except OSError as error:
                if not self._fail(path, error):
                    return
                continue
            self._looked_at += len(found)
            if not all(self._take(path, item, depth) for item in found) or more:
                self.walk.truncated = True
                return

    def _take(self, path: bytes, item: Item, depth: int) -> bool:
        """Add an entry to the result.  Return whether there was room for it."""
        if item.link and not (item.directory and self._terms.follow):
            return True
        if not item.directory and not item.file:
            return True
        below = join(path, item.name)
        text = self._terms.spell(to_text(below))
        if not self._has_room(len(text)):
            return False
        self.walk.entries.append(WalkEntry(text, item.directory))
        if item.directory and not (self._terms.prune and item.name.startswith(b".")):
            self._descend(below, depth + 1)
        return True

    def _descend(self, path: bytes, depth: int) -> None:
        """Enter a directory.  Where links are followed, its real path tells whether it was entered before."""
        real = b""
        if self._terms.follow and depth <= self._terms.depth:
            try:
                with self._resolver.find(path) as found:
                    real = real_path(found)
            except OSError as error:
                self._fail(path, error)
                return
        self.enter(path, real, depth)

    def _fail(self, path: bytes, error: OSError) -> bool:
        """Add an error to the result.  Return whether there was room for it."""
        text = self._terms.spell(to_text(path))
        number = error.errno or 0
        if not self._has_room(len(text) + len(f"{os.strerror(number)} (os error {number})")):
            return False
        self.walk.errors.append(WalkError(text, number))
        return True

    def _has_room(self, length: int) -> bool:
        """Count an entry or error with texts of this length.  Return whether the budget allows it."""
        weight = self._weight + _ITEM + length
        if weight > self._terms.budget:
            self.walk.truncated = True
            return False
        self._weight = weight
        return True


def _smallest(found: Iterator[Item], most: int) -> tuple[list[Item], bool]:
    """Return the first ``most`` in the order of their names, and whether there are more."""
    first = heapq.nsmallest(most + 1, found, key=lambda item: item.name)
    return first[:most], len(first) > most
