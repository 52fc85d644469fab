"""One epoll for the descriptors of all processes, hooked into the event loop.

The loop's own ``add_reader`` costs two objects per descriptor and a trip through
its queue per event.  Here a descriptor costs one dictionary entry and an event
one call.
"""

from __future__ import annotations

import asyncio
import select
from typing import Protocol

from holdfast.turn import Turn

READABLE = select.EPOLLIN
WRITABLE = select.EPOLLOUT

_BATCH = 256
"""Events taken per turn of the loop, so that floods leave room for everybody else."""


class Source(Protocol):
    """Whoever owns a descriptor."""

    def on_ready(self) -> None:
        """The descriptor is ready, or it was a moment ago: do not block."""


class Poller:
    """Tells sources when their descriptors are ready, as long as they are (level-triggered)."""

    def __init__(self, loop: asyncio.AbstractEventLoop, turn: Turn) -> None:
        self._loop = loop
        self._turn = turn
        self._epoll = select.epoll()
        self._sources: dict[int, Source] = {}
        loop.add_reader(self._epoll.fileno(), self._on_ready)

    def add(self, fd: int, source: Source, events: int = READABLE) -> None:
        self._epoll.register(fd, events)
        self._sources[fd] = source

    def remove(self, fd: int) -> None:
        """Stop watching.  Must come before the descriptor is closed."""
        del self._sources[fd]
        self._epoll.unregister(fd)

    def close(self) -> None:
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _on_ready(self) -> None:
        sources = self._sources
        try:
            events = self._epoll.poll(0, _BATCH)
        except InterruptedError:
            return
        self._turn.begin()
        try:
            for fd, _ in events:
                # A source called earlier in this batch may have removed this one, and
                # a new one may have got its number: that one then finds nothing to do.
                source = sources.get(fd)
                if source is not None:
                    source.on_ready()
        finally:
            self._turn.end()
