"""Ways to change a file that must not be changed: part of ``intruder.py``."""

from __future__ import annotations

import array
import ctypes
import os
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass

AT_FDCWD, AT_EMPTY_PATH, AT_SYMLINK_FOLLOW = -100, 0x1000, 0x400
RENAME_EXCHANGE = 2
LINKAT, RENAMEAT2, OPEN_BY_HANDLE, NAME_TO_HANDLE, OPENAT2 = 265, 316, 304, 303, 437

libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class About:
    """Where the intruder is, and what it is to reach."""

    root: str
    """What it may write to."""
    target: str = ""
    """A file that it may not."""
    pid: int = 0
    """Somebody outside."""
    address: int = 0
    """Some memory of theirs."""
    port: int = 0
    place: str = ""
    """Whatever else a way is about."""
    tries: int = 0
    also: str = ""

    @property
    def directory(self) -> str:
        return os.path.dirname(self.target)

    @property
    def inside(self) -> str:
        """Something new inside."""
        return os.path.join(self.root, "new")


Way = Callable[[About], object]
WAYS: dict[str, Way] = {}


def way(function: Way) -> Way:
    WAYS[function.__name__] = function
    return function


def call(number: int, *arguments: object) -> int:
    """A system call.  Raises OSError."""
    result: int = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def put(path: str, flags: int = os.O_WRONLY, *, at: int | None = None) -> None:
    fd = os.open(path, flags, dir_fd=at)
    os.write(fd, b"taken\n")
    os.close(fd)


def link(fd: int, old: str, new: str, flags: int) -> None:
    call(LINKAT, ctypes.c_int(fd), os.fsencode(old), AT_FDCWD, os.fsencode(new), flags)


# By its name.


@way
def write(a: About) -> None:
    put(a.target)


@way
def append(a: About) -> None:
    put(a.target, os.O_WRONLY | os.O_APPEND)


@way
def truncate(a: About) -> None:
    os.truncate(a.target, 0)


@way
def open_to_truncate(a: About) -> None:
    os.close(os.open(a.target, os.O_RDONLY | os.O_TRUNC))


@way
def creat(a: About) -> None:
    os.close(call(85, os.fsencode(a.target), 0o644))


@way
def old_open(a: About) -> None:
    os.write(call(2, os.fsencode(a.target), os.O_RDWR, 0), b"taken\n")


@way
def create(a: About) -> None:
    put(os.path.join(a.directory, "new"), os.O_WRONLY | os.O_CREAT)


@way
def unlink(a: About) -> None:
    os.unlink(a.target)


@way
def mkdir(a: About) -> None:
    os.mkdir(os.path.join(a.directory, "new"))


@way
def rmdir(a: About) -> None:
    os.rmdir(os.path.join(a.directory, "empty"))


@way
def make_fifo(a: About) -> None:
    os.mknod(os.path.join(a.directory, "new"), 0o010644)


@way
def make_symlink(a: About) -> None:
    os.symlink("/", os.path.join(a.directory, "new"))


@way
def make_link_there(a: About) -> None:
    os.link(os.path.join(a.root, "file"), os.path.join(a.directory, "new"))


@way
def make_socket_there(a: About) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.join(a.directory, "new"))


@way
def rename_away(a: About) -> None:
    os.rename(a.target, a.inside)


@way
def rename_over(a: About) -> None:
    os.rename(os.path.join(a.root, "file"), a.target)


@way
def rename_inside_of_it(a: About) -> None:
    os.rename(a.target, a.target + "-moved")


@way
def exchange(a: About) -> None:
    ours, theirs = os.fsencode(os.path.join(a.root, "file")), os.fsencode(a.target)
    call(RENAMEAT2, AT_FDCWD, ours, AT_FDCWD, theirs, RENAME_EXCHANGE)


@way
def move_its_directory(a: About) -> None:
    os.rename(a.directory, a.inside)


@way
def nameless_file(a: About) -> None:
    """A file without a name that is given one there."""
    fd = os.open(a.root, os.O_TMPFILE | os.O_WRONLY, 0o644)
    os.write(fd, b"taken\n")
    link(AT_FDCWD, f"/proc/self/fd/{fd}", os.path.join(a.directory, "new"), AT_SYMLINK_FOLLOW)


@way
def nameless_file_by_descriptor(a: About) -> None:
    fd = os.open(a.root, os.O_TMPFILE | os.O_WRONLY, 0o644)
    os.write(fd, b"taken\n")
    link(fd, "", os.path.join(a.directory, "new"), AT_EMPTY_PATH)


# By another path.


@way
def by_dots(a: About) -> None:
    put(f"{a.root}/sub/../../{os.path.basename(a.root)}/{os.path.relpath(a.target, a.root)}")


@way
def relative(a: About) -> None:
    os.chdir(os.path.join(a.root, "sub"))
    put(os.path.relpath(a.target))


@way
def through_a_link(a: About) -> None:
    os.symlink(a.target, a.inside)
    put(a.inside)


@way
def create_through_a_link(a: About) -> None:
    os.symlink(os.path.join(a.directory, "new"), a.inside)
    put(a.inside, os.O_WRONLY | os.O_CREAT)


@way
def through_a_linked_directory(a: About) -> None:
    os.symlink(a.directory, a.inside)
    put(os.path.join(a.inside, os.path.basename(a.target)))


