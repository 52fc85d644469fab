"""Events of all processes of a principal, from a server.

What must hold:

1. While anybody listens the server is asked for events once on each connection, before anything else.
2. Whoever listens is told of every connection that was lost, because events were missed meanwhile.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from holdfast.errors import HoldfastError, Unsupported
from holdfast.process_events import EventKind, EventSink, ProcessEvent
from holdfast.protocol.shapes import reader
from holdfast.protocol.subscribing import (
    EVENT,
    SUBSCRIBE,
    UNSUBSCRIBE,
    EventNotice,
    SubscribeParams,
    UnsubscribeParams,
    read_event,
)

if TYPE_CHECKING:
    import msgspec

    from .calls import Answer
    from .link import Link

__all__ = ["EVENT", "RemoteEvents"]

_notice = reader(EventNotice)


class RemoteEvents:
    """The subscription of one client, for any number of listeners.  Implements ``place.EventSource``."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._sinks: list[EventSink] = []
        self._last = 0

    async def subscribe(self, sink: EventSink) -> None:
        """Tell ``sink`` all events from now on.

        Raises:
            Unsupported: The server does not tell any.
        """
        if "events" not in self._link.features:
            raise Unsupported("events of processes")
        self._sinks.append(sink)
        try:
            result = await self._link.call(SUBSCRIBE, SubscribeParams())
        except BaseException:
            self.unsubscribe(sink)
            raise
        self._last = max(self._last, result.next_seq - 1)

    def unsubscribe(self, sink: EventSink) -> None:
        """Tell ``sink`` nothing more.  May be called twice."""
        if sink in self._sinks:
            self._sinks.remove(sink)
            if not self._sinks:
                self._link.post(UNSUBSCRIBE, UnsubscribeParams())

    # What the link tells, by way of the backend.

    def notified(self, params: msgspec.Raw) -> None:
        """Take an event."""
        event = read_event(_notice(params))
        if event is not None:
            self._last = event.seq
            self._tell(event)

    def resumed(self) -> None:
        """There is a new connection, and nobody has subscribed on it."""
        if self._sinks:
            # A list that is asked for behind this one shows what was missed.
            self._link.ask(SUBSCRIBE, SubscribeParams(), self._subscribed)
            self._tell(ProcessEvent(self._last, EventKind.GAP, time.time()))

    def _subscribed(self, answer: Answer) -> None:
        if isinstance(answer, HoldfastError):
            self.over(answer)  # Another server, most likely.

    def over(self, error: HoldfastError | None) -> None:
        """There will be no more events."""
        sinks, self._sinks = self._sinks, []
        for sink in sinks:
            sink.over(error)

    def _tell(self, event: ProcessEvent) -> None:
        for sink in tuple(self._sinks):
            sink.told(event)
