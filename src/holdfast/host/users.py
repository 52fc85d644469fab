"""Looks users up in the user database of the host.

Behind it may be a network, and whoever asks waits for as long as that takes: so it is asked in threads.
"""

from __future__ import annotations

import ctypes
import os
import pwd

from holdfast.errors import UserRefused
from holdfast.faults import UserFault
from holdfast.model import to_bytes
from holdfast.users import Credentials, numbers_of

_GROUPS_AT_FIRST = 64
_GROUPS_MOST = 65_536
"""Supplementary groups of a process; the kernel takes no more."""

_NEEDED = {"CAP_KILL": 5, "CAP_SETGID": 6, "CAP_SETUID": 7}
"""Capabilities without which nobody becomes another user, or could not be ended then."""


def find(name: str) -> Credentials:
    """Return what a process needs to be one of this user.  Waits for the user database.

    Raises:
        UserRefused: There is no such user, or this server cannot start processes as anybody but its own.
    """
    numbers = numbers_of(name)
    uid, gid = (None, None) if numbers is None else numbers
    entry = _entry(name, uid)
    if entry is None and (uid is None or (gid is None and uid != os.geteuid())):
        reason = "there is no such user on the server's host"
        if uid is not None:
            reason += f"; for a user without a name give the group, too: '{uid}:GID'"
        raise UserRefused(name, UserFault.UNKNOWN, reason)
    if entry is not None:
        uid = entry.pw_uid
    assert uid is not None
    own = uid == os.geteuid() and gid in (None, os.getegid())
    if not own:
        _check_powers(name)
    return Credentials(
        uid,
        os.getegid() if own else _group(entry, gid),
        () if own else _groups(entry, gid),
        _variables(entry, uid),
        own=own,
    )


def own_names() -> tuple[str, ...]:
    """Return all that requests may call the user of the server.  Waits for the user database."""
    uid, gid = os.geteuid(), os.getegid()
    entry = _entry("", uid)
    return (str(uid), f"{uid}:{gid}", *([] if entry is None else [entry.pw_name]))


def _entry(name: str, uid: int | None) -> pwd.struct_passwd | None:
    try:
        return pwd.getpwnam(name) if uid is None else pwd.getpwuid(uid)
    except (KeyError, UnicodeEncodeError):
        return None
    except OSError as error:
        raise UserRefused(name, UserFault.LOOKUP, f"the user database cannot be read: {error}") from error


def _group(entry: pwd.struct_passwd | None, gid: int | None) -> int:
    if gid is not None:
        return gid
    assert entry is not None
    return entry.pw_gid


def _groups(entry: pwd.struct_passwd | None, gid: int | None) -> tuple[int, ...]:
    """Return the supplementary groups: those of the user, or the one that was asked for and no other."""
    if gid is not None:
        return (gid,)
    assert entry is not None
    # Not ``os.getgrouplist``: while it waits it holds the interpreter's lock, and all threads would wait.
    look = ctypes.CDLL(None).getgrouplist
    room = _GROUPS_AT_FIRST
    while True:
        found, count = (ctypes.c_uint32 * room)(), ctypes.c_int(room)
        if look(to_bytes(entry.pw_name), ctypes.c_uint32(entry.pw_gid), found, ctypes.byref(count)) >= 0:
            return tuple(found[: count.value])
        if room >= _GROUPS_MOST:
            reason = f"it is in more than {_GROUPS_MOST} groups"
            raise UserRefused(entry.pw_name, UserFault.LOOKUP, reason)
        room = min(_GROUPS_MOST, max(count.value, 2 * room))


def _variables(entry: pwd.struct_passwd | None, uid: int) -> tuple[tuple[str, str], ...]:
    name = str(uid) if entry is None else entry.pw_name
    home = "/" if entry is None else entry.pw_dir or "/"
    shell = "/bin/sh" if entry is None else entry.pw_shell or "/bin/sh"
    return ("HOME", home), ("USER", name), ("LOGNAME", name), ("SHELL", shell)


def _check_powers(name: str) -> None:
    """Check that this server may start processes as another user, and may end them, too."""
    if os.geteuid():
        reason = "the server is not root, and starts processes as its own user only"
        raise UserRefused(name, UserFault.NOT_ROOT, reason)
    with open("/proc/self/status") as file:
        powers = next((int(line.split()[1], 16) for line in file if line.startswith("CapEff:")), 0)
    if missing := [power for power, bit in _NEEDED.items() if not powers >> bit & 1]:
        raise UserRefused(name, UserFault.NOT_ROOT, f"the server is root without {', '.join(missing)}")
