"""What becomes of a command's whole tree."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.fork_server import (
    ALONE,
    BY_SIGNAL,
    EMPTY,
    EXITED,
    GONE,
    GUARD,
    IN_FILE,
    PYTHON,
    START,
    STARTED,
    Command,
    ForkServer,
    has_ended,
    order,
    sh,
    until,
)
from tests.fakes.process import ignored_signals, status

# A hang is cut off; nothing here is measured.
pytestmark = pytest.mark.timeout(2 * GUARD)

# Leaves a `cat` behind that ends with the standard input, and tells its number.
LEAVE_ONE = sh("exec 3<&0; cat <&3 & echo $!; exit 7")

# Every kind of process that is hard to find or to end.  It says a line when all of them are there.
MOTLEY = """if True:
    import os, signal
    ready, told = os.pipe()
    def sit():
        os.write(told, b"x")
        while True:
            signal.pause()
    def deaf_in_another_session():
        os.setsid()
        for number in range(1, 65):
            if number not in (signal.SIGKILL, signal.SIGSTOP, 32, 33):
                signal.signal(number, signal.SIG_IGN)
        sit()
    def daemon():
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        sit()
    def chain(length=8):
        os.setpgid(0, 0)
        if length and not os.fork():
            chain(length - 1)
        sit()
    def stopped():
        os.write(told, b"x")
        os.kill(os.getpid(), signal.SIGSTOP)
    def left_behind():
        if os.fork():
            os._exit(0)
        chain(2)
    for start in (deaf_in_another_session, daemon, chain, stopped, left_behind):
        if not os.fork():
            start()
    got = 0
    while got < 1 + 1 + 9 + 1 + 3:
        got += len(os.read(ready, 64))
    print("ready", flush=True)
    signal.pause()
"""

# Ten lines of successors, each in a session of its own and each leaving sleepers while there are tokens.
STORM = """if True:
    import os, signal, sys
    tokens, store = os.pipe()
    os.write(store, b"x" * 200)
    os.set_blocking(tokens, False)
    def sleeper():
        try:
            os.read(tokens, 1)
        except BlockingIOError:
            return
        if not os.fork():
            signal.pause()
    for _ in range(10):
        if not os.fork():
            os.setsid()
            while os.path.exists(sys.argv[1]):
                sleeper()
                if os.fork():
                    os._exit(0)
            os._exit(0)
    print("ready", flush=True)
    signal.pause()
"""

# A process that forks a successor and exits, for ever.
SUCCESSORS = 'f() { [ -e "$0" ] || exit; f & }; echo ready; f'


@pytest.fixture
def alive(tmp_path: Path) -> Iterator[str]:
    """A file; who multiplies without end does so while it is there, so that no failure outlives its test."""
    file = tmp_path / "alive"
    file.touch()
    yield str(file)
    file.unlink()


Begin = Callable[[Command, str], Command]

TREES: dict[str, Begin] = {
    "motley": lambda command, _: command.start(*PYTHON, "-c", MOTLEY),
    "storm": lambda command, alive: command.start(*PYTHON, "-c", STORM, alive),
    "successors": lambda command, alive: command.start(*sh(SUCCESSORS), alive),
}


@pytest.fixture(params=TREES)
def tree(request: pytest.FixtureRequest, command: Command, alive: str) -> Command:
    """A tree that is all there, or never will be."""
    TREES[request.param](command, alive)
    assert command.line() == "ready"
    return command


def state(pid: int) -> str:
    """Asleep, running, or ended; one that was reaped has ended too."""
    return status(pid).get("State", "Z")[0]


# Its natural end.


def test_a_command_keeps_its_number_until_it_is_released(command: Command) -> None:
    """Who sends a signal to a number must never hit a stranger; others are reaped meanwhile."""
    command.start(*LEAVE_ONE)
    leader, orphan = command.tells(STARTED).value, int(command.line())
    command.tells(EXITED)

    command.close_stdin()
    until(lambda: status(orphan) == {})

    assert state(leader) == "Z"
    assert command.is_silent()
    command.release()
    command.tells(EMPTY)
    assert status(leader) == {}


def test_a_tree_is_empty_when_its_last_member_is_gone(command: Command) -> None:
    """Only then can nobody use up the host in the command's name."""
    command.start(*LEAVE_ONE)
    leader, orphan = command.tells(STARTED).value, int(command.line())
    command.tells(EXITED)

    command.release()
    until(lambda: status(leader) == {})

    assert command.is_silent()
    assert command.members() == {orphan}
    command.close_stdin()
    command.tells(EMPTY)
    assert command.members() == set()


def test_a_release_before_the_end_keeps_nothing_back(command: Command) -> None:
    """Who never sends signals need not wait for the end to say so."""
    command.start("/bin/cat").tells(STARTED)

    command.release()
    command.close_stdin()

    assert [command.tells(EXITED)[:2], command.tells(EMPTY)[:2]] == [(EXITED, 0), (EMPTY, 0)]


def test_a_shim_keeps_its_number_while_anybody_listens(command: Command) -> None:
    """The server may look at it, or move it to another control group, at any time."""
    shim = command.start("/bin/true").tells(STARTED).shim
    command.tells(EXITED)
    command.release()
    command.tells(EMPTY)

    command.kill()
    until(lambda: state(shim) in "SZ")

    assert state(shim) == "S"
    assert command.is_silent()
    command.hang_up()
    has_ended(shim)


# The next command.


