"""Numbers together with the word for what they count, as a reader expects them (pure)."""

from __future__ import annotations


def counted(number: float, word: str) -> str:
    """Return ``1 second``, ``2 seconds``, ``0.5 seconds``; the word is one that takes an ``s``."""
    text = f"{number:g}" if number < 1e6 else f"{number:.0f}"  # All digits, as of bytes.
    return f"{text} {word}" if number == 1 else f"{text} {word}s"
