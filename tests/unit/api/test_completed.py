"""Results of commands, and the errors made of them."""

from __future__ import annotations

import pickle
import subprocess

import pytest

from holdfast.api.completed import CommandFailed, Completed, TimedOut
from holdfast.errors import HoldfastError
from holdfast.model import Kind, Outcome


def completed(code: int, outcome: Outcome) -> Completed[bytes]:
    return Completed(["make", "all"], code, b"out", b"err", outcome)


def test_success_is_checked_in_silence() -> None:
    completed(0, Outcome(Kind.EXIT, 0)).check_returncode()


def test_a_failure_is_an_error_of_ours_and_of_subprocess() -> None:
    """Programs that come from there catch what they always caught."""
    with pytest.raises(CommandFailed) as failed:
        completed(2, Outcome(Kind.EXIT, 2)).check_returncode()

    error = failed.value
    assert isinstance(error, HoldfastError)
    assert isinstance(error, subprocess.CalledProcessError)
    assert (error.cmd, error.returncode, error.output, error.stderr) == (["make", "all"], 2, b"out", b"err")
    assert str(error) == "Command '['make', 'all']' returned non-zero exit status 2."


def test_a_failure_says_why_it_was_ended() -> None:
    outcome = Outcome(Kind.OOM, None, 9, "limit", "more than 5 bytes of memory")

    error = CommandFailed(completed(-9, outcome))

    assert str(error).endswith("died with <Signals.SIGKILL: 9> (more than 5 bytes of memory).")


def test_a_timeout_is_an_error_of_ours_and_of_subprocess() -> None:
    error = TimedOut(["make"], 1.5, b"part", None)

    assert isinstance(error, HoldfastError)
    assert isinstance(error, subprocess.TimeoutExpired)
    assert (error.cmd, error.timeout, error.stdout, error.stderr) == (["make"], 1.5, b"part", None)
    assert str(error) == "Command '['make']' timed out after 1.5 seconds"


def test_errors_travel_between_processes() -> None:
    """A worker of a pool hands its error to whoever waits."""
    failed = pickle.loads(pickle.dumps(CommandFailed(completed(2, Outcome(Kind.EXIT, 2)))))  # noqa: S301
    late = pickle.loads(pickle.dumps(TimedOut(["make"], 1.5, b"part")))  # noqa: S301

    assert (failed.returncode, failed.stdout, failed.outcome) == (2, b"out", Outcome(Kind.EXIT, 2))
    assert (late.timeout, late.stdout) == (1.5, b"part")