@way
def mkdir_through_a_linked_directory(a: About) -> None:
    os.symlink(a.directory, a.inside)
    os.mkdir(os.path.join(a.inside, "new"))


@way
def unlink_through_a_linked_directory(a: About) -> None:
    os.symlink(a.directory, a.inside)
    os.unlink(os.path.join(a.inside, os.path.basename(a.target)))


@way
def rename_through_a_linked_directory(a: About) -> None:
    os.symlink(a.directory, a.inside)
    os.rename(os.path.join(a.root, "file"), os.path.join(a.inside, os.path.basename(a.target)))


@way
def through_own_root(a: About) -> None:
    put(f"/proc/self/root{a.target}")


@way
def through_own_directory(a: About) -> None:
    os.chdir(a.directory)
    put(f"/proc/self/cwd/{os.path.basename(a.target)}")


@way
def through_a_thread(a: About) -> None:
    put(f"/proc/thread-self/root{a.target}")


@way
def through_a_descriptor(a: About) -> None:
    fd = os.open(a.target, os.O_RDONLY)
    put(f"/proc/self/fd/{fd}")


@way
def through_dev_fd(a: About) -> None:
    fd = os.open(a.target, os.O_RDONLY)
    put(f"/dev/fd/{fd}")


@way
def through_a_task(a: About) -> None:
    fd = os.open(a.target, os.O_RDONLY)
    put(f"/proc/{os.getpid()}/task/{os.getpid()}/fd/{fd}")


@way
def truncate_through_a_descriptor(a: About) -> None:
    fd = os.open(a.target, os.O_RDONLY)
    os.truncate(f"/proc/self/fd/{fd}", 0)


@way
def through_a_place(a: About) -> None:
    """A descriptor that only stands for a place."""
    fd = os.open(a.target, os.O_PATH)
    put(f"/proc/self/fd/{fd}")


@way
def below_a_place(a: About) -> None:
    at = os.open(a.directory, os.O_PATH)
    put(os.path.basename(a.target), at=at)


@way
def by_a_structure(a: About) -> None:
    how = struct.pack("=3Q", os.O_WRONLY, 0, 0)
    os.write(call(OPENAT2, AT_FDCWD, os.fsencode(a.target), how, len(how)), b"taken\n")


@way
def by_a_structure_in_a_root(a: About) -> None:
    """Where an absolute path does not begin at the root."""
    at = os.open(a.root, os.O_PATH)
    how = struct.pack("=3Q", os.O_WRONLY, 0, 0x10)
    path = "/" + os.path.relpath(a.target, a.root)
    os.write(call(OPENAT2, ctypes.c_int(at), os.fsencode(path), how, len(how)), b"taken\n")


@way
def by_a_link_in_a_root(a: About) -> None:
    """A link whose text leads somewhere else from there."""
    at = os.open(a.root, os.O_PATH)
    os.symlink("/" + os.path.relpath(a.target, a.root), a.inside)
    how = struct.pack("=3Q", os.O_WRONLY, 0, 0x10)
    os.write(call(OPENAT2, ctypes.c_int(at), b"new", how, len(how)), b"taken\n")


@way
def by_a_handle(a: About) -> None:
    handle = bytearray(struct.pack("=Ii", 128, 0) + bytes(128))
    buffer = (ctypes.c_char * len(handle)).from_buffer(handle)
    number = ctypes.c_int()
    call(NAME_TO_HANDLE, AT_FDCWD, os.fsencode(a.target), buffer, ctypes.byref(number), 0)
    at = os.open(a.root, os.O_RDONLY)
    os.write(call(OPEN_BY_HANDLE, ctypes.c_int(at), buffer, os.O_WRONLY), b"taken\n")


# Under another name.


@way
def second_name(a: About) -> None:
    os.link(a.target, a.inside)
    put(a.inside)


@way
def second_name_by_descriptor(a: About) -> None:
    link(os.open(a.target, os.O_RDONLY), "", a.inside, AT_EMPTY_PATH)
    put(a.inside)


@way
def second_name_by_place(a: About) -> None:
    link(os.open(a.target, os.O_PATH), "", a.inside, AT_EMPTY_PATH)
    put(a.inside)


@way
def second_name_through_proc(a: About) -> None:
    fd = os.open(a.target, os.O_RDONLY)
    link(AT_FDCWD, f"/proc/self/fd/{fd}", a.inside, AT_SYMLINK_FOLLOW)
    put(a.inside)


@way
def second_name_through_a_link(a: About) -> None:
    os.symlink(a.target, os.path.join(a.root, "link"))
    link(AT_FDCWD, os.path.join(a.root, "link"), a.inside, AT_SYMLINK_FOLLOW)
    put(a.inside)


# By other means.


@way
def passed_on(a: About) -> None:
    """A descriptor that came through a socket."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with here, there:
        sent = array.array("i", [os.open(a.target, os.O_RDONLY)])
        here.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, sent)])
        _, extra, _, _ = there.recvmsg(1, 64)
        (fd,) = struct.unpack("=i", extra[0][2][:4])
        put(f"/proc/self/fd/{fd}")


@way
def from_memory(a: About) -> None:
    """A program that is no file."""
    fd = os.memfd_create("sh", 0)
    with open("/bin/sh", "rb") as file:
        os.write(fd, file.read())
    pid = os.fork()
    if pid == 0:
        os.execve(fd, ["sh", "-c", f"echo taken >{a.target}"], {})
    if os.waitpid(pid, 0)[1]:
        raise OSError(1, "")
