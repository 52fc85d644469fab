"""What the end of a process, or an error of the library, means to the user: exit code and message (pure)."""

from __future__ import annotations

import shlex
import signal
from errno import EACCES, EISDIR, ENOENT, ENOEXEC, ENOTDIR, EPERM

from holdfast import errors as e
from holdfast.model import Kind, Outcome, ProcessState

from .report import ExitCode, Failure, cut

_TIMEOUTS = (Kind.TIMEOUT, Kind.IDLE_TIMEOUT)

_REMARKS = {
    Kind.TIMEOUT: "it was ended because its time was over",
    Kind.IDLE_TIMEOUT: "it was ended because it was idle for too long",
    Kind.OOM: "it was ended because it used more memory than it may",
    Kind.CPU_LIMIT: "it was ended because it used more processor time than it may",
    Kind.OUTPUT_LIMIT: "it was ended because it said more than it may",
    Kind.SANDBOX_DENIED: "the sandbox refused it something",
    Kind.LOST: "nobody knows how it ended: whoever watched over it is gone",
}

_NOT_EXECUTABLE = (EACCES, EPERM, ENOEXEC, EISDIR)

LIVE_STATES = (ProcessState.STARTING, ProcessState.RUNNING)
"""States of a process, as a server lists them, in which it has not ended."""

_LONGEST_REASON = 160
"""Characters.  The reason of a lost connection may be a page that another server sent."""


# The end of a process.


def code_of(outcome: Outcome) -> int:
    """Return the exit code for the end of a process.

    This is the code of the process; after signal n 128 + n; after a timeout 124; if it is not known, 125.
    """
    if outcome.kind in _TIMEOUTS:
        return ExitCode.TIMEOUT
    if outcome.kind is Kind.LOST:
        return ExitCode.FAILED
    if outcome.signal is not None:
        return 128 + outcome.signal
    return ExitCode.FAILED if outcome.exit_code is None else outcome.exit_code & 0xFF


def remark(outcome: Outcome) -> str | None:
    """Say what the exit code leaves open; None if the code says everything."""
    words = _REMARKS.get(outcome.kind)
    if words is None:
        return None
    return f"{words} ({outcome.detail})" if outcome.detail else words


def state_of(state: str, outcome: Outcome | None, exit_code: int | None) -> str:
    """Return the state of a process in a word or two: ``running``, ``exit 0``, ``SIGKILL``, ``timeout``.

    Args:
        state: The state in the list of the server.
        outcome: None while the process runs, and from a server that does not send it.
    """
    if state in LIVE_STATES:
        return state
    if outcome is None:
        return state if exit_code is None else f"exit {exit_code}"
    if outcome.kind is Kind.EXIT:
        return f"exit {outcome.exit_code}"
    if outcome.kind is Kind.SIGNAL and outcome.signal is not None:
        return signal_name(outcome.signal)
    name: str = outcome.kind.value
    return name


def signal_name(number: int) -> str:
    """Return the name of a signal: ``SIGTERM`` for 15."""
    try:
        return signal.Signals(number).name
    except ValueError:
        past = number - signal.SIGRTMIN
        return f"SIGRTMIN+{past}" if past > 0 else f"SIG{number}"


# Errors.


def explain(error: e.HoldfastError, *, url: str | None = None) -> Failure:
    """Turn an error of the library into a message with advice, and an exit code.

    Args:
        url: The server that was asked; None if the work was done in this process.
    """
    match error:
        case e.SpawnFailed():
            return Failure(_spawn_failed(error), code_of_start(error))
        case e.UnknownProcess(name=name):
            return Failure(f"no process named {name!r}; 'holdfast ps -a' shows those that there are")
        case e.NameTaken(name=name):
            return Failure(
                f"the name {name!r} is taken: '{command('attach', name)}' follows its process,"
                f" '{command('kill', name)}' ends it, --replace does that before this start"
            )
        case e.NameAmbiguous(name=name):
            return Failure(
                f"the identifiers of several processes begin with {name!r};"
                " write more of it, as 'holdfast ps -a --no-trunc' shows it"
            )
        case e.StillRunning(name=name):
            return Failure(
                f"process {name!r} still runs; end it first with '{command('kill', name)}', or use rm -f"
            )
        case e.NoTerminal():
            return Failure("the process has no terminal; start it with -t to give it one")
        case e.ProcessLost(name=name):
            return Failure(f"process {name!r} is lost: {error.reason}; nobody knows how it ended")
        case e.OutcomeUnknown():
            return Failure(f"{error}; see 'holdfast ps -a' before you do it again")
        case e.LinkLost(reason=reason):
            return Failure(_link_lost(reason, url))
        case e.OutputGap():
            return Failure(f"{error}; a larger --retain keeps more")
        case e.LimitReached(limit=limit, value=value):
            return Failure(f"the limit of {limit} is reached ({value}); try again later")
        case _:
            return Failure(str(error))


def code_of_start(error: e.SpawnFailed) -> int:
    """Return the exit code for a start that failed: that of a shell, if the program is at fault."""
    if error.fault is not e.Fault.PROGRAM:
        return ExitCode.FAILED
    # Servers that send no error number send the message of the system.
    if error.number in _NOT_EXECUTABLE or "ermission denied" in error.reason:
        return ExitCode.NOT_EXECUTABLE
    if error.number in (None, ENOENT, ENOTDIR):
        return ExitCode.NOT_FOUND
    return ExitCode.NOT_EXECUTABLE


def command(verb: str, name: str) -> str:
    """Return the command line that applies ``verb`` to a process, quoted for a shell."""
    return shlex.join(["holdfast", verb, *(["--"] if name.startswith("-") else []), name])


def _spawn_failed(error: e.SpawnFailed) -> str:
    match error.fault:
        case e.Fault.PROGRAM:
            where = "; it was looked for in the directories of PATH" if error.search is not None else ""
            return f"cannot run {error.subject!r}: {error.reason}{where}"
        case e.Fault.DIRECTORY:
            return f"cannot run in directory {error.subject!r}: {error.reason}; -w names another"
        case e.Fault.SANDBOX:
            return f"the sandbox cannot be made: {error.reason}; see 'holdfast doctor'"
        case _:
            return str(error)


def _link_lost(reason: str, url: str | None) -> str:
    reason = cut(" ".join(reason.split()), _LONGEST_REASON)
    if url is None:
        return f"the connection is lost: {reason}"
    where = reason if url in reason else f"no connection to {url}: {reason}"
    if "HTTP 401" in reason:
        return f"{where}; --token-file names a file with the token"
    return f"{where}; is a server there?  'holdfast serve' starts one"
