"""Ended processes, for as long as they can still be read: most of the time each in one block of memory."""

from __future__ import annotations

import marshal

from holdfast.config import SessionLimits
from holdfast.dialects.expiry import Expiry
from holdfast.dialects.scope import Starting

from .feed import Feed, Record, Request
from .realm import Realm, Realms
from .sessions import Session, Sessions

_FRESH = 1.0
"""Seconds after its close in which a process is most likely read, and kept as it is."""

_LEAST = 520
"""Bytes: the interpreter takes smaller blocks from a store of its own, which gives little memory back."""


class Archived(bytes):
    """A feed whose process has closed and left nobody behind."""

    __slots__ = ()

    @staticmethod
    def of(feed: Feed) -> Archived | None:
        """``feed`` in one block; None if something of it can still change, or it is large."""
        process = feed.process.pack()
        if process is None:
            return None
        request = feed.request
        data = marshal.dumps(
            (
                feed.session.key,
                feed.name,
                feed.terminated,
                request.about,
                request.fingerprint,
                request.sandboxed,
                process,
            )
        )
        return Archived(data.ljust(_LEAST, b"\0"))  # What follows the value is not read.

    @property
    def key(self) -> str:
        """The session's."""
        key: str = marshal.loads(self)[0]  # noqa: S302
        return key

    @property
    def name(self) -> str:
        name: str = marshal.loads(self)[1]  # noqa: S302
        return name

    def restore(self, session: Session, record: Record) -> Feed:
        """The feed as it was."""
        _, name, terminated, about, fingerprint, sandboxed, process = marshal.loads(self)  # noqa: S302
        request = Request(about, fingerprint, None, sandboxed)
        kept = session.realm.backend.unpack(process)
        feed = Feed(session, name, kept, record, request, now=0.0)
        feed.terminated = terminated
        return feed


class Archive:
    """All ended processes of an endpoint (clock passed in)."""

    def __init__(
        self,
        record: Record,
        *,
        sessions: Sessions,
        realms: Realms,
        limits: SessionLimits,
    ) -> None:
        self._record = record
        self._sessions = sessions
        self._realms = realms
        fresh = min(_FRESH, limits.closed_seconds / 2)
        self._fresh: Expiry[Feed] = Expiry(fresh)
        self._closed: Expiry[Feed | Archived] = Expiry(limits.closed_seconds - fresh)

    def add(self, feed: Feed, now: float) -> None:
        """The process has closed."""
        self._fresh.add(feed, now)
        if feed.session.is_commons:
            realm = feed.session.realm
            for name in self._realms.ended(realm, feed.name, now):
                self._evict_kept(realm, name)

    def restore(self, session: Session, entry: Archived) -> Feed:
        return entry.restore(session, self._record)

    def expire(self, now: float) -> None:
        """Pack or forget those whose time it is."""
        for feed in self._fresh.due(now):
            self._pack(feed, now)
        for entry in self._closed.due(now):
            self._evict(entry)
        for realm, name in self._realms.due(now):
            self._evict_kept(realm, name)
            self._realms.tidy(realm)

    @property
    def next_deadlines(self) -> tuple[float | None, ...]:
        return self._fresh.next_deadline, self._closed.next_deadline, self._realms.next_deadline

    def _pack(self, feed: Feed, now: float) -> None:
        """Keep an ended process for the rest of its time, in as little memory as can be."""
        scope = feed.session.scope
        if scope.find(feed.name) is not feed:
            return  # Its session has ended, or it was forgotten.
        archived = Archived.of(feed)
        if archived is not None:
            scope.replace(feed.name, archived)
        if not feed.session.is_commons:
            self._closed.add(archived or feed, now)

    def _evict(self, entry: Feed | Archived) -> None:
        """The time of an ended process is over."""
        if isinstance(entry, Archived):
            session = self._sessions.get(entry.key)
            if session is not None and session.scope.find(entry.name) is entry:
                self._forget(self.restore(session, entry))
        else:
            self._forget(entry)

    def _evict_kept(self, realm: Realm, name: str) -> None:
        session = realm.commons.session
        entry = session.scope.find(name)
        assert entry is not None
        assert not isinstance(entry, Starting)
        self._forget(self.restore(session, entry) if isinstance(entry, Archived) else entry)

    def _forget(self, feed: Feed) -> None:
        feed.session.scope.release(feed.name)
        feed.forget()
        feed.session.strays.keep(feed.process)
