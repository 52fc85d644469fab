"""A bar for copies that take their time (pure, but for what it is given to write with)."""

from __future__ import annotations

from collections.abc import Callable

from .sizes import spoken
from .table import cut, plain

_FIRST = 0.5
"""Seconds before anything is shown: most copies are over by then."""

_EVERY = 0.1
"""Seconds between two pictures."""

_BAR = 24
_NAME = 20


class Progress:
    """Shows how far copies are, one after the other, on one line."""

    def __init__(
        self, write: Callable[[str], object], clock: Callable[[], float], width: Callable[[], int]
    ) -> None:
        """``width`` tells how many characters fit on a line, now."""
        self._write = write
        self._width = width
        self._clock = clock
        self._started = clock()
        self._due = self._started + _FIRST
        self._name = ""
        self._size: int | None = None
        self._done = 0
        self._all = 0
        self._shown = False

    def begin(self, name: str, size: int | None) -> None:
        """The next file; None if nobody knows how long it is."""
        self._name, self._size, self._done = plain(name), size, 0

    def advance(self, count: int) -> None:
        """So many bytes more."""
        self._done += count
        self._all += count
        now = self._clock()
        if now >= self._due:
            self._due = now + _EVERY
            self._show(now)

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            self._shown = False
            self._write("\r\x1b[K")

    def _show(self, now: float) -> None:
        self._shown = True
        speed = self._all / max(now - self._started, 0.001)
        # The last column stays free: who writes there may be on the next line.
        picture = line(self._name, self._done, self._size, speed)[: max(0, self._width() - 1)]
        self._write(f"\r{picture}\x1b[K")


def line(name: str, done: int, size: int | None, speed: float) -> str:
    """One picture."""
    head = f"{cut(name, _NAME):{_NAME}}"
    tail = f"{spoken(done):>9}  {spoken(speed)}/s"
    if not size:
        return f"{head}  {tail}"
    share = min(1.0, done / size)
    full = int(share * _BAR)
    return f"{head}  [{'#' * full}{'.' * (_BAR - full)}] {share:4.0%}  {tail}"
