"""The entry point: the table of commands, and how the chosen one is loaded, parsed and run.

How long a program takes to start is what its users wait for.  So the modules of a command are imported
when the command is chosen, and nowhere else in this folder is anything imported late: every other module
has its imports at its top.  A command has its options in one module and its work in another, because help
and complaints about arguments need no event loop.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from holdfast.value import value

from .options import HelpFormatter, Parser
from .report import ExitCode, Failure, say


@value
class Command:
    """One command.  Its functions are named as ``module:function``, with a module of this folder."""

    options: str
    """Adds the options of the command to a ``Parser``."""
    run: str
    """Takes the parsed arguments, does the work, returns the exit code."""
    help: str
    runs_program: bool = False
    """Whether what follows ``--`` is the command line of another program."""


COMMANDS = {
    "run": Command(
        "process_options:configure_run",
        "run:run",
        "run a program; with a server it is kept there",
        runs_program=True,
    ),
    "exec": Command(
        "process_options:configure_exec",
        "run:execute",
        "run a program that ends with this command",
        runs_program=True,
    ),
    "attach": Command("process_options:configure_attach", "processes:attach", "follow a process of a server"),
    "ps": Command("process_options:configure_ps", "processes:ps", "show the processes of a server"),
    "top": Command("top_options:configure", "top:top", "show what processes use, kept up to date"),
    "events": Command(
        "event_options:configure", "events:events", "show what happens to processes, as it happens"
    ),
    "logs": Command("process_options:configure_logs", "processes:logs", "print what a process said"),
    "wait": Command("process_options:configure_wait", "processes:wait", "wait for the end of processes"),
    "kill": Command(
        "process_options:configure_kill",
        "processes:kill",
        "end processes and everything they have started",
    ),
    "restart": Command(
        "process_options:configure_restart", "removal:restart", "end processes and start them again"
    ),
    "rm": Command("process_options:configure_remove", "removal:remove", "forget processes that have ended"),
    "prune": Command(
        "process_options:configure_prune", "removal:prune", "forget every process that has ended"
    ),
    "signal": Command(
        "process_options:configure_signal", "processes:send_signal", "send a signal to a process"
    ),
    "write": Command("process_options:configure_write", "processes:write", "write to the input of a process"),
    "resize": Command(
        "process_options:configure_resize",
        "processes:resize",
        "give the terminal of a process another size",
    ),
    "cp": Command("process_options:configure_cp", "cp:cp", "copy files between here and a server"),
    "fetch": Command(
        "fetch_options:configure_fetch", "fetch:fetch", "make an HTTP request from the host of a server"
    ),
    "login": Command("options:configure_login", "login:login", "check and keep the token of a server"),
    "logout": Command("options:configure_logout", "login:logout", "forget a server and its token"),
    "hosts": Command("options:configure_hosts", "login:hosts", "show the servers that have a name here"),
    "serve": Command("serve_options:configure", "serve:serve", "serve processes to programs"),
    "token": Command("serve_options:configure_token", "token:token", "make a token for a client of a server"),
    "doctor": Command("options:configure_doctor", "doctor:doctor", "try out what works on this host"),
    "schema": Command(
        "serve_options:configure_schema", "schema:schema", "print the messages of an endpoint as a schema"
    ),
    "completion": Command(
        "options:configure_completion",
        "overview:completion",
        "print a script that completes for a shell",
    ),
    "version": Command("options:configure_version", "overview:version", "print the version"),
}


def load(place: str) -> Any:
    """Import a module of this folder, and return something in it; ``place`` is ``module:name``."""
    module, _, name = place.partition(":")
    return getattr(import_module(f"{__package__}.{module}"), name)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, that of this program by default; return the exit code."""
    if argv is not None:
        return run(argv)
    # A parent that ignores SIGCHLD passes that on to us, and then the kernel keeps no exit codes of children.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if sys.argv[1:2] in (["run"], ["exec"]):
        # While modules are imported the collector finds nothing, and takes 5 % of the time.  ``run.py``
        # enables it again.
        gc.disable()
    return run(sys.argv[1:])


def run(argv: Sequence[str]) -> int:
    """Run a command line and report its failure, if any, to the user; return the exit code.

    Raises:
        SystemExit: The arguments cannot be understood, or ask for help.
    """
    try:
        if any("\0" in each for each in argv):
            raise Failure("an argument has a NUL in it, which no name, path or program can have")
        arguments = parse(list(argv))
        code = int(load(arguments.run)(arguments))
        if sys.stdout is not None:
            sys.stdout.flush()
    except Failure as failure:
        say(str(failure))
        return failure.code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has closed it.
        _discard_output()
        return ExitCode.BROKEN_PIPE
    except OSError as error:
        # Commands handle what they expect.  What is left is our output, for example to a disk that is full.
        what = f"cannot use {os.fsdecode(error.filename)}" if error.filename else "cannot write the output"
        say(f"{what}: {error.strerror or error}")
        _discard_output()
        return ExitCode.FAILED
    return code


def _discard_output() -> None:
    """Discard what is still buffered: the interpreter would fail to write it at exit, and complain."""
    if sys.stdout is not None:
        fd = os.open(os.devnull, os.O_WRONLY)
        os.dup2(fd, sys.stdout.fileno())
        os.close(fd)


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse a command line; ``run`` of the result is the function that does the work.

    Raises:
        SystemExit: The arguments cannot be understood, or ask for help.
    """
    argv = _with_server_after_command(argv)
    name = argv[0] if argv else ""
    if name not in COMMANDS:
        without_command: argparse.Namespace = load("overview:parse_without_command")(argv)
        return without_command
    parser = Parser(prog=f"holdfast {name}", allow_abbrev=False, formatter_class=HelpFormatter)
    configure(parser, name)
    if not COMMANDS[name].runs_program or "--" not in argv:
        return parser.parse_args(argv[1:])
    # What follows the first ``--`` belongs to the program, even if it looks like an option of ours.
    mark = argv.index("--")
    arguments = parser.parse_args(argv[1:mark])
    arguments.argv = [*arguments.argv, *argv[mark if arguments.argv else mark + 1 :]]
    return arguments


def _with_server_after_command(argv: Sequence[str]) -> Sequence[str]:
    """Move ``-H HOST`` from before the command, where users of docker write it, to after it."""
    first = argv[0] if argv else ""
    size = 2 if first in ("-H", "--url") else 1 if first.startswith(("-H", "--url=")) else 0
    if size and len(argv) > size and argv[size] in COMMANDS:
        return [argv[size], *argv[:size], *argv[size + 1 :]]
    return argv


def configure(parser: Parser, name: str) -> None:
    """Add the options of a command to a parser."""
    parser.formatter_class = HelpFormatter
    parser.set_defaults(run=COMMANDS[name].run)
    load(COMMANDS[name].options)(parser)
