"""Resolves the paths of a request to descriptors, and asks the rules about what those stand for.

What must hold:

1. What is checked is what is used.  A path is resolved once, to a descriptor.  The kernel says where that is,
   the rules are asked about that place, and the work is done with that descriptor, or with a name in that
   directory that is no link.  Whoever swaps links meanwhile changes what is found, never what is allowed.
2. Nothing but a regular file is opened, and never the memory of a process.
3. With rules, processes are not there: neither as files, nor as a way to other files.
4. With rules, no file that was written or copied runs with the rights of its owner.
5. With rules, a request learns nothing about what it may not read: neither whether it exists, nor what it is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from holdfast.errors import FileRefused
from holdfast.model import to_text
from holdfast.sandbox import Access, Rules
from holdfast.value import value

from .paths import (
    MOST_LINKS,
    check_length,
    failure,
    is_memory,
    is_procfs,
    is_visible,
    join,
    may_follow,
    may_write,
    open_beneath,
    open_path,
    procfs_names,
    real_path,
    split,
    visible,
)

_PATH = os.O_PATH | os.O_CLOEXEC
_DIRECTORY = _PATH | os.O_DIRECTORY
_MAKE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC

_SET_IDS = stat.S_ISUID | stat.S_ISGID

MODE = 0o666
"""The mode of a new file, before the umask."""


@value
class Spot:
    """A name in an open directory: where something is, or may be made."""

    directory: int
    """A descriptor of the directory, good for relative paths only."""
    name: bytes


class Resolver:
    """Resolves paths for one request, as far as its rules allow."""

    __slots__ = ("_passages", "_rules", "follow")

    def __init__(self, rules: Rules | None = None, *, follow: bool = True) -> None:
        """
        Args:
            rules: What the request may read and write; without rules, everything.
            follow: Whether links are followed.  Otherwise no part of a path may be a link.
        """
        self._rules = rules
        self.follow = follow
        self._passages = _passages(rules) if rules is not None else set()

    @property
    def ruled(self) -> bool:
        """Whether there are rules."""
        return self._rules is not None

    # Rules.

    def check(self, path: bytes, need: Access) -> None:
        """Raise unless the rules allow ``need`` at a path, which must not have links in it."""
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
        """Whether a list of the directory shows this path, which must not have links in it."""
        if self._rules is None:
            return True
        text = to_text(path)
        return self._rules.access(text) >= Access.READ or (
            text in self._passages and not self._rules.covers(text)
        )

    def allows_below(self, path: bytes, need: Access) -> bool:
        """Whether the rules allow ``need`` at all paths below a directory that have a rule of their own."""
        if self._rules is None:
            return True
        inside = to_text(join(path, b""))
        return all(rule.access >= need for rule in self._rules.rules if rule.path.startswith(inside))

    def admit(self, fd: int, need: Access = Access.READ) -> int:
        """Return the descriptor if the rules allow ``need`` where it is.  Otherwise close it and raise."""
        try:
            self.inspect(fd, need)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def inspect(self, fd: int, need: Access = Access.READ) -> None:
        """Raise unless the rules allow ``need`` at the place of an open file."""
        if self._rules is None:
            return
        if not is_visible(fd):
            raise failure(errno.ENOENT)
        self.check(real_path(fd), need)
        if need > Access.READ and is_procfs(fd):
            raise failure(errno.EROFS)

    def _hide(self, path: bytes) -> None:
        """Raise the error that the rules have for a path that cannot be resolved, if they have one.

        Otherwise the error of the system could tell whether something exists that may not be read.
        """
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
        """Raise if a path is too long, or a rule denies it by its name, before the disk is asked about it."""
        check_length(path)
        if self._rules is not None:
            text = to_text(path)
            if self._rules.access(text) is Access.DENY and self._rules.covers(text):
                raise failure(errno.EACCES)

    # From paths to descriptors.

    @contextlib.contextmanager
    def find(self, path: bytes, need: Access = Access.READ, *, last: bool = True) -> Iterator[int]:
        """Give a descriptor of what is at a path, for a ``with`` block.  It opens nothing.

        Args:
            need: What the rules must allow there.
            last: Whether a link at the end of the path is followed.  Without ``follow`` it never is: then
                the descriptor stands for the link.
        """
        fd = self.take(path, need, last=last)
        try:
            yield fd
        finally:
            os.close(fd)

    def take(self, path: bytes, need: Access = Access.READ, *, last: bool = True) -> int:
        """Return the descriptor that ``find`` gives; the caller closes it."""
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
        """Return a descriptor of what is at a path.  Links are followed, and the rules are not asked.

        Args:
            start: The directory that a relative path is relative to.
            last: Whether a link at the end of the path is followed.
        """
        if self._rules is not None:
            return open_path(path, start=start, last=last)
        return os.open(path, _PATH if last else _PATH | os.O_NOFOLLOW, dir_fd=start)

    @contextlib.contextmanager
    def spot(self, path: bytes) -> Iterator[Spot]:
        """Give the directory of a path and the name in it, for a ``with`` block.  The name need not exist.

        Raises:
            OSError: With EBUSY for the root, which is in no directory.
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
        """Return a descriptor of a directory, for relative paths only.

        Args:
            path: If links are not followed, this must be a single name.
            start: The directory that a relative path is relative to.
        """
        if self._rules is None:
            flags = _DIRECTORY if self.follow else _DIRECTORY | os.O_NOFOLLOW
            return os.open(path, flags, dir_fd=start)
        fd = self.open(path, start=start, last=self.follow)
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            return fd
        os.close(fd)
        raise failure(errno.ENOTDIR)

    def _enter_plain(self, path: bytes) -> int:
        """Return a descriptor of a directory that is reached without links."""
        fd = open_beneath(None, path)
        return fd if self._rules is None else visible(fd)

    def check_spot(self, spot: Spot, need: Access) -> None:
        """Raise unless the rules allow ``need`` at a name in an open directory."""
        if self._rules is None:
            return
        on_procfs = _check_name(spot.directory, spot.name)
        self.check(join(real_path(spot.directory), spot.name), need)
        if on_procfs and need > Access.READ:
            raise failure(errno.EROFS)

    # Opening files.

    def reopen(self, fd: int, flags: int) -> int:
        """Open the file that a descriptor of ``find`` stands for.  Never waits for the far end of a pipe."""
        if is_memory(fd):
            raise failure(errno.EACCES)
        flags |= os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return os.open(b"/proc/self/fd/%d" % fd, flags)

    def create(
        self, path: bytes, mode: int = MODE, *, flags: int = os.O_TRUNC, is_exact: bool = False
    ) -> int:
        """Open a regular file for writing, and make it if there is none.  Links are followed if ``follow``.

        Args:
            mode: The mode of a new file, before the umask.
            flags: Further flags for a file that is there.
            is_exact: Whether a new file has this mode whatever the umask is.

        Raises:
            FileRefused: A device or a pipe is there.  It is not opened.
        """
        if path == b"/" and self.follow:
            raise failure(errno.EISDIR)
        with contextlib.ExitStack() as stack:
            spot = stack.enter_context(self.spot(path))
            for _ in range(MOST_LINKS):
                found = self._open_or_make(spot, mode, flags, path, is_exact=is_exact)
                if found is None:
                    continue
                fd, is_link = found
                if not is_link:
                    return fd
                stack.callback(os.close, fd)
                spot = self._follow(spot, fd, stack)
        raise failure(errno.ELOOP)

    def create_at(self, spot: Spot, mode: int = MODE, *, flags: int = os.O_TRUNC) -> int:
        """Do what ``create`` does for a name in an open directory.  A link there is not followed."""
        for _ in range(MOST_LINKS):
            found = self._open_or_make(spot, mode, flags, spot.name)
            if found is not None and not found[1]:
                return found[0]
            if found is not None:
                os.close(found[0])
                break
        raise failure(errno.ELOOP)

    def _open_or_make(
        self, spot: Spot, mode: int, flags: int, told: bytes, *, is_exact: bool = False
    ) -> tuple[int, bool] | None:
        """Return a file that is open for writing, or a link that stands for itself, and whether it is a link.

        None means that the name has changed meanwhile, and the caller has to look again.  What is there is
        checked before it is opened, and a file is only made if nothing is there.
        """
        try:
            found = os.open(spot.name, _PATH | os.O_NOFOLLOW, dir_fd=spot.directory)
        except FileNotFoundError:
            self.check_spot(spot, Access.WRITE)
            try:
                made = os.open(spot.name, _MAKE, mode, dir_fd=spot.directory)
            except FileExistsError:
                return None  # Somebody has made it meanwhile.
            if is_exact:
                os.fchmod(made, mode)
            return made, False
        facts = os.fstat(found)
        try:
            if stat.S_ISLNK(facts.st_mode) and self.follow:
                if not is_procfs(found):
                    return os.dup(found), True
                # A link of procfs leads to an open file.  Its text may look like a path, but is none.
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
            # The kernel clears these bits with the first write, but not if root writes.
            with contextlib.suppress(PermissionError):
                os.fchmod(fd, stat.S_IMODE(facts.st_mode) & ~_SET_IDS)
        return fd, False

    def _check_kind(self, facts: os.stat_result, told: bytes) -> None:
        """Raise unless it is a regular file.  Where the kernel has an error for the kind, it is that one."""
        kinds = ((stat.S_ISLNK, errno.ELOOP), (stat.S_ISDIR, errno.EISDIR), (stat.S_ISSOCK, errno.ENXIO))
        for is_kind, number in kinds:
            if is_kind(facts.st_mode):
                raise failure(number)
        if not stat.S_ISREG(facts.st_mode):
            raise self.not_a_file(told)

    def not_a_file(self, path: bytes) -> FileRefused:
        """Return the error about a path that does not name a regular file."""
        if not self.follow:
            return FileRefused("path is not a regular file")
        return FileRefused(f"path `{path.decode('utf-8', 'replace')}` is not a file")

    def _follow(self, spot: Spot, link: int, stack: contextlib.ExitStack) -> Spot:
        """Return the place that a link leads to, as a name in a directory that ``stack`` closes."""
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
    """Raise if a name belongs to a process.  Return whether the directory is on procfs."""
    names = procfs_names(directory)
    if names is not None and name not in names:
        raise failure(errno.ENOENT)
    return names is not None


def _passages(rules: Rules) -> set[str]:
    """Return the directories that a request may see, because something below them may be read.

    Nothing else in them can be seen.  Links that the policy names, to something that may be read, are
    among them.
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
