"""From the end of a process to our exit code, and to words for what is out of the ordinary (pure)."""

from __future__ import annotations

from errno import EACCES, EISDIR, ENOENT, ENOEXEC, ENOTDIR, EPERM
from typing import TYPE_CHECKING

from .failure import NOT_EXECUTABLE, NOT_FOUND, OWN, TIMEOUT

if TYPE_CHECKING:
    from holdfast.errors import SpawnFailed
    from holdfast.model import Outcome

_TIMEOUTS = ("timeout", "idleTimeout")

_SAID = {
    "timeout": "it was ended because its time was over",
    "idleTimeout": "it was ended because it was idle for too long",
    "oom": "it was ended because it used more memory than it may",
    "cpuLimit": "it was ended because it used more processor time than it may",
    "outputLimit": "it was ended because it said more than it may",
    "sandboxDenied": "the sandbox refused it something",
    "lost": "nobody knows how it ended: whoever watched over it is gone",
}

_NOT_EXECUTABLE = (EACCES, EPERM, ENOEXEC, EISDIR)


def code_of(outcome: Outcome) -> int:
    """The exit code of a process as ours: its own, 128 + n after signal n, 124 after a timeout."""
    if outcome.kind.value in _TIMEOUTS:
        return TIMEOUT
    if outcome.kind.value == "lost":
        return OWN
    if outcome.signal is not None:
        return 128 + outcome.signal
    return OWN if outcome.exit_code is None else outcome.exit_code & 0xFF


def remark(outcome: Outcome) -> str | None:
    """What the code does not say; None if it says everything."""
    words = _SAID.get(outcome.kind.value)
    if words is None:
        return None
    return f"{words} ({outcome.detail})" if outcome.detail else words


def code_of_start(error: SpawnFailed) -> int:
    """The exit code of a start that failed, as a shell would have it."""
    if error.fault.value != "program":
        return OWN
    if error.number in _NOT_EXECUTABLE or "ermission denied" in error.reason:
        return NOT_EXECUTABLE
    if error.number in (None, ENOENT, ENOTDIR):
        return NOT_FOUND
    return NOT_EXECUTABLE


def state_of(state: str, outcome: Outcome | None, exit_code: int | None) -> str:
    """The state of a process in a word or two: ``running``, ``exit 0``, ``SIGKILL``, ``timeout``."""
    if state in ("starting", "running"):
        return state
    if outcome is None:
        return state if exit_code is None else f"exit {exit_code}"
    if outcome.kind.value == "exit":
        return f"exit {outcome.exit_code}"
    if outcome.kind.value == "signal" and outcome.signal is not None:
        return signal_name(outcome.signal)
    return outcome.kind.value


def signal_name(number: int) -> str:
    """``SIGTERM`` for 15."""
    import signal

    try:
        return signal.Signals(number).name
    except ValueError:
        past = number - signal.SIGRTMIN
        return f"SIGRTMIN+{past}" if past > 0 else f"SIG{number}"
