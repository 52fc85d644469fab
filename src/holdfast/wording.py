"""Numbers, signals and ends of processes in the words that a reader expects (pure)."""

from __future__ import annotations

import signal


def counted(number: float, word: str) -> str:
    """Return ``1 second``, ``2 seconds``, ``0.5 seconds``; the word is one that takes an ``s``."""
    text = f"{number:g}" if number < 1e6 else f"{number:.0f}"  # All digits, as of bytes.
    return f"{text} {word}" if number == 1 else f"{text} {word}s"


def signal_name(number: int) -> str:
    """Return the name of a signal: ``SIGTERM`` for 15."""
    try:
        return signal.Signals(number).name
    except ValueError:
        past = number - signal.SIGRTMIN
        return f"SIGRTMIN+{past}" if past > 0 else f"SIG{number}"


def words_of_end(kind: str, code: int | None, number: int | None, detail: str | None) -> str:
    """Say in a few words how a process ended: ``exit 0``, ``SIGKILL``, ``timeout: more than 4 seconds``.

    Args:
        kind: The value of a ``Kind``.
        number: The signal by which it died.
    """
    if kind == "exit":
        words = f"exit {code}"
    elif kind == "signal" and number is not None:
        words = signal_name(number)
    else:
        words = kind
    return words if detail is None else f"{words}: {detail}"
