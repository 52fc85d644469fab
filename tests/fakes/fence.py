"""Keeps tests that send random paths inside their own directory.

Two walls, because a mistake here removes somebody's files.  ``leaving`` finds every
text in a message that a server could take for a path outside of the directory, so
that a test refuses to send it.  ``COMMAND`` starts a server in a mount namespace of
its own, in which only the directory can be written; ``can_fence`` says whether this
host allows that.

usage: python fence.py DIRECTORY PROGRAM [ARGUMENT...]
"""

from __future__ import annotations

import ctypes
import os
import posixpath
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import unquote

_BLANKS = "".join(map(chr, range(0x21)))
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")

COMMAND = (sys.executable, os.path.abspath(__file__))
"""What stands before the directory and the program."""


# What a test is about to send.


def leaving(message: Any, root: str) -> Iterator[str]:
    """The texts in a message that may name something outside of ``root``.

    Any text counts, whatever its place in the message: one that begins with a
    slash, and one that could be a URI.  Only those that lead into ``root``, by any
    way of reading them, are left out.
    """
    match message:
        case str() if not _is_inside(message, root):
            yield message
        case list():
            for each in message:
                yield from leaving(each, root)
        case dict():
            for name, each in message.items():
                yield from leaving(name, root)
                yield from leaving(each, root)


def _is_inside(text: str, root: str) -> bool:
    if not text.startswith("/"):
        # Readers of URIs pass over blanks around them, and over line ends inside.
        uri = re.sub(r"[\t\r\n]", "", text.strip(_BLANKS))
        if not _URI.match(uri):
            return True
        if not uri.startswith("file:///"):
            return False
        text = uri.removeprefix("file://")
    # With and without escapes, and with back slashes as a URI has them.
    readings = {text, unquote(text), unquote(text).replace("\\", "/")}
    return all(_leads_into(reading, root) for reading in readings)


def _leads_into(path: str, root: str) -> bool:
    # Dots that lead up are refused even if they come back: there may be links in between.
    normal = posixpath.normpath(path)
    return ".." not in path.split("/") and (normal == root or normal.startswith(f"{root}/"))


# Where a server runs that takes it.

_NEW_MOUNTS, _NEW_USER = 0x00020000, 0x10000000
_BIND, _PRIVATE, _RECURSIVE = 0x1000, 0x40000, 0x4000
_SET_ATTRIBUTES, _READ_ONLY, _AND_BELOW, _HERE = 442, 1, 0x8000, -100


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("set", ctypes.c_uint64),
        ("clear", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns", ctypes.c_uint64),
    )


def enter(directory: str) -> None:
    """From here on this process, and what it starts, can write to ``directory`` only.

    Raises:
        OSError: The kernel does not allow it.
    """
    libc = ctypes.CDLL(None, use_errno=True)

    def done(result: int) -> None:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def attributes(path: str, flags: int, **changes: int) -> None:
        wanted = _Attributes(**changes)
        size = ctypes.c_size_t(ctypes.sizeof(wanted))
        done(
            libc.syscall(
                ctypes.c_long(_SET_ATTRIBUTES), _HERE, path.encode(), flags, ctypes.byref(wanted), size
            )
        )

    user, group = os.geteuid(), os.getegid()
    if user == 0:
        done(libc.unshare(_NEW_MOUNTS))
    else:
        done(libc.unshare(_NEW_MOUNTS | _NEW_USER))
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{user} {user} 1"),
            ("gid_map", f"{group} {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    done(libc.mount(b"none", b"/", None, _PRIVATE | _RECURSIVE, None))
    done(libc.mount(directory.encode(), directory.encode(), None, _BIND, None))
    attributes("/", _AND_BELOW, set=_READ_ONLY)
    attributes(directory, 0, clear=_READ_ONLY)
    # Where we were, we would still be on the mounts from before.
    os.chdir(directory)


@cache
def can_fence() -> bool:
    """Whether this host lets us have mounts of our own."""
    with tempfile.TemporaryDirectory() as place:
        inside, outside = os.path.join(place, "in"), os.path.join(place, "out")
        os.mkdir(inside)
        script = f"touch {inside}/made && ! touch {outside}"
        ran = subprocess.run([*COMMAND, inside, "sh", "-c", script], capture_output=True, check=False)
        return ran.returncode == 0 and os.path.exists(os.path.join(inside, "made"))


if __name__ == "__main__":
    enter(sys.argv[1])
    os.execvp(sys.argv[2], sys.argv[2:])
