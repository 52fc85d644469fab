"""All commands at once: the parser of everything, the version, and help for a command that does not exist."""

from __future__ import annotations

import argparse
import json
from difflib import get_close_matches

from holdfast import __version__

from .main import COMMANDS, configure
from .options import Parser, wants_json


def parser_of_all() -> argparse.ArgumentParser:
    """Return a parser that has all commands with all their options, for documents and completion."""
    top, commands = _top()
    for name, command in COMMANDS.items():
        configure(commands.add_parser(name, help=command.help, allow_abbrev=False), name)
    return top


def parse_without_command(argv: list[str]) -> argparse.Namespace:
    """Parse a command line that names no command: print help or the version, or complain; then exit."""
    top, commands = _top()
    for each, command in COMMANDS.items():
        commands.add_parser(each, help=command.help)
    name = argv[0] if argv else ""
    if name and not name.startswith("-"):
        close = get_close_matches(name, COMMANDS, 1)
        top.error(f"there is no command {name!r}" + (f"; did you mean {close[0]!r}?" if close else ""))
    return top.parse_args(argv)


def _top() -> tuple[Parser, argparse._SubParsersAction[Parser]]:
    top = Parser(
        prog="holdfast",
        description="Runs processes, here or on a server: 'holdfast run -- ls' is a beginning.",
        epilog="'holdfast COMMAND --help' explains a command.  $HOLDFAST_URL names a server for all of them.",
    )
    top.add_argument("--version", action="version", version=f"holdfast {__version__}")
    return top, top.add_subparsers(title="commands", metavar="COMMAND", required=True, parser_class=Parser)


def version(arguments: argparse.Namespace) -> int:
    """Print the version."""
    if wants_json(arguments):
        print(json.dumps({"version": __version__}, separators=(",", ":")))
    else:
        print(f"holdfast {__version__}")
    return 0
