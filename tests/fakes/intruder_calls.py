"""Ways to reach other processes, the network and the kernel: part of ``intruder.py``."""

# house: long because it is a list, and each of its items is short

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import subprocess
import termios

from tests.fakes.intruder_files import About, Way, call, libc

CALLS: dict[str, Way] = {}

TAKEN = b"taken"

PARENT = os.getppid()
"""Who has started the intruder."""


def way(function: Way) -> Way:
    CALLS[function.__name__] = function
    return function


# The network.


@way
def tcp(a: About) -> None:
    with socket.create_connection(("127.0.0.1", a.port), 1) as made:
        made.sendall(TAKEN)


@way
def udp(a: About) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.sendto(TAKEN, ("127.0.0.1", a.port))


@way
def raw(a: About) -> None:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()


@way
def packet(a: About) -> None:
    socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close()


@way
def netlink(a: About) -> None:
    socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()


@way
def vsock(a: About) -> None:
    socket.socket(40, socket.SOCK_STREAM).close()


@way
def inet6(a: About) -> None:
    socket.socket(socket.AF_INET6, socket.SOCK_STREAM).close()


@way
def alg(a: About) -> None:
    socket.socket(38, socket.SOCK_SEQPACKET).close()


@way
def unix_stream(a: About) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.connect(a.place)
        made.sendall(TAKEN)


@way
def unix_datagram(a: About) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.sendto(TAKEN, a.also)


@way
def unix_raw(a: About) -> None:
    """Which is the same as a datagram."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_RAW) as made:
        made.sendto(TAKEN, a.also)


@way
def unix_message(a: About) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as made:
        made.sendmsg([TAKEN], [], 0, a.also)


@way
def pair_of_datagrams(a: About) -> None:
    """A pair that is connected can still send to others."""
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with here, there:
        here.sendto(TAKEN, a.also)


@way
def pair_message(a: About) -> None:
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with here, there:
        here.sendmsg([TAKEN], [], 0, a.also)


@way
def packets_in_order(a: About) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as made:
        made.sendmsg([TAKEN], [], 0, a.place)


@way
def abstract(a: About) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.connect("\0" + a.place)
        made.sendall(TAKEN)


@way
def in_a_network_of_the_hosts(a: About) -> None:
    """As a member of somebody else's network."""
    libc.setns(os.open(f"/proc/{a.pid}/ns/net", os.O_RDONLY), 0x40000000)
    tcp(a)


# Somebody else's process.


@way
def kill(a: About) -> None:
    os.kill(a.pid, signal.SIGUSR1)


@way
def tgkill(a: About) -> None:
    call(234, a.pid, a.pid, signal.SIGUSR1)


@way
def tkill(a: About) -> None:
    call(200, a.pid, signal.SIGUSR1)


@way
def queued(a: About) -> None:
    info = struct.pack("=3i", signal.SIGUSR1, 0, -1) + bytes(116)
    call(129, a.pid, signal.SIGUSR1, info)


@way
def by_pidfd(a: About) -> None:
    fd = os.pidfd_open(a.pid)
    signal.pidfd_send_signal(fd, signal.SIGUSR1)


