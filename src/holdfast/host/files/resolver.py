"""How far a request may reach: paths become descriptors, and rules are asked about what those are.

What must hold:

1. What is checked is what is used: a path is resolved once, to a descriptor.
   The kernel says where that is, the rules are asked about that place, and the
   work is done with that descriptor, or with a name in that directory that is no
   link.  Whoever swaps links meanwhile changes what is found, never what is allowed.
2. Nothing but a regular file is opened, and never the memory of a process.
3. With rules, processes are not there: neither as files, nor as a way to others.
4. With rules, nothing that was written or copied runs as its owner.
5. Nothing is learned of what may not be read: neither whether it is there, nor
   what it is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from holdfast.errors import FileRefused
from holdfast.host.environ import to_text
from holdfast.sandbox import Access, Rules
from holdfast.value import value

from . import procfs
from .paths import (
    MOST_LINKS,
    check_length,
    failure,
    join,
    may_follow,
    may_write,
    open_beneath,
    open_path,
    real_path,
    split,
    visible,
)

_PATH = os.O_PATH | os.O_CLOEXEC
_DIRECTORY = _PATH | os.O_DIRECTORY
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC

_SET_IDS = stat.S_ISUID | stat.S_ISGID

MODE = 0o666
"""Of a new file, before the umask."""


@value
class Spot:
    """A name in an open directory: where something is, or may be made."""

    directory: int
    """Its descriptor, good for relative paths only."""
    name: bytes


class Resolver:
    """Resolves paths for one request."""

    __slots__ = ("_passages", "_rules", "follow")

    def __init__(self, rules: Rules | None = None, *, follow: bool = True) -> None:
        """Without ``follow`` no part of a path may be a link.  Without rules everything is allowed."""
        self._rules = rules
        self.follow = follow
        self._passages = _passages(rules) if rules is not None else set()

    @property
    def ruled(self) -> bool:
        return self._rules is not None

    # Rules.

    def check(self, path: bytes, need: Access) -> None:
        """Raise unless the rules allow it at this path, which has no links in it."""
        if self._rules is None:
            return
        text = to_text(path)
        access = self._rules.access(text)
        if access >= need:
            return
        if access is not Access.DENY:
            raise failure(errno.EROFS)
        if self._rules.covers(text):
            raise failure(errno.EACCES)
        if need is not Access.READ or text not in self._passages:
            raise failure(errno.ENOENT)

    def shows(self, path: bytes) -> bool:
        """Whether somebody who lists a directory sees this."""
        if self._rules is None:
            return True
        text = to_text(path)
        return self._rules.access(text) >= Access.READ or (
            text in self._passages and not self._rules.covers(text)
        )

    def allows_below(self, path: bytes, need: Access) -> bool:
        """Whether no rule further below asks for more care."""
        if self._rules is None:
            return True
        inside = to_text(join(path, b""))
        return all(rule.access >= need for rule in self._rules.rules if rule.path.startswith(inside))

    def admit(self, fd: int, need: Access = Access.READ) -> int:
        """The descriptor, if the rules allow it where it is; otherwise it is closed."""
        try:
            self.inspect(fd, need)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def inspect(self, fd: int, need: Access = Access.READ) -> None:
        """Raise unless the rules allow it with what is open, where it is."""
        if self._rules is None:
            return
        if not procfs.is_visible(fd):
            raise failure(errno.ENOENT)
        self.check(real_path(fd), need)
        if need > Access.READ and procfs.is_procfs(fd):
            raise failure(errno.EROFS)

    def _hide(self, path: bytes) -> None:
        """Raise what the rules have to say of a path that cannot be resolved, if anything."""
        if self._rules is None:
            return
        directory, rest = path, b""
        while directory != b"/":
            directory, name = split(directory)
            try:
                fd = open_path(directory)
            except OSError:
                rest = b"/" + name + rest
                continue
            try:
                _check_name(fd, name)
                self.check(join(real_path(fd), name) + rest, Access.READ)
            finally:
                os.close(fd)
            return

    def _bar(self, path: bytes) -> None:
        """Raise if the way there leads through something that is forbidden by name, or is too long."""
        check_length(path)
        if self._rules is not None:
            text = to_text(path)
            if self._rules.access(text) is Access.DENY and self._rules.covers(text):
                raise failure(errno.EACCES)

    # What is there.

    @contextlib.contextmanager
    def find(self, path: bytes, need: Access = Access.READ, *, last: bool = True) -> Iterator[int]:
        """What is at a path, as a descriptor that opens nothing; with ``last`` a link at its end is followed.

        Without ``follow`` such a link is given as it is.
        """
        fd = self.take(path, need, last=last)
        try:
            yield fd
        finally:
            os.close(fd)

    def take(self, path: bytes, need: Access = Access.READ, *, last: bool = True) -> int:
        """The descriptor of what a path names; the caller closes it."""
        self._bar(path)
        try:
            fd = self._take(path, last=last)
        except OSError:
            self._hide(path)
            raise
        return self.admit(fd, need)

    def _take(self, path: bytes, *, last: bool) -> int:
        if self.follow:
            return self.open(path, last=last)
        directory, name = split(path)
        parent = open_beneath(None, directory)
        if not name:
            return parent
        try:
            return os.open(name, _PATH | os.O_NOFOLLOW, dir_fd=parent)
        finally:
            os.close(parent)

    def open(self, path: bytes, *, start: int | None = None, last: bool = True) -> int:
        """What is at a path on which links are followed; the rules are asked by nobody yet.

        Args:
            start: The directory that a relative path is relative to.
        """
        if self._rules is not None:
            return open_path(path, start=start, last=last)
        return os.open(path, _PATH if last else _PATH | os.O_NOFOLLOW, dir_fd=start)

    @contextlib.contextmanager
    def spot(self, path: bytes) -> Iterator[Spot]:
        """The directory of a path, and the name in it; whether that is there is another matter.

        Raises:
            OSError: With EBUSY for the root, which is nowhere.
        """
        directory, name = split(path)
        if not name:
            raise failure(errno.EBUSY)
        self._bar(path)
        try:
            parent = self.enter(directory) if self.follow else self._enter_plain(directory)
        except OSError:
            self._hide(path)
            raise
        try:
            yield Spot(parent, name)
        finally:
            os.close(parent)

    def enter(self, path: bytes, *, start: int | None = None) -> int:
        """A directory, for relative paths only; if links are not followed, the path is a single name."""
        if self._rules is None:
            flags = _DIRECTORY if self.follow else _DIRECTORY | os.O_NOFOLLOW
            return os.open(path, flags, dir_fd=start)
        fd = self.open(path, start=start, last=self.follow)
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            return fd
        os.close(fd)
        raise failure(errno.ENOTDIR)

    def _enter_plain(self, path: bytes) -> int:
        fd = open_beneath(None, path)
        return fd if self._rules is None else visible(fd)

    def check_spot(self, spot: Spot, need: Access) -> None:
        """Raise unless the rules allow it there."""
        if self._rules is None:
            return
        on_procfs = _check_name(spot.directory, spot.name)
        self.check(join(real_path(spot.directory), spot.name), need)
        if on_procfs and need > Access.READ:
            raise failure(errno.EROFS)

    # Opening.

    def reopen(self, fd: int, flags: int) -> int:
        """Open what a descriptor of ``find`` stands for, and nothing else.  Never waits for a peer."""
        if procfs.is_memory(fd):
            raise failure(errno.EACCES)
        flags |= os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return os.open(b"/proc/self/fd/%d" % fd, flags)

    def create(self, path: bytes, mode: int = MODE, *, flags: int = os.O_TRUNC) -> int:
        """Open a regular file for writing; make it if there is none.

        A link at its end is followed, if links are.

        Raises:
            FileRefused: There is a device or a pipe, which is not opened.
        """
        if path == b"/" and self.follow:
            raise failure(errno.EISDIR)
        with contextlib.ExitStack() as stack:
            spot = stack.enter_context(self.spot(path))
            for _ in range(MOST_LINKS):
                found = self._open_or_make(spot, mode, flags, path)
                if found is None:
                    continue
                fd, is_link = found
                if not is_link:
                    return fd
                stack.callback(os.close, fd)
                spot = self._follow(spot, fd, stack)
        raise failure(errno.ELOOP)

    def create_at(self, spot: Spot, mode: int = MODE, *, flags: int = os.O_TRUNC) -> int:
        """Open or make a file by its name in an open directory.  A link there is not followed."""
        for _ in range(MOST_LINKS):
            found = self._open_or_make(spot, mode, flags, spot.name)
            if found is not None and not found[1]:
                return found[0]
            if found is not None:
                os.close(found[0])
                break
        raise failure(errno.ELOOP)

    def _open_or_make(self, spot: Spot, mode: int, flags: int, told: bytes) -> tuple[int, bool] | None:
        """A file, opened for writing, or a link, not opened, and whether it is that; None: look again.

        Whatever is there is looked at before it is opened, and what is made was not there.
        """
        try:
            found = os.open(spot.name, _PATH | os.O_NOFOLLOW, dir_fd=spot.directory)
        except FileNotFoundError:
            self.check_spot(spot, Access.WRITE)
            try:
                return os.open(spot.name, _MAKE, mode, dir_fd=spot.directory), False
            except FileExistsError:
                return None  # Somebody was faster.
        facts = os.fstat(found)
        try:
            if stat.S_ISLNK(facts.st_mode) and self.follow:
                if not procfs.is_procfs(found):
                    return os.dup(found), True
                # Its text is not a path, though it may look like one.
                self.inspect(found)
                link, found = found, os.open(spot.name, _PATH, dir_fd=spot.directory)
                os.close(link)
                facts = os.fstat(found)
            self.inspect(found, Access.WRITE)
            self._check_kind(facts, told)
            if not may_write(os.fstat(spot.directory), facts):
                raise failure(errno.EACCES)
            fd = self.reopen(found, os.O_WRONLY | flags)
        finally:
            os.close(found)
        if self.ruled and facts.st_mode & _SET_IDS:
            # The kernel would do that at the first byte, but not for root.
            with contextlib.suppress(PermissionError):
                os.fchmod(fd, stat.S_IMODE(facts.st_mode) & ~_SET_IDS)
        return fd, False

    def _check_kind(self, facts: os.stat_result, told: bytes) -> None:
        """Raise unless it is a regular file, in the words of the system where it has some."""
        kinds = ((stat.S_ISLNK, errno.ELOOP), (stat.S_ISDIR, errno.EISDIR), (stat.S_ISSOCK, errno.ENXIO))
        for is_kind, number in kinds:
            if is_kind(facts.st_mode):
                raise failure(number)
        if not stat.S_ISREG(facts.st_mode):
            raise self.not_a_file(told)

    def not_a_file(self, path: bytes) -> FileRefused:
        """The error about something else than a regular file."""
        if not self.follow:
            return FileRefused("path is not a regular file")
        return FileRefused(f"path `{path.decode('utf-8', 'replace')}` is not a file")

    def _follow(self, spot: Spot, link: int, stack: contextlib.ExitStack) -> Spot:
        """Where a link leads to, as another name in another directory."""
        self.check_spot(spot, Access.READ)
        if not may_follow(os.fstat(spot.directory), os.fstat(link)):
            raise failure(errno.EACCES)
        target = os.readlink(b"", dir_fd=link).rstrip(b"/")
        directory, _, name = target.rpartition(b"/")
        if not name or name in (b".", b".."):
            raise failure(errno.EISDIR)
        base = directory or (b"/" if target.startswith(b"/") else b".")
        parent = self.enter(base, start=spot.directory)
        stack.callback(os.close, parent)
        return Spot(parent, name)


def _check_name(directory: int, name: bytes) -> bool:
    """Raise if a name stands for a process; whether the directory is on procfs."""
    names = procfs.has_only(directory)
    if names is not None and name not in names:
        raise failure(errno.ENOENT)
    return names is not None


def _passages(rules: Rules) -> set[str]:
    """Directories that are seen, and nothing else in them, because something below can be read.

    Also links that the policy names, to something that can be read.
    """
    passages: set[str] = set()
    for rule in rules.rules:
        if rule.access < Access.READ:
            continue
        passages |= set(rule.aliases)
        for path in (rule.path, *rule.aliases):
            while path != "/":
                path = path[: path.rindex("/")] or "/"
                if path in passages:
                    break
                passages.add(path)
    return passages
