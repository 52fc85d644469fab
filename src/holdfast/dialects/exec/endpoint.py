"""The exec endpoint: all its sessions, and what ends by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

from holdfast.backend import KeptBackend
from holdfast.config import FileLimits, HttpLimits, SessionLimits
from holdfast.dialects.dialect import Client, Method
from holdfast.dialects.expiry import Expiry
from holdfast.dialects.scope import Starting
from holdfast.errors import SessionBusy
from holdfast.model import Exit, Kind, Leftovers
from holdfast.telemetry import Telemetry

from .archive import Archive, Archived
from .conversation import ExecConversation
from .exchanges import Room
from .feed import Feed
from .realm import Realm, Realms
from .sessions import Session, Sessions
from .window import Window


class ExecEndpoint:
    """Holds what outlives connections.  Implements ``dialect.Endpoint`` and ``feed.Record``."""

    def __init__(
        self,
        backend: KeptBackend,
        methods: Mapping[str, Method],
        *,
        loop: asyncio.AbstractEventLoop,
        telemetry: Telemetry,
        limits: SessionLimits | None = None,
        http_limits: HttpLimits | None = None,
        file_limits: FileLimits | None = None,
    ) -> None:
        self.backend = backend
        self.methods = methods
        self.limits = limits or SessionLimits()
        self.http_limits = http_limits or HttpLimits()
        self.file_limits = file_limits or FileLimits()
        self.http_room = Room(self.http_limits.buffered_total)
        self.sessions = Sessions(self.limits)
        self.realms = Realms(self.limits)
        self.loop = loop
        self.telemetry = telemetry
        self._archive = Archive(self, sessions=self.sessions, realms=self.realms, limits=self.limits)
        self._returned: Expiry[tuple[Session, int]] = Expiry(self.limits.detached_seconds)
        self._timer: asyncio.TimerHandle | None = None

    def pick(self, text: bytes) -> ExecEndpoint:
        return self

    def greet(self, client: Client) -> ExecConversation:
        return ExecConversation(self, client)

    def usage(self) -> Mapping[str, int]:
        return {
            "session.sessions": len(self.sessions),
            "session.principals": len(self.realms),
            "session.kept_names": max((len(realm.commons.session.scope) for realm in self.realms), default=0),
            "http.buffered_total": self.http_room.size - self.http_room.left,
        }

    # Comings and goings of clients.

    async def resume(self, key: str, client: Client, realm: Realm, *, by_force: bool) -> Session:
        """Give the session of that key to ``client``, unless its holder is alive, or even then.

        A holder that looks attached is asked for a sign of life; one that has
        silently gone loses the session to the client who asks.
        """
        session = self.sessions.find(key, realm)
        holder = session.client
        if holder is not None:
            # One that cannot come back takes its session with it.
            by_force = by_force and holder.comes_back
            if not by_force and await holder.is_alive(self.limits.probe_seconds):
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
            self._give_room(feed)
        session.valve.open()
        self.sessions.detach(session, self.loop.time())
        self._arm()

    def caught_up(self, feed: Feed) -> None:
        """The client has everything: keep no more than for any attached client."""
        feed.roomy = False
        feed.process.retain(self._attached_bytes(feed))

    def make_room(self, feed: Feed) -> None:
        """A process was started, whose client may be gone already."""
        if feed.session.client is None and not feed.session.is_commons:
            self._give_room(feed)
        else:
            self.caught_up(feed)

    def open_window(self, feed: Feed) -> None:
        """A process was started, which may have a client that acknowledges what it gets."""
        size = feed.request.window
        if size is not None:
            kept = feed.session.is_commons
            feed.window = Window(
                feed.process,
                min(size, self.limits.window_bytes),
                clock=self.loop,
                make_room=partial(self._keep_more, feed),
                patience=self.limits.detached_seconds if kept else None,
            )
            feed.least = feed.window.room

    def _keep_more(self, feed: Feed, size: int) -> None:
        feed.least = size
        if feed.roomy:
            self._give_room(feed)
        else:
            self.caught_up(feed)

    def _give_room(self, feed: Feed) -> None:
        feed.roomy = True
        feed.process.retain(max(self.limits.detached_bytes, self._attached_bytes(feed)))

    def _attached_bytes(self, feed: Feed) -> int:
        asked = feed.request.retain
        return max(feed.least, 1, self.limits.attached_bytes if asked is None else asked)

    async def finish(self, session: Session) -> list[int]:
        """End a session now, with everything in it; return who could not be ended."""
        self.sessions.close(session)
        feeds = _feeds(session)
        processes = [*session.strays.take(), *(feed.process for feed in feeds)]
        for entry in session.scope:
            if isinstance(entry, Starting):
                entry.cancel()
        for feed in feeds:
            feed.terminated = True
        try:
            ended = await asyncio.gather(*(process.terminate() for process in processes))
        finally:
            self._end(session)
        return [pid for each in ended for pid in each.survivors]

    def _end(self, session: Session) -> None:
        session.strays.end()
        for entry in session.scope:
            if isinstance(entry, Starting):
                entry.cancel()
            elif isinstance(entry, Archived):
                self.restore(session, entry).forget()
            else:
                entry.terminated = True
                if entry.process.exit is None:
                    self._finished(entry, "terminated")
                entry.forget(Leftovers.END)
        self.realms.tidy(session.realm)

    # Ends of processes.

    def exited(self, feed: Feed, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        if exit.outcome.kind is Kind.LOST:
            result = "unknown"
        else:
            result = "terminated" if feed.terminated else "error" if exit.code else "success"
        self._finished(feed, result)

    def _finished(self, feed: Feed, result: str) -> None:
        self.telemetry.process_finished(result, self.loop.time() - feed.started)
        if feed.span is not None:
            feed.span.set("result", result)
            feed.span.end()
            feed.span = None

    def closed(self, feed: Feed) -> None:
        self._archive.add(feed, self.loop.time())
        self._arm()

    def find(self, session: Session, name: str) -> Feed | Starting | None:
        """The process of that name, as it is, or was when it had ended; the client's own before others."""
        home, entry = session.realm.commons.find(session, name)
        return self.restore(home, entry) if isinstance(entry, Archived) else entry

    def restore(self, session: Session, entry: Archived) -> Feed:
        return self._archive.restore(session, entry)

    # One timer for everything that ends by itself.

    def _arm(self) -> None:
        deadlines = (
            self.sessions.next_deadline,
            self._returned.next_deadline,
            *self._archive.next_deadlines,
        )
        next_deadline = min((deadline for deadline in deadlines if deadline is not None), default=None)
        if self._timer is not None and (next_deadline is None or next_deadline < self._timer.when()):
            # Not all of them last equally long: what came later may be due sooner.
            self._timer.cancel()
            self._timer = None
        if self._timer is None and next_deadline is not None:
            self._timer = self.loop.call_at(next_deadline, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now = self.loop.time()
        for session in self.sessions.expire(now):
            self._end(session)
        self._archive.expire(now)
        for session, turn in self._returned.due(now):
            if session.turn == turn:
                for feed in _feeds(session):
                    if feed.roomy:
                        self.caught_up(feed)
        self._arm()

    def close(self) -> None:
        """End every session, and what belongs to none.  No timer fires after this."""
        for session in (*self.sessions.close_all(), *(realm.commons.session for realm in self.realms)):
            self._end(session)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _feeds(session: Session) -> list[Feed]:
    return [entry for entry in session.scope if isinstance(entry, Feed)]
