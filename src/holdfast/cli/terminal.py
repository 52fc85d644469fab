"""The terminal of our user: its size, its raw mode, and the keys that leave a process."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import termios
from collections.abc import Callable, Iterator
from typing import Any

_INPUT = termios.IGNBRK | termios.BRKINT | termios.PARMRK | termios.ISTRIP | termios.INLCR | termios.IGNCR
_INPUT |= termios.ICRNL | termios.IXON
_LOCAL = termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN

_STREAMS = (0, 1, 2)


class Terminal:
    """A terminal that can be put into raw mode, in which the kernel passes on each key and acts on none.

    What must hold: whatever happens after ``raw``, ``restore`` restores the mode from before.  Both may be
    called repeatedly.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._before: Any = None

    def raw(self) -> None:
        """Put the terminal into raw mode."""
        self.change(_make_raw)

    def raw_but_interrupt(self) -> None:
        """Put the terminal into a mode that is raw but for ^C, which is a signal to us."""
        self.change(_make_raw_but_interrupt)

    def change(self, change: Callable[[list[Any]], None]) -> None:
        """Have ``change`` change the settings of the terminal, which ``termios`` describes."""
        before = termios.tcgetattr(self._fd)
        if self._before is None:
            self._before = before
        modes = list(before)
        modes[6] = list(modes[6])
        change(modes)
        # At once: to wait until all output is shown could take for ever, if the user has stopped it with ^S.
        termios.tcsetattr(self._fd, termios.TCSANOW, modes)

    def restore(self) -> None:
        """Restore the mode from before the first call of ``raw``."""
        if self._before is None:
            return
        # In the background the kernel would stop us here, and the terminal would stay raw.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            # If the terminal is gone, there is nothing to restore.
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSANOW, self._before)
        finally:
            signal.signal(signal.SIGTTOU, before)


def _make_raw(modes: list[Any]) -> None:
    modes[0] &= ~_INPUT
    modes[1] &= ~termios.OPOST
    modes[2] = (modes[2] & ~(termios.CSIZE | termios.PARENB)) | termios.CS8
    modes[3] &= ~_LOCAL
    modes[6][termios.VMIN] = 1
    modes[6][termios.VTIME] = 0


def _make_raw_but_interrupt(modes: list[Any]) -> None:
    _make_raw(modes)
    modes[3] |= termios.ISIG
    modes[6][termios.VINTR] = b"\x03"
    for place in (termios.VQUIT, termios.VSUSP):
        modes[6][place] = b"\0"  # None.


@contextlib.contextmanager
def raw(fd: int) -> Iterator[Terminal]:
    """Put a terminal into raw mode for the duration of a ``with`` block."""
    terminal = Terminal(fd)
    try:
        terminal.raw()
        yield terminal
    finally:
        terminal.restore()


def is_terminal(fd: int) -> bool:
    """Whether a descriptor is open and refers to a terminal."""
    try:
        return os.isatty(fd)
    except OSError:
        return False


def screen_size() -> tuple[int, int] | None:
    """Return rows and columns of the terminal at our standard streams; None if none of them has a size."""
    for fd in _STREAMS:
        with contextlib.suppress(OSError):
            found = os.get_terminal_size(fd)
            if found.lines > 0 and found.columns > 0:
                return found.lines, found.columns
    return None


_LEAST_ROWS, _LEAST_COLS = 8, 20
"""The smallest terminal that a process is given: in a smaller one programs break their screens."""


def viewed(rows: int, cols: int) -> tuple[int, int]:
    """Return rows and columns of a process's terminal for a viewer whose own one has this size."""
    return (max(rows, _LEAST_ROWS), max(cols, _LEAST_COLS))


# The detach keys: how they are written, and how they are found in what is typed.

DEFAULT_DETACH_KEYS = "ctrl-p,ctrl-q"

_PUNCTUATION = {"@": 0, "[": 27, "\\": 28, "]": 29, "^": 30, "_": 31}


def detach_keys(text: str) -> bytes:
    """Parse keys such as ``ctrl-p,ctrl-q``; return their bytes, none for the empty text.

    Raises:
        argparse.ArgumentTypeError: There is no such key.
    """
    if not text:
        return b""
    return bytes(_key(name) for name in text.split(","))


def _key(name: str) -> int:
    if len(name) == 1 and name.isascii() and name.isprintable():
        return ord(name)
    letter = name.lower().removeprefix("ctrl-")
    if len(letter) == 1 and len(name) > 1:
        if "a" <= letter <= "z":
            return ord(letter) - ord("a") + 1
        if letter in _PUNCTUATION:
            return _PUNCTUATION[letter]
    raise argparse.ArgumentTypeError(
        f"{name!r} is not a key; write single characters and ctrl-LETTER with commas between,"
        f" for example {DEFAULT_DETACH_KEYS}"
    )


class KeyScanner:
    """Finds a sequence of keys in the bytes that are typed.

    What must hold:

    1. Without the keys, what goes in comes out, in order, each byte once.
    2. Only bytes that may be the beginning of the keys are held back.
    3. A scanner that passes the keys holds nothing back.
    """

    def __init__(self, keys: bytes, *, passes_keys: bool = False) -> None:
        """
        Args:
            keys: The sequence; empty to find nothing.
            passes_keys: Pass on everything at once, the keys too, and only report them.
        """
        self._keys = keys
        self._passes_keys = passes_keys
        self._held = 0  # How many of the keys were typed so far.

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        """Return the bytes to pass on, and whether the keys were found.

        Bytes behind the keys are dropped, unless the scanner passes the keys.
        """
        keys = self._keys
        if not keys:
            return data, False
        passed = bytearray()
        found = False
        for byte in data:
            typed = keys[: self._held] + bytes((byte,))
            fits = _longest_match(typed, keys)
            passed += typed[: len(typed) - fits]
            self._held = fits
            if fits == len(keys):
                self._held = 0
                found = True
                if not self._passes_keys:
                    return bytes(passed), True
        return (data, found) if self._passes_keys else (bytes(passed), found)

    def rest(self) -> bytes:
        """Return the bytes that are held back, at the end of the input."""
        held, self._held = self._held, 0
        return b"" if self._passes_keys else self._keys[:held]


def _longest_match(text: bytes, keys: bytes) -> int:
    """Return the largest number of keys that ``text`` ends with."""
    return next(size for size in range(min(len(text), len(keys)), -1, -1) if text.endswith(keys[:size]))
