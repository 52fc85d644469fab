"""How far a request may reach: paths become descriptors, and rules are asked about what those are.

What must hold:

1. What is checked is what is used: a path is resolved once, to a descriptor.
   The kernel says where that is, the rules are asked about that place, and the
   work is done with that descriptor, or with a name in that directory that is no
   link.  Whoever swaps links meanwhile changes what is found, never what is allowed.
2. Nothing is learned of what may not be read: neither whether it is there, nor
   what it is.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from holdfast.host.text import to_text
from holdfast.sandbox import Access, Rules
from holdfast.value import value

from . import kernel

_MOST_LINKS = 40
"""As many as the kernel follows in one path."""

_PATH = os.O_PATH | os.O_CLOEXEC
_DIRECTORY = _PATH | os.O_DIRECTORY
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

MODE = 0o666
"""Of a new file, before the umask."""


def failure(number: int) -> OSError:
    return OSError(number, os.strerror(number))


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


@value
class Spot:
    """A name in an open directory: where something is, or may be made."""

    directory: int
    """Its descriptor, good for relative paths only."""
    name: bytes


class Reach:
    """Resolves paths for one request."""

    __slots__ = ("_named", "_passages", "_rules", "follow")

    def __init__(self, rules: Rules | None = None, *, follow: bool = True) -> None:
        """Without ``follow`` no part of a path may be a link.  Without rules everything is allowed."""
        self._rules = rules
        self.follow = follow
        self._named = {rule.path for rule in rules.rules} if rules is not None else set()
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
        if self._is_named(text):
            raise failure(errno.EACCES)
        if need is not Access.READ or text not in self._passages:
            raise failure(errno.ENOENT)

    def shows(self, path: bytes) -> bool:
        """Whether somebody who lists a directory sees this."""
        if self._rules is None:
            return True
        text = to_text(path)
        return self._rules.access(text) >= Access.READ or (
            text in self._passages and not self._is_named(text)
        )

    def allows_below(self, path: bytes, need: Access) -> bool:
        """Whether no rule further below asks for more care."""
        if self._rules is None:
            return True
        inside = to_text(join(path, b""))
        return all(rule.access >= need for rule in self._rules.rules if rule.path.startswith(inside))

    def _is_named(self, path: str) -> bool:
        """Whether there is a rule for the path or anything above it."""
        while path not in self._named:
            if path == "/":
                return False
            path = path[: path.rindex("/")] or "/"
        return True

    def admit(self, fd: int, need: Access = Access.READ) -> int:
        """The descriptor, if the rules allow it where it is; otherwise it is closed."""
        if self._rules is not None:
            try:
                self.check(real_path(fd), need)
            except BaseException:
                os.close(fd)
                raise
        return fd

    def _hide(self, path: bytes) -> None:
        """Raise what the rules have to say of a path that cannot be resolved, if anything."""
        if self._rules is None:
            return
        meant, directory, rest = path, path, b""
        while directory != b"/":
            directory, name = split(directory)
            rest = b"/" + name + rest
            with contextlib.suppress(OSError):
                fd = os.open(directory, _PATH)
                try:
                    meant = real_path(fd).rstrip(b"/") + rest
                finally:
                    os.close(fd)
                break
        self.check(meant, Access.READ)

    def _bar(self, path: bytes) -> None:
        """Raise if the way there leads through something that is forbidden by name."""
        if self._rules is not None:
            text = to_text(path)
            if self._rules.access(text) is Access.DENY and self._is_named(text):
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
        """The same for whoever closes it."""
        self._bar(path)
        try:
            fd = self._take(path, last=last)
        except OSError:
            self._hide(path)
            raise
        return self.admit(fd, need)

    def _take(self, path: bytes, *, last: bool) -> int:
        if self.follow:
            return os.open(path, _PATH if last else _PATH | os.O_NOFOLLOW)
        directory, name = split(path)
        parent = _open_plain(directory)
        if not name:
            return parent
        try:
            return os.open(name, _PATH | os.O_NOFOLLOW, dir_fd=parent)
        finally:
            os.close(parent)

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
            parent = os.open(directory, _DIRECTORY) if self.follow else _open_plain(directory)
        except OSError:
            self._hide(path)
            raise
        try:
            yield Spot(parent, name)
        finally:
            os.close(parent)

    def check_spot(self, spot: Spot, need: Access) -> None:
        """Raise unless the rules allow it there."""
        if self._rules is not None:
            self.check(join(real_path(spot.directory), spot.name), need)

    # Opening.

    def reopen(self, fd: int, flags: int) -> int:
        """Open what a descriptor of ``find`` stands for, and nothing else.  Never waits for a peer."""
        flags |= os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        return os.open(b"/proc/self/fd/%d" % fd, flags)

    def create(self, path: bytes, mode: int = MODE, *, flags: int = os.O_TRUNC) -> int:
        """Open a file for writing; make it if there is none.  A link at its end is followed, if links are."""
        if self.follow and self._rules is None:
            return os.open(path, _CREATE | flags, mode)
        if not self.follow:
            with self.spot(path) as spot:
                self.check_spot(spot, Access.WRITE)
                return os.open(spot.name, _CREATE | os.O_NOFOLLOW | flags, mode, dir_fd=spot.directory)
        return self._create(path, mode, flags)

    def _create(self, path: bytes, mode: int, flags: int) -> int:
        """The same link by link, so that each place is known before anything is made or changed there."""
        if path == b"/":
            raise failure(errno.EISDIR)
        with contextlib.ExitStack() as stack:
            spot = stack.enter_context(self.spot(path))
            for _ in range(_MOST_LINKS):
                try:
                    fd = os.open(spot.name, _PATH | os.O_NOFOLLOW, dir_fd=spot.directory)
                except FileNotFoundError:
                    self.check_spot(spot, Access.WRITE)
                    exclusive = _CREATE | os.O_EXCL | os.O_NOFOLLOW
                    with contextlib.suppress(FileExistsError):  # Somebody was faster: look again.
                        return os.open(spot.name, exclusive, mode, dir_fd=spot.directory)
                    continue
                stack.callback(os.close, fd)
                if not stat.S_ISLNK(os.fstat(fd).st_mode):
                    self.check(real_path(fd), Access.WRITE)
                    return self.reopen(fd, os.O_WRONLY | flags)
                spot = self._follow(spot, fd, stack)
        raise failure(errno.ELOOP)

    def _follow(self, spot: Spot, link: int, stack: contextlib.ExitStack) -> Spot:
        """Where a link leads to, as another name in another directory."""
        self.check_spot(spot, Access.READ)
        target = os.readlink(b"", dir_fd=link).rstrip(b"/")
        directory, _, name = target.rpartition(b"/")
        if not name or name in (b".", b".."):
            raise failure(errno.EISDIR)
        base = directory or (b"/" if target.startswith(b"/") else b".")
        parent = os.open(base, _DIRECTORY, dir_fd=spot.directory)
        stack.callback(os.close, parent)
        return Spot(parent, name)


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


def _open_plain(path: bytes) -> int:
    """A directory whose path has no link in it; one that has is said to be no directory."""
    return open_beneath(None, path)


def open_beneath(directory: int | None, path: bytes) -> int:
    """A directory, for relative paths only, on a way without links: from the root, or below a directory."""
    try:
        if directory is None:
            return kernel.open_resolved(-100, path, _DIRECTORY, kernel.NO_SYMLINKS)
        return kernel.open_resolved(directory, path, _DIRECTORY, kernel.NO_SYMLINKS | kernel.BENEATH)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise failure(errno.ENOTDIR) from None
        if not kernel.is_missing(error):
            raise
    return step_by_step(directory, path)


def step_by_step(directory: int | None, path: bytes) -> int:
    """The same for kernels that cannot do it at once."""
    fd = os.open(b"/", _DIRECTORY) if directory is None else os.dup(directory)
    for name in filter(None, path.split(b"/")):
        try:
            below = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
        finally:
            os.close(fd)
        fd = below
    return fd
