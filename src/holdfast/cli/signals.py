"""``holdfast kill`` and ``holdfast signal``: processes of a server ended, or told something."""

from __future__ import annotations

import argparse
import signal as numbers
from typing import TYPE_CHECKING

from . import options
from .durations import duration
from .failure import OWN
from .target import perform

if TYPE_CHECKING:
    from holdfast.api.host import Host

_GRACE = 5.0


def configure_kill(parser: options.Parser) -> None:
    """The options of ``kill``."""
    parser.description = (
        "End processes and everything they have started: SIGTERM, then SIGKILL once the grace is over.\n"
        "Returns when they are gone."
    )
    options.add_names(parser, several=True)
    parser.add_argument(
        "--grace",
        metavar="TIME",
        type=duration,
        default=_GRACE,
        help="the time they have to end by themselves; 0 for none (default: 5s)",
    )
    options.add_output(parser)
    options.add_quiet(parser, "print nothing")
    options.add_server(parser)


def configure_signal(parser: options.Parser) -> None:
    """The options of ``signal``."""
    parser.description = "Send a signal to the group of a process, such as INT, SIGHUP or 10."
    options.add_names(parser, several=False)
    parser.add_argument("signal", metavar="SIGNAL", type=signal_number, help="its name or number")
    parser.add_argument("--tree", action="store_true", help="to everybody it has started, wherever they are")
    options.add_output(parser)
    options.add_server(parser)


def signal_number(text: str) -> int:
    """The number of a signal: from ``TERM``, ``SIGTERM``, ``sigterm`` or ``15``.

    Raises:
        argparse.ArgumentTypeError: There is no such signal.
    """
    name = text.upper() if text.upper().startswith("SIG") else f"SIG{text.upper()}"
    known = numbers.Signals.__members__
    if name in known:
        return int(known[name])
    digits = text.isascii() and text.isdecimal()
    if digits and 0 < int(text) <= numbers.SIGRTMAX:
        return int(text)
    from difflib import get_close_matches

    close = [] if digits else get_close_matches(name, known, 1)
    hint = f"; did you mean {close[0]}?" if close else "; 'kill -l' lists them"
    raise argparse.ArgumentTypeError(f"there is no signal {text!r}{hint}")


def kill(arguments: argparse.Namespace) -> int:
    """End them all, also if one of them cannot be found; then the code says so."""

    async def work(host: Host) -> int:
        from holdfast.errors import HoldfastError, LinkLost

        from .explain import explain
        from .report import say, tell, tell_json

        ended = []
        code = 0
        for name in arguments.names:
            try:
                process = await host.place.find(name)
                result = await process.terminate(grace=arguments.grace)
            except LinkLost:
                raise
            except HoldfastError as error:
                say(str(explain(error)))
                code = OWN
                continue
            ended.append((name, result))
            if result.survivors:
                pids = ", ".join(map(str, result.survivors))
                say(f"{name}: these processes could not be ended: {pids}")
                code = OWN
        if arguments.output == "json":
            tell_json(
                [
                    {"name": name, "running": result.running, "survivors": list(result.survivors)}
                    for name, result in ended
                ]
            )
        elif not arguments.quiet:
            tell(*(name for name, _ in ended))
        return code

    return perform(arguments, work)


def signal(arguments: argparse.Namespace) -> int:
    """Send it."""

    async def work(host: Host) -> int:
        process = await host.place.find(arguments.name)
        await process.signal(arguments.signal, tree=arguments.tree)
        if arguments.output == "json":
            from .codes import signal_name
            from .report import tell_json

            tell_json(
                {"name": arguments.name, "signal": signal_name(arguments.signal), "tree": arguments.tree}
            )
        return 0

    return perform(arguments, work)
