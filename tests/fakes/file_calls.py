"""A program that makes random calls about files, all below its working directory, and says what came of each.

Run as a script, by whatever Python there is: standard library only.

usage: file_calls.py SEED COUNT

The same seed gives the same calls.  Paths are built in many ways, but only ever from names of its own
and dots that stay inside: no call can be about anything above the directory it was started in.  A line of
output is a call, and its result or the name of its error; at the end it lists what there is.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import random
import stat
import struct
import sys
from collections.abc import Callable

libc = ctypes.CDLL(None, use_errno=True)
OPENAT2 = 437
NO_MAGIC, NO_LINKS, BENEATH, IN_ROOT = 0x02, 0x04, 0x08, 0x10

NAMES = ["a", "b", "c", "d", "e"]
ACCESS = [os.O_RDONLY, os.O_WRONLY, os.O_RDWR]
MORE = [
    0,
    os.O_CREAT,
    os.O_CREAT | os.O_EXCL,
    os.O_TRUNC,
    os.O_CREAT | os.O_TRUNC,
    os.O_APPEND,
    os.O_NOFOLLOW,
]
MORE += [os.O_DIRECTORY, os.O_CREAT | os.O_NOFOLLOW, os.O_NONBLOCK | os.O_CREAT, os.O_CLOEXEC]
MODES = [0o777, 0o755, 0o700, 0o666, 0o600, 0o1777, 0o2755]
MASKS = [0o022, 0, 0o077, 0o027]


class World:
    """What the calls are drawn from."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)  # noqa: S311  (calls that can be repeated)
        self.top = os.getcwd()
        self.place = os.open(".", os.O_PATH | os.O_DIRECTORY)
        self.drawn: list[object] = []
        """What the last call was about."""
        for name in ("a", "a/b", "a/b/c", "b", "b/d"):
            os.mkdir(name)
        for name in ("a/d", "a/b/d", "c", "b/c", "b/d/a"):
            with open(name, "w") as file:
                file.write(name)
        for name, target in (("e", "a/b"), ("a/e", f"{self.top}/b"), ("d", "c"), ("b/e", "nowhere")):
            os.symlink(target, name)

    def below(self) -> str:
        """A path relative to the top that does not lead above it."""
        parts = [self.chance.choice(NAMES) for _ in range(self.chance.choice([1, 1, 2, 2, 3]))]
        if self.chance.random() < 0.2:
            parts[:0] = [self.chance.choice(NAMES), ".."]
        if self.chance.random() < 0.1:
            parts.insert(0, ".")
        path = "/".join(parts) + ("/" if self.chance.random() < 0.1 else "")
        self.drawn.append(path)
        return path

    def flags(self) -> int:
        flags = self.chance.choice(ACCESS) | self.chance.choice(MORE)
        self.drawn.append(oct(flags))
        return flags

    def path(self) -> str:
        """One of the many ways to say the same."""
        below = self.below()
        match self.chance.randrange(8):
            case 0:
                return f"{self.top}/{below}"
            case 1:
                return f"/proc/self/cwd/{below}"
            case 2:
                return f"/proc/self/fd/{self.place}/{below}"
            case 3:
                return f"/proc/self/root{self.top}/{below}"
            case 4:
                return f"/dev/fd/{self.place}/{below}"
            case _:
                return below

    def link(self) -> str:
        """The text of a symbolic link: one that stays below, from wherever it is."""
        return f"{self.top}/{self.below()}" if self.chance.random() < 0.7 else self.chance.choice(NAMES)


def facts(fd: int) -> list[object]:
    info = os.fstat(fd)
    flags = fcntl.fcntl(fd, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_APPEND | os.O_NONBLOCK)
    closes = fcntl.fcntl(fd, fcntl.F_GETFD)
    return [fd, flags, closes, stat.filemode(info.st_mode), info.st_nlink, info.st_uid, info.st_gid]


def used(fd: int, world: World) -> list[object]:
    """What can be said of an open file, and written to it."""
    try:
        found = facts(fd)
        if stat.S_ISREG(os.fstat(fd).st_mode) and found[1] != os.O_RDONLY:
            os.write(fd, b"%d" % world.chance.randrange(10))
            found.append(os.fstat(fd).st_size)
        return found
    finally:
        os.close(fd)


