"""The filter for system calls: decided by a small interpreter, and by the kernel."""

from __future__ import annotations

import platform
import re
import struct
import subprocess
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.host.sandbox.filter import MACHINES, Machine, program
from tests.fakes.confined import confined
from tests.fakes.filters import ALLOW, BOTH, ENOSYS, EPERM, NOTIFY, Decisions, decide

X86, ARM = MACHINES["x86_64"], MACHINES["aarch64"]

AF_UNIX, AF_INET, AF_NETLINK = 1, 2, 16
STREAM, DGRAM, RAW, SEQPACKET = 1, 2, 3, 5
CLOEXEC, NONBLOCK = 0o2000000, 0o4000

NEVER = [
    *("ptrace", "open_by_handle_at", "process_vm_readv", "process_vm_writev", "pidfd_getfd"),
    *("io_uring_setup", "io_uring_enter", "io_uring_register", "add_key", "request_key", "keyctl"),
]
NETWORK = ["connect", "accept", "accept4", "bind", "listen", "sendmmsg"]
CHANGES = [
    *("creat", "openat2", "mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat", "unlink"),
    *("unlinkat", "rmdir", "link", "linkat", "rename", "renameat", "renameat2", "truncate"),
]
ATTRIBUTES = [
    *("chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "utime", "utimes", "futimesat"),
    *("utimensat", "setxattr", "lsetxattr", "removexattr", "lremovexattr"),
]


# Without a witness.


@BOTH
@pytest.mark.parametrize(("network", "witness"), list(product([False, True], repeat=2)))
def test_some_calls_are_never_allowed_and_not_worth_telling(
    machine: Machine, *, network: bool, witness: bool
) -> None:
    """They lead into other processes, or around this filter."""
    filtered = Decisions(machine, network=network, witness=witness)

    assert {filtered.on(name) for name in NEVER} == {EPERM}


@BOTH
def test_without_a_witness_files_are_the_kernels_business(machine: Machine) -> None:
    filtered = Decisions(machine)
    known = [name for name in CHANGES + ATTRIBUTES + ["open", "openat"] if name in machine.calls]
    known.remove("openat2")  # Which is not there at all.

    assert {filtered.on(name, 0o3, 0o3, 0o3) for name in known} == {ALLOW}


@BOTH
@pytest.mark.parametrize(("witness", "refused"), [(False, EPERM), (True, NOTIFY)])
def test_without_network_there_are_only_local_sockets_that_have_a_peer(
    machine: Machine, *, witness: bool, refused: int
) -> None:
    """Others can send to whom they like; the witness refuses what it is asked about."""
    filtered = Decisions(machine, witness=witness)

    for name in ("socket", "socketpair"):
        for flags in (0, CLOEXEC, NONBLOCK, CLOEXEC | NONBLOCK):
            assert filtered.on(name, AF_UNIX, STREAM | flags) == ALLOW
            assert filtered.on(name, AF_UNIX, SEQPACKET | flags) == ALLOW
            assert filtered.on(name, AF_UNIX, DGRAM | flags) == refused
            assert filtered.on(name, AF_UNIX, RAW | flags) == refused
        assert {filtered.on(name, family, STREAM) for family in range(48) if family != AF_UNIX} == {refused}
    assert {filtered.on(name) for name in NETWORK} == {refused}


@BOTH
def test_what_is_sent_without_an_address_goes_to_the_peer(machine: Machine) -> None:
    """So it is with every socket that is left; an address is looked at as a whole."""
    filtered = Decisions(machine)

    assert filtered.on("sendto", 3, 1, 1, 0, 0, 0) == ALLOW
    for address in (1, 1 << 31, 1 << 32, 1 << 63):
        assert filtered.on("sendto", 3, 1, 1, 0, address, 16) == EPERM


@BOTH
@pytest.mark.parametrize("witness", [False, True])
def test_with_network_every_socket_is_allowed(machine: Machine, *, witness: bool) -> None:
    filtered = Decisions(machine, network=True, witness=witness)

    assert filtered.on("sendto", 3, 1, 1, 0, 1, 16) == ALLOW
    assert {filtered.on(name, AF_INET, DGRAM) for name in ["socket", "socketpair", *NETWORK]} == {ALLOW}


# Namespaces, and the limits of others.

MOUNTS = [
    *("mount", "umount2", "pivot_root", "setns", "open_tree", "open_tree_attr", "move_mount", "fsopen"),
    *("fsconfig", "fspick", "fsmount", "mount_setattr"),
]
NEW_USER, NEW_MOUNTS, NEW_TIME, THREAD = 0x10000000, 0x20000, 0x80, 0x10000
NAMESPACES = (NEW_USER, NEW_MOUNTS, 0x2000000, 0x4000000, 0x8000000, 0x20000000, 0x40000000)


@BOTH
@pytest.mark.parametrize("witness", [False, True])
def test_where_there_are_no_further_namespaces_nothing_can_be_mounted(
    machine: Machine, *, witness: bool
) -> None:
    """Landlock knows paths as they were: with mounts of its own a command could give others to them.

    Under bubblewrap a command that is root in a namespace of its own could mount the
    control groups of the host.
    """
    filtered = Decisions(machine, network=True, witness=witness, namespaces=False)

    assert {filtered.on(name) for name in MOUNTS} == {EPERM}
    for name in ("unshare", "clone"):
        for flags in (*NAMESPACES, NEW_USER | NEW_MOUNTS, NEW_USER | THREAD):
            assert filtered.on(name, flags) == EPERM
        assert {filtered.on(name, flags) for flags in (0, 17, THREAD, 0x3D0F00)} == {ALLOW}
    assert filtered.on("unshare", NEW_TIME) == EPERM
    assert filtered.on("clone3") == ENOSYS


@BOTH
def test_elsewhere_they_are_the_kernels_business(machine: Machine) -> None:
    filtered = Decisions(machine)

    assert {filtered.on(name, NEW_USER) for name in [*MOUNTS, "unshare", "clone", "clone3"]} == {ALLOW}


@BOTH
def test_a_guard_is_asked_before_a_socket_gets_an_address(machine: Machine) -> None:
    """It may be a name among files.  Where there is no network, nobody gets one anyway."""
    assert Decisions(machine, network=True, witness=True, binds=True).on("bind") == NOTIFY
    assert Decisions(machine, network=True, witness=True, binds=False).on("bind") == ALLOW
    assert Decisions(machine, network=True, witness=True, binds=True).on("connect") == ALLOW
    assert Decisions(machine, network=False, witness=False, binds=True).on("bind") == EPERM


@BOTH
def test_the_limits_of_others_can_be_read_and_not_set(machine: Machine) -> None:
    """A limit of no processor time would end them."""
    filtered = Decisions(machine)

    for address in (0, 1, 1 << 40, 1 << 31):
        assert filtered.on("prlimit64", 0, 7, address, 5) == ALLOW
        assert filtered.on("prlimit64", 99, 7, address, 5) == (EPERM if address else ALLOW)


# With a witness.

OPENS = {"open": 1, "openat": 2}
"""Which argument has the flags."""


@BOTH
@pytest.mark.parametrize("name", OPENS)
@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (0, False),
        (CLOEXEC, False),
        (0o200000, False),  # O_DIRECTORY of x86
        (0o10000000, False),  # O_PATH
        (0o1, True),
        (0o2, True),
        (0o100, True),
        (0o1000, True),
        (0o1 | CLOEXEC, True),
        (0o20200002, True),  # O_TMPFILE, for writing
    ],
)
def test_only_who_opens_to_write_or_to_make_is_seen(
    machine: Machine, name: str, flags: int, *, told: bool
) -> None:
    """Reading is most of what programs do, and must cost nothing."""
    if name not in machine.calls:
        pytest.skip("the machine has no such call")
    filtered = Decisions(machine, witness=True)
    arguments = [0] * OPENS[name]

    assert filtered.on(name, *arguments, flags) == (NOTIFY if told else ALLOW)


