"""A child: its news, its signals, its end."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from holdfast.errors import Fault, SignalFailed, SpawnFailed
from holdfast.host.child import ShimChild
from holdfast.host.environ import Environment
from holdfast.host.holding import ends_of
from holdfast.host.spawn import Spawner
from holdfast.model import Size, Spec
from holdfast.reports import LOST, Load, News
from tests.fakes.fork_server import has_ended, until
from tests.fakes.process import (
    TERMINAL,
    Ran,
    command,
    descriptors,
    is_alive,
    nothing_left_open,
    read_until,
    run,
    sh,
    started,
    status,
    wait_exit,
    wait_news,
)

SLEEP = command("sleep", "1000")


def say(child: ShimChild, line: bytes = b"go\n") -> None:
    """Write to its standard input."""
    assert child.stdin is not None
    os.write(child.stdin, line)


def number_said(child: ShimChild) -> int:
    """A number that it writes on a line."""
    return int(read_until(child.outputs[0][1], b"\n"))


@contextmanager
def asked_for(spec: Spec) -> Iterator[ShimChild]:
    """A child of which nothing was heard yet."""
    with nothing_left_open():
        spawner = Spawner(Environment({}))
        child = spawner.start(spec)
        try:
            yield child
        finally:
            child.close()
            spawner.close()
            for fd in descriptors(child):
                os.close(fd)


@contextmanager
def running(spec: Spec) -> Iterator[ShimChild]:
    """A child that runs, whose news the test may hear to the end."""
    with asked_for(spec) as child:
        pid = wait_news(child).value
        try:
            yield child
        finally:
            child.close()
            has_ended(pid)


# Its exit.


@pytest.mark.parametrize("terminal", [None, TERMINAL])
@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("exit 300", 44)]
    + [(f"kill -{number} $$", 128 + number) for number in (1, 2, 9, 11, 15)],
)
def test_the_exit_code_is_the_childs_or_128_and_its_signal(
    script: str, code: int, terminal: Size | None
) -> None:
    """The same over pipes and in a terminal, so that a client need not know which it was."""
    assert run(sh(script, terminal=terminal)) == Ran(code)


def test_a_running_child_has_no_news() -> None:
    with started(SLEEP) as child:
        assert child.receive() is None
        assert is_alive(child.pid)
        assert not child.has_ended()


def test_its_pid_is_known_from_the_news_of_its_start() -> None:
    """Until then there may be nobody; nothing can be asked or sent."""
    with asked_for(SLEEP) as child:
        before = child.pid
        report = wait_news(child)

        assert (before, report.news, child.pid) == (0, News.STARTED, report.value)


def test_its_number_is_kept_until_it_is_released() -> None:
    """Whoever sends signals to it must never hit a stranger."""
    with running(sh("read _; exit 7", stdin=True)) as child:
        say(child)
        exited = wait_exit(child)
        before = status(child.pid)["State"]

        child.release()
        child.release()
        report = wait_news(child)

        assert (exited, before[0], report.news) == (7, "Z", News.EMPTY)
        assert status(child.pid) == {}


def test_a_child_is_known_to_have_ended_before_that_is_told() -> None:
    with started(sh("read _; exit 7", stdin=True)) as child:
        before = child.has_ended()
        say(child)
        until(lambda: child.has_ended())

        assert not before
        assert wait_exit(child) == 7
        child.release()
        assert child.has_ended()


def test_a_failed_start_is_explained_from_its_news() -> None:
    with asked_for(command("no-such-program")) as child:
        error = child.failure(wait_news(child))

    assert isinstance(error, SpawnFailed)
    assert (error.fault, error.subject) == (Fault.PROGRAM, "no-such-program")


def test_a_child_whose_shim_is_killed_is_lost() -> None:
    """Nobody can tell its code any more; the process must come to its end all the same."""
    with started(SLEEP) as child:
        os.kill(int(status(child.pid)["PPid"]), signal.SIGKILL)

        assert wait_news(child) is LOST
        has_ended(child.pid)


def test_what_was_handed_over_is_no_longer_the_childs() -> None:
    """Somebody else has noted the descriptors, and closes them; the child must not close them again."""
    with started(sh("read _", stdin=True)) as child:
        files = descriptors(child)

        child.hand_over()

        assert (child.stdin, child.outputs) == (None, ())
        for fd in files:
            os.close(fd)  # Fails if somebody did that before.


# Signals.


@pytest.fixture(params=["this kernel", "an older one"])
def _kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel cannot do the shim can."""
    if request.param == "an older one":
        monkeypatch.setattr("holdfast.host.child._TO_GROUP", 1 << 30)  # To this one as little known.


