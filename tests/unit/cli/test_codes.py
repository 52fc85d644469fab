"""From the end of a process to an exit code and to words."""

from __future__ import annotations

import errno
import signal

import pytest

from holdfast.cli.codes import code_of, code_of_start, remark, signal_name, state_of
from holdfast.errors import Fault, SpawnFailed
from holdfast.model import Kind, Outcome

CODES = {
    "its own": (Outcome(Kind.EXIT, 3), 3),
    "a signal": (Outcome(Kind.SIGNAL, signal=9), 137),
    "a timeout": (Outcome(Kind.TIMEOUT, signal=9), 124),
    "an idle timeout": (Outcome(Kind.IDLE_TIMEOUT, exit_code=0), 124),
    "too much memory": (Outcome(Kind.OOM, signal=9), 137),
    "ended by somebody, with a code": (Outcome(Kind.TERMINATED, exit_code=0), 0),
    "ended by somebody": (Outcome(Kind.TERMINATED, signal=15), 143),
    "denied": (Outcome(Kind.SANDBOX_DENIED, exit_code=2), 2),
    "lost": (Outcome(Kind.LOST), 125),
    "nothing known": (Outcome(Kind.EXIT), 125),
}


@pytest.mark.parametrize(("outcome", "code"), CODES.values(), ids=CODES.keys())
def test_the_code_is_the_processes_unless_we_or_the_time_ended_it(outcome: Outcome, code: int) -> None:
    assert code_of(outcome) == code


def test_only_what_the_code_does_not_say_is_told() -> None:
    assert remark(Outcome(Kind.EXIT, 3)) is None
    assert remark(Outcome(Kind.SIGNAL, signal=9)) is None
    assert remark(Outcome(Kind.TERMINATED, signal=9)) is None
    assert remark(Outcome(Kind.OOM, signal=9)) == "it was ended because it used more memory than it may"
    assert remark(Outcome(Kind.TIMEOUT, detail="1 s")) == "it was ended because its time was over (1 s)"


STARTS = {
    "missing": (Fault.PROGRAM, errno.ENOENT, "No such file or directory", 127),
    "a file on the way": (Fault.PROGRAM, errno.ENOTDIR, "Not a directory", 127),
    "forbidden": (Fault.PROGRAM, errno.EACCES, "Permission denied", 126),
    "told by an old server": (Fault.PROGRAM, None, "Permission denied", 126),
    "told by one without numbers": (Fault.PROGRAM, None, "No such file", 127),
    "no program": (Fault.PROGRAM, errno.ENOEXEC, "Exec format error", 126),
    "something else": (Fault.PROGRAM, errno.ELOOP, "Too many levels", 126),
    "the directory": (Fault.DIRECTORY, errno.ENOENT, "No such file or directory", 125),
    "the host": (Fault.SYSTEM, errno.EAGAIN, "Resource temporarily unavailable", 125),
}


@pytest.mark.parametrize(("fault", "number", "reason", "code"), STARTS.values(), ids=STARTS.keys())
def test_a_start_that_failed_has_the_code_of_a_shell(
    fault: Fault, number: int | None, reason: str, code: int
) -> None:
    assert code_of_start(SpawnFailed(fault, "x", reason, number=number)) == code


STATES = {
    "running": ("running", None, None, "running"),
    "exited": ("exited", Outcome(Kind.EXIT, 0), 0, "exit 0"),
    "closed": ("closed", Outcome(Kind.SIGNAL, signal=15), 143, "SIGTERM"),
    "a timeout": ("closed", Outcome(Kind.TIMEOUT, signal=9), 137, "timeout"),
    "of a server that tells less": ("closed", None, 5, "exit 5"),
    "of one that tells nothing": ("closed", None, None, "closed"),
}


@pytest.mark.parametrize(("state", "outcome", "code", "words"), STATES.values(), ids=STATES.keys())
def test_a_state_is_told_in_a_word_or_two(
    state: str, outcome: Outcome | None, code: int | None, words: str
) -> None:
    assert state_of(state, outcome, code) == words


def test_every_signal_has_a_name() -> None:
    names = [signal_name(number) for number in (15, signal.SIGRTMIN + 1, 33)]

    assert names == ["SIGTERM", "SIGRTMIN+1", "SIG33"]
