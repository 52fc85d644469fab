"""``holdfast ps``: the processes of a server."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING

from . import options
from .target import perform

if TYPE_CHECKING:
    from holdfast.api.host import Host

_COLOURS = {"running": "green", "starting": "yellow", "exit 0": "dim"}


def configure(parser: options.Parser) -> None:
    """The options of ``ps``."""
    parser.description = "Show the processes of a server: those that run, or all that it still knows."
    parser.add_argument("-a", "--all", action="store_true", help="also those that have ended")
    parser.add_argument("--no-trunc", action="store_true", help="show command lines as they are")
    options.add_quiet(parser, "only names")
    options.add_output(parser)
    options.add_server(parser)


def ps(arguments: argparse.Namespace) -> int:
    """Print them, oldest first."""

    async def work(host: Host) -> int:
        from . import describe
        from .listings import HEAD, is_live, row
        from .report import in_colour, is_terminal, paint, tell, tell_json
        from .table import table

        found = sorted(await host.processes(), key=lambda one: (one.started, one.name))
        shown = [one for one in found if arguments.all or is_live(one)]
        if arguments.output == "json":
            tell_json([describe.listing(one) for one in shown])
        elif arguments.quiet:
            tell(*(one.name for one in shown))
        else:
            now = time.time()
            rows = [row(one, now=now, whole=arguments.no_trunc) for one in shown]
            coloured = in_colour(sys.stdout)
            width = None if arguments.no_trunc or not is_terminal(sys.stdout) else _width()
            tell(
                *table(
                    HEAD,
                    rows,
                    width=width,
                    paint=(lambda column, text: paint(_colour(text), text) if column == 2 else text)
                    if coloured
                    else None,
                )
            )
        return 0

    return perform(arguments, work)


def _colour(state: str) -> str:
    return _COLOURS.get(state, "red")


def _width() -> int | None:
    from .terminal import screen_size

    size = screen_size()
    return None if size is None else size[1]