@pytest.mark.parametrize("quietly", [False, True])
def test_a_shim_of_whom_nobody_is_left_takes_the_next_command(command: Command, *, quietly: bool) -> None:
    """A command that ends leaves its shim as good as new: the usage is counted anew, too."""
    pids = set()
    for code in (3, 4, 5):
        command.start(*sh(f"exit {code}"))
        pids.add(command.tells(STARTED).shim)
        exited = command.tells(EXITED)
        command.release(quietly=quietly)
        if not quietly:
            assert command.tells(EMPTY).user_us < 1_000_000
        for fd in (command.stdin, command.stdout, command.stderr):
            os.close(fd)
        assert (exited.value, exited.detail) == (code, ALONE)

    assert len(pids) == 1
    command.start("/bin/cat").tells(STARTED)
    assert command.echoes()
    command.kill()
    assert command.tells(EXITED).detail & BY_SIGNAL


def test_a_second_command_beside_the_first_is_garbage(command: Command) -> None:
    command.start("/bin/cat")
    shim = command.tells(STARTED).shim
    first = command.stdin, command.stdout, command.stderr  # Open: without its stdin it would end by itself.

    command.start("/bin/cat")

    assert command.told() is None
    has_ended(shim)
    for fd in first:
        os.close(fd)


# Its end by force.


def test_a_kill_ends_everybody(tree: Command, other: Command) -> None:
    """Sessions, groups, daemons and haste are no way out."""
    tree.tells(STARTED)

    tree.kill()
    reports = [tree.told()]
    while reports[-1] is not None and reports[-1].what != EMPTY:
        reports.append(tree.told())

    assert reports[-1] is not None
    assert tree.members() == set()
    assert other.echoes()


def test_a_tree_ends_with_whoever_asked_for_it(tree: Command, other: Command) -> None:
    """A server that was killed can give no more orders."""
    shim = tree.tells(STARTED).shim

    tree.hang_up()
    has_ended(shim)

    assert tree.members() == set()
    assert other.echoes()


def test_a_tree_ends_with_its_shim(tree: Command, other: Command, fork_server: ForkServer) -> None:
    """Whoever kills a shim, by mistake or for memory, must not set its tree free."""
    started = tree.tells(STARTED)
    bystanders = fork_server.children()

    os.kill(started.shim, signal.SIGKILL)
    until(lambda: fork_server.children() == [pid for pid in bystanders if pid != started.shim])

    assert tree.members() == set()
    assert other.echoes()


def test_a_stopped_command_is_ended_too(command: Command) -> None:
    """A client may stop what it later wants to be rid of."""
    leader = command.start("/bin/cat").tells(STARTED).value
    os.kill(leader, signal.SIGSTOP)

    command.kill()

    assert command.tells(EXITED)[:2] == (EXITED, signal.SIGKILL)
    command.tells(EMPTY)


def test_a_shim_that_was_asked_for_nothing_ends(fork_server: ForkServer) -> None:
    """A start that is given up early leaves nothing."""
    command = fork_server.command()
    until(lambda: len(fork_server.children()) == 1)

    command.hang_up()

    until(lambda: fork_server.children() == [])


# The fork server.


def test_shims_outlive_the_fork_server(fork_server: ForkServer, tree: Command, other: Command) -> None:
    """It may be replaced, or die, while commands run."""
    tree.tells(STARTED)

    code = fork_server.hang_up()

    assert code == 0
    assert other.echoes()
    tree.kill()
    until(lambda: any(report is None or report.what == EMPTY for report in [tree.told()]))
    assert tree.members() == set()
    other.kill()
    assert other.tells(EXITED)[:2] == (EXITED, signal.SIGKILL)
    other.tells(EMPTY)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_fork_server_and_shims_are_deaf(fork_server: ForkServer, number: int) -> None:
    """What is meant for the server's group must not set its commands free."""
    command = fork_server.command().start("/bin/cat")
    shim = command.tells(STARTED).shim

    os.kill(shim, number)
    os.kill(fork_server.pid, number)

    assert command.echoes()
    assert fork_server.command().start("/bin/true").tells(STARTED).shim in fork_server.children()
    assert number in ignored_signals(shim) & ignored_signals(fork_server.pid)
    assert (os.getsid(shim), os.getsid(fork_server.pid)) == (shim, fork_server.pid)


GARBAGE = {
    "short": b"x",
    "of another size": order(START, size=9) + b"/\0x\0",
    "nothing in it": order(START),
    "more texts promised": order(START, counts=(2, 0, 0, 0), size=6) + b"/\0x\0x\0",
    "no end": order(START, counts=(1, 0, 0, 0), size=5) + b"/\0x\0x",
    "more limits promised": order(START, counts=(1, 0, 1000, 0), size=6) + b"/\0x\0x\0",
    "no file": order(START, flags=IN_FILE, counts=(1, 0, 0, 0), size=6),
}


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_hurts_only_who_sent_it(fork_server: ForkServer, other: Command, garbage: str) -> None:
    """A mistake in one start must not cost the others their commands."""
    command = fork_server.command()

    command.send(GARBAGE[garbage])

    assert command.told() is None
    assert other.echoes()
    assert fork_server.command().start("/bin/true").tells(STARTED).value


def test_garbage_ends_the_tree_of_who_sent_it(command: Command, other: Command) -> None:
    """A shim that cannot understand its orders cannot be told to end its tree."""
    command.start(*PYTHON, "-c", MOTLEY)
    assert command.line() == "ready"
    command.tells(STARTED)

    command.send(b"x")

    assert command.told() is None
    until(lambda: command.members() == set())
    assert other.echoes()


@pytest.mark.parametrize("what", [0, GONE + 1])
def test_an_unknown_order_is_passed_over(command: Command, what: int) -> None:
    """A newer server may know more."""
    command.start("/bin/cat").tells(STARTED)

    command.send(order(what))

    assert command.echoes()
    assert command.is_silent()
