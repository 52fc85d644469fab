"""The filter for system calls of a sandboxed command, as a program for seccomp (pure).

What it refuses fails with EPERM, or is handed to the witness, which then
refuses it.  Calls that change files are handed to the witness only, to be seen.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from holdfast.value import value

_LOAD, _JUMP_EQUAL, _JUMP_FROM, _JUMP_SET, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_ALLOW, _NOTIFY, _ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
_EPERM, _ENOSYS = 1, 38
_NEW_USER, _NEW_MOUNTS = 0x10000000, 0x00020000

_AF_UNIX = 1
_SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_TYPES = 1, 5, 0xF
_WRITING = 0o1 | 0o2 | 0o100 | 0o1000
"""Of the flags of open: O_WRONLY, O_RDWR, O_CREAT, O_TRUNC.  The same on every machine that we know."""

_X32 = 0x40000000
"""Added to the numbers of a second set of calls on x86-64, which is as dangerous as the first."""


@value
class Machine:
    """A kind of processor: how the kernel calls it, and its system calls."""

    audit: int
    calls: dict[str, int]


_X86_64 = {
    "open": 2, "socket": 41, "connect": 42, "accept": 43, "sendto": 44, "bind": 49, "listen": 50,
    "socketpair": 53, "clone": 56, "truncate": 76, "rename": 82, "mkdir": 83, "rmdir": 84, "creat": 85,
    "link": 86, "unlink": 87, "symlink": 88, "chmod": 90, "chown": 92, "lchown": 94, "ptrace": 101,
    "utime": 132, "mknod": 133, "pivot_root": 155, "mount": 165, "umount2": 166, "setxattr": 188,
    "lsetxattr": 189, "removexattr": 197, "lremovexattr": 198, "utimes": 235, "add_key": 248,
    "request_key": 249, "keyctl": 250, "openat": 257, "mkdirat": 258, "mknodat": 259, "fchownat": 260,
    "futimesat": 261, "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat": 266, "fchmodat": 268,
    "unshare": 272, "utimensat": 280, "accept4": 288, "prlimit64": 302, "open_by_handle_at": 304,
    "sendmmsg": 307, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "renameat2": 316,
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsmount": 432, "fspick": 433, "clone3": 435, "openat2": 437,
    "pidfd_getfd": 438, "mount_setattr": 442, "fchmodat2": 452,
}  # fmt: skip
_AARCH64 = {
    "setxattr": 5, "lsetxattr": 6, "removexattr": 14, "lremovexattr": 15, "mknodat": 33, "mkdirat": 34,
    "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38, "umount2": 39, "mount": 40,
    "pivot_root": 41, "truncate": 45, "fchmodat": 53, "fchownat": 54, "openat": 56, "utimensat": 88,
    "unshare": 97, "ptrace": 117, "socket": 198, "socketpair": 199, "bind": 200, "listen": 201,
    "accept": 202, "connect": 203, "sendto": 206, "add_key": 217, "request_key": 218, "keyctl": 219,
    "clone": 220, "accept4": 242, "prlimit64": 261, "open_by_handle_at": 265, "setns": 268, "sendmmsg": 269,
    "process_vm_readv": 270, "process_vm_writev": 271, "renameat2": 276, "io_uring_setup": 425,
    "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "fsmount": 432, "fspick": 433, "clone3": 435, "openat2": 437, "pidfd_getfd": 438, "mount_setattr": 442,
    "fchmodat2": 452,
}  # fmt: skip
MACHINES = {"x86_64": Machine(0xC000003E, _X86_64), "aarch64": Machine(0xC00000B7, _AARCH64)}

_NEVER = (
    "ptrace", "open_by_handle_at", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "io_uring_setup",
    "io_uring_enter", "io_uring_register", "add_key", "request_key", "keyctl",
)  # fmt: skip
"""What no sandbox allows: ways into other processes, around this filter, and to secrets of the kernel's."""

_MOUNTS = (
    "mount", "umount2", "pivot_root", "setns", "open_tree", "move_mount", "fsopen", "fspick", "fsmount",
    "mount_setattr",
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


def program(
    machine: Machine,
    *,
    network: bool,
    witness: bool,
    files: bool,
    attributes: bool = False,
    namespaces: bool = True,
) -> bytes:
    """The filter.

    Args:
        network: Whether the network may be used.
        namespaces: Whether there may be further namespaces inside.
        witness: Whether somebody is told of what is refused.
        files: Whether changes to files are worth telling.
        attributes: The same for changes of their attributes.
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
        for name in ("unshare", "clone"):
            lines += _call(machine, name, _if_any(0, _NEW_USER | _NEW_MOUNTS, _ERRNO | _EPERM))
        # Its flags cannot be seen from here.  Who is told that there is no such call takes the older one.
        lines += _call(machine, "clone3", [(_RETURN, 0, 0, _ERRNO | _ENOSYS)])
    if not network:
        for name in ("socket", "socketpair"):
            lines += _call(machine, name, _only_streams(refuse))
        lines += _call(machine, "sendto", _unless_zero(4, refuse))
        for name in _NETWORK:
            lines += _call(machine, name, [(_RETURN, 0, 0, refuse)])
    if witness and files:
        lines += _call(machine, "open", _if_any(1, _WRITING, _NOTIFY))
        lines += _call(machine, "openat", _if_any(2, _WRITING, _NOTIFY))
        for name in _CHANGES + (_ATTRIBUTES if attributes else ()):
            lines += _call(machine, name, [(_RETURN, 0, 0, _NOTIFY)])
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


_Line = tuple[int, int, int, int]


def _load(offset: int) -> list[_Line]:
    return [(_LOAD, 0, 0, offset)]


def _argument(number: int, *, upper: bool = False) -> list[_Line]:
    return _load(16 + 8 * number + (4 if upper else 0))


def _call(machine: Machine, name: str, then: Sequence[_Line]) -> list[_Line]:
    """``then``, which returns in any case, if it is this call; the call's number is loaded."""
    number = machine.calls.get(name)
    return [] if number is None else [(_JUMP_EQUAL, 0, len(then), number), *then]


def _only_streams(refuse: int) -> list[_Line]:
    """Local sockets that have a peer: the others can send to whom they like."""
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
    return [
        *_argument(number),
        (_JUMP_EQUAL, 0, 3, 0),
        *_argument(number, upper=True),
        (_JUMP_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, refuse),
    ]


def _if_any(number: int, bits: int, then: int) -> list[_Line]:
    return [*_argument(number), (_JUMP_SET, 0, 1, bits), (_RETURN, 0, 0, then), (_RETURN, 0, 0, _ALLOW)]


def _only_on_itself() -> list[_Line]:
    """Limits of others may be read, not set: that would be a way to end them."""
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
