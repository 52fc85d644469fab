"""Memory of a server that runs for long: what is free goes back to the system."""

from __future__ import annotations

import asyncio
import ctypes
import gc
from typing import Protocol

_LOOK = 10.0
"""Seconds between looks at what has happened."""

_MANY = 1000
"""Processes that make it worth while."""

_BURST_LOOKS = 5
"""How many looks in a row tidy up after so many within one: what closed is kept for half a minute."""

_PACE = 6
"""Looks from one time to the next, if they came one by one."""

_ARENA_MAX = -8
"""What the C library calls the number of its heaps."""

_HEAPS = 2
"""One for the loop and one for all threads that work on files: each keeps what it once needed."""


class Counting(Protocol):
    """A backend that counts the processes that have closed."""

    closures: int


class Tidying:
    """Gives memory back, some time after a burst of processes, and now and then.

    The interpreter keeps freed objects for later use, a few in every block of
    memory, which keeps the blocks from going back to the system.  One live
    object does the same to a mebibyte: hence numbers of the time of the burst
    are not kept, here and elsewhere, once they have served.
    """

    def __init__(self, backend: Counting, loop: asyncio.AbstractEventLoop) -> None:
        self._backend = backend
        self._loop = loop
        self._rounds = 0
        self._closures = 0
        self._looks = 0
        library = ctypes.CDLL(None)
        self._trim = getattr(library, "malloc_trim", None)
        if self._trim is not None:  # It is the C library that has these heaps.
            library.mallopt(_ARENA_MAX, _HEAPS)
        loop.call_later(_LOOK, self.on_time)

    def on_time(self) -> None:
        """Look, tidy up if there is reason to, and come back later."""
        closures, self._backend.closures = self._backend.closures, 0
        self._closures += closures
        self._looks += 1
        if closures >= _MANY:
            self._rounds = _BURST_LOOKS
        if self._rounds:
            self._rounds -= 1
            gc.collect()
            self._give_back()
        elif self._closures >= _MANY and self._looks >= _PACE:
            # Without the collector, which would hold up everybody: what ends one by one leaves no circles.
            self._give_back()
        self._loop.call_later(_LOOK, self.on_time)

    def _give_back(self) -> None:
        self._closures = self._looks = 0
        if self._trim is not None:
            self._trim(0)