@BOTH
@pytest.mark.parametrize(("files", "attributes"), list(product([False, True], repeat=2)))
def test_what_the_witness_sees(machine: Machine, *, files: bool, attributes: bool) -> None:
    """Attributes only where the sandbox keeps them."""
    filtered = Decisions(machine, network=True, witness=True, files=files, attributes=attributes, guard=True)

    changes = {filtered.on(name) for name in CHANGES if name in machine.calls}
    others = {filtered.on(name) for name in ATTRIBUTES if name in machine.calls}

    assert changes == {NOTIFY if files else ALLOW}
    assert others == {NOTIFY if files and attributes else ALLOW}


# Ways around it.


@BOTH
@pytest.mark.parametrize("witness", [False, True])
def test_calls_of_another_kind_of_machine_are_refused(machine: Machine, *, witness: bool) -> None:
    """The numbers mean something else there: 32-bit programs call ``socket`` by another one."""
    instructions = program(machine, network=True, witness=witness, files=True, attributes=True)

    for audit in (0x40000003, 0x40000028, 0, (X86 if machine is ARM else ARM).audit):
        assert {decide(instructions, audit, number) for number in range(500)} == {EPERM}


@pytest.mark.parametrize("network", [False, True])
def test_the_second_set_of_calls_is_refused(*, network: bool) -> None:
    """x32: the same calls with a bit more."""
    instructions = program(X86, network=network, witness=True, files=True, attributes=True)

    for number in (*range(0x40000000, 0x40000000 + 600), 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
        assert decide(instructions, X86.audit, number) == EPERM


OPTIONS = st.fixed_dictionaries(
    dict.fromkeys(["network", "witness", "files", "attributes", "namespaces"], st.booleans())
)


@given(
    st.sampled_from(list(MACHINES.values())),
    OPTIONS,
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(0, 2**64 - 1), max_size=6),
)
def test_every_call_is_decided(
    machine: Machine, options: dict[str, bool], number: int, arguments: list[int]
) -> None:
    """No jump leads past the end, and the witness is asked only if there is one."""
    instructions = program(machine, **options)

    decision = decide(instructions, machine.audit, number, *arguments)

    assert decision in {ALLOW, EPERM, *([NOTIFY] if options["witness"] else [])} | (
        set() if options["namespaces"] else {ENOSYS}
    )
    known = number in machine.calls.values()
    if not known:
        assert decision == (ALLOW if number < 0x40000000 else EPERM)


