"""Times as people write them: ``30s``, ``5m``, ``1h30m``, ``500ms``, or a number of seconds (pure)."""

from __future__ import annotations

import argparse
import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)

_PLAIN = re.compile(r"\d+(?:\.\d+)?", re.ASCII)

_MOST = 10 * 365 * 86400.0
"""Seconds.  Timers take no more than some hundred years; ten of them are a typing error already."""


def duration(text: str) -> float:
    """Seconds.

    Raises:
        argparse.ArgumentTypeError: It is no time; the words say what one looks like.
    """
    if _PLAIN.fullmatch(text):
        return _bounded(text, float(text))
    seconds, end = 0.0, 0
    for part in _PART.finditer(text):
        if part.start() != end:
            break
        seconds += float(part[1]) * _UNITS[part[2]]
        end = part.end()
    if not text or end != len(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time; write for example 30s, 5m, 1h30m, 500ms, or a number of seconds"
        )
    return _bounded(text, seconds)


def positive_duration(text: str) -> float:
    """The same, but not nothing: for times after which something ends."""
    seconds = duration(text)
    if seconds <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time at all; leave the option out for no limit")
    return seconds


def spoken(seconds: float) -> str:
    """A time for people, in its two largest units: ``45s``, ``3m20s``, ``2h5m``, ``12d``."""
    if seconds < 10 and seconds != int(seconds):
        return f"{seconds:.1f}s"
    left = round(seconds)
    said = ""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, rest = divmod(left, size)
        if count or (unit == "s" and not said):
            second = bool(said)
            said += f"{count}{unit}"
            left = rest
            if second or unit == "d":
                break
        elif said:
            break
    return said


def _bounded(text: str, seconds: float) -> float:
    if seconds > _MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is longer than ten years")
    return seconds
