"""The command line: arguments in, a command run."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from holdfast import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    arguments = parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has had enough; nor do they want to hear of it at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="holdfast", description="Runs processes for programs, over JSON-RPC.")
    top.add_argument("--version", action="version", version=f"holdfast {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_serve(commands)
    _add_schema(commands)
    _add_doctor(commands)
    version = commands.add_parser("version", help="print the version")
    version.set_defaults(run=_version)
    return top


def _add_serve(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    serve = commands.add_parser(
        "serve",
        help="serve processes to programs",
        description="Serve processes to programs.  Prints the URL of each listener, one per line.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=(
            "examples:\n"
            "  holdfast serve                                   a free port on the loopback interface\n"
            "  holdfast serve --listen ws://127.0.0.1:8765      a port of your choice\n"
            "  holdfast serve --listen unix:///run/hf.sock      a Unix socket that only you can reach\n"
            "  holdfast serve --listen stdio                    one client, on standard input and output\n"
        ),
    )
    serve.add_argument(
        "--listen",
        metavar="URL",
        action="append",
        help="ws://IP:PORT (port 0 takes a free one), unix://PATH or stdio; may be repeated"
        " (default: ws://127.0.0.1:0)",
    )
    serve.add_argument(
        "--endpoint",
        choices=("exec", "app", "auto"),
        default="auto",
        help="the protocol to speak; auto lets the client's first message decide (default: auto)",
    )
    serve.add_argument(
        "--concurrent-requests",
        metavar="N",
        type=_positive,
        default=1,
        help="accepted for compatibility: requests of a connection never wait for each other",
    )
    serve.add_argument(
        "--retain-detached-bytes",
        metavar="BYTES",
        type=_positive,
        help="output kept per process while its client is away (default: 64 MiB)",
    )
    serve.add_argument(
        "--retain-total-bytes",
        metavar="BYTES",
        type=_positive,
        help="output kept for all processes together (default: 1 GiB)",
    )
    serve.add_argument(
        "--sandbox",
        choices=("auto", "bubblewrap", "landlock", "off"),
        default="auto",
        help="what keeps sandboxes; auto takes the best that works here, off refuses them (default: auto)",
    )
    _add_app_options(serve)
    serve.add_argument(
        "--hint",
        metavar="TEXT",
        help="a line to print after each URL, with {url} in it for the URL",
    )
    serve.set_defaults(run=_serve)


def _add_schema(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    schema = commands.add_parser(
        "schema",
        help="print the messages of an endpoint as a schema",
        description="Print what may be said at an endpoint, for validators and generators of clients.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=(
            "Without --endpoint, both endpoints are in one document:\n"
            "  json-schema   a schema that takes the messages of either; each is below $defs\n"
            "  typescript    a namespace for each\n"
            "  openrpc       an object with a document for each, because method names repeat\n"
        ),
    )
    schema.add_argument(
        "--format",
        choices=("json-schema", "typescript", "openrpc"),
        default="json-schema",
        help="what to write (default: json-schema, draft 2020-12)",
    )
    schema.add_argument("--endpoint", choices=("exec", "app"), help="only this one (default: both)")
    schema.set_defaults(run=_schema)


def _add_doctor(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    doctor = commands.add_parser(
        "doctor",
        help="try out what works on this host",
        description="Try out what works on this host, and say what to do about what does not.\n"
        "The exit code is 1 if something is missing that clients rely on.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    doctor.add_argument(
        "-o", "--output", choices=("table", "json"), default="table", help="how to print it (default: table)"
    )
    doctor.set_defaults(run=_doctor)


def _add_app_options(serve: argparse.ArgumentParser) -> None:
    serve.add_argument(
        "--drain",
        metavar="SECONDS",
        type=_seconds,
        help="app endpoint: how long after an exit output is awaited that somebody holds open (default: 2)",
    )
    serve.add_argument(
        "--process-quiet",
        metavar="SECONDS",
        type=_seconds,
        help="app endpoint: silence after an exit that ends the output; 0 for no such end (default: 0)",
    )
    serve.add_argument(
        "--command-quiet",
        metavar="SECONDS",
        type=_seconds,
        help="app endpoint: the same for a command (default: 0.05)",
    )
    serve.add_argument(
        "--command-sandbox",
        choices=("read-only", "workspace-write", "danger-full-access"),
        default="read-only",
        help="app endpoint: what a command may do that comes without a policy (default: read-only)",
    )


def _positive(text: str) -> int:
    # Digits only: what else ``int`` would take, or refuse in words about us, is no number to a user.
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")
    return value


def _version(arguments: argparse.Namespace) -> int:
    print(f"holdfast {__version__}")
    return 0


def _serve(arguments: argparse.Namespace) -> int:
    from .serve import Refusal, serve  # Here, so that the other commands start faster.

    try:
        return serve(arguments)
    except Refusal as refusal:
        print(f"Error: {refusal}", file=sys.stderr)
        return 1


def _schema(arguments: argparse.Namespace) -> int:
    from .schema import schema  # Here, so that a server neither waits for this nor keeps it in memory.

    return schema(arguments)


def _doctor(arguments: argparse.Namespace) -> int:
    from .doctor import doctor  # Here, so that the other commands start faster.

    return doctor(arguments)
