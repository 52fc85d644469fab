"""Ways to make a path look like another, or the world like another: part of ``intruder.py``."""

from __future__ import annotations

import ctypes
import mmap
import os
import threading

from tests.fakes.intruder_files import AT_FDCWD, WAYS, About, call, libc, put, way

__all__ = ["WAYS"]

CLONE_NEWNS, CLONE_NEWUSER, CLONE_FS = 0x20000, 0x10000000, 0x200
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 32, 4096, 16384, 1 << 18
MOUNT, UMOUNT2, PIVOT_ROOT, OPEN_TREE, MOUNT_SETATTR, MOVE_MOUNT = 165, 166, 155, 428, 442, 429
OPEN_TREE_CLONE, AT_RECURSIVE = 1, 0x8000
PR_SET_DUMPABLE = 4


def _up(levels: int) -> str:
    return "/".join([".."] * levels)


# What somebody who looks on may not be able to follow.


@way
def from_far_below(a: About) -> None:
    """The working directory's own path is longer than a path may be."""
    os.chdir(a.root)
    name, levels = "d" * 250, 18
    for _ in range(levels):
        os.mkdir(name)
        os.chdir(name)
    put(f"{_up(levels)}/{os.path.relpath(a.target, a.root)}")


@way
def by_long_links(a: About) -> None:
    """Links whose texts are together longer than a path may be."""
    last = a.directory
    for number in range(6):
        name = os.path.join(a.root, f"link{number}")
        os.symlink(last + "/." * 1900, name)
        last = f"link{number}"
    put(f"{name}/{os.path.basename(a.target)}")


@way
def by_many_links(a: About) -> None:
    last = a.target
    # The kernel follows 40, and counts them twice when it begins a walk anew: it does that when
    # something is mounted meanwhile, as in the sandboxes of other tests.
    for number in range(19):
        name = os.path.join(a.root, f"link{number}")
        os.symlink(last, name)
        last = name
    put(last)


@way
def by_a_link_of_slashes(a: About) -> None:
    os.symlink("//" + a.target.replace("/", "///"), a.inside)
    put(a.inside)


@way
def across_two_pages(a: About) -> None:
    """The path lies where one page ends and nothing follows."""
    size, path = mmap.PAGESIZE, os.fsencode(a.target) + b"\0"
    memory = mmap.mmap(-1, 2 * size)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc.mprotect(ctypes.c_void_p(start + size), size, 0)
    ctypes.memmove(start + size - len(path), path, len(path))
    os.write(call(2, ctypes.c_void_p(start + size - len(path)), os.O_WRONLY, 0), b"taken\n")


@way
def in_a_thread_with_its_own_directory(a: About) -> None:
    failure: list[OSError] = []

    def work() -> None:
        try:
            call(272, CLONE_FS)  # unshare
            os.chdir(a.directory)
            put(os.path.basename(a.target))
        except OSError as error:
            failure.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]


@way
def unseen(a: About) -> None:
    """A process whose memory nobody may read."""
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    put(a.target)


@way
def unseen_with_a_new_name(a: About) -> None:
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    put(os.path.join(a.directory, "new"), os.O_WRONLY | os.O_CREAT)


@way
def unseen_rename(a: About) -> None:
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    os.rename(a.target, a.inside)


@way
def unseen_because_unreadable(a: About) -> None:
    """A program that may be run and not be read."""
    copy = os.path.join(a.root, "sh")
    with open("/bin/sh", "rb") as source, open(copy, "wb") as file:
        file.write(source.read())
    os.chmod(copy, 0o111)  # noqa: S103  (that is the trick)
    if os.spawnv(os.P_WAIT, copy, ["sh", "-c", f"echo taken >{a.target}"]):
        raise OSError(1, "")


# Another root, other mounts.


def _alone(flags: int) -> None:
    """Be somebody in a new user namespace."""
    uid, gid = os.getuid(), os.getgid()
    call(272, CLONE_NEWUSER | flags)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        try:
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
        except OSError:
            pass  # All that is needed may be there without.


def _mount(source: str, target: str, flags: int, kind: str = "") -> None:
    call(MOUNT, os.fsencode(source), os.fsencode(target), os.fsencode(kind), ctypes.c_ulong(flags), None)


@way
def in_a_user_namespace(a: About) -> None:
    _alone(0)
    put(a.target)


