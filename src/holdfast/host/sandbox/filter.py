"""The filter of a sandboxed command's system calls, as a program for seccomp (pure).

A call that the filter refuses fails with EPERM, or is handed to the witness, which then refuses it.  Calls
that change files are handed to the witness too, which sees what becomes of them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from holdfast.value import value

_LOAD, _JUMP_EQUAL, _JUMP_FROM, _JUMP_SET, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _NOTIFY, _ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_NEW_NAMESPACES = 0x7E020000
"""Flags of clone and unshare: every kind of namespace but that of time, for which clone has no flag."""
_NEW_TIME = 0x80
"""The flag of unshare for a time namespace.  For clone the bit is a part of the signal's number."""

_AF_UNIX = 1
_SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_TYPES = 1, 5, 0xF
_WRITING = 0o1 | 0o2 | 0o100 | 0o1000
"""Flags of open: O_WRONLY, O_RDWR, O_CREAT, O_TRUNC.  They are the same on every machine that we know."""

_X32 = 0x40000000
"""The bit that marks the x32 set of calls on x86-64, which is as dangerous as the ordinary one."""


@value
class Machine:
    """A kind of processor, and its system calls."""

    audit: int
    """The number by which the kernel tells a filter the kind of processor that a call is for."""
    calls: dict[str, int]
    """The number of each call, by its name."""


_X86_64 = {
    "open": 2, "ioctl": 16, "socket": 41, "connect": 42, "accept": 43, "sendto": 44, "bind": 49,
    "listen": 50, "socketpair": 53, "clone": 56, "truncate": 76, "rename": 82, "mkdir": 83, "rmdir": 84,
    "creat": 85, "link": 86, "unlink": 87, "symlink": 88, "chmod": 90, "fchmod": 91, "chown": 92,
    "lchown": 94, "ptrace": 101, "utime": 132, "mknod": 133, "pivot_root": 155, "mount": 165, "umount2": 166,
    "setxattr": 188, "lsetxattr": 189, "removexattr": 197, "lremovexattr": 198, "utimes": 235,
    "add_key": 248, "request_key": 249, "keyctl": 250, "openat": 257, "mkdirat": 258, "mknodat": 259,
    "fchownat": 260, "futimesat": 261, "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat": 266,
    "fchmodat": 268, "unshare": 272, "utimensat": 280, "accept4": 288, "prlimit64": 302,
    "open_by_handle_at": 304, "sendmmsg": 307, "setns": 308, "process_vm_readv": 310,
    "process_vm_writev": 311, "renameat2": 316, "io_uring_setup": 425, "io_uring_enter": 426,
    "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431,
    "fsmount": 432, "fspick": 433, "clone3": 435, "openat2": 437, "pidfd_getfd": 438, "mount_setattr": 442,
    "fchmodat2": 452, "open_tree_attr": 467,
}  # fmt: skip
_AARCH64 = {
    "setxattr": 5, "lsetxattr": 6, "removexattr": 14, "lremovexattr": 15, "ioctl": 29, "mknodat": 33,
    "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38, "umount2": 39, "mount": 40,
    "pivot_root": 41, "truncate": 45, "fchmod": 52, "fchmodat": 53, "fchownat": 54, "openat": 56,
    "utimensat": 88, "unshare": 97, "ptrace": 117, "socket": 198, "socketpair": 199, "bind": 200,
    "listen": 201, "accept": 202, "connect": 203, "sendto": 206, "add_key": 217, "request_key": 218,
    "keyctl": 219, "clone": 220, "accept4": 242, "prlimit64": 261, "open_by_handle_at": 265, "setns": 268,
    "sendmmsg": 269, "process_vm_readv": 270, "process_vm_writev": 271, "renameat2": 276,
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "clone3": 435,
    "openat2": 437, "pidfd_getfd": 438, "mount_setattr": 442, "fchmodat2": 452, "open_tree_attr": 467,
}  # fmt: skip
MACHINES = {"x86_64": Machine(0xC000003E, _X86_64), "aarch64": Machine(0xC00000B7, _AARCH64)}

_NEVER = (
    "ptrace", "open_by_handle_at", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "io_uring_setup",
    "io_uring_enter", "io_uring_register", "add_key", "request_key", "keyctl",
)  # fmt: skip
"""Calls that no sandbox allows: ways into other processes, around this filter, and to keys in the kernel."""

