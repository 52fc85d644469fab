"""What we say ourselves: messages on standard error, documents and tables on standard output."""

from __future__ import annotations

import os
import sys
from typing import Any

_COLOURS = {"green": "32", "red": "31", "yellow": "33", "dim": "2"}


def say(words: str) -> None:
    """Tell the user something.  Standard output stays the process's own."""
    if sys.stderr is None:
        return
    from .table import plain

    # Names of files and processes are in it, and must not be orders to the terminal.
    words = "\n".join(map(plain, words.split("\n")))
    try:
        sys.stderr.write(f"holdfast: {printable(words)}\n")
        sys.stderr.flush()
    except OSError:
        pass  # Nobody listens; what we do goes on.


def tell(*lines: str) -> None:
    """Print lines on standard output."""
    for line in lines:
        print(printable(line))


def tell_json(document: Any) -> None:
    """Print one document on one line, at once: whoever reads lines must not wait for the next."""
    import json  # Here, so that whoever wants none starts faster.

    print(json.dumps(document, ensure_ascii=True, separators=(",", ":")), flush=True)


def printable(text: str) -> str:
    """The text with what cannot be written, bytes that are no UTF-8 above all, shown as escapes."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def in_colour(stream: Any) -> bool:
    """Whether colours may be used there: a terminal that knows them, and nobody has said no."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM", "dumb") != "dumb" and is_terminal(stream)


def paint(colour: str, text: str) -> str:
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def is_terminal(stream: Any) -> bool:
    """Whether a stream is there and is a terminal."""
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:
        return False  # It is closed.
