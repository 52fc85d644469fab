"""Detach keys at a terminal that edits lines, for a process that has pipes or is only watched.

Such a process gets whole lines, which the kernel lets its user edit and shows.  In raw mode we would have
to do all of that.  Instead the last of the keys ends a line, as Return does: the kernel hands over what was
typed up to it at once, the keys included, and everything else stays as it is.
"""

from __future__ import annotations

import contextlib
import os
import termios
from collections.abc import Iterator
from typing import Any

from .terminal import Terminal

_ACTING = (
    termios.VINTR,
    termios.VQUIT,
    termios.VSUSP,
    termios.VEOF,
    termios.VERASE,
    termios.VKILL,
    termios.VWERASE,
    termios.VREPRINT,
    termios.VLNEXT,
    termios.VDISCARD,
    termios.VEOL2,
)
"""Keys on which the kernel acts, by their place among the settings of a terminal."""

_NO_KEY = b"\0"

_FLOW = b"\x11\x13"
"""The keys that stop and restart the output, ^S and ^Q."""


class LineTerminal(Terminal):
    """A terminal that hands over the detach keys as soon as the last of them is typed."""

    def __init__(self, fd: int, keys: bytes) -> None:
        super().__init__(fd)
        self._keys = keys

    def enter(self) -> None:
        """Have the keys handed over.  May be called again, when a shell has changed the mode."""
        self.change(self._hand_over)

    def _hand_over(self, modes: list[Any]) -> None:
        if any(key in _FLOW for key in self._keys):
            modes[0] &= ~termios.IXON
        for place in _ACTING:
            if modes[6][place] and modes[6][place] in self._keys:
                modes[6][place] = _NO_KEY
        modes[6][termios.VEOL] = self._keys[-1:]


@contextlib.contextmanager
def handing_over(fd: int, keys: bytes) -> Iterator[LineTerminal]:
    """Have a terminal hand over the detach keys at once for the duration of a ``with`` block."""
    terminal = LineTerminal(fd, keys)
    try:
        terminal.enter()
        yield terminal
    finally:
        terminal.restore()


def is_in_foreground(fd: int) -> bool:
    """Whether a descriptor is our terminal, and we may read it: in the background that would stop us."""
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:
        return False