def open_plainly(w: World) -> object:
    flags = w.flags()
    return used(os.open(w.path(), flags, w.chance.choice(MODES)), w)


def open_at(w: World) -> object:
    flags = w.flags()
    return used(os.open(w.below(), flags, w.chance.choice(MODES), dir_fd=w.place), w)


def open_by_structure(w: World) -> object:
    flags = w.flags()
    mode = w.chance.choice(MODES) if flags & os.O_CREAT else 0
    how = struct.pack("=3Q", flags, mode, w.chance.choice([0, NO_MAGIC, NO_LINKS, BENEATH, IN_ROOT]))
    fd = libc.syscall(OPENAT2, ctypes.c_int(w.place), os.fsencode(w.below()), how, len(how))
    if fd < 0:
        raise OSError(ctypes.get_errno(), "")
    return used(fd, w)


def nameless(w: World) -> object:
    fd = os.open(os.path.dirname(w.below()) or ".", os.O_TMPFILE | os.O_WRONLY, 0o644)
    try:
        os.write(fd, b"nameless")
        os.link(f"/proc/self/fd/{fd}", w.path(), follow_symlinks=True)
    finally:
        os.close(fd)
    return None


def reopened(w: World) -> object:
    fd = os.open(w.path(), os.O_RDONLY | os.O_NONBLOCK)
    try:
        return used(os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | w.chance.choice([0, os.O_TRUNC])), w)
    finally:
        os.close(fd)


def moved(w: World) -> None:
    os.rename(w.path(), w.path())


def exchanged(w: World) -> object:
    one, other, flags = w.path(), w.path(), w.chance.choice([1, 2])
    if libc.renameat2(-100, os.fsencode(one), -100, os.fsencode(other), flags):
        raise OSError(ctypes.get_errno(), "")
    return None


CALLS: dict[str, Callable[[World], object]] = {
    "open": open_plainly,
    "openat": open_at,
    "openat2": open_by_structure,
    "mkdir": lambda w: os.mkdir(w.path(), w.chance.choice(MODES)),
    "mknod": lambda w: os.mknod(w.path(), w.chance.choice(MODES) | stat.S_IFREG),
    "symlink": lambda w: os.symlink(w.link(), w.path()),
    "link": lambda w: os.link(w.path(), w.path(), follow_symlinks=w.chance.random() < 0.5),
    "unlink": lambda w: os.unlink(w.path()),
    "rmdir": lambda w: os.rmdir(w.path()),
    "rename": moved,
    "exchange": exchanged,
    "truncate": lambda w: os.truncate(w.path(), w.chance.randrange(9)),
    "nameless": nameless,
    "reopened": reopened,
    "umask": lambda w: os.umask(w.chance.choice(MASKS)),
}
WEIGHTS = [6, 3, 4, 8, 1, 2, 2, 3, 2, 4, 1, 2, 1, 2, 1]


def outline() -> dict[str, list[object]]:
    found: dict[str, list[object]] = {}
    for top, directories, files in sorted(os.walk(".")):
        for name in sorted(directories + files):
            path = os.path.join(top, name)
            if path.startswith("./."):
                continue
            info = os.lstat(path)
            content = os.readlink(path) if stat.S_ISLNK(info.st_mode) else ""
            if stat.S_ISREG(info.st_mode) and info.st_mode & 0o400:
                with open(path) as file:
                    content = file.read()
            found[path] = [stat.filemode(info.st_mode), info.st_nlink, info.st_size, content]
    return found


def main() -> None:
    seed, count = map(int, sys.argv[1:3])
    world = World(seed)
    weights = [0 if name in sys.argv[3:] else weight for name, weight in zip(CALLS, WEIGHTS, strict=True)]
    for name in world.chance.choices(list(CALLS), weights, k=count):
        world.drawn.clear()
        try:
            result = CALLS[name](world)
        except OSError as error:
            result = errno.errorcode[error.errno or 0]
        sys.stdout.write(json.dumps([name, world.drawn, result]).replace(world.top, "TOP") + "\n")
    sys.stdout.write(json.dumps(outline()).replace(world.top, "TOP") + "\n")


if __name__ == "__main__":
    main()