@way
def by_owner(a: About) -> None:
    """A signal that is sent when something can be read."""
    reader, writer = os.pipe()
    fcntl.fcntl(reader, fcntl.F_SETOWN, a.pid)
    fcntl.fcntl(reader, 10, signal.SIGUSR1)  # F_SETSIG
    fcntl.fcntl(reader, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(writer, b"x")
    if fcntl.fcntl(reader, fcntl.F_GETOWN) != a.pid:
        raise OSError(3, "")


@way
def trace(a: About) -> None:
    for request in (0x4206, 16):  # PTRACE_SEIZE, PTRACE_ATTACH
        call(101, request, a.pid, None, None)


@way
def write_memory(a: About) -> None:
    data = ctypes.create_string_buffer(TAKEN)
    ours = struct.pack("=2Q", ctypes.addressof(data), len(TAKEN))
    theirs = struct.pack("=2Q", a.address, len(TAKEN))
    call(311, a.pid, ours, 1, theirs, 1, 0)


@way
def write_memory_file(a: About) -> None:
    fd = os.open(f"/proc/{a.pid}/mem", os.O_RDWR)
    os.pwrite(fd, TAKEN, a.address)


@way
def read_memory_file(a: About) -> None:
    os.pread(os.open(f"/proc/{a.pid}/mem", os.O_RDONLY), 5, a.address)


@way
def read_variables(a: About) -> None:
    with open(f"/proc/{a.pid}/environ", "rb") as file:
        file.read()


@way
def their_root(a: About) -> None:
    os.close(os.open(f"/proc/{a.pid}/root/", os.O_RDONLY))


@way
def their_directory(a: About) -> None:
    os.close(os.open(f"/proc/{a.pid}/cwd/", os.O_RDONLY))


@way
def their_file(a: About) -> None:
    os.close(os.open(f"/proc/{a.pid}/fd/0", os.O_RDONLY))


@way
def their_descriptor(a: About) -> None:
    call(438, os.pidfd_open(a.pid), 0, 0)


@way
def their_limits(a: About) -> None:
    resource.prlimit(a.pid, resource.RLIMIT_CORE, (0, 0))


@way
def their_priority(a: About) -> None:
    os.setpriority(os.PRIO_PROCESS, a.pid, 10)


@way
def their_scheduler(a: About) -> None:
    os.sched_setscheduler(a.pid, os.SCHED_IDLE, os.sched_param(0))


@way
def their_processors(a: About) -> None:
    os.sched_setaffinity(a.pid, [0])


@way
def their_disk_priority(a: About) -> None:
    call(251, 1, a.pid, 3 << 13)  # ioprio_set


@way
def their_namespaces(a: About) -> None:
    call(308, os.pidfd_open(a.pid), 0x20000)  # setns


@way
def their_shared_memory(a: About) -> None:
    libc.shmat.restype = ctypes.c_void_p
    address = libc.shmat(int(a.also), None, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise OSError(ctypes.get_errno(), "")
    ctypes.memmove(address, TAKEN, len(TAKEN))


@way
def first_process(a: About) -> None:
    """The one that has started us, and may do more than we."""
    os.close(os.open(f"/proc/{PARENT}/mem", os.O_RDWR))


@way
def through_the_first_process(a: About) -> None:
    """Have it do what our own filter refuses: connect to somebody outside."""
    memory = os.open(f"/proc/{PARENT}/mem", os.O_RDWR)
    with open(f"/proc/{PARENT}/syscall") as file:
        at = int(file.read().split()[-1], 16)
    address = struct.pack("=H", socket.AF_UNIX) + os.fsencode(a.place).ljust(108, b"\0")
    code = bytearray.fromhex(
        "bf01000000be0100000031d2b8290000000f05"  # socket(AF_UNIX, SOCK_STREAM, 0)
        "89c7488d3500000000ba6e000000b82a0000000f05"  # connect(it, address, 110)
        "488d3500000000ba05000000b8010000000f05"  # write(it, text, 5)
        "31ffb8e70000000f05"  # exit_group(0)
    )
    # Where the two texts are, counted from the end of the instructions that name them.
    code[24:28] = struct.pack("=i", len(code) - 28)
    code[43:47] = struct.pack("=i", len(code) + len(address) - 47)
    os.pwrite(memory, bytes(code) + address + TAKEN, at)
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)  # Our grandchild becomes its child, and wakes it.
        os._exit(0)
    os.wait()
    signal.pause()


@way
def tracing_the_first_process(a: About) -> None:
    call(101, 0x4206, PARENT, None, None)


@way
def stop_the_parent(a: About) -> None:
    os.kill(PARENT, signal.SIGKILL)
    os.kill(PARENT, signal.SIGSTOP)


# The kernel.


@way
def ring(a: About) -> None:
    call(425, 4, ctypes.create_string_buffer(256))


@way
def keys(a: About) -> None:
    call(250, 0, ctypes.c_int(-3), 0)  # keyctl: the session's keyring


@way
def new_key(a: About) -> None:
    call(248, b"user", b"holdfast", b"x", 1, ctypes.c_int(-2))


@way
def program_of_the_kernels(a: About) -> None:
    call(321, 0, ctypes.create_string_buffer(struct.pack("=4I", 2, 4, 4, 1) + bytes(112)), 128)  # bpf


@way
def host_name(a: About) -> None:
    name = os.fsencode(os.uname().nodename)
    call(170, name, len(name))  # The same as before.


@way
def kernel_setting(a: About) -> None:
    """Opened, never written."""
    os.close(os.open(a.place, os.O_WRONLY))


@way
def their_oom_score(a: About) -> None:
    os.close(os.open(f"/proc/{a.pid}/oom_score_adj", os.O_WRONLY))


@way
def device(a: About) -> None:
    os.mknod(a.inside, 0o020666, os.makedev(1, 3))


@way
def new_privileges(a: About) -> int:
    """Whether they can be had again."""
    libc.prctl(38, 0, 0, 0, 0)
    answer: int = libc.prctl(39, 0, 0, 0, 0)
    return answer


@way
def no_filter(a: About) -> None:
    """Without the filter this would work."""
    with contextlib.suppress(OSError):
        call(317, 0, 0, None)  # Strict mode, which would allow more in one respect, and less in others.
    call(425, 4, ctypes.create_string_buffer(256))


@way
def status(a: About) -> dict[str, str]:
    with open("/proc/self/status") as file:
        lines = (line.split(":\t", 1) for line in file)
        return {name: text.strip() for name, text in lines}


@way
def descriptors(a: About) -> list[str]:
    listed = os.open("/proc/self/fd", os.O_RDONLY)
    return sorted(name for name in os.listdir(listed) if int(name) != listed and _is_open(int(name)))


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@way
def privileged_program(a: About) -> int:
    """The user that a program says it runs as that is another's when it runs."""
    said = subprocess.run([a.place], capture_output=True, check=False).stdout
    number: int = json.loads(said)
    return number


@way
def other_terminal(a: About) -> None:
    fd = os.open(a.place, os.O_WRONLY | os.O_NOCTTY)
    os.write(fd, TAKEN)


@way
def type_on_other_terminal(a: About) -> None:
    fd = os.open(a.place, os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    for byte in TAKEN:
        fcntl.ioctl(fd, termios.TIOCSTI, bytes([byte]))


@way
def hold_the_witness(a: About) -> None:
    """Memory that nobody can read until we say so, with a path in it."""
    memory = libc.mmap
    memory.restype = ctypes.c_void_p
    start = memory(None, ctypes.c_size_t(4096), 3, 0x22, -1, ctypes.c_long(0))
    fd = call(323, os.O_CLOEXEC)
    fcntl.ioctl(fd, 0xC018AA3F, struct.pack("=3Q", 0xAA, 0, 0))
    fcntl.ioctl(fd, 0xC020AA00, bytearray(struct.pack("=4Q", start, 4096, 1, 0)))
    os.write(1, b"held\n")
    call(2, ctypes.c_void_p(start), os.O_WRONLY, 0)
