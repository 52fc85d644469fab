"""The terminal we are used at: its size, its raw mode, and the way back from that."""

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
    """A terminal that may be made raw: each key is passed on, and none is acted on here.

    What must hold: whatever happens after ``raw``, ``restore`` brings back what was
    before.  Both may be called again and again.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._before: Any = None

    def raw(self) -> None:
        """Pass on each key as it is typed."""
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
        # At once: to wait until everything is shown could take for ever, if the screen is stopped.
        termios.tcsetattr(self._fd, termios.TCSANOW, modes)

    def restore(self) -> None:
        """Bring back what was before ``raw``."""
        if self._before is None:
            return
        # From the background the system would stop us here, and the terminal would stay as it is.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            # It may be gone: then nobody minds how it was.
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._fd, termios.TCSANOW, self._before)
        finally:
            signal.signal(signal.SIGTTOU, before)


@contextlib.contextmanager
def raw(fd: int) -> Iterator[Terminal]:
    """A terminal that is raw inside of the block, whichever way that is left."""
    terminal = Terminal(fd)
    try:
        terminal.raw()
        yield terminal
    finally:
        terminal.restore()


def is_terminal(fd: int) -> bool:
    """Whether a descriptor is open and a terminal."""
    try:
        return os.isatty(fd)
    except OSError:
        return False


def screen_size() -> tuple[int, int] | None:
    """Rows and columns of the terminal among our standard streams; None without one, or if it has no size."""
    for fd in _STREAMS:
        with contextlib.suppress(OSError):
            found = os.get_terminal_size(fd)
            if found.lines > 0 and found.columns > 0:
                return found.lines, found.columns
    return None
