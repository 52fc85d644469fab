"""``holdfast wait``: until processes of a server have ended."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from . import options
from .target import perform

if TYPE_CHECKING:
    from holdfast.api.host import Host
    from holdfast.model import Exit

_LONG = 3600.0
"""Seconds of one wait; then the next one begins."""


def configure(parser: options.Parser) -> None:
    """The options of ``wait``."""
    parser.carries = True
    parser.description = (
        "Wait until processes have ended.  The exit code is that of the process; of several, that of the\n"
        "first one in the order given that is not 0.  Of several, the codes are printed, one per line."
    )
    options.add_names(parser, several=True)
    options.add_output(parser)
    options.add_quiet(parser, "print nothing")
    options.add_server(parser)


def wait(arguments: argparse.Namespace) -> int:
    """Wait for all of them, in the order given: the last to end decides how long it takes."""

    async def work(host: Host) -> int:
        from . import describe
        from .codes import code_of, remark
        from .report import say, tell, tell_json

        ends = []
        for process in [await host.place.find(name) for name in arguments.names]:
            end: Exit | None = None
            while end is None:
                end = await process.wait(_LONG)
            ends.append((process.name, end.outcome))
            words = remark(end.outcome)
            if words and not arguments.quiet and arguments.output == "table":
                say(f"{process.name}: {words}")
        if arguments.output == "json":
            tell_json(
                [
                    {"name": name, "exitCode": code_of(outcome), "outcome": describe.outcome(outcome)}
                    for name, outcome in ends
                ]
            )
        elif len(ends) > 1 and not arguments.quiet:
            tell(*(str(code_of(outcome)) for _, outcome in ends))
        return next((code for _, outcome in ends if (code := code_of(outcome))), 0)

    return perform(arguments, work)
