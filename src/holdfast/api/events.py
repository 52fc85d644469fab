"""What happens to all processes of a host, as an iterator.

What must hold:

1. Events come in the order of their numbers, and whoever misses some is told so at their place.
2. Whoever does not iterate costs a bounded amount of memory, and holds nobody up.
3. Nothing is lost when the wait for the next event is cancelled.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import TYPE_CHECKING

from holdfast.errors import Forbidden, OutOfTurn, Unsupported
from holdfast.process_events import EventKind, ProcessEvent
from holdfast.value import replace

if TYPE_CHECKING:
    from holdfast.place import Place

_MOST = 10_000
"""Events that wait to be read: a minute of a busy host, and some mebibytes."""


class ProcessEvents(AsyncIterator[ProcessEvent]):
    """Iterates over the events of a host.  Made by ``Host.events``; best used in ``async with``."""

    def __init__(self, place: Callable[[], Place]) -> None:
        self._find_place = place
        self._place: Place | None = None
        self._is_closed = False
        self._ready: deque[ProcessEvent] = deque()
        self._missed: ProcessEvent | None = None  # A gap behind all that is ready.
        self._error: Exception | None = None
        self._news = asyncio.Event()

    # Opening and closing.

    async def open(self) -> ProcessEvents:
        """Begin to listen; return these events.  What happens from now on is not missed.

        Raises:
            Unsupported: The server does not tell events.
            Forbidden: The token does not allow it.
        """
        if self._is_closed:
            raise OutOfTurn("these events were closed; ask the host for new ones")
        if self._place is None:
            place = self._find_place()
            await place.events.subscribe(self)
            self._place = place
        return self

    async def aclose(self) -> None:
        """Listen no longer; an iteration ends after the events that it has.  May be called twice."""
        if self._place is not None and not self._is_closed:
            self._place.events.unsubscribe(self)
        self.over(None)

    async def __aenter__(self) -> ProcessEvents:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # Implements ``process_events.EventSink``.

    def told(self, event: ProcessEvent) -> None:
        """Take an event."""
        if self._missed is not None:
            self._missed = _more(self._missed, event)
        elif len(self._ready) >= _MOST:
            self._missed = _more(ProcessEvent(event.seq, EventKind.GAP, event.time, lost=0), event)
        else:
            self._ready.append(event)
        self._news.set()

    def over(self, error: Exception | None) -> None:
        """Take note that nothing more is told."""
        if not self._is_closed:
            self._is_closed, self._error = True, error
        self._news.set()

    # Iterating.

    async def __anext__(self) -> ProcessEvent:
        if self._place is None and not self._is_closed:
            await self.open()
        while True:
            if not self._ready and self._missed is not None:
                self._ready.append(self._missed)
                self._missed = None
            if self._ready:
                return await self._take()
            if self._error is not None:
                raise self._error
            if self._is_closed:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()

    async def next(self, *, timeout: float | None = None) -> ProcessEvent:  # noqa: ASYNC109
        """Wait for the next event.

        Args:
            timeout: Seconds; None is no bound.

        Raises:
            TimeoutError: There was none in time.
            StopAsyncIteration: These events, or their host, were closed.
            LinkLost: The server cannot be reached any more.
        """
        async with asyncio.timeout(timeout):
            return await anext(self)

    async def _take(self) -> ProcessEvent:
        event = self._ready[0]
        if event.kind is EventKind.GAP and self._place is not None:
            # It stays at its place until the list is here: this may be cancelled.
            try:
                listed = await self._place.list()
            except (Forbidden, Unsupported):
                pass
            else:
                event = replace(event, processes=listed)
        self._ready.popleft()
        return event


def _more(gap: ProcessEvent, event: ProcessEvent) -> ProcessEvent:
    """A gap that is larger by an event, which may be a gap itself."""
    more = event.lost if event.kind is EventKind.GAP else 1
    lost = None if gap.lost is None or more is None else gap.lost + more
    return replace(gap, seq=event.seq, time=event.time, lost=lost)
