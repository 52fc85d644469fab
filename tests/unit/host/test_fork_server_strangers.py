"""Whom a fork server and its shims never obey, take for their own, or hit."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.fakes.fork_server import (
    ALONE,
    BY_SIGNAL,
    EMPTY,
    EXITED,
    GUARD,
    PYTHON,
    STARTED,
    SURVIVORS,
    Command,
    ForkServer,
    has_ended,
    sh,
    until,
)
from tests.fakes.process import is_alive

# A hang is cut off; nothing here is measured.
pytestmark = pytest.mark.timeout(2 * GUARD)

# Runs a program as an older kernel would: it cannot send a signal to the group that a descriptor means.
OLDER = """if True:
    import ctypes, os, struct, sys
    def step(code, yes, no, value): return struct.pack("HBBI", code, yes, no, value)
    load, same, answer = 0x20, 0x15, 0x06
    pidfd_send_signal, invalid, allow = 424, 0x50000 | 22, 0x7FFF0000
    steps = [step(load, 0, 0, 0), step(same, 0, 3, pidfd_send_signal)]
    steps += [step(load, 0, 0, 40), step(same, 0, 1, 4)]
    steps += [step(answer, 0, 0, invalid), step(answer, 0, 0, allow)]
    kept = ctypes.create_string_buffer(b"".join(steps))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, struct.pack("@HP", len(steps), ctypes.addressof(kept)), 0, 0) == 0
    os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture(params=["this kernel", "an older one"])
def any_fork_server(request: pytest.FixtureRequest, compiled: str) -> Iterator[ForkServer]:
    wrapper = (*PYTHON, "-c", OLDER) if request.param == "an older one" else ()
    fork_server = ForkServer((*wrapper, compiled))
    yield fork_server
    fork_server.close()


# Orders.


@pytest.mark.parametrize("terminal", [False, True])
def test_an_order_whose_giver_is_gone_is_not_carried_out(fork_server: ForkServer, *, terminal: bool) -> None:
    """A busy host may be so late that what the order speaks of is another's by then."""
    ours, theirs = os.openpty() if terminal else os.pipe()
    os.kill(fork_server.pid, signal.SIGSTOP)
    command = fork_server.command()

    if terminal:
        command.start(*sh("echo I run"), terminal=theirs)
    else:
        command.start(*sh(f"echo I run >/proc/{os.getpid()}/fd/{theirs}"))
    command.hang_up()
    os.kill(fork_server.pid, signal.SIGCONT)
    fork_server.command().start("/bin/true").tells(STARTED)  # Its turn comes after the other's.
    until(lambda: len(fork_server.children()) == 1)
    os.close(theirs)

    said = b""
    with suppress(OSError):  # The end of a terminal.
        said = os.read(ours, 100)
    os.close(ours)
    assert said == b""


def test_a_request_with_too_many_files_is_passed_over(fork_server: ForkServer) -> None:
    """What does not fit must not stay open in the parent of all shims."""
    before = os.listdir(f"/proc/{fork_server.pid}/fd")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    fork_server.send(theirs.fileno(), theirs.fileno())
    theirs.close()

    ours.settimeout(GUARD)
    assert ours.recv(1) == b""
    ours.close()
    assert os.listdir(f"/proc/{fork_server.pid}/fd") == before


# Signals to the group of a command.


def test_a_signal_goes_to_the_group_of_the_command(command: Command, other: Command) -> None:
    """And not to those who have left it."""
    command.start(*sh("setsid sleep 1000 & a=$!; sleep 1000 & echo $a $!; wait"))
    command.tells(STARTED)
    spared, hit = map(int, command.line().split())
    until(lambda: os.getpgid(spared) == spared)

    command.signal(signal.SIGTERM)

    assert command.tells(EXITED)[:2] == (EXITED, signal.SIGTERM)
    has_ended(hit)
    assert is_alive(spared)
    assert other.echoes()


# The parent of the second one is in a group of its own and lives on.
LEFTOVERS = """if True:
    import os, signal
    if os.fork() == 0:
        signal.pause()
    if os.fork() == 0:
        child = os.fork()
        if child == 0:
            signal.pause()
        os.setpgid(0, 0)
        os.write(1, f"{os.getpid()} {child}\\n".encode())
        signal.pause()
    os.wait()
"""


def test_the_group_is_known_after_its_number_was_given_up(any_fork_server: ForkServer) -> None:
    """What it has left behind can be ended, though nobody may use its number any more."""
    command = any_fork_server.command().start(
        *PYTHON, "-c", f"import os\nif os.fork(): os._exit(0)\n{LEFTOVERS}"
    )
    pid = command.tells(STARTED).value
    spared, hit = map(int, command.line().split())
    command.tells(EXITED)
    members = command.members()
    command.release()
    has_ended(pid)

    command.signal(signal.SIGKILL)

    for member in members - {spared}:
        has_ended(member)
    assert hit in members
    assert is_alive(spared)
    command.kill()
    command.tells(EMPTY)


def test_a_group_of_which_nobody_is_left_is_nobodys(any_fork_server: ForkServer) -> None:
    """Its number may be a stranger's."""
    command = any_fork_server.command().start(*sh("setsid sleep 1000 & a=$!; echo $a"))
    command.tells(STARTED)
    spared = int(command.line())
    until(lambda: os.getpgid(spared) == spared)
    assert command.tells(EXITED).detail == 0
    command.release()

    command.signal(signal.SIGKILL)
    command.signal(signal.SIGTERM)

    os.kill(spared, signal.SIGTERM)
    command.tells(EMPTY)


def test_a_signal_without_a_command_reaches_nobody(command: Command, other: Command) -> None:
    """The number of nobody means our own group to the kernel."""
    command.signal(signal.SIGKILL)
    command.start("/bin/true").tells(STARTED)

    assert command.ended() == (0, ALONE)
    command.signal(signal.SIGKILL)
    command.start("/bin/true").tells(STARTED)
    assert command.ended() == (0, ALONE)
    assert other.echoes()


# Without a /proc of our own.


@pytest.fixture
def blind(compiled: str) -> Iterator[ForkServer]:
    """A fork server that sees nobody."""
    covered = ("unshare", "-Urm", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "-")
    program = (shutil.which("unshare") or "unshare", *covered[1:])
    if not shutil.which("unshare") or subprocess.run([*program, "true"], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    fork_server = ForkServer((*program, compiled))
    yield fork_server
    fork_server.close()


def test_a_command_that_cannot_be_seen_is_ended_all_the_same(blind: ForkServer) -> None:
    """That nobody is to be seen is no proof that nobody is left."""
    command = blind.command().start("/bin/cat")
    command.tells(STARTED)

    command.kill()

    assert command.tells(EXITED)[:3] == (EXITED, signal.SIGKILL, BY_SIGNAL)
    command.tells(EMPTY)


def test_who_cannot_be_seen_is_not_taken_for_gone(blind: ForkServer) -> None:
    """The shim cannot know who it is; so it stands for them among the survivors."""
    command = blind.command().start(*sh("sleep 1000 & echo $!; wait"))
    shim = command.tells(STARTED).shim
    left = int(command.line())

    command.kill()

    assert command.tells(EXITED)[:3] == (EXITED, signal.SIGKILL, BY_SIGNAL)
    survivors = command.tells(SURVIVORS)
    assert (survivors.value, survivors.pids) == (1, (shim,))
    os.kill(left, signal.SIGKILL)
    command.tells(EMPTY)
