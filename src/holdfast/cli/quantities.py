"""Times, byte counts and other numbers, as people write them and as they read them (pure).

Each function that parses is an argparse ``type``: it raises ``ArgumentTypeError`` with a message that shows
what a correct value looks like.
"""

from __future__ import annotations

import argparse
import re

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)

_PLAIN_SECONDS = re.compile(r"\d+(?:\.\d+)?", re.ASCII)

_LONGEST_DURATION = 10 * 365 * 86400.0
"""Seconds.  Timers accept a few hundred years; a duration of ten years is already a typing error."""

_FACTORS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}

_BYTE_COUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(?:([kmgt])(?:i?b)?|(b))?", re.IGNORECASE | re.ASCII)

_BYTE_RANGE = re.compile(r"(\d{0,18})-(\d{0,18})", re.ASCII)

_MOST_BYTES = 1 << 62

_TERMINAL_SIZE = re.compile(r"(\d{1,5})x(\d{1,5})", re.ASCII)

_MOST_CELLS = 65535
"""The kernel stores each dimension of a terminal in 16 bits."""


# Times.


def duration(text: str) -> float:
    """Parse a time such as ``30s``, ``5m``, ``1h30m``, ``500ms`` or ``12.5``; return seconds."""
    if _PLAIN_SECONDS.fullmatch(text):
        return _within_bounds(text, float(text))
    seconds, end = 0.0, 0
    for part in _DURATION_PART.finditer(text):
        if part.start() != end:
            break
        seconds += float(part[1]) * _SECONDS[part[2]]
        end = part.end()
    if not text or end != len(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time; write for example 30s, 5m, 1h30m, 500ms, or a number of seconds"
        )
    return _within_bounds(text, seconds)


def positive_duration(text: str) -> float:
    """Parse a time above zero: for limits, where zero could mean "no limit" or "at once"."""
    seconds = duration(text)
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time at all; leave the option out for no limit")
    return seconds


def _within_bounds(text: str, seconds: float) -> float:
    if seconds > _LONGEST_DURATION:
        raise argparse.ArgumentTypeError(f"{text!r} is longer than ten years")
    return seconds


def format_duration(seconds: float) -> str:
    """Format a time in its two largest units: ``45s``, ``3m20s``, ``2h5m``, ``12d``."""
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.1f}s"
    left = round(seconds)
    text = ""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, rest = divmod(left, size)
        if count or (unit == "s" and not text):
            is_second = bool(text)
            text += f"{count}{unit}"
            left = rest
            if is_second or unit == "d":
                break
        elif text:
            break
    return text


# Sizes and counts.


def byte_count(text: str) -> int:
    """Parse a positive number of bytes such as ``512m``; k, m, g and t are powers of 1024, as in docker."""
    found = _BYTE_COUNT.fullmatch(text.strip())
    count = 0 if found is None else int(float(found[1]) * _FACTORS[(found[2] or "").lower()])
    if not 0 < count < _MOST_BYTES:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of bytes; write for example 512m, 2g, 64k or 1048576"
        )
    return count


def byte_range(text: str) -> tuple[int, int | None]:
    """Parse a range of bytes as HTTP has it: ``0-99``, ``100-``, or ``-100`` for the last ones.

    Return the first byte, negative if it is counted from the end, and the last one, or None for all.
    """
    found = _BYTE_RANGE.fullmatch(text)
    if found is not None and found[1] and (not found[2] or int(found[1]) <= int(found[2]) < _MOST_BYTES):
        return int(found[1]), int(found[2]) if found[2] else None
    if found is not None and not found[1] and found[2] and 0 < int(found[2]) < _MOST_BYTES:
        return -int(found[2]), None
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a range of bytes; write for example 0-99, 100- or, for the last hundred, -100"
    )


def format_bytes(size: float) -> str:
    """Format a number of bytes: ``17 B``, ``1.5 KiB``, ``512 MiB``."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def positive(text: str) -> int:
    """Parse a number of at least 1."""
    # Digits only.  ``int`` also accepts signs, blanks and underscores, and its own error message is for
    # programmers.
    if not (text.isascii() and text.isdecimal()) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number")
    return int(text)


def count(text: str) -> int:
    """Parse a number of at least 0."""
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text} is not a number")
    return int(text)


def terminal_size(text: str) -> tuple[int, int]:
    """Parse the rows and columns of a terminal, written ``24x80``."""
    found = _TERMINAL_SIZE.fullmatch(text)
    rows, cols = (int(found[1]), int(found[2])) if found else (0, 0)
    if not (0 < rows <= _MOST_CELLS and 0 < cols <= _MOST_CELLS):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size; write rows, x and columns, for example 24x80"
        )
    return rows, cols


# Conditions.


def condition(text: str) -> tuple[str, int | str]:
    """Parse what to wait for, such as ``port:8080``; return its kind and what follows it."""
    kind, mark, what = text.partition(":")
    if not mark or not what or kind not in ("port", "url", "output", "file"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is nothing to wait for; write port:8080, url:http://HOST/, output:REGEX or file:/PATH"
        )
    if kind != "port":
        return kind, what
    if not (what.isascii() and what.isdecimal() and 0 < int(what[:6]) < 2**16):
        raise argparse.ArgumentTypeError(f"{what!r} is no port; write a number from 1 to 65535")
    return kind, int(what)
