"""``holdfast serve``: its options, and what comes before the event loop."""

from __future__ import annotations

import argparse
import sys

from . import auditing, bounds, guarding, observing, options
from .descriptors import open_standard_files
from .sizes import positive

_FAILED = 1
"""The exit code of a server that does not start: no process has one here that it could be taken for."""


def configure(parser: options.Parser) -> None:
    """The options of ``serve``."""
    parser.description = "Serve processes to programs.  Prints the URL of each listener, one per line."
    parser.epilog = (
        "examples:\n"
        "  holdfast serve                                   a free port on the loopback interface\n"
        "  holdfast serve --listen ws://127.0.0.1:8765      a port of your choice\n"
        "  holdfast serve --listen unix:///run/hf.sock      a Unix socket that only you can reach\n"
        "  holdfast serve --listen stdio                    one client, on standard input and output\n"
    )
    parser.add_argument(
        "--listen",
        metavar="URL",
        action="append",
        help="ws://IP:PORT (port 0 takes a free one), wss://IP:PORT, unix://PATH or stdio; may be repeated"
        " (default: ws://127.0.0.1:0)",
    )
    parser.add_argument(
        "--endpoint",
        choices=("exec", "app", "auto"),
        default="auto",
        help="the protocol to speak; auto lets the client's first message decide (default: auto)",
    )
    parser.add_argument(
        "--concurrent-requests",
        metavar="N",
        type=positive,
        default=1,
        help="accepted for compatibility: requests of a connection never wait for each other",
    )
    parser.add_argument(
        "--retain-detached-bytes",
        metavar="BYTES",
        type=positive,
        help="output kept per process while its client is away (default: 64 MiB)",
    )
    parser.add_argument(
        "--retain-total-bytes",
        metavar="BYTES",
        type=positive,
        help="output kept for all processes together (default: 1 GiB)",
    )
    parser.add_argument(
        "--sandbox",
        choices=("auto", "bubblewrap", "landlock", "off"),
        default="auto",
        help="what keeps sandboxes; auto takes the best that works here, off refuses them (default: auto)",
    )
    bounds.configure(parser)
    _configure_app(parser)
    guarding.configure(parser)
    observing.configure(parser)
    auditing.configure(parser)
    parser.add_argument(
        "--hint",
        metavar="TEXT",
        help="a line to print after each URL, with {url} in it for the URL; not with -o json",
    )
    options.add_output(parser, 'a line {"url": URL} per listener')


def _configure_app(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--drain",
        metavar="SECONDS",
        type=_seconds,
        help="app endpoint: how long after an exit output is awaited that somebody holds open (default: 2)",
    )
    parser.add_argument(
        "--process-quiet",
        metavar="SECONDS",
        type=_seconds,
        help="app endpoint: silence after an exit that ends the output; 0 for no such end (default: 0)",
    )
    parser.add_argument(
        "--command-quiet",
        metavar="SECONDS",
        type=_seconds,
        help="app endpoint: the same for a command (default: 0.05)",
    )
    parser.add_argument(
        "--command-sandbox",
        choices=("read-only", "workspace-write", "danger-full-access"),
        default="read-only",
        help="app endpoint: what a command may do that comes without a policy (default: read-only)",
    )


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")
    return value


def serve(arguments: argparse.Namespace) -> int:
    """Run the server; return the exit code."""
    from holdfast.server.listen import BadListen, check_exposure, parse_listen

    try:
        where = [parse_listen(url) for url in arguments.listen or ("ws://127.0.0.1:0",)]
        auth = guarding.make_auth(arguments, where)
        for listen in where:
            check_exposure(listen, auth=auth is not None)
        tls = guarding.make_tls(arguments, where)
    except (BadListen, guarding.BadGuard) as bad:
        return _refuse(str(bad))
    open_standard_files()
    files_limit = _raise_files_limit()
    observing.set_up_logs(arguments)

    from .serving import Guard, run

    try:
        return run(arguments, where, files_limit, Guard(auth, tls))
    except BadListen as bad:
        return _refuse(str(bad))
    except auditing.BadAudit as bad:
        return _refuse(str(bad))


def _refuse(words: str) -> int:
    # In the words that other servers of this protocol have for it.
    print(f"Error: {words}", file=sys.stderr)
    return _FAILED


def _raise_files_limit() -> tuple[int, int] | None:
    """Allow ourselves all the files we may have; return what children get instead."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return None
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft, hard
