"""One turn of the event loop: what happens in it can be finished at its end.

Many events come in one turn, and many lead to the same piece of work: bytes for
the same socket.  Whoever handles a batch of events opens a turn; what is
deferred meanwhile runs when it ends, without another round of the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Turn:
    """Collects work for the end of the current batch of events."""

    __slots__ = ("_deferred", "_depth", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._depth = 0
        self._deferred: list[Callable[[], None]] = []

    def defer(self, work: Callable[[], None]) -> None:
        """Do ``work`` at the end of this turn, or soon if none is open."""
        if not self._deferred and not self._depth:
            self._loop.call_soon(self._run)
        self._deferred.append(work)

    def begin(self) -> None:
        """Events are about to be handled.  May be nested."""
        self._depth += 1

    def end(self) -> None:
        """The events are handled."""
        self._depth -= 1
        if self._deferred and not self._depth:
            self._run()

    def _run(self) -> None:
        deferred, self._deferred = self._deferred, []
        for work in deferred:
            work()