_MOUNTS = (
    "mount", "umount2", "pivot_root", "setns", "open_tree", "open_tree_attr", "move_mount", "fsopen",
    "fsconfig", "fspick", "fsmount", "mount_setattr",
)  # fmt: skip
_NETWORK = ("connect", "accept", "accept4", "bind", "listen", "sendmmsg")
_CHANGES = (
    "creat", "openat2", "mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat", "unlink",
    "unlinkat", "rmdir", "link", "linkat", "rename", "renameat", "renameat2", "truncate",
)  # fmt: skip
_ATTRIBUTES = (
    "chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "utime", "utimes", "futimesat",
    "utimensat", "setxattr", "lsetxattr", "removexattr", "lremovexattr",
)  # fmt: skip

_MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2}
"""Calls that change the mode of a file, and the number of the argument that has the mode."""
_NEW_MODES = {"creat": 1, "mknod": 1, "mknodat": 2}
"""Calls that make a file with a mode, and the number of the argument that has it.

``mkdir`` is not here: the kernel takes the bit away from a new directory.
"""
_OPENS = {"open": 1, "openat": 2}
"""Calls that may make a file, and the number of the argument with the flags.  The mode is behind it."""
_MAKES = 0o100 | 0o20000000
"""Flags of open: O_CREAT, and the bit of O_TMPFILE.  Without them a call has no mode, whatever is there."""
_SET_UID = 0o4000
"""The set-uid bit of a mode.

A new file is empty, and the kernel clears the bit with the first write of a command.  But whoever has more
rights and fills the file outside of the sandbox would not clear it.
"""

_CLONES = (0x40049409, 0x4020940D, 0xC0189436)
"""FICLONE and similar commands.  All file systems have them, although they have the letter of btrfs."""
_OWN_COMMANDS = (0x9400, 0xBC00)
"""The letters of btrfs and bcachefs, which make, copy and remove whole trees by ``ioctl``.

A directory that is open for reading is enough for these commands, and Landlock does not check them.
"""
_FOR_GOOD = (0x40186F04, 0x40806685, 0x800C6613)
"""Commands of other file systems that change files for good: reflinks on OCFS2, fs-verity, encryption."""
_LETTER = 0xFF00


def program(
    machine: Machine,
    *,
    network: bool,
    witness: bool,
    files: bool,
    attributes: bool = False,
    namespaces: bool = True,
    binds: bool = False,
    guard: bool = False,
) -> bytes:
    """Return the filter, as the instructions of a program for seccomp.

    Args:
        network: Whether the network may be used.
        witness: Whether a witness decides about calls that are refused; otherwise they fail.
        files: Whether there are rules about files.  Then the witness sees calls that change files, no file
            gets or is made with the set-uid bit, and file systems take no commands that make trees.
        attributes: Whether the witness also sees calls that change attributes of files.
        namespaces: Whether the command may make further namespaces, in which it would have capabilities,
            for example to mount control groups.
        binds: Whether the witness sees calls that give a socket an address, which may be a path.
        guard: Whether the witness makes the calls that open files itself, as it has read them.
    """
    refuse = _NOTIFY if witness else _ERRNO | _EPERM
    lines = [
        *_load(4),
        (_JUMP_EQUAL, 1, 0, machine.audit),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
        *_load(0),
        (_JUMP_FROM, 0, 1, _X32),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
    ]
    for name in _NEVER:
        lines += _call(machine, name, [(_RETURN, 0, 0, _ERRNO | _EPERM)])
    lines += _call(machine, "prlimit64", _only_on_itself())
    if not namespaces:
        for name in _MOUNTS:
            lines += _call(machine, name, [(_RETURN, 0, 0, _ERRNO | _EPERM)])
        lines += _call(machine, "unshare", _if_any(0, _NEW_NAMESPACES | _NEW_TIME, _ERRNO | _EPERM))
        lines += _call(machine, "clone", _if_any(0, _NEW_NAMESPACES, _ERRNO | _EPERM))
        # Its flags are in memory, where a filter cannot look.  A C library that is told that there is no such
        # call uses clone.
        lines += _call(machine, "clone3", [(_RETURN, 0, 0, _ERRNO | _ENOSYS)])
    if not network:
        for name in ("socket", "socketpair"):
            lines += _call(machine, name, _only_streams(refuse))
        lines += _call(machine, "sendto", _unless_zero(4, refuse))
        for name in _NETWORK:
            lines += _call(machine, name, [(_RETURN, 0, 0, refuse)])
    elif binds:
        lines += _call(machine, "bind", [(_RETURN, 0, 0, _NOTIFY)])
    if files:
        for name, mode in _MODES.items():
            seen = _NOTIFY if witness and attributes and name in _ATTRIBUTES else _ALLOW
            lines += _call(machine, name, _if_any(mode, _SET_UID, _ERRNO | _EPERM, otherwise=seen))
        seen = _NOTIFY if witness else _ALLOW
        for name, mode in _NEW_MODES.items():
            lines += _call(machine, name, _if_any(mode, _SET_UID, _ERRNO | _EPERM, otherwise=seen))
        for name, flags in _OPENS.items():
            lines += _call(machine, name, _opened(flags, seen))
        if not guard:
            # Its mode is in memory, where a filter cannot look, and where the command can change it after the
            # witness has.  Programs that are told that there is no such call use openat.
            lines += _call(machine, "openat2", [(_RETURN, 0, 0, _ERRNO | _ENOSYS)])
        lines += _call(machine, "ioctl", _no_trees())
    if witness and files:
        for name in _CHANGES + (_ATTRIBUTES if attributes else ()):
            lines += _call(machine, name, [(_RETURN, 0, 0, _NOTIFY)])
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