@BOTH
def test_a_filter_is_short_enough_for_the_kernel(machine: Machine) -> None:
    """4,096 instructions, and no jump further than a byte says."""
    longest = program(machine, network=False, witness=True, files=True, attributes=True, namespaces=False)

    lines = list(struct.iter_unpack("=HBBI", longest))
    assert len(lines) < 300
    assert lines[-1][0] == 0x06
    jumps = [(at, then, otherwise) for at, (code, then, otherwise, _) in enumerate(lines) if code & 7 == 5]
    assert all(at + 1 + max(then, otherwise) < len(lines) for at, then, otherwise in jumps)


@pytest.mark.parametrize("name", MACHINES)
def test_the_numbers_of_calls_are_those_of_the_kernels_headers(name: str) -> None:
    """One wrong number, and another call is forbidden instead."""
    if platform.machine() != name:
        pytest.skip("the headers of this host are for another machine")
    asked = "\n".join(f"hf_{call} SYS_{call}" for call in MACHINES[name].calls)
    done = subprocess.run(
        ["cc", "-E", "-P", "-x", "c", "-"],
        input=f"#include <sys/syscall.h>\n{asked}\n",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("there is no compiler")
    found = dict(re.findall(r"hf_(\w+) (\d+)", done.stdout))

    # What is newer than the headers keeps its name.
    assert found == {call: str(number) for call, number in MACHINES[name].calls.items() if call in found}
    assert len(found) > 30


# Really installed.

TRY = """if True:
    tried("inet", socket.socket, socket.AF_INET)
    tried("netlink", socket.socket, socket.AF_NETLINK, socket.SOCK_RAW)
    tried("datagram", socket.socket, socket.AF_UNIX, socket.SOCK_DGRAM)
    one = tried("local", socket.socket, socket.AF_UNIX)
    pair = tried("pair", socket.socketpair)
    if pair:
        tried("send", pair[0].send, b"x")
        tried("receive", pair[1].recv, 1)
        tried("option", pair[0].getsockopt, socket.SOL_SOCKET, socket.SO_TYPE)
        tried("name", pair[0].getpeername)
    if one:
        tried("connect", one.connect, "\\0nobody")
    call("ptrace", NUMBERS["ptrace"], 0, 0, 0, 0)
    call("uring", NUMBERS["io_uring_setup"], 1, None)
    tried("open", os.open, "/dev/null", os.O_RDWR)
    tried("missing", os.open, "/none", os.O_RDONLY)
"""
HERE = MACHINES.get(platform.machine())


@pytest.mark.slow
@pytest.mark.skipif(HERE is None, reason="the calls of this machine are not known")
@pytest.mark.parametrize("network", [False, True])
def test_the_kernel_takes_the_filter_and_decides_the_same(*, network: bool) -> None:
    assert HERE is not None
    instructions = program(HERE, network=network, witness=False, files=True, attributes=True)

    told = confined(f"NUMBERS = {HERE.calls}\n{TRY}", instructions=instructions)

    sockets = "done" if network else "EPERM"
    assert told == {
        "inet": sockets,
        "netlink": sockets,
        "datagram": sockets,
        "local": "done",
        "pair": "done",
        "send": "done",
        "receive": "done",
        "option": "done",
        "name": "done",
        "connect": "ECONNREFUSED" if network else "EPERM",
        "ptrace": "EPERM",
        "uring": "EPERM",
        "open": "done",
        "missing": "ENOENT",
    }
