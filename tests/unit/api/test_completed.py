"""Results of commands, and the errors made of them."""

from __future__ import annotations

import pickle
import subprocess

import pytest

from holdfast.api.completed import CommandExited, CommandFailed, CommandTimedOut, Completed, TimedOut
from holdfast.errors import HoldfastError
from holdfast.model import Kind, Outcome, Usage


def completed(code: int, outcome: Outcome, timeout: float | None = None) -> Completed[bytes]:
    return Completed(["make", "all"], code, b"out", b"err", outcome, Usage(1, 2, 3), timeout=timeout)


LATE = completed(-9, Outcome(Kind.TIMEOUT, None, 9, "limit"), 1.5)
IDLE = completed(-15, Outcome(Kind.IDLE_TIMEOUT, None, 15, "limit"), 1.0)
FAILED = completed(2, Outcome(Kind.EXIT, 2))


def test_success_is_checked_in_silence() -> None:
    success = completed(0, Outcome(Kind.EXIT, 0))

    success.check_returncode()

    assert success.ok


def test_a_failure_is_an_error_of_ours_and_of_subprocess() -> None:
    """Programs that come from there catch what they always caught."""
    with pytest.raises(CommandFailed) as failed:
        FAILED.check_returncode()

    error = failed.value
    assert isinstance(error, HoldfastError)
    assert isinstance(error, subprocess.CalledProcessError)
    assert not isinstance(error, subprocess.TimeoutExpired)
    assert (error.cmd, error.returncode, error.output, error.stderr) == (["make", "all"], 2, b"out", b"err")
    assert error.completed is FAILED
    assert str(error) == "Command '['make', 'all']' returned non-zero exit status 2."
    assert not FAILED.ok


def test_a_failure_says_why_it_was_ended() -> None:
    outcome = Outcome(Kind.OOM, None, 9, "limit", "more than 5 bytes of memory")

    error = CommandExited(completed(-9, outcome))

    assert str(error).endswith("died with <Signals.SIGKILL: 9> (more than 5 bytes of memory).")


def test_whoever_exits_with_0_when_it_is_ended_has_failed_all_the_same() -> None:
    """A command with a grace may tidy up and exit with 0; it did not finish its work."""
    ended = completed(0, Outcome(Kind.OUTPUT_LIMIT, 0, by="limit", detail="more than 5 bytes of output"))

    with pytest.raises(CommandExited) as failed:
        ended.check_returncode()

    assert not ended.ok
    assert (
        str(failed.value) == "Command ['make', 'all'] was ended: outputLimit (more than 5 bytes of output)."
    )


@pytest.mark.parametrize(
    ("result", "idle", "words"),
    [(LATE, False, "timed out after 1.5 seconds"), (IDLE, True, "was idle for 1 second")],
)
def test_a_timeout_is_an_error_of_both_families_and_of_subprocess(
    result: Completed[bytes], *, idle: bool, words: str
) -> None:
    """So that ``except`` clauses of every age work, and none for a failure takes a timeout for one."""
    with pytest.raises(CommandTimedOut) as late:
        result.check_returncode()

    error = late.value
    assert isinstance(error, CommandFailed)
    assert isinstance(error, TimedOut)
    assert isinstance(error, subprocess.TimeoutExpired)
    assert not isinstance(error, subprocess.CalledProcessError)
    assert (error.cmd, error.timeout, error.stdout, error.stderr) == (
        ["make", "all"],
        result.timeout,
        b"out",
        b"err",
    )
    assert (error.completed, error.idle) == (result, idle)
    assert str(error) == f"Command ['make', 'all'] {words}"


def test_a_wait_that_takes_too_long_is_an_error_of_ours_and_of_subprocess() -> None:
    error = TimedOut(["make"], 1.5, b"part", None)

    assert isinstance(error, HoldfastError)
    assert isinstance(error, subprocess.TimeoutExpired)
    assert not isinstance(error, CommandFailed)
    assert (error.cmd, error.timeout, error.stdout, error.stderr) == (["make"], 1.5, b"part", None)
    assert str(error) == "Command '['make']' timed out after 1.5 seconds"


def test_errors_travel_between_processes() -> None:
    """A worker of a pool hands its error to whoever waits, with the whole result."""
    failed, late, wait = (
        pickle.loads(pickle.dumps(error))  # noqa: S301
        for error in (CommandExited(FAILED), CommandTimedOut(LATE), TimedOut(["make"], 1.5, b"part"))
    )

    assert (type(failed), failed.completed, failed.stdout) == (CommandExited, FAILED, b"out")
    assert (type(late), late.completed, late.timeout) == (CommandTimedOut, LATE, 1.5)
    assert (type(wait), wait.timeout, wait.stdout) == (TimedOut, 1.5, b"part")