_Line = tuple[int, int, int, int]
"""An instruction: its code, the jumps if true and if false, and its operand."""


def _load(offset: int) -> list[_Line]:
    """Load four bytes of the description of the call."""
    return [(_LOAD, 0, 0, offset)]


def _argument(number: int, *, upper: bool = False) -> list[_Line]:
    """Load one half of an argument of the call."""
    return _load(16 + 8 * number + (4 if upper else 0))


def _call(machine: Machine, name: str, then: Sequence[_Line]) -> list[_Line]:
    """Run ``then``, which always returns, if it is this call.  The number of the call must be loaded."""
    number = machine.calls.get(name)
    return [] if number is None else [(_JUMP_EQUAL, 0, len(then), number), *then]


def _only_streams(refuse: int) -> list[_Line]:
    """Allow only local sockets that have a peer.  Others can send to any address."""
    return [
        *_argument(0),
        (_JUMP_EQUAL, 0, 5, _AF_UNIX),
        *_argument(1),
        (_AND, 0, 0, _SOCK_TYPES),
        (_JUMP_EQUAL, 1, 0, _SOCK_STREAM),
        (_JUMP_EQUAL, 0, 1, _SOCK_SEQPACKET),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, refuse),
    ]


def _unless_zero(number: int, refuse: int) -> list[_Line]:
    """Allow the call only if an argument is 0."""
    return [
        *_argument(number),
        (_JUMP_EQUAL, 0, 3, 0),
        *_argument(number, upper=True),
        (_JUMP_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, refuse),
    ]


def _if_any(number: int, bits: int, then: int, *, otherwise: int = _ALLOW) -> list[_Line]:
    """Return ``then`` if an argument has any of these bits, and ``otherwise`` if not."""
    return [*_argument(number), (_JUMP_SET, 0, 1, bits), (_RETURN, 0, 0, then), (_RETURN, 0, 0, otherwise)]


def _opened(flags: int, writing: int) -> list[_Line]:
    """Refuse to make a set-uid file.  Return ``writing`` for other calls that may change something."""
    return [
        *_argument(flags),
        (_JUMP_SET, 0, 3, _MAKES),
        *_argument(flags + 1),
        (_JUMP_SET, 0, 1, _SET_UID),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
        *_if_any(flags, _WRITING, writing),
    ]


def _no_trees() -> list[_Line]:
    """Refuse commands of file systems that make or remove trees, or change files for good."""
    refused, allowed = (_RETURN, 0, 0, _ERRNO | _EPERM), (_RETURN, 0, 0, _ALLOW)
    lines = _argument(1)
    for clone in _CLONES:
        lines += [(_JUMP_EQUAL, 0, 1, clone), allowed]
    for number in _FOR_GOOD:
        lines += [(_JUMP_EQUAL, 0, 1, number), refused]
    lines += [(_AND, 0, 0, _LETTER)]
    for letter in _OWN_COMMANDS:
        lines += [(_JUMP_EQUAL, 0, 1, letter), refused]
    return [*lines, allowed]


def _only_on_itself() -> list[_Line]:
    """Allow limits of other processes to be read, not set: a limit can end a process."""
    return [
        *_argument(0),
        (_JUMP_EQUAL, 4, 0, 0),
        *_argument(2),
        (_JUMP_EQUAL, 0, 3, 0),
        *_argument(2, upper=True),
        (_JUMP_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _ERRNO | _EPERM),
    ]
