"""Tells a user at a terminal of a connection that is lost, and of its return; of no short breaks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import termios

LONG = 1.0
"""Seconds without a connection after which a user wonders."""


class Notice:
    """What is shown of one connection, on the terminal at a descriptor."""

    def __init__(self, fd: int, *, wait: float = LONG) -> None:
        self._fd = fd
        self._wait = wait
        self._timer: asyncio.TimerHandle | None = None
        self._shown = False

    def told(self, connected: bool) -> None:  # noqa: FBT001  (a callback with one fact)
        """The connection is back, or lost; that may be said again and again.  Called by the loop."""
        if connected:
            if self._timer is not None:
                self._timer.cancel()
            if self._shown:
                self._show("connected again")
            self._timer, self._shown = None, False
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._wait, self._on_long)

    def _on_long(self) -> None:
        self._shown = True
        self._show("connection lost, trying again...")

    def _show(self, words: str) -> None:
        line = f"holdfast: {words}\n"
        if self._is_raw():
            line = f"\r\nholdfast: {words}\r\n"  # Somebody else draws there, and left the cursor anywhere.
        with contextlib.suppress(OSError):
            os.write(self._fd, line.encode())

    def _is_raw(self) -> bool:
        try:
            modes: list[int] = termios.tcgetattr(self._fd)
        except termios.error:
            return False
        return not modes[1] & termios.OPOST
