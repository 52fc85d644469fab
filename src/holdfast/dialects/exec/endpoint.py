"""The exec endpoint: all its sessions, and one client's talk with it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from enum import Enum

from holdfast.backend import Backend
from holdfast.config import SessionLimits
from holdfast.dialects.dialect import Breach, Client, Method, WireError
from holdfast.dialects.expiry import Expiry
from holdfast.dialects.scope import Starting
from holdfast.errors import HoldfastError, OutOfTurn, SessionBusy
from holdfast.telemetry import Telemetry
from holdfast.wire import jsonrpc
from holdfast.wire.jsonrpc import Notification, Response

from .explain import INVALID_REQUEST, explain
from .feed import Feed
from .sessions import Session, Sessions


class ExecEndpoint:
    """Holds what outlives connections.  Implements ``dialect.Endpoint`` and ``feed.Record``."""

    def __init__(
        self,
        backend: Backend,
        methods: Mapping[str, Method],
        *,
        loop: asyncio.AbstractEventLoop,
        telemetry: Telemetry,
        limits: SessionLimits | None = None,
    ) -> None:
        self.backend = backend
        self.methods = methods
        self.limits = limits or SessionLimits()
        self.sessions = Sessions(self.limits)
        self.loop = loop
        self.telemetry = telemetry
        self._closed: Expiry[Feed] = Expiry(self.limits.closed_seconds)
        self._returned: Expiry[tuple[Session, int]] = Expiry(self.limits.detached_seconds)
        self._timer: asyncio.TimerHandle | None = None

    def pick(self, text: bytes) -> ExecEndpoint:
        return self

    def greet(self, client: Client) -> ExecConversation:
        return ExecConversation(self, client)

    # Comings and goings of clients.

    async def resume(self, key: str, client: Client) -> Session:
        """Give the session of that key to ``client``, unless its holder is alive.

        A holder that looks attached is asked for a sign of life; one that has
        silently gone loses the session to the client who asks.
        """
        session = self.sessions.find(key)
        holder = session.client
        if holder is not None:
            if await holder.is_alive(self.limits.probe_seconds):
                raise SessionBusy(key)
            if session.client is holder:
                holder.cut("the session was resumed by another connection")
        self.sessions.attach(session, client)
        # What was kept while the client was away stays until it was read, or for a while.
        self._returned.add((session, session.turn), self.loop.time())
        self._arm()
        return session

    def leave(self, session: Session, client: Client) -> None:
        """The client of a session is gone."""
        if not client.comes_back:
            self.sessions.close(session)
            self._end(session)
            return
        for feed in _feeds(session):
            feed.roomy = True
            feed.process.retain(self.limits.detached_bytes)
        session.valve.open()
        self.sessions.detach(session, self.loop.time())
        self._arm()

    def caught_up(self, feed: Feed) -> None:
        """The client has everything: keep no more than for any attached client."""
        feed.roomy = False
        feed.process.retain(self.limits.attached_bytes)

    def _end(self, session: Session) -> None:
        for entry in session.scope:
            if isinstance(entry, Starting):
                entry.cancel()
            else:
                entry.terminated = True
                if entry.process.exit_code is None:
                    self._finished(entry, "terminated")
                entry.process.forget(leftovers=True)

    # Ends of processes.

    def exited(self, feed: Feed, code: int) -> None:
        self._finished(feed, "terminated" if feed.terminated else "error" if code else "success")

    def _finished(self, feed: Feed, result: str) -> None:
        self.telemetry.process_finished(result, self.loop.time() - feed.started)

    def closed(self, feed: Feed) -> None:
        self._closed.add(feed, self.loop.time())
        self._arm()

    # One timer for everything that ends by itself.

    def _arm(self) -> None:
        if self._timer is not None:
            return
        deadlines = (self.sessions.next_deadline, self._closed.next_deadline, self._returned.next_deadline)
        next_deadline = min((deadline for deadline in deadlines if deadline is not None), default=None)
        if next_deadline is not None:
            self._timer = self.loop.call_at(next_deadline, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now = self.loop.time()
        for session in self.sessions.expire(now):
            self._end(session)
        for feed in self._closed.due(now):
            feed.session.scope.release(feed.name)
            feed.process.forget()
        for session, turn in self._returned.due(now):
            if session.turn == turn:
                for feed in _feeds(session):
                    if feed.roomy:
                        self.caught_up(feed)
        self._arm()

    def close(self) -> None:
        """End every session.  No timer fires after this."""
        for session in self.sessions.close_all():
            self._end(session)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _feeds(session: Session) -> list[Feed]:
    return [entry for entry in session.scope if isinstance(entry, Feed)]


class Stage(Enum):
    """How far the handshake is."""

    NEW = 1
    INITIALIZED = 2
    """``initialize`` was answered."""
    READY = 3
    """The client has sent ``initialized``."""


class ExecConversation:
    """One client's talk, from the handshake on.  Implements ``dialect.Conversation``."""

    __slots__ = ("_session", "client", "endpoint", "stage")

    binary = True
    decode = staticmethod(jsonrpc.decode)

    def __init__(self, endpoint: ExecEndpoint, client: Client) -> None:
        self.endpoint = endpoint
        self.client = client
        self.stage = Stage.NEW
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        """The client's session; there is one once it may use methods."""
        assert self._session is not None
        return self._session

    async def begin(self, resume: str | None) -> Session:
        """Open or resume the client's session."""
        if self.stage is not Stage.NEW:
            raise OutOfTurn("initialize may only be sent once per connection")
        # Taken back on failure: the client may try again.
        self.stage = Stage.INITIALIZED
        try:
            if resume is None:
                self._session = self.endpoint.sessions.open(self.client)
            else:
                self._session = await self.endpoint.resume(resume, self.client)
        except BaseException:
            self.stage = Stage.NEW
            raise
        return self._session

    def gate(self, method: Method) -> None:
        if not method.family:
            return
        if self._session is None:
            raise OutOfTurn(f"client must call initialize before using {method.family} methods")
        if self.stage is not Stage.READY:
            raise OutOfTurn(f"client must send initialized before using {method.family} methods")

    def notified(self, notification: Notification) -> None:
        if notification.method != "initialized":
            raise Breach(f"unexpected notification `{notification.method}`")
        if self._session is None:
            raise Breach("`initialized` was sent before `initialize`")
        self.stage = Stage.READY

    def answered(self, response: Response) -> None:
        raise Breach(f"response to a request that was never sent: id {response.id}")

    def congested(self) -> None:
        if self._session is not None:
            self._session.valve.shut()

    def drained(self) -> None:
        if self._session is not None:
            self._session.valve.open()

    def malformed(self, detail: str) -> WireError:
        if self.client.transport == "stdio":
            source = "JSON-RPC message from exec-server stdio"
        else:
            source = f"websocket JSON-RPC message from exec-server websocket {self.client.peer}"
        return WireError(INVALID_REQUEST, f"failed to parse {source}: {detail}")

    def explain(self, error: HoldfastError) -> WireError:
        return explain(error)

    def ended(self) -> None:
        if self._session is not None and self._session.client is self.client:
            self.endpoint.leave(self._session, self.client)
