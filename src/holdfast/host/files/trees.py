"""What is in directories: listed, walked through, copied and removed, with everything below."""

from __future__ import annotations

import contextlib
import errno
import heapq
import os
import stat
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

from holdfast.errors import FileRefused, FileUnsupported, TooManyEntries
from holdfast.files import DirEntry, Walk, WalkEntry, WalkError, WalkTerms
from holdfast.model import to_text
from holdfast.sandbox import Access
from holdfast.value import record

from .content import write_all
from .making import make_all, make_one
from .paths import check_length, failure, future_path, join, opened_beneath, procfs_names, real_path
from .resolver import Resolver, Spot

_LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC

# Lists and walks.

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


def listed(resolver: Resolver, path: bytes, *, limit: int, dangling: bool = False) -> list[DirEntry]:
    """Return the entries of a directory, in the order of the file system.

    Links that lead nowhere, or to what the request may not see, are listed if ``dangling``, and look alike.

    Raises:
        TooManyEntries: There are more than ``limit``.  The error says how many.
    """
    entries: list[DirEntry] = []
    count = 0
    for item in items(resolver, path, dangling=dangling):
        count += 1
        if count <= limit:
            link = item.link if dangling else None
            entries.append(DirEntry(to_text(item.name), item.directory, item.file, link))
    if count > limit:
        raise TooManyEntries(count, limit)
    return entries


def items(resolver: Resolver, path: bytes, *, dangling: bool = False) -> Iterator[Item]:
    """Yield what a request may see in a directory; if ``dangling``, links to what it may not see, too."""
    with resolver.find(path) as found:
        fd = os.open(b".", _LISTED, dir_fd=found)
    try:
        real = real_path(fd) if resolver.ruled else b""
        names = procfs_names(fd) if resolver.ruled else None
        with os.scandir(fd) as scan:
            for entry in scan:
                if names is not None and os.fsencode(entry.name) not in names:
                    continue
                item = _item(resolver, fd, real, entry, dangling=dangling)
                if item is not None:
                    yield item
    finally:
        os.close(fd)


def _item(
    resolver: Resolver, directory: int, real: bytes, entry: os.DirEntry[str], *, dangling: bool
) -> Item | None:
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
        # Whether nothing is there, or something that may not be seen, is not told.
        return Item(name, directory=False, file=False, link=True) if dangling else None
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


# Copies.

_STEP = 1 << 30
"""Bytes that the kernel is asked to copy with one call."""

_PIECE = 1 << 20
"""Bytes that are read and written at once where the kernel cannot copy."""

_CANNOT = frozenset({errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EPERM, errno.EOPNOTSUPP, errno.EBADF})
"""Errors of ``copy_file_range`` for files that the kernel cannot copy by itself."""

_PLAIN = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def copy(resolver: Resolver, source: bytes, destination: bytes, *, recursive: bool) -> None:
    """Copy a file with its mode, a link as a link, or a directory with everything in it."""
    with resolver.find(source, last=False) as found:
        mode = os.fstat(found).st_mode
        if stat.S_ISDIR(mode):
            if not recursive:
                raise FileRefused("fs/copy requires recursive: true when sourcePath is a directory")
            _copy_tree(resolver, found, destination)
        elif stat.S_ISLNK(mode):
            with resolver.spot(destination) as spot:
                _copy_link(resolver, found, spot)
        elif stat.S_ISREG(mode):
            _copy_file(resolver, found, lambda mode: resolver.create(destination, mode, flags=0))
        else:
            raise FileRefused("fs/copy only supports regular files, directories, and symlinks")


def _copy_link(resolver: Resolver, found: int, spot: Spot) -> None:
    """Make a link with the target of another one.  An error says first that the name is taken."""
    target = os.readlink(b"", dir_fd=found)
    if resolver.ruled:
        with contextlib.suppress(FileNotFoundError):
            os.stat(spot.name, dir_fd=spot.directory, follow_symlinks=False)
            resolver.check_spot(spot, Access.READ)
            raise failure(errno.EEXIST)
        resolver.check_spot(spot, Access.WRITE)
    os.symlink(target, spot.name, dir_fd=spot.directory)


