"""The options of ``events``."""

from __future__ import annotations

from .options import Parser, add_output, add_server


def configure(parser: Parser) -> None:
    """Add the options of ``events``."""
    parser.passes_code = True
    parser.description = (
        "Print what happens to the processes of a server, one line for each event, until ^C:\n\n"
        "  started     it runs; with its PID and its command line\n"
        "  waiting     it waits for input; printed again when it has said something and waits once more\n"
        "  resumed     it no longer waits for input\n"
        "  exited      it has ended; with how it ended\n"
        "  forgotten   its session is over, and it is being ended\n"
        "  gap         events are missing, because the connection was lost or nobody read them in time"
    )
    parser.epilog = (
        "These are the processes of whoever the token of the server names, those of other clients included."
    )
    parser.add_argument(
        "--name",
        action="append",
        metavar="NAME",
        dest="names",
        help="only events of processes with this name or identifier; may be given several times",
    )
    parser.add_argument(
        "--until-exit",
        metavar="NAME",
        help="leave when this process has ended, with its exit code; at once if it has ended before",
    )
    add_output(parser, "a JSON document on each line")
    add_server(parser)
