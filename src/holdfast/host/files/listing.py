"""What is in a directory, and below it."""

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
"""What an entry or an error of a walk weighs beside its texts."""


@record
class Item:
    """A name in a directory, and what is there."""

    name: bytes
    directory: bool
    """It is one, or a link to one."""
    file: bool
    link: bool


def listed(resolver: Resolver, path: bytes, *, limit: int) -> list[DirEntry]:
    """What is in a directory, in its own order.

    Raises:
        TooManyEntries: There is more than that; it is counted, not kept.
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
    """What may be seen in a directory.  Links that lead nowhere, or out of reach, are left out."""
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
    """What is below a directory; nothing if it is none."""
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
    """A walk under way: level by level."""

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
        """Look into a directory later, unless the terms are against it."""
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
        """Tell of an entry; False if there is no room for it."""
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
        """Tell of something that could not be looked at; False if there is no room for it."""
        text = self._terms.spell(to_text(path))
        number = error.errno or 0
        if not self._has_room(len(text) + len(f"{os.strerror(number)} (os error {number})")):
            return False
        self.walk.errors.append(WalkError(text, number))
        return True

    def _has_room(self, length: int) -> bool:
        weight = self._weight + _ITEM + length
        if weight > self._terms.budget:
            self.walk.truncated = True
            return False
        self._weight = weight
        return True


def _smallest(found: Iterator[Item], most: int) -> tuple[list[Item], bool]:
    """The first so many in the order of the names, and whether there are more.  Keeps no more than that."""
    first = heapq.nsmallest(most + 1, found, key=lambda item: item.name)
    return first[:most], len(first) > most
