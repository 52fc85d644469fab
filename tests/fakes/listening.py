"""Whoever is told events of processes, and places that tell them when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import cast

from holdfast.model import Listing
from holdfast.place import Place
from holdfast.process_events import EventKind, EventSink, ProcessEvent
from tests.fakes.server import PATIENCE


class Listener:
    """Implements ``process_events.EventSink``: remembers what it is told."""

    def __init__(self) -> None:
        self.events: list[ProcessEvent] = []
        self.ends: list[Exception | None] = []
        self._news = asyncio.Event()

    def told(self, event: ProcessEvent) -> None:
        self.events.append(event)
        self._news.set()

    def over(self, error: Exception | None) -> None:
        self.ends.append(error)
        self._news.set()

    @property
    def kinds(self) -> list[tuple[int, EventKind, str]]:
        return [(event.seq, event.kind, event.identifier) for event in self.events]

    async def until(self, count: int) -> None:
        """Wait until it was told so many events, or the end."""
        async with asyncio.timeout(PATIENCE):
            while len(self.events) < count and not self.ends:
                self._news.clear()
                await self._news.wait()


class ToldPlace:
    """As much of a place as events need; its events are what a test tells."""

    def __init__(self) -> None:
        self.events = self
        self.sinks: list[EventSink] = []
        self.lists: list[Sequence[Listing] | Exception | asyncio.Event] = []
        """What ``list`` gives, one after the other; a list of nobody once an event is set."""
        self.listed = 0

    @property
    def place(self) -> Place:
        return cast("Place", self)

    async def subscribe(self, sink: EventSink) -> None:
        self.sinks.append(sink)

    def unsubscribe(self, sink: EventSink) -> None:
        if sink in self.sinks:
            self.sinks.remove(sink)

    async def list(self) -> Sequence[Listing]:
        self.listed += 1
        answer = self.lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, asyncio.Event):
            await answer.wait()
            return []
        return answer

    def tell(self, *events: ProcessEvent) -> None:
        for event in events:
            for sink in tuple(self.sinks):
                sink.told(event)


def started(seq: int) -> ProcessEvent:
    """An event, of which the number is all that matters."""
    return ProcessEvent(seq, EventKind.STARTED, 1.0, f"p{seq}", argv=["x"])