@pytest.mark.usefixtures("_kernel")
def test_a_signal_goes_to_the_whole_group() -> None:
    with started(sh("sleep 1000 & echo $!; wait")) as child:
        grandchild = number_said(child)

        child.signal(signal.SIGTERM)

        assert wait_exit(child) == 143
        has_ended(grandchild)


def test_a_signal_to_a_group_that_has_ended_is_no_error() -> None:
    with running(command("true")) as child:
        wait_exit(child)
        child.signal(signal.SIGINT)
        child.release()
        wait_news(child)
        child.signal(signal.SIGINT)


def test_a_signal_needs_no_descriptor() -> None:
    """A server that has none left must be able to end what it has started."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with started(SLEEP) as child:
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, most[1]))
        try:
            child.signal(signal.SIGTERM)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, most)

        assert wait_exit(child) == 143


@pytest.mark.usefixtures("_kernel")
def test_a_signal_the_system_refuses_is_an_error_with_its_reason() -> None:
    with started(SLEEP) as child:
        with pytest.raises(SignalFailed) as caught:
            child.signal(999)

        assert caught.value.reason == "Invalid argument"


@pytest.mark.parametrize("give_up", [ShimChild.release, ShimChild.kill])
def test_after_its_number_was_given_up_no_signal_goes_there(give_up: Callable[[ShimChild], None]) -> None:
    """It may be a stranger's by then."""
    with running(command("true")) as child, started(command("cat", stdin=True)) as stranger:
        wait_exit(child)
        give_up(child)
        wait_news(child)
        child.pid = stranger.pid  # As if the kernel had given the number away.

        child.signal(signal.SIGKILL)
        child.kill_leftovers()

        # Who has got the signal may look alive for a moment, but does not answer.
        say(stranger)
        assert read_until(stranger.outputs[0][1], b"\n") == b"go\n"


def test_after_its_shim_was_killed_no_signal_goes_to_its_number() -> None:
    """That is told as news, which may have to wait; by then the number may be a stranger's."""
    with running(SLEEP) as child, started(command("cat", stdin=True)) as stranger:
        shim = int(status(child.pid)["PPid"])
        os.kill(shim, signal.SIGKILL)
        has_ended(shim)
        has_ended(child.pid)
        child.pid = stranger.pid  # As if the kernel had given the number away.

        child.signal(signal.SIGKILL)
        child.kill_leftovers()

        say(stranger)
        assert read_until(stranger.outputs[0][1], b"\n") == b"go\n"
        assert child.members() == []


@contextmanager
def noticed(number: int) -> Iterator[list[int]]:
    """The signals of this kind that we get ourselves."""
    seen: list[int] = []
    before = signal.signal(number, lambda number, _: seen.append(number))
    try:
        yield seen
    finally:
        signal.signal(number, before)


def test_a_signal_before_it_runs_reaches_nobody_else() -> None:
    """The number of nobody means our own group to the kernel."""
    # One that nobody else in our group minds.
    with noticed(signal.SIGWINCH) as seen, asked_for(SLEEP) as child:
        child.signal(signal.SIGWINCH)
        child.signal_tree(signal.SIGWINCH)

        assert seen == []


def test_a_signal_to_the_tree_reaches_who_left_the_group() -> None:
    script = "setsid sh -c 'trap \"echo hit; exit\" USR1; echo ready; while :; do sleep 0.01; done' & wait"
    with started(sh(script)) as child:
        stdout = child.outputs[0][1]
        read_until(stdout, b"ready\n")

        child.signal_tree(signal.SIGUSR1)

        assert read_until(stdout, b"hit\n") == b"hit\n"
        assert wait_exit(child) == 128 + signal.SIGUSR1


