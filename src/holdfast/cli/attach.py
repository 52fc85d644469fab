"""``holdfast attach``: a process that runs on a server, followed from here."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from . import options
from .sizes import count
from .target import perform

if TYPE_CHECKING:
    from holdfast.api.host import Host
    from holdfast.model import Chunk, Listing


def configure(parser: options.Parser) -> None:
    """The options of ``attach``."""
    parser.carries = True
    parser.description = (
        "Follow a process of a server: see what it said and says, type to it.  ^C and sizes are passed on.\n"
        "The detach keys leave it running; so does the end of this command."
    )
    options.add_names(parser, several=False)
    parser.add_argument("--no-stdin", action="store_true", help="pass on nothing that is typed")
    parser.add_argument(
        "--tail",
        metavar="N",
        type=count,
        help="begin with the last N lines of what it said (default: all that is kept)",
    )
    options.add_detach_keys(parser)
    options.add_output(parser, "a line per piece of output, in base64, and one for the end")
    options.add_quiet(parser, "say nothing of our own but what went wrong")
    options.add_server(parser)


def _redraw(found: Listing, after: int) -> int | None:
    """The number of the last output that its screen was made of, if that is still to come; else 0."""
    if found.exit_code is not None or found.state != "running":
        return None
    return found.next_seq - 1 if found.next_seq - 1 > after else 0


def attach(arguments: argparse.Namespace) -> int:
    """Follow it to its end, or until it is left."""

    async def work(host: Host) -> int:
        from .follow import Manner, follow
        from .keys import DEFAULT, detach_keys
        from .listings import find
        from .logs import Pages
        from .terminal import is_terminal

        found = await find(host, arguments.name)
        first: list[Chunk] = []
        after = 0
        if arguments.tail is not None:
            pages = Pages(await host.place.find(arguments.name))
            first = await pages.last_lines(arguments.tail)
            after = pages.after
        handle = await host.attach(arguments.name, after=after)
        raw = found.terminal and is_terminal(0) and not arguments.no_stdin
        manner = Manner(
            stdin=not arguments.no_stdin,
            raw=raw,
            keys=detach_keys(DEFAULT) if arguments.detach_keys is None else arguments.detach_keys,
            kept=True,
            ours=False,
            redraw=_redraw(found, after) if raw else None,
            json=arguments.output == "json",
            quiet=arguments.quiet,
        )
        return await follow(handle, manner, first)

    return perform(arguments, work)
