"""Messages to the user: failures and their exit codes, lines of text, and what makes a text safe to show.

Imported by every command, also by those that only print help, so it imports nothing but what the
interpreter has loaded anyway.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from enum import IntEnum
from typing import Any

_COLOURS = {"green": "32", "red": "31", "yellow": "33", "dim": "2"}


class ExitCode(IntEnum):
    """Exit codes of our own.  Other codes are those of the process that a command ran or waited for."""

    USAGE = 2
    """The arguments cannot be understood."""
    TIMEOUT = 124
    FAILED = 125
    """holdfast itself failed.  The number is docker's, and rarely used by programs."""
    NOT_EXECUTABLE = 126
    NOT_FOUND = 127
    INTERRUPTED = 130
    BROKEN_PIPE = 141


class Failure(Exception):
    """Ends a command.  The text is a message for the user, with advice where there is any."""

    def __init__(self, message: str, code: int = ExitCode.FAILED) -> None:
        super().__init__(message)
        self.code = code


# Messages.


def say(message: str) -> None:
    """Print one line on standard error, with our name in front.

    Names of files and processes, and messages of servers, may be part of it.  They are escaped, so that
    they cannot control the terminal or look like another message.
    """
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"holdfast: {printable(plain(message))}\n")
        sys.stderr.flush()
    except OSError:
        pass  # Nobody reads it.  That is no reason to fail.


def tell(*lines: str) -> None:
    """Print lines on standard output.  Control characters are kept."""
    for line in lines:
        print(printable(line))


def tell_names(names: Iterable[str]) -> None:
    """Print names of processes on standard output, one per line.

    Other clients may have chosen the names, so control characters and line ends are escaped.  ``-o json``
    has the names unchanged.
    """
    tell(*map(plain, names))


# Text.


def plain(text: str) -> str:
    """Escape every character that could move the cursor or end the line."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape", "backslashreplace").decode()
        for each in text
    )


def printable(text: str) -> str:
    """Escape what the encoding of standard output cannot express, such as bytes that are not UTF-8."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def cut(text: str, width: int) -> str:
    """Shorten a text to ``width`` characters; three dots at the end say that something is missing."""
    return text if len(text) <= width else text[: max(0, width - 3)] + "..."


# Colours.


def in_colour(stream: Any) -> bool:
    """Whether to write colours to a stream: it is a terminal that has them, and NO_COLOR is not set."""
    has_colours = os.environ.get("TERM", "dumb") != "dumb" and is_terminal_stream(stream)
    return has_colours and not os.environ.get("NO_COLOR")


def paint(colour: str, text: str) -> str:
    """Put the escape sequences of a colour around a text."""
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def is_terminal_stream(stream: Any) -> bool:
    """Whether a stream is open and connected to a terminal."""
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:
        return False  # It is closed.
