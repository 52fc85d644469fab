"""What the end of a process, or an error of the library, means to the user: exit code and message (pure)."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from errno import EACCES, EISDIR, ENOENT, ENOEXEC, ENOTDIR, EPERM

from holdfast import errors as e
from holdfast.model import Kind, Outcome, ProcessState
from holdfast.sandbox import Denial
from holdfast.wording import words_of_end

from .report import ExitCode, Failure, cut, plain

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

_MOST_DENIALS = 3
"""How many refusals of a sandbox are told; ``-o json`` has all."""

_LONGEST_SUBJECT = 120
"""Characters of what was refused: a command may have chosen the path."""

_DENIED = {"open": "write", "socket": "network socket"}
"""What a system call means, where its name leaves that open.  Only whoever would write is refused to open."""

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


def remark(outcome: Outcome, denials: Sequence[Denial] = ()) -> str | None:
    """Say what the exit code leaves open; None if the code says everything.

    Args:
        denials: What its sandbox has refused.  It is told of a process that has failed.
    """
    words = _REMARKS.get(outcome.kind)
    if words is not None and outcome.detail:
        words = f"{words} ({outcome.detail})"
    if not denials or not code_of(outcome):
        return words
    refused = refusals(denials)
    return refused if words is None or outcome.kind is Kind.SANDBOX_DENIED else f"{words}; {refused}"


def refusals(denials: Sequence[Denial]) -> str:
    """Say in one sentence what a sandbox has refused; no longer than a few lines, however much it was."""
    # One without a name counts those that the host could not list.
    named = [each for each in denials if each.op]
    shown = [
        f"{_DENIED.get(each.op, each.op)} {cut(plain(each.subject), _LONGEST_SUBJECT)}".strip()
        for each in named[:_MOST_DENIALS]
    ]
    unnamed = sum(each.count for each in denials if not each.op)
    if rest := len(named) - len(shown) + unnamed:
        shown.append(f"{rest} more")
    return f"the sandbox refused it: {', '.join(shown)}"


def dropped(size: int) -> str | None:
    """Say how much of its output was dropped at its limit; None if nothing was."""
    return f"{size:,} bytes of its output were dropped: it said more than is kept" if size else None


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
    return words_of_end(outcome.kind.value, outcome.exit_code, outcome.signal, None)


# Errors.


def explain(error: e.HoldfastError, *, url: str | None = None) -> Failure:
    """Turn an error of the library into a message with advice, and an exit code.

    Args:
        url: The server that was asked; None if the work was done in this process.
    """
    match error:
        case e.SpawnFailed():
            return Failure(_spawn_failed(error, url), code_of_start(error))
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
        case e.LinkLost():
            return Failure(_link_lost(error, url))
        case e.Forbidden():
            return Failure(f"{error}; ask for a token that allows it")
        case e.HttpFailed(fault=e.HttpFault.TIMEOUT | e.HttpFault.BODY_TIMEOUT):
            return Failure(str(error), ExitCode.TIMEOUT)
        case e.SandboxUnavailable():
            return Failure(f"{error}; {_doctor(url)}")
        case e.UserRefused(fault=e.UserFault.NOT_ROOT) if url is None:
            return Failure(f"{error}; run this as root, or name a server that runs as root with -H")
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


def _doctor(url: str | None) -> str:
    if url is None:
        return "'holdfast doctor' says what is kept here, and what to install"
    return "'holdfast doctor' on the host of the server says what is kept there, and what to install"


def _spawn_failed(error: e.SpawnFailed, url: str | None) -> str:
    match error.fault:
        case e.Fault.PROGRAM:
            where = "; it was looked for in the directories of PATH" if error.search is not None else ""
            return f"cannot run {error.subject!r}: {error.reason}{where}"
        case e.Fault.DIRECTORY:
            return f"cannot run in directory {error.subject!r}: {error.reason}; -w names another"
        case e.Fault.SANDBOX:
            return f"the sandbox cannot be made: {error.reason}; {_doctor(url)}"
        case _:
            return str(error)


def _link_lost(error: e.LinkLost, url: str | None) -> str:
    reason = cut(" ".join(error.reason.split()), _LONGEST_REASON)
    if url is None:
        return f"the connection is lost: {reason}"
    # What a server says of a limit or a token follows the status, which tells a user nothing.
    said = reason.partition("HTTP ")[2].partition(": ")[2] or reason.partition("refuses us: ")[2]
    match error.fault:
        case e.LinkFault.TOKEN if "missing" in said:
            return f"{url} asks for a token; {_login(url)} stores one, or --token-file names a file with it"
        case e.LinkFault.TOKEN:
            why = f" ({said})" if said else ""
            return f"{url} does not accept the token{why}; get another one, and {_login(url)} stores it"
        case e.LinkFault.FULL:
            return f"{url} has no room for another client: {said or reason}; end one, or try again later"
        case e.LinkFault.FORBIDDEN if url.startswith("unix:"):
            why = reason.rpartition(": ")[2]
            return f"you may not use {url}: {why}; ask its owner, or start your own server"
        case e.LinkFault.FORBIDDEN:
            return f"{url} does not permit this client: {said or reason}; ask who runs it"
    where = reason if url in reason else f"no connection to {url}: {reason}"
    return where if ": use " in reason else f"{where}; {_LINK_ADVICE[error.fault]}"


_LINK_ADVICE = {
    e.LinkFault.BROKEN: "what runs there goes on, and 'holdfast ps' shows it when the server is back",
    e.LinkFault.UNREACHABLE: "is a server there?  'holdfast serve' starts one",
    e.LinkFault.NAME: "check the URL",
    e.LinkFault.PROTOCOL: "check the URL",
    e.LinkFault.CERTIFICATE: "$SSL_CERT_FILE names a file of authorities to trust",
}


def _login(url: str) -> str:
    return f"'{shlex.join(['holdfast', 'login', url])}'"