def _copy_file(resolver: Resolver, found: int, create: Callable[[int], int]) -> None:
    """Copy a file to the one that ``create`` opens, given the mode of a new file, and does not empty."""
    source = resolver.reopen(found, os.O_RDONLY)
    try:
        facts = os.fstat(source)
        mode = stat.S_IMODE(facts.st_mode)
        target = create(mode & 0o777)
        try:
            there = os.fstat(target)
            if os.path.samestat(facts, there):
                return  # A file that is copied to itself must not be emptied first.
            # Before the bytes are there, which other users may not be meant to see.
            os.fchmod(target, mode & 0o777)
            os.ftruncate(target, 0)
            transfer(source, target)
            # A set-uid copy must give the rights of the same owner as the original.  Under rules no copy is
            # set-uid, because another request may be writing to it.
            same = (there.st_uid, there.st_gid) == (facts.st_uid, facts.st_gid)
            if mode > 0o777 and same and not resolver.ruled:
                os.fchmod(target, mode)  # At the end, because writing clears these bits.
        finally:
            os.close(target)
    finally:
        os.close(source)


def transfer(source: int, target: int) -> None:
    """Copy the rest of a file to another one; the kernel does it without us, if it can."""
    by_kernel = True
    while True:
        if by_kernel:
            try:
                by_kernel = os.copy_file_range(source, target, _STEP) > 0
            except OSError as error:
                if error.errno not in _CANNOT:
                    raise
                by_kernel = False
            # It was the end, or seemed to be: files of procfs look empty to this call.  So read on.
            continue
        data = os.read(source, _PIECE)
        if not data:
            return
        write_all(target, data)


def _copy_tree(resolver: Resolver, found: int, destination: bytes) -> None:
    """Copy a directory and everything below it, one directory after the other."""
    check_length(destination)
    source_path = real_path(found)
    if join(future_path(destination), b"").startswith(join(source_path, b"")):
        raise FileRefused("fs/copy cannot copy a directory to itself or one of its descendants")
    root = make_all(resolver, destination)
    try:
        pending = [b"."]
        while pending:
            below = pending.pop()
            _copy_directory(resolver, found, root, below, pending)
    finally:
        os.close(root)


def _copy_directory(resolver: Resolver, source: int, target: int, below: bytes, pending: list[bytes]) -> None:
    """Copy the contents of one directory.  Directories in it are made, and added to ``pending``."""
    with opened_beneath(source, below) as here, opened_beneath(target, below) as there:
        path = real_path(here) if resolver.ruled else b""
        fd = os.open(b".", _LISTED, dir_fd=here)
        try:
            with os.scandir(fd) as scan:
                for entry in scan:
                    name = os.fsencode(entry.name)
                    if resolver.ruled:
                        resolver.check(join(path, name), Access.READ)
                    if _copy_entry(resolver, here, Spot(there, name)):
                        pending.append(join(below, name))
        finally:
            os.close(fd)


def _copy_entry(resolver: Resolver, source: int, spot: Spot) -> bool:
    """Copy one entry of a directory to ``spot``.  Return whether it is a directory, which was only made."""
    found = os.open(spot.name, _PLAIN, dir_fd=source)
    try:
        resolver.inspect(found)
        mode = os.fstat(found).st_mode
        if stat.S_ISLNK(mode):
            _copy_link(resolver, found, spot)
        elif stat.S_ISREG(mode):
            _copy_file(resolver, found, lambda mode: resolver.create_at(spot, mode, flags=0))
        elif stat.S_ISDIR(mode):
            _make(resolver, spot)
            return True
    finally:
        os.close(found)
    return False


def _make(resolver: Resolver, spot: Spot) -> None:
    """Make a directory, which may exist already.  A link to one does not count: it could lead anywhere."""
    try:
        make_one(resolver, spot)
    except FileExistsError:
        if not stat.S_ISDIR(os.stat(spot.name, dir_fd=spot.directory, follow_symlinks=False).st_mode):
            raise


# Removal.

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