# Its end.


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        until(lambda: status(pid)["State"].startswith("T"))
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def test_a_kill_ends_everybody_and_tells_it() -> None:
    with running(sh("setsid sleep 1000 & echo $!; wait")) as child:
        grandchild = number_said(child)

        child.kill()

        assert wait_exit(child) == 137
        assert wait_news(child).news is News.EMPTY
        assert not is_alive(grandchild)
        assert child.released


def test_a_kill_of_the_group_does_not_wait_for_the_shim() -> None:
    """It sleeps, and half of the time that an end takes would be until it runs and has read its order."""
    with running(SLEEP) as child:
        shim = int(status(child.pid)["PPid"])
        fork_server = int(status(shim)["PPid"])  # It has a shim go on that somebody has stopped.
        with stopped(fork_server), stopped(shim):
            child.kill()

            has_ended(child.pid)
        assert wait_exit(child) == 128 + signal.SIGKILL


def test_a_kill_before_it_runs_is_not_lost() -> None:
    """A start that takes long may be unwanted before it is over."""
    with asked_for(SLEEP) as child:
        child.kill()

        told = [wait_news(child), wait_news(child), wait_news(child)]

    assert [report.news for report in told] == [News.STARTED, News.EXITED, News.EMPTY]
    assert (told[1].value, told[1].by_signal) == (signal.SIGKILL, True)


@pytest.mark.parametrize("released", [False, True])
def test_leftovers_of_the_group_can_be_killed_after_its_exit(*, released: bool) -> None:
    """And nobody else: who made a group of its own wanted to stay."""
    script = "exec >/dev/null; setsid sleep 1000 & b=$!; sleep 1000 & echo $! $b >&2"
    with started(sh(script)) as child:
        leftover, spared = map(int, read_until(child.outputs[1][1], b"\n").split())
        assert wait_exit(child) == 0
        # It may not have made its group yet.
        until(lambda: os.getpgid(spared) == spared)
        if released:
            child.release()
            until(lambda: status(child.pid) == {})

        child.kill_leftovers()

        has_ended(leftover)
        assert is_alive(spared)


@pytest.mark.parametrize("released", [False, True])
def test_no_leftovers_is_no_error(*, released: bool) -> None:
    with running(command("true")) as child:
        wait_exit(child)
        if released:
            child.release()
            wait_news(child)

        child.kill_leftovers()


def test_to_close_ends_whoever_is_left() -> None:
    with running(sh("setsid sleep 1000 & echo $!; wait")) as child:
        grandchild = number_said(child)

        child.close()
        child.close()

        has_ended(grandchild)
        has_ended(child.pid)


# Questions.


def test_its_members_are_the_child_and_all_below() -> None:
    with asked_for(sh("sleep 1000 & echo $!; wait")) as child:
        before = child.members(), child.load()
        wait_news(child)
        grandchild = number_said(child)

        assert before == ([], Load(0, 0, 0))
        assert child.members() == [child.pid, grandchild]
        assert child.load().processes == 2


def test_who_holds_its_output_is_told() -> None:
    """What is asked when the output stays open after the exit."""
    with started(sh("sleep 1000 & sleep 1000 >/dev/null 2>&1 & echo $!")) as child:
        deaf = number_said(child)
        # Its files are set up before its program runs.
        until(lambda: status(deaf)["Name"] == "sleep")
        wait_exit(child)
        child.release()
        until(lambda: child.pid not in child.members())

        members = child.members()
        holders = child.holders(ends_of([fd for _, fd in child.outputs]))

        assert len(members) == 2
        assert holders == [pid for pid in members if pid != deaf]


def test_without_a_group_it_never_ran_out_of_memory() -> None:
    with started(sh("kill -9 $$")) as child:
        wait_exit(child)

        assert not child.ran_out_of_memory()
