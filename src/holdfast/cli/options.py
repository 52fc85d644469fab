"""The parser of the command line, options that several commands share, and the options of small commands.

Modules with options import no event loop and no messages: help, completion and a complaint about the
arguments must not wait for them.  An import contract in ``pyproject.toml`` keeps it so.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import NoReturn

from .quantities import duration
from .report import ExitCode, plain
from .terminal import DEFAULT_DETACH_KEYS, detach_keys


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Formats help as wide as the terminal.

    argparse asks ``shutil`` for the width, each time an option is added.  To import that takes 3 % of the
    time of ``holdfast run -- true``.
    """

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    """Return what ``shutil.get_terminal_size().columns`` returns."""
    try:
        columns = int(os.environ["COLUMNS"])
    except (KeyError, ValueError):
        columns = 0
    if columns <= 0:
        try:
            assert sys.__stdout__ is not None
            columns = os.get_terminal_size(sys.__stdout__.fileno()).columns
        except (AssertionError, ValueError, OSError):
            columns = 0
    return columns or 80


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are short and name the command that prints the help."""

    passes_code = False
    """Whether the command exits with the code of a process, so that a complaint needs a code of its own."""

    def error(self, message: str) -> NoReturn:
        """Print the complaint and exit."""
        text = f"holdfast: {plain(message)}\nSee '{self.prog} --help'.\n"
        self.exit(ExitCode.FAILED if self.passes_code else ExitCode.USAGE, text)


# Shared options.


def add_server(parser: argparse.ArgumentParser, *, embedded: bool = False) -> None:
    """Add the options that choose a server; ``embedded`` if the command also works without one."""
    default = "$HOLDFAST_URL; without either, this process does the work" if embedded else "$HOLDFAST_URL"
    parser.add_argument(
        "-H",
        "--url",
        metavar="HOST",
        help=f"the server: ws://HOST:PORT, unix://PATH, or a name that login has kept (default: {default})",
    )
    _add_connection(parser)


def _add_connection(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="a file with the token that the server wants (default: what login has kept,"
        " $HOLDFAST_TOKEN, $HOLDFAST_TOKEN_FILE)",
    )
    parser.add_argument(
        "--reconnect",
        metavar="TIME",
        type=duration,
        default=60.0,
        help="how long to try to get back a connection that is lost (default: 60s)",
    )


def add_output(parser: argparse.ArgumentParser, words: str = "one JSON document instead of text") -> None:
    """Add the option that chooses between text and JSON; ``words`` describes the JSON."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="FORMAT",
        choices=("table", "json"),
        default="table",
        help=f"table or json; json: {words} (default: table)",
    )


def wants_json(arguments: argparse.Namespace) -> bool:
    """Whether JSON was asked for, with the option that ``add_output`` adds."""
    return bool(arguments.output == "json")


def add_names(parser: argparse.ArgumentParser, *, several: bool) -> None:
    """Add the argument that names one process, or several."""
    if several:
        parser.add_argument(
            "names", metavar="NAME", nargs="+", help="names or identifiers of processes, as ps shows them"
        )
    else:
        parser.add_argument(
            "name", metavar="NAME", help="the name or identifier of a process, as ps shows it"
        )


def add_detach_keys(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses the keys which leave a process running."""
    parser.add_argument(
        "--detach-keys",
        metavar="KEYS",
        type=detach_keys,
        help=f"keys that leave the process and let it run; '' for none (default: {DEFAULT_DETACH_KEYS})",
    )


def add_quiet(parser: argparse.ArgumentParser, words: str) -> None:
    """Add ``-q``; ``words`` says what is not printed then."""
    parser.add_argument("-q", "--quiet", action="store_true", help=words)


# Small commands.


def configure_version(parser: Parser) -> None:
    """Add the options of ``version``."""
    add_output(parser)


def configure_doctor(parser: Parser) -> None:
    """Add the options of ``doctor``."""
    parser.description = (
        "Try out what works on this host, and say what to do about what does not.\n"
        "The exit code is 1 if something is missing that clients rely on."
    )
    add_output(parser)


def configure_login(parser: Parser) -> None:
    """Add the options of ``login``."""
    parser.description = (
        "Check a token against a server, and keep both under a name: 'holdfast -H NAME ps' works then.\n"
        "The token is read from --token-file, $HOLDFAST_TOKEN, $HOLDFAST_TOKEN_FILE or standard input, or\n"
        "asked for.  It is kept in the configuration file, $HOLDFAST_CONFIG or holdfast/config.toml in the\n"
        "directory for configurations, which only you can read."
    )
    parser.add_argument("server", metavar="URL", help="the server: ws://HOST:PORT, wss://... or unix://PATH")
    parser.add_argument("--name", metavar="NAME", help="what to call it (default: the name of its host)")
    add_output(parser)
    _add_connection(parser)


def configure_logout(parser: Parser) -> None:
    """Add the options of ``logout``."""
    parser.description = "Forget a server and its token.  The token stays valid: take it back at the server."
    parser.add_argument("host", metavar="NAME", help="its name, as hosts shows it")


def configure_hosts(parser: Parser) -> None:
    """Add the options of ``hosts``."""
    parser.description = "Show the servers that have a name here, and whether a token is kept for them."
    add_output(parser)


def configure_completion(parser: Parser) -> None:
    """Add the options of ``completion``."""
    parser.description = "Print a script that completes commands, options and names of processes."
    parser.epilog = (
        "examples:\n"
        '  eval "$(holdfast completion bash)"       in ~/.bashrc\n'
        '  eval "$(holdfast completion zsh)"        in ~/.zshrc, after compinit\n'
        "  holdfast completion fish | source        in ~/.config/fish/config.fish\n"
    )
    parser.add_argument("shell", choices=("bash", "zsh", "fish"), help="for which shell")
