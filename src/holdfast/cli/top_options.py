"""The options of ``top``."""

from __future__ import annotations

from .options import Parser, add_output, add_server
from .quantities import positive_duration

_SORT_KEYS = ("cpu", "memory", "output", "age", "name", "state")


def configure(parser: Parser) -> None:
    """Add the options of ``top``."""
    parser.description = (
        "Show the processes of a server as a table that is kept up to date: what each of them uses,\n"
        "together with everything it has started.  What is typed in the table:\n\n"
        "  up, down    choose a process; also page up, page down, home and end\n"
        "  enter, a    attach to it; the detach keys come back to the table\n"
        "  l           show its log, and what follows; ^C comes back\n"
        "  k           end it with everything it has started, if 'y' confirms it\n"
        "  s, r        sort by the next column; the other way round\n"
        "  /           show only those with these words in name, state or command; escape shows all\n"
        "  e           show those that have ended, too, or hide them\n"
        "  q           leave; all processes go on"
    )
    parser.epilog = (
        "CPU% is that of one processor: a process that keeps two of them busy has 200.  MEM is the resident\n"
        "memory of all; what they share counts several times.  OUT/S are bytes of output per second."
    )
    parser.add_argument("--once", action="store_true", help="print the table once, for scripts, and leave")
    parser.add_argument(
        "--interval",
        metavar="TIME",
        type=positive_duration,
        help="the time between two looks (default: 2s; 1s with --once, which looks twice)",
    )
    parser.add_argument("--sort", choices=_SORT_KEYS, default="cpu", help="what to sort by (default: cpu)")
    parser.add_argument(
        "--filter", metavar="WORDS", default="", help="only those with these words in name, state or command"
    )
    parser.add_argument("-a", "--all", action="store_true", help="also those that have ended")
    add_output(parser, "as --once, a document for each process")
    add_server(parser)
