"""Numbers of bytes, and sizes of terminals, as people write them (pure)."""

from __future__ import annotations

import argparse
import re

_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

_BYTES = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(?:i?b)?|(b))?", re.IGNORECASE | re.ASCII)

_SCREEN = re.compile(r"(\d{1,5})x(\d{1,5})", re.ASCII)

_MOST_BYTES = 1 << 62

_MOST_CELLS = 65535
"""What the kernel keeps of each side of a terminal."""


def byte_count(text: str) -> int:
    """A positive number of bytes; k, m, g and t are powers of 1024, as for docker.

    Raises:
        argparse.ArgumentTypeError: It is none; the words say what one looks like.
    """
    found = _BYTES.fullmatch(text.strip())
    count = 0 if found is None else int(float(found[1]) * _UNITS[(found[2] or "").lower()])
    if not 0 < count < _MOST_BYTES:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of bytes; write for example 512m, 2g, 64k or 1048576"
        )
    return count


def positive(text: str) -> int:
    """A positive number.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    # Digits only: what else ``int`` would take, or refuse in words about us, is no number to a user.
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return int(text)


def count(text: str) -> int:
    """A number that may be 0."""
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text} is not a number")
    return int(text)


def screen(text: str) -> tuple[int, int]:
    """Rows and columns of a terminal, from ``24x80``.

    Raises:
        argparse.ArgumentTypeError: It is no such size.
    """
    found = _SCREEN.fullmatch(text)
    rows, cols = (int(found[1]), int(found[2])) if found else (0, 0)
    if not (0 < rows <= _MOST_CELLS and 0 < cols <= _MOST_CELLS):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size; write rows, x and columns, for example 24x80"
        )
    return rows, cols


def spoken(size: float) -> str:
    """A number of bytes for people: ``17 B``, ``1.5 KiB``, ``512 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
