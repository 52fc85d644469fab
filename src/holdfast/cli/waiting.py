"""``wait --for``: waits until a process has brought something about."""

from __future__ import annotations

import argparse

from holdfast.api.host import Host
from holdfast.api.waiting import ProcessEnded, WaitTimedOut, condition_of, wait_for

from .explain import code_of
from .options import wants_json
from .report import ExitCode, Failure, tell
from .show import tell_json
from .target import perform


def wait_until(arguments: argparse.Namespace) -> int:
    """Wait until something is so; return 0, or the code of the process if it ends before, or 124.

    Raises:
        Failure: It was not so.
    """
    if len(arguments.names) > 1:
        raise Failure("--for waits for one process; name one")
    kind, what = arguments.condition

    async def work(host: Host) -> int:
        condition = condition_of(**{"port": None, "url": None, "output": None, "file": None, kind: what})
        process = await host.place.find(arguments.names[0])
        try:
            found = await wait_for(process, condition, arguments.timeout)
        except WaitTimedOut as error:
            raise Failure(f"{error}; the process runs on", ExitCode.TIMEOUT) from None
        except ProcessEnded as error:
            raise Failure(str(error), code_of(error.outcome) or ExitCode.FAILED) from None
        if wants_json(arguments):
            seen = {"line": found.line, "seq": found.seq, "status": found.status}
            tell_json({"name": process.name, "end": found.end.value, **seen})
        elif found.line is not None and not arguments.quiet:
            tell(found.line)
        return 0

    return perform(arguments, work)
