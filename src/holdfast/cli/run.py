"""``holdfast run`` and ``holdfast exec``: a program, followed to its end."""

from __future__ import annotations

import argparse
import gc
import os
from typing import TYPE_CHECKING, Any

from . import options
from .durations import duration, positive_duration
from .failure import Failure
from .sizes import byte_count, positive
from .target import perform, url_of

if TYPE_CHECKING:
    from holdfast.api.handle import Handle
    from holdfast.api.host import Host

    from .follow import Manner

_LONGEST_NAME = 200
"""Characters: more is no name that anybody would type, and fills every list."""

_GRACE = 5.0
"""Seconds that a program has to end when we are told to, unless --grace says otherwise."""


def configure_run(parser: options.Parser) -> None:
    """The options of ``run``."""
    parser.description = (
        "Run a program and be its terminal: its output is ours, its exit code too.  With a server the\n"
        "process is kept: it outlives this command, and ps, attach, logs and wait find it by its name."
    )
    parser.add_argument("-d", "--detach", action="store_true", help="start it, print its name and leave")
    _configure(parser)


def configure_exec(parser: options.Parser) -> None:
    """The options of ``exec``."""
    parser.description = (
        "Run a program and be its terminal, as run does.  On a server it ends with this command, as with ssh."
    )
    _configure(parser)


def _configure(parser: options.Parser) -> None:
    parser.carries = True
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
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
    _configure_limits(parser)
    options.add_detach_keys(parser)
    options.add_output(parser, "a line per piece of output, in base64, and one for the end")
    options.add_quiet(parser, "say nothing of our own but what went wrong")
    options.add_server(parser, embedded=True)
    parser.add_argument("argv", metavar="PROGRAM", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def _configure_limits(parser: argparse.ArgumentParser) -> None:
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


def run(arguments: argparse.Namespace) -> int:
    """Run it; with a server it is kept.

    Raises:
        Failure: It cannot be done.
    """
    return _run(arguments, kept=url_of(arguments) is not None)


def execute(arguments: argparse.Namespace) -> int:
    """Run it; it ends with us."""
    arguments.detach = False
    return _run(arguments, kept=False)


def _run(arguments: argparse.Namespace, *, kept: bool) -> int:
    _check(arguments)

    async def work(host: Host) -> int:
        from .follow import follow

        handle = await host.start(arguments.argv, keep=kept, **_terms(arguments))
        gc.freeze()  # All that was needed to get here stays; from now on the collector is worth its time.
        gc.enable()
        if arguments.detach:
            return _tell(handle, arguments)
        return await follow(handle, _manner(arguments, kept=kept))

    return perform(arguments, work, embedded=True)


def _check(arguments: argparse.Namespace) -> None:
    if not arguments.argv or not arguments.argv[0]:
        raise Failure("no program given: write it last, for example 'holdfast run -- ls -l'")
    if arguments.name is not None and not arguments.name.isprintable():
        raise Failure(f"--name: {arguments.name!r} cannot be typed; take letters, digits and signs")
    if arguments.name is not None and not 0 < len(arguments.name) <= _LONGEST_NAME:
        raise Failure(f"--name: a name has 1 to {_LONGEST_NAME} characters")
    if url_of(arguments) is None:
        _check_directory()
    if arguments.detach and url_of(arguments) is None:
        raise Failure(
            "-d needs a server that keeps the process: use --url ws://HOST:PORT or set HOLDFAST_URL;"
            " start one with 'holdfast serve'"
        )


def _check_directory() -> None:
    """Programs start where we are, so that has to be somewhere."""
    try:
        os.getcwd()
    except OSError as error:
        raise Failure(f"the current directory cannot be used: {error.strerror}; change to another") from None


def _terms(arguments: argparse.Namespace) -> dict[str, Any]:
    """What ``Host.start`` is asked for, beyond the program."""
    from subprocess import DEVNULL, PIPE

    from holdfast.model import Limits, Size

    from .terminal import screen_size

    size = Size(*(screen_size() or (24, 80))) if arguments.tty else None
    terms: dict[str, Any] = {
        "name": arguments.name,
        "cwd": arguments.workdir,
        "stdin": PIPE if _passes_input(arguments) else DEVNULL,
        "terminal": size,
        "timeout": arguments.timeout,
        "idle_timeout": arguments.idle_timeout,
        "grace": arguments.grace or 0.0,
        "retain": arguments.retain,
        **_variables(arguments),
    }
    if arguments.memory or arguments.cpu or arguments.pids:
        terms["limits"] = Limits(memory=arguments.memory, cpu=arguments.cpu, processes=arguments.pids)
    return terms


def _variables(arguments: argparse.Namespace) -> dict[str, Any]:
    """What is laid over the variables of the host; nothing if that is nothing."""
    from .environment import variables

    laid: dict[str, str] = {}
    if arguments.tty and url_of(arguments) is not None and "TERM" in os.environ:
        laid["TERM"] = os.environ["TERM"]  # Programs in its terminal write for ours.
    laid |= variables(os.environ, files=arguments.env_file, given=arguments.env)
    if not laid:
        return {}
    from holdfast.api.options import INHERIT

    return {"env": laid, "env_policy": INHERIT}


def _passes_input(arguments: argparse.Namespace) -> bool:
    """Whether it gets an input that can be written to."""
    if arguments.interactive or arguments.tty:
        return True
    from .inlet import is_given

    return not arguments.detach and is_given(0)


def _manner(arguments: argparse.Namespace, *, kept: bool) -> Manner:
    from .follow import Manner
    from .inlet import is_given
    from .keys import DEFAULT, detach_keys
    from .terminal import is_terminal

    at_terminal = is_terminal(0)
    keys = detach_keys(DEFAULT) if arguments.detach_keys is None else arguments.detach_keys
    return Manner(
        stdin=is_given(0) or arguments.interactive or (arguments.tty and at_terminal),
        raw=arguments.tty and at_terminal,
        keys=keys,
        kept=kept,
        grace=_GRACE if arguments.grace is None else arguments.grace,
        json=arguments.output == "json",
        quiet=arguments.quiet,
    )


def _tell(handle: Handle, arguments: argparse.Namespace) -> int:
    from .report import tell, tell_json

    if arguments.output == "json":
        tell_json({"name": handle.name, "pid": handle.pid})
    else:
        tell(handle.name)
    return 0
