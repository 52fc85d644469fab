"""Returns free memory of a server that runs for long to the system."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
from collections.abc import Callable
from typing import Protocol

_LOOK = 10.0
"""Seconds between two looks at how many processes have closed."""

_MANY = 1000
"""Processes closed within one look after which reference cycles are worth a run of the collector."""

_BURST_LOOKS = 5
"""Looks in a row that trim after such a burst: closed processes are kept for half a minute."""

_PACE = 6
"""Looks between two trims while processes end: a trim blocks the loop, for 20 ms in bad cases."""

_BUSY_LOOKS = 10
"""Looks for which that goes on after the last end: past the half minute, and then once more."""

_IDLE_PACE = 60
"""Looks between two trims otherwise: sessions kept for an hour are freed while nothing happens."""

_WORTH = 16 << 20
"""Bytes by which our memory must exceed the least that we have needed for a trim to be worth it."""

_MUCH = 256 << 20
"""Bytes by which our memory must have grown since the last run of the collector to be worth another one."""

_ARENA_MAX = -8
"""The parameter of ``mallopt`` for the number of heaps (``M_ARENA_MAX``)."""

_HEAPS = 2
"""One for the loop and one for the threads that work on files.  A heap keeps the most it has needed."""


class ClosureCounter(Protocol):
    """The part of a backend that is needed here."""

    closures: int
    """How many processes have closed since this was last set to 0."""


def resident() -> int:
    """Return the resident memory of this program in bytes; 0 if the system does not report it."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


class MemoryTrimmer:
    """Returns memory to the system, some time after processes have ended, and now and then.

    What counts is how much memory we have, not how many processes it was for: one with much output
    leaves as much as a thousand others.

    One live object keeps a whole mebibyte of the allocator from being returned.  So objects from the time
    of a burst are not kept, here and elsewhere, longer than they are needed.
    """

    def __init__(
        self, backend: ClosureCounter, loop: asyncio.AbstractEventLoop, *, size: Callable[[], int] = resident
    ) -> None:
        """
        Args:
            size: Returns the memory of this program in bytes.
        """
        self._backend = backend
        self._loop = loop
        self._size = size
        self._least = self._collected = size()
        self._rounds = 0
        self._busy = 0
        self._looks = 0
        library = ctypes.CDLL(None)
        self._trim = getattr(library, "malloc_trim", None)
        if self._trim is not None:  # Only glibc has it, and only glibc has these heaps.
            library.mallopt(_ARENA_MAX, _HEAPS)
        loop.call_later(_LOOK, self._on_time)

    def _on_time(self) -> None:
        """Trim if there is reason to, and schedule the next look."""
        closures, self._backend.closures = self._backend.closures, 0
        self._looks += 1
        self._busy = _BUSY_LOOKS if closures else max(0, self._busy - 1)
        if closures >= _MANY:
            self._rounds = _BURST_LOOKS
        if self._rounds:
            self._rounds -= 1
            self._collect()
        elif self._looks >= (_PACE if self._busy else _IDLE_PACE) and self._size() - self._least >= _WORTH:
            if self._size() - self._collected >= _MUCH:
                # Nothing of ours should be in a circle.  But if something is, a few objects may hold all
                # of that, and the interpreter counts objects, not bytes.
                self._collect()
            else:
                # Without the collector, which blocks the loop for longer: single ends leave few cycles.
                self._trim_now()
        self._loop.call_later(_LOOK, self._on_time)

    def _collect(self) -> None:
        gc.collect()
        self._trim_now()
        self._collected = self._size()

    def _trim_now(self) -> None:
        self._looks = 0
        if self._trim is not None:
            self._trim(0)
        size = self._size()
        self._least = min(self._least, size)
        self._collected = min(self._collected, size)
