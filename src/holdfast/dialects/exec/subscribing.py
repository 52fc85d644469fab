"""Events of all processes of a tenant, for the connections that ask for them.

What must hold:

1. A client that is behind costs no memory.  What happens meanwhile is counted, and not kept.
2. However many processes there are, others get their turn while those that run are looked for, and a client
   that subscribes again and again is answered one request after the other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import chain

import msgspec

from holdfast.announcing import Announcer
from holdfast.dialects.dialect import Pause
from holdfast.process_events import EventKind, ProcessEvent
from holdfast.protocol.shapes import Nothing
from holdfast.protocol.subscribing import (
    EVENT,
    SubscribeParams,
    SubscribeResult,
    UnsubscribeParams,
    event_notice,
)

from .conversation import ExecConversation
from .entries import Entry
from .scopes import Tenant

_AT_ONCE = 1024
"""Processes that are gone through before others get their turn."""

_encode = msgspec.json.Encoder().encode


class EventSubscription:
    """What one connection is told of its tenant's processes.  Implements ``process_events.EventSink``."""

    __slots__ = ("_announcer", "_last", "_lost", "_talk", "_tenant")

    def __init__(self, talk: ExecConversation, tenant: Tenant, announcer: Announcer) -> None:
        self._talk = talk
        self._tenant = tenant
        self._announcer = announcer
        self._lost = 0
        self._last = 0

    def told(self, event: ProcessEvent) -> None:
        if self._talk.is_congested:
            self._lost += 1
            self._last = event.seq
        else:
            self._send(event)

    def over(self, error: Exception | None) -> None:
        pass  # Nobody tells a server's announcer to stop.

    def drained(self) -> None:
        """The client has caught up: tell it how many events it has missed."""
        if self._lost:
            lost, self._lost = self._lost, 0
            self._send(ProcessEvent(self._last, EventKind.GAP, time.time(), lost=lost))

    def _send(self, event: ProcessEvent) -> None:
        params = _encode(event_notice(event))
        self._talk.client.send(b'{"method":"%b","params":%b}' % (EVENT.encode(), params))

    def end(self) -> None:
        """Tell the client nothing more."""
        tenant, announcer = self._tenant, self._announcer
        if not announcer.unsubscribe(self) and tenant.announcer is announcer:
            tenant.announcer, tenant.next_event = None, announcer.next_seq


async def subscribe(talk: ExecConversation, params: SubscribeParams) -> SubscribeResult:
    """Have this connection told of all processes of its principal: start, wait for input, end."""
    tenant = talk.session.tenant
    announcer = tenant.announcer
    if announcer is None:
        tenant.announcer = announcer = Announcer(talk.endpoint.loop, tenant.next_event)
    result = SubscribeResult(announcer.next_seq)
    if talk.subscription is not None:
        announcer.remind()
    else:
        talk.subscription = EventSubscription(talk, tenant, announcer)
        announcer.subscribe(talk.subscription)
        async with talk.listing:  # One after the other, as lists.
            for number, entry in enumerate(_running(talk, tenant), 1):
                if entry is not None and entry.process.running:
                    announcer.follow(entry.name, entry.request.alias, entry.process)
                if not number % _AT_ONCE:
                    await Pause()
    return result


def _running(talk: ExecConversation, tenant: Tenant) -> Iterator[Entry | None]:
    """Give the processes of all sessions of a tenant, and None for whatever else is gone through."""
    for session in chain((tenant.shared,), talk.endpoint.sessions):
        if session.tenant.identity != tenant.identity:
            yield None
            continue
        for entry in session:
            yield entry if isinstance(entry, Entry) else None


def unsubscribe(talk: ExecConversation, params: UnsubscribeParams) -> Nothing:
    """Have this connection told no more events; has no effect if it was told none."""
    talk.unsubscribe()
    return Nothing()
