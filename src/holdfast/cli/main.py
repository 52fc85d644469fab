"""The command line: arguments in, a command run.

Nothing is imported here that the shortest command does not need: how long a program
takes to start is what its users wait for.  The modules of commands are imported when
their command is named; what is heavy, they import when they have to.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

from holdfast import __version__

from .failure import BROKEN_PIPE, INTERRUPTED, OWN, Failure
from .options import Parser, add_output

Run = Callable[[argparse.Namespace], int]


class Command(NamedTuple):
    """One command: where it is, and what it is for."""

    module: str
    configure: str
    """A function there that adds its options; of a module that is heavy, one of ours."""
    run: str
    help: str


COMMANDS = {
    "run": Command("run", "configure_run", "run", "run a program; with a server it is kept there"),
    "exec": Command("run", "configure_exec", "execute", "run a program that ends with this command"),
    "attach": Command("attach", "configure", "attach", "follow a process of a server"),
    "ps": Command("ps", "configure", "ps", "show the processes of a server"),
    "logs": Command("logs", "configure", "logs", "print what a process said"),
    "wait": Command("wait", "configure", "wait", "wait for the end of processes"),
    "kill": Command("signals", "configure_kill", "kill", "end processes and everything they have started"),
    "signal": Command("signals", "configure_signal", "signal", "send a signal to a process"),
    "write": Command("write", "configure_write", "write", "write to the input of a process"),
    "resize": Command("write", "configure_resize", "resize", "give the terminal of a process another size"),
    "cp": Command("cp", "configure", "cp", "copy files between here and a server"),
    "serve": Command("serve", "configure", "serve", "serve processes to programs"),
    "token": Command("token", "configure", "token", "make a token for a client of a server"),
    "doctor": Command("doctor", "", "doctor", "try out what works on this host"),
    "schema": Command("schema", "", "schema", "print the messages of an endpoint as a schema"),
    "completion": Command(
        "completion", "configure", "completion", "print a script that completes for a shell"
    ),
    "version": Command("", "", "", "print the version"),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    if argv is not None:
        return run(argv)
    if sys.argv[1:2] in (["run"], ["exec"]):
        # The collector finds nothing while we import, and takes a twentieth of the time; see ``run``.
        gc.disable()
    return run(sys.argv[1:])


def run(argv: Sequence[str]) -> int:
    """Run one command, with its failures told to the user."""
    try:
        if any("\0" in each for each in argv):
            raise Failure("an argument has a NUL in it, which no name, path or program can have")
        arguments = parse(list(argv))
        code = int(arguments.run(arguments))
        if sys.stdout is not None:
            sys.stdout.flush()
    except Failure as failure:
        from .report import say

        say(str(failure))
        return failure.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has had enough.
        _silence()
        return BROKEN_PIPE
    except OSError as error:
        # What is left, as a rule: our output, which goes to a disk that is full.
        from .report import say

        what = f"cannot use {os.fsdecode(error.filename)}" if error.filename else "cannot write the output"
        say(f"{what}: {error.strerror or error}")
        _silence()
        return OWN
    return code


def _silence() -> None:
    """Have what was not written yet go nowhere: the interpreter would complain of it at the end."""
    if sys.stdout is not None:
        fd = os.open(os.devnull, os.O_WRONLY)
        os.dup2(fd, sys.stdout.fileno())
        os.close(fd)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """What was asked for; ends with a complaint if that cannot be understood."""
    argv = _server_behind(argv)
    name = argv[0] if argv else ""
    if name not in COMMANDS:
        return _parser_of_none(name).parse_args(argv)
    parser = Parser(prog=f"holdfast {name}", allow_abbrev=False)
    _configure(parser, name)
    if COMMANDS[name].module != "run" or "--" not in argv:
        return parser.parse_args(argv[1:])
    # What follows the first mark is the program's, whatever it looks like.
    mark = argv.index("--")
    arguments = parser.parse_args(argv[1:mark])
    arguments.argv = [*arguments.argv, *argv[mark if arguments.argv else mark + 1 :]]
    return arguments


def _server_behind(argv: Sequence[str]) -> Sequence[str]:
    """The same with the server behind the command, if it was named before it, as docker's users do."""
    first = argv[0] if argv else ""
    size = 2 if first in ("-H", "--url") else 1 if first.startswith(("-H", "--url=")) else 0
    if size and len(argv) > size and argv[size] in COMMANDS:
        return [argv[size], *argv[:size], *argv[size + 1 :]]
    return argv


def parser() -> argparse.ArgumentParser:
    """A parser of all commands with all their options."""
    top, commands = _top()
    for name, command in COMMANDS.items():
        _configure(commands.add_parser(name, help=command.help, allow_abbrev=False), name)
    return top


def _parser_of_none(name: str) -> argparse.ArgumentParser:
    """A parser that knows commands by their names only: for help, and for what is no command."""
    top, commands = _top()
    for each, command in COMMANDS.items():
        commands.add_parser(each, help=command.help)
    if name and not name.startswith("-"):
        from difflib import get_close_matches

        close = get_close_matches(name, COMMANDS, 1)
        top.error(f"there is no command {name!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
    return top


def _top() -> tuple[Parser, argparse._SubParsersAction[Parser]]:
    top = Parser(
        prog="holdfast",
        description="Runs processes, here or on a server: 'holdfast run -- ls' is a beginning.",
        epilog="'holdfast COMMAND --help' explains a command.  $HOLDFAST_URL names a server for all of them.",
    )
    top.add_argument("--version", action="version", version=f"holdfast {__version__}")
    return top, top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)


def _configure(parser: Parser, name: str) -> None:
    command = COMMANDS[name]
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.set_defaults(run=_version if name == "version" else _runner(command))
    if command.configure:
        getattr(import_module(f"holdfast.cli.{command.module}"), command.configure)(parser)
    elif name in _LIGHT:
        _LIGHT[name](parser)


def _runner(command: Command) -> Run:
    def run(arguments: argparse.Namespace) -> int:
        found: Run = getattr(import_module(f"holdfast.cli.{command.module}"), command.run)
        return found(arguments)

    return run


# Commands whose modules are heavy, or are none.


def _configure_schema(parser: Parser) -> None:
    parser.description = "Print what may be said at an endpoint, for validators and generators of clients."
    parser.epilog = (
        "Without --endpoint, both endpoints are in one document:\n"
        "  json-schema   a schema that takes the messages of either; each is below $defs\n"
        "  typescript    a namespace for each\n"
        "  openrpc       an object with a document for each, because method names repeat\n"
    )
    parser.add_argument(
        "--format",
        choices=("json-schema", "typescript", "openrpc"),
        default="json-schema",
        help="what to write (default: json-schema, draft 2020-12)",
    )
    parser.add_argument("--endpoint", choices=("exec", "app"), help="only this one (default: both)")


def _configure_doctor(parser: Parser) -> None:
    parser.description = (
        "Try out what works on this host, and say what to do about what does not.\n"
        "The exit code is 1 if something is missing that clients rely on."
    )
    add_output(parser)


def _configure_version(parser: Parser) -> None:
    add_output(parser)


_LIGHT = {"schema": _configure_schema, "doctor": _configure_doctor, "version": _configure_version}


def _version(arguments: argparse.Namespace) -> int:
    if arguments.output == "json":
        from .report import tell_json

        tell_json({"version": __version__})
    else:
        print(f"holdfast {__version__}")
    return 0
