"""A child: its signals, its exit code, its descriptors."""

from __future__ import annotations

import os
import signal

import pytest

from holdfast.errors import SignalFailed
from holdfast.host.child import LOST, Child
from holdfast.model import Size
from tests.fakes.process import (
    TERMINAL,
    Ran,
    command,
    eventually,
    is_alive,
    nothing_left_open,
    read_until,
    run,
    sh,
    started,
    status,
    wait_readable,
)


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


def test_a_running_child_has_no_exit_code() -> None:
    with started(command("sleep", "1000")) as child:
        assert child.reap() is None
        assert is_alive(child.pid)


def test_the_exit_descriptor_is_readable_once_the_child_has_ended() -> None:
    with started(sh("read _; exit 7", stdin=True)) as child:
        assert child.stdin is not None
        os.write(child.stdin, b"go\n")

        wait_readable(child.exit_fd)

        assert child.reap() == 7


def test_a_child_that_somebody_else_reaped_has_a_code_of_its_own() -> None:
    """The system cannot tell it twice; the process must come to its end all the same."""
    with started(command("true")) as child:
        os.waitpid(child.pid, 0)

        assert child.reap() == LOST


def test_before_it_is_reaped_its_owner_is_told() -> None:
    """After the reaping the number may be another's."""
    seen: list[tuple[int, str]] = []
    pid = os.posix_spawn("/bin/true", ["true"], {})
    child = Child(
        pid, stdin=None, outputs=(), before_reap=lambda pid: seen.append((pid, status(pid)["State"]))
    )
    wait_readable(child.exit_fd)

    assert child.reap() == 0
    child.release()
    assert seen == [(pid, "Z (zombie)")]


def test_nothing_is_told_while_it_runs() -> None:
    seen: list[int] = []
    pid = os.posix_spawnp("sleep", ["sleep", "1000"], {}, setpgroup=0)
    child = Child(pid, stdin=None, outputs=(), before_reap=seen.append)

    assert child.reap() is None
    assert seen == []

    child.signal(signal.SIGKILL)
    wait_readable(child.exit_fd)
    assert child.reap() == 137
    child.release()


def test_release_gives_the_exit_descriptor_back() -> None:
    with nothing_left_open():
        child = Child(os.posix_spawn("/bin/true", ["true"], {}), stdin=None, outputs=())
        wait_readable(child.exit_fd)
        child.reap()
        child.release()


def test_what_was_handed_over_is_no_longer_the_childs() -> None:
    """Somebody else has noted the descriptors, and closes them; the child must not close them again."""
    with started(sh("read _", stdin=True)) as child:
        stdin, outputs = child.stdin, child.outputs
        assert stdin is not None

        child.hand_over()

        assert (child.stdin, child.outputs) == (None, ())
        os.write(stdin, b"go\n")
        wait_readable(child.exit_fd)
        for fd in (stdin, *(fd for _, fd in outputs)):
            os.close(fd)


# Signals.


async def test_a_signal_goes_to_the_whole_group() -> None:
    with started(sh("sleep 1000 & echo $!; wait")) as child:
        (_, stdout), _ = child.outputs
        grandchild = int(read_until(stdout, b"\n"))

        child.signal(signal.SIGTERM)
        wait_readable(child.exit_fd)

        assert child.reap() == 143
        await eventually(lambda: not is_alive(grandchild))


def test_a_signal_to_a_group_that_has_ended_is_no_error() -> None:
    with started(command("true")) as child:
        wait_readable(child.exit_fd)
        child.signal(signal.SIGINT)
        child.reap()
        child.signal(signal.SIGINT)


def test_a_signal_the_system_refuses_is_an_error_with_its_reason() -> None:
    with started(command("sleep", "1000")) as child:
        with pytest.raises(SignalFailed) as caught:
            child.signal(999)

        assert caught.value.reason == "Invalid argument"


# What is left of the group.


async def test_leftovers_of_the_group_can_be_killed_after_the_reaping() -> None:
    with started(sh("sleep 1000 >/dev/null 2>&1 & echo $!")) as child:
        (_, stdout), _ = child.outputs
        leftover = int(read_until(stdout, b"\n"))
        wait_readable(child.exit_fd)
        assert child.reap() == 0
        assert is_alive(leftover)

        child.kill_leftovers()

        await eventually(lambda: not is_alive(leftover))


def test_no_leftovers_is_no_error() -> None:
    with started(command("true")) as child:
        wait_readable(child.exit_fd)
        child.reap()
        child.kill_leftovers()


def test_leftovers_are_not_looked_for_in_a_number_that_is_anothers_by_now() -> None:
    """While a group has members its number is not reused; so a process of that number is a stranger."""
    with started(command("sleep", "1000")) as stranger:
        reaped = Child(stranger.pid, stdin=None, outputs=())
        reaped.kill_leftovers()
        reaped.release()

        assert is_alive(stranger.pid)


def test_a_child_is_known_to_have_ended_before_it_is_reaped() -> None:
    with started(sh("read line; exit 7", stdin=True)) as child:
        before = child.has_ended()
        assert child.stdin is not None
        os.write(child.stdin, b"go\n")
        wait_readable(child.exit_fd)

        assert not before
        assert child.has_ended()
        assert child.reap() == 7
        assert child.has_ended()
