"""The terminal of our user: its size, and its raw mode."""

from __future__ import annotations

import contextlib
import os
import signal
import termios
from collections.abc import Iterator
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
        before = termios.tcgetattr(self._fd)
        if self._before is None:
            self._before = before
        modes = list(before)
        modes[0] &= ~_INPUT
        modes[1] &= ~termios.OPOST
        modes[2] = (modes[2] & ~(termios.CSIZE | termios.PARENB)) | termios.CS8
        modes[3] &= ~_LOCAL
        modes[6] = list(modes[6])
        modes[6][termios.VMIN] = 1
        modes[6][termios.VTIME] = 0
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