@way
def from_another_root(a: About) -> None:
    """As whoever may change its root, if anybody may."""
    if os.getuid():
        _alone(0)
    at = os.open(a.root, os.O_RDONLY)
    os.chroot(a.root)
    os.chdir("/")
    if a.target.startswith(a.root + "/"):
        put(a.target[len(a.root) :])
        return
    # The way out: a root that is below where we are.
    os.mkdir("/jail")
    os.chroot("/jail")
    os.fchdir(at)
    os.chdir(_up(16))
    os.chroot(".")
    put(a.target)


@way
def from_another_root_by_a_namespace(a: About) -> None:
    _alone(CLONE_NEWNS)
    os.chroot(os.path.dirname(a.root))
    put("/" + os.path.relpath(a.target, os.path.dirname(a.root)))


@way
def mounted_again(a: About) -> None:
    _alone(CLONE_NEWNS)
    _mount(a.directory, a.directory, MS_BIND | MS_REC)
    _mount("", a.directory, MS_REMOUNT | MS_BIND)
    put(a.target)


@way
def mounted_elsewhere(a: About) -> None:
    _alone(CLONE_NEWNS)
    place = os.path.join(a.root, "sub")
    _mount(os.path.dirname(a.directory), place, MS_BIND)
    put(os.path.join(place, os.path.basename(a.directory), os.path.basename(a.target)))


@way
def root_mounted_writable(a: About) -> None:
    _alone(CLONE_NEWNS)
    _mount("", "/", MS_REMOUNT | MS_BIND)
    put(a.target)


@way
def uncovered(a: About) -> None:
    """Without what is mounted over it."""
    _alone(CLONE_NEWNS)
    call(UMOUNT2, os.fsencode(a.directory), 2)
    put(a.target)


@way
def root_uncovered(a: About) -> None:
    _alone(CLONE_NEWNS)
    place = os.path.join(a.root, "sub")
    _mount("none", place, 0, "tmpfs")
    os.mkdir(os.path.join(place, "old"))
    os.chdir(place)
    call(PIVOT_ROOT, b".", b"old")
    put(f"/old{a.target}")


@way
def by_a_detached_tree(a: About) -> None:
    """A mount that is nowhere."""
    if os.getuid():
        _alone(CLONE_NEWNS)
    top = a.root if a.target.startswith(a.root + "/") else a.directory
    tree = call(OPEN_TREE, AT_FDCWD, os.fsencode(top), OPEN_TREE_CLONE)
    put(os.path.relpath(a.target, top), at=tree)


@way
def by_a_detached_tree_in_a_namespace(a: About) -> None:
    _alone(CLONE_NEWNS)
    top = a.root if a.target.startswith(a.root + "/") else a.directory
    tree = call(OPEN_TREE, AT_FDCWD, os.fsencode(top), OPEN_TREE_CLONE | AT_RECURSIVE)
    put(os.path.relpath(a.target, top), at=tree)


@way
def by_a_tree_made_writable(a: About) -> None:
    _alone(CLONE_NEWNS)
    tree = call(OPEN_TREE, AT_FDCWD, os.fsencode(a.directory), OPEN_TREE_CLONE | AT_RECURSIVE)
    attributes = (ctypes.c_uint64 * 4)(0, 1, 0, 0)
    call(MOUNT_SETATTR, tree, b"", 0x1000 | AT_RECURSIVE, attributes, 32)
    put(os.path.basename(a.target), at=tree)


# Other sets of system calls.

_INT80 = bytes.fromhex("53 89f8 89f3 4189c8 89d1 4489c2 cd80 5b c3")


def _int80() -> tuple[mmap.mmap, object]:
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(_INT80)
    start = ctypes.addressof(ctypes.c_char.from_buffer(code))
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_uint, ctypes.c_uint, ctypes.c_uint)
    return code, kind(start)


@way
def by_calls_of_i386(a: About) -> None:
    """The same calls under other numbers."""
    _, trap = _int80()
    path = os.fsencode(a.target) + b"\0"
    map_low = libc.mmap
    map_low.restype = ctypes.c_void_p
    low = map_low(None, ctypes.c_size_t(4096), 3, 0x62, -1, ctypes.c_long(0))  # MAP_32BIT
    ctypes.memmove(low, path, len(path))
    fd = trap(5, low, os.O_WRONLY, 0)  # type: ignore[operator]
    if fd < 0:
        raise OSError(-fd, "")
    os.write(fd, b"taken\n")


@way
def by_calls_of_x32(a: About) -> None:
    os.write(call(0x40000000 | 2, os.fsencode(a.target), os.O_WRONLY, 0), b"taken\n")
