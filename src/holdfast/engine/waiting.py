"""Waiting for something to happen to a process."""

from __future__ import annotations

import asyncio


class Waiting:
    """Those who wait for the next event.

    Nothing runs between a look at the state and a call of ``next_event``, so that
    no event can be missed.
    """

    __slots__ = ("_events", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._events: list[asyncio.Future[None]] = []

    async def next_event(self, deadline: float) -> None:
        """Wait until ``wake``, at most until the deadline."""
        event: asyncio.Future[None] = self._loop.create_future()
        self._events.append(event)
        timer = self._loop.call_at(deadline, _settle, event)
        try:
            await event
        finally:
            timer.cancel()
            if event in self._events:
                self._events.remove(event)

    def wake(self) -> None:
        """Something has happened."""
        events, self._events = self._events, []
        for event in events:
            _settle(event)


def _settle(event: asyncio.Future[None]) -> None:
    if not event.done():
        event.set_result(None)
