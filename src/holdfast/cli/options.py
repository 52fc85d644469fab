"""Options that several commands share, each written once."""

from __future__ import annotations

import argparse
from typing import NoReturn

from .durations import duration
from .failure import OWN

_USAGE = 2
"""The code of a call that cannot be understood, as everywhere."""


class Parser(argparse.ArgumentParser):
    """A parser whose complaints are short and say where the help is."""

    carries = False
    """Whether the exit code of the command is that of a process, so that a complaint needs another."""

    def error(self, message: str) -> NoReturn:
        """Complain, and end."""
        words = f"holdfast: {message}\nSee '{self.prog} --help'.\n"
        self.exit(OWN if self.carries else _USAGE, words)


def add_server(parser: argparse.ArgumentParser, *, embedded: bool = False) -> None:
    """Which server to talk to."""
    default = "$HOLDFAST_URL; without either, this process does the work" if embedded else "$HOLDFAST_URL"
    parser.add_argument(
        "-H",
        "--url",
        metavar="URL",
        help=f"the server: ws://HOST:PORT or unix://PATH (default: {default})",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="a file with the token that the server wants (default: $HOLDFAST_TOKEN_FILE)",
    )
    parser.add_argument(
        "--reconnect",
        metavar="TIME",
        type=duration,
        default=60.0,
        help="how long to try to get back a connection that is lost (default: 60s)",
    )


def add_output(parser: argparse.ArgumentParser, words: str = "one JSON document instead of text") -> None:
    """How to print what there is to print."""
    parser.add_argument(
        "-o",
        "--output",
        metavar="FORMAT",
        choices=("table", "json"),
        default="table",
        help=f"table or json; json: {words} (default: table)",
    )


def add_names(parser: argparse.ArgumentParser, *, several: bool) -> None:
    """Which process, or processes, by the names that ps shows."""
    if several:
        parser.add_argument("names", metavar="NAME", nargs="+", help="names of processes, as ps shows them")
    else:
        parser.add_argument("name", metavar="NAME", help="the name of a process, as ps shows it")


def add_detach_keys(parser: argparse.ArgumentParser) -> None:
    """How to leave a process without ending it."""
    from .keys import DEFAULT, detach_keys

    parser.add_argument(
        "--detach-keys",
        metavar="KEYS",
        type=detach_keys,
        help=f"keys that leave the process and let it run; '' for none (default: {DEFAULT})",
    )


def add_quiet(parser: argparse.ArgumentParser, words: str) -> None:
    parser.add_argument("-q", "--quiet", action="store_true", help=words)
