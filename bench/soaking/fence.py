"""Starts a program in a mount namespace of its own, in which one directory can be written and nothing else.

For servers that are sent what chance has made: a mistake must not remove somebody's files.

usage: python fence.py DIRECTORY[:PLACE...] PROGRAM [ARGUMENT...]

Each PLACE is a mount of the host that stays as it is, such as /sys/fs/cgroup.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import sys
import tempfile
from functools import cache

COMMAND = (sys.executable, os.path.abspath(__file__))
"""What stands before the directory and the program."""

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


def enter(directory: str, *places: str) -> None:
    """From here on this process, and what it starts, can write to ``directory`` and these mounts only.

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
    for place in places:
        with contextlib.suppress(OSError):  # It is not there, or no mount.
            attributes(place, 0, clear=_READ_ONLY)
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
    enter(*sys.argv[1].split(":"))
    os.execvp(sys.argv[2], sys.argv[2:])
