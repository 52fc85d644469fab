"""The options of ``run`` and ``exec``."""

from __future__ import annotations

import argparse

from .options import Parser, add_detach_keys, add_output, add_quiet, add_server
from .quantities import byte_count, duration, positive, positive_duration


def configure_run(parser: Parser) -> None:
    """Add the options of ``run``."""
    parser.description = (
        "Run a program and be its terminal: its output is ours, its exit code too.  With a server the\n"
        "process is kept: it outlives this command, and ps, attach, logs and wait find it by its name."
    )
    parser.add_argument("-d", "--detach", action="store_true", help="start it, print its name and leave")
    _configure(parser)


def configure_exec(parser: Parser) -> None:
    """Add the options of ``exec``: those of ``run``, except ``-d``."""
    parser.description = (
        "Run a program and be its terminal, as run does.  On a server it ends with this command, as with ssh."
    )
    parser.set_defaults(detach=False)
    _configure(parser)


def _configure(parser: Parser) -> None:
    parser.passes_code = True
    parser.usage = f"{parser.prog} [OPTION ...] [--] PROGRAM [ARGUMENT ...]"
    parser.epilog = (
        "exit codes: the program's own; 128 + n after signal n; 124 after a timeout; 125 if holdfast\n"
        "failed; 126 if the program cannot be run; 127 if there is none"
    )
    parser.add_argument(
        "-i",
        "--interactive",
        action="store_true",
        help="pass on standard input also if it is a terminal; pipes and files are always passed on",
    )
    parser.add_argument("-t", "--tty", action="store_true", help="give it a terminal")
    parser.add_argument("--name", metavar="NAME", help="what to call it (default: a name that is free)")
    parser.add_argument("-w", "--workdir", metavar="DIR", help="the directory to run it in")
    parser.add_argument(
        "-e",
        "--env",
        metavar="NAME[=VALUE]",
        action="append",
        default=[],
        help="a variable for it; without a value, ours",
    )
    parser.add_argument(
        "--env-file", metavar="FILE", action="append", default=[], help="variables, one NAME=VALUE per line"
    )
    _add_limits(parser)
    add_detach_keys(parser)
    add_output(parser, "a line per piece of output, in base64, and one for the end")
    add_quiet(parser, "say nothing of our own but what went wrong")
    add_server(parser, embedded=True)
    parser.add_argument("argv", metavar="PROGRAM", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout", metavar="TIME", type=positive_duration, help="end it after this time, such as 30s or 5m"
    )
    parser.add_argument(
        "--idle-timeout",
        metavar="TIME",
        type=positive_duration,
        help="end it once it has neither said nor been given anything for this time",
    )
    parser.add_argument(
        "--grace", metavar="TIME", type=duration, help="the time between the request to end and the end"
    )
    parser.add_argument("--memory", metavar="BYTES", type=byte_count, help="what it may use, such as 512m")
    parser.add_argument("--cpu", metavar="TIME", type=positive_duration, help="processor time it may use")
    parser.add_argument("--pids", metavar="N", type=positive, help="processes it may have at once")
    parser.add_argument(
        "--retain", metavar="BYTES", type=byte_count, help="output that the server keeps of it, such as 16m"
    )
