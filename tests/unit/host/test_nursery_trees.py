"""What becomes of a command's whole tree, in a nursery that is compiled and in one in Python."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.nursery import (
    ALONE,
    BY_SIGNAL,
    EMPTY,
    EXITED,
    GUARD,
    IN_FILE,
    KILL,
    PYTHON,
    START,
    STARTED,
    Command,
    Nursery,
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
    for birth in (deaf_in_another_session, daemon, chain, stopped, left_behind):
        if not os.fork():
            birth()
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


def test_a_warden_keeps_its_number_while_anybody_listens(command: Command) -> None:
    """The server may look at it, or move it to another control group, at any time."""
    warden = command.start("/bin/true").tells(STARTED).warden
    command.tells(EXITED)
    command.release()
    command.tells(EMPTY)

    command.kill()
    until(lambda: state(warden) in "SZ")

    assert state(warden) == "S"
    assert command.is_silent()
    command.hang_up()
    has_ended(warden)


# The next command.


@pytest.mark.parametrize("quietly", [False, True])
def test_a_warden_of_whom_nobody_is_left_takes_the_next_command(command: Command, *, quietly: bool) -> None:
    """A command that ends leaves its warden as good as new: the usage is counted anew, too."""
    pids = set()
    for code in (3, 4, 5):
        command.start(*sh(f"exit {code}"))
        pids.add(command.tells(STARTED).warden)
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
    warden = command.tells(STARTED).warden
    first = command.stdin, command.stdout, command.stderr  # Open: without its stdin it would end by itself.

    command.start("/bin/cat")

    assert command.told() is None
    has_ended(warden)
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
    warden = tree.tells(STARTED).warden

    tree.hang_up()
    has_ended(warden)

    assert tree.members() == set()
    assert other.echoes()


def test_a_tree_ends_with_its_warden(tree: Command, other: Command, nursery: Nursery) -> None:
    """Whoever kills a warden, by mistake or for memory, must not set its tree free."""
    started = tree.tells(STARTED)
    bystanders = nursery.children()

    os.kill(started.warden, signal.SIGKILL)
    until(lambda: nursery.children() == [pid for pid in bystanders if pid != started.warden])

    assert tree.members() == set()
    assert other.echoes()


def test_a_stopped_command_is_ended_too(command: Command) -> None:
    """A client may stop what it later wants to be rid of."""
    leader = command.start("/bin/cat").tells(STARTED).value
    os.kill(leader, signal.SIGSTOP)

    command.kill()

    assert command.tells(EXITED)[:2] == (EXITED, signal.SIGKILL)
    command.tells(EMPTY)


def test_a_warden_that_was_asked_for_nothing_ends(nursery: Nursery) -> None:
    """A start that is given up early leaves nothing."""
    command = nursery.command()
    until(lambda: len(nursery.children()) == 1)

    command.hang_up()

    until(lambda: nursery.children() == [])


# The nursery.


def test_wardens_outlive_the_nursery(nursery: Nursery, tree: Command, other: Command) -> None:
    """It may be replaced, or die, while commands run."""
    tree.tells(STARTED)

    code = nursery.hang_up()

    assert code == 0
    assert other.echoes()
    tree.kill()
    until(lambda: any(report is None or report.what == EMPTY for report in [tree.told()]))
    assert tree.members() == set()
    other.kill()
    assert other.tells(EXITED)[:2] == (EXITED, signal.SIGKILL)
    other.tells(EMPTY)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1])
def test_nursery_and_wardens_are_deaf(nursery: Nursery, number: int) -> None:
    """What is meant for the server's group must not set its commands free."""
    command = nursery.command().start("/bin/cat")
    warden = command.tells(STARTED).warden

    os.kill(warden, number)
    os.kill(nursery.pid, number)

    assert command.echoes()
    assert nursery.command().start("/bin/true").tells(STARTED).warden in nursery.children()
    assert number in ignored_signals(warden) & ignored_signals(nursery.pid)
    assert (os.getsid(warden), os.getsid(nursery.pid)) == (warden, nursery.pid)


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
def test_garbage_hurts_only_who_sent_it(nursery: Nursery, other: Command, garbage: str) -> None:
    """A mistake in one start must not cost the others their commands."""
    command = nursery.command()

    command.send(GARBAGE[garbage])

    assert command.told() is None
    assert other.echoes()
    assert nursery.command().start("/bin/true").tells(STARTED).value


def test_garbage_ends_the_tree_of_who_sent_it(command: Command, other: Command) -> None:
    """A warden that cannot understand its orders cannot be told to end its tree."""
    command.start(*PYTHON, "-c", MOTLEY)
    assert command.line() == "ready"
    command.tells(STARTED)

    command.send(b"x")

    assert command.told() is None
    until(lambda: command.members() == set())
    assert other.echoes()


@pytest.mark.parametrize("what", [0, KILL + 1])
def test_an_unknown_order_is_passed_over(command: Command, what: int) -> None:
    """A newer server may know more."""
    command.start("/bin/cat").tells(STARTED)

    command.send(order(what))

    assert command.echoes()
    assert command.is_silent()
