"""Errors of the library in the words of the command line: what is wrong, and what to do next (pure)."""

from __future__ import annotations

from holdfast import errors as e

from .codes import code_of_start
from .failure import OWN, Failure
from .table import cut

_LONGEST = 160
"""Characters of a reason that somebody else has written."""


def explain(error: e.HoldfastError, *, url: str | None = None) -> Failure:
    """What to tell the user, and with which code to end.

    Args:
        url: The server that was asked; None if the work was done in this process.
    """
    match error:
        case e.SpawnFailed():
            return Failure(_start(error), code_of_start(error))
        case e.UnknownProcess(name=name):
            return Failure(f"no process named {name!r}; 'holdfast ps -a' shows those that there are")
        case e.NameTaken(name=name):
            return Failure(
                f"a process named {name!r} exists already; take another --name,"
                f" or end that one with 'holdfast kill {name}'"
            )
        case e.NoTerminal():
            return Failure("the process has no terminal; start it with -t to give it one")
        case e.ProcessLost(name=name):
            return Failure(f"process {name!r} is lost: {error.reason}; nobody knows how it ended")
        case e.OutcomeUnknown():
            return Failure(f"{error}; see 'holdfast ps -a' before you do it again")
        case e.LinkLost(reason=reason):
            return Failure(_link(reason, url))
        case e.OutputGap():
            return Failure(f"{error}; a larger --retain keeps more")
        case e.LimitReached(limit=limit, value=value):
            return Failure(f"the limit of {limit} is reached ({value}); try again later")
        case _:
            return Failure(str(error), OWN)


def _start(error: e.SpawnFailed) -> str:
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


def _link(reason: str, url: str | None) -> str:
    # It may be a page of somebody else's server.
    reason = cut(" ".join(reason.split()), _LONGEST)
    if url is None:
        return f"the connection is lost: {reason}"
    where = reason if url in reason else f"no connection to {url}: {reason}"
    if "HTTP 401" in reason:
        return f"{where}; --token-file names a file with the token"
    return f"{where}; is a server there?  'holdfast serve' starts one"
