"""Sessions: scopes that outlive their connection (pure, clock passed in).

What must hold:

1. A session has at most one client; nobody takes it from a client that is alive without saying so.
2. A session without a client is removed when its time is over, not before, and
   not if a client came back in the meantime.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING

from holdfast.backend import Valve
from holdfast.config import MIB, SessionLimits
from holdfast.dialects.dialect import Client
from holdfast.dialects.expiry import Expiry
from holdfast.dialects.scope import Scope
from holdfast.dialects.strays import Strays
from holdfast.errors import LimitReached, SessionBusy, SessionUnknown

if TYPE_CHECKING:
    from .archive import Archived
    from .feed import Feed
    from .realm import Realm


class Session:
    """One client's processes, and the client while it is there."""

    __slots__ = ("client", "extended", "key", "realm", "scope", "strays", "turn", "valve")

    def __init__(
        self,
        key: str,
        realm: Realm,
        *,
        names: int,
        most_bytes: int = 64 * MIB,
        what: str = "processes of one client",
        limit: str = "session.names",
    ) -> None:
        """``names`` bounds the processes, ``most_bytes`` their names; the rest is for errors."""
        self.key = key
        self.realm = realm
        self.scope: Scope[Feed | Archived] = Scope(limit=names, most_bytes=most_bytes, what=what, name=limit)
        self.client: Client | None = None
        self.valve = Valve()
        self.strays = Strays()
        """What processes left behind that are no longer kept."""
        self.extended = False
        """Whether the client knows our extensions."""
        self.turn = 0
        """Counts comings and goings, so that an old deadline is known to be one."""

    @property
    def is_commons(self) -> bool:
        """Whether its processes belong to no client."""
        return self.realm.commons.session is self


class Sessions:
    """All sessions of an endpoint."""

    def __init__(self, limits: SessionLimits) -> None:
        self._limits = limits
        self._sessions: dict[str, Session] = {}
        self._detached: Expiry[tuple[Session, int]] = Expiry(limits.detached_seconds)

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, client: Client, realm: Realm) -> Session:
        """A new session for ``client``.

        Raises:
            LimitReached: There are too many.
        """
        if len(self._sessions) >= self._limits.sessions:
            raise LimitReached("sessions", self._limits.sessions, name="session.sessions")
        most = client.principal.grant.sessions
        if most is not None and realm.sessions >= most:
            raise LimitReached("sessions of one principal", most, name="token.sessions")
        session = Session(
            str(uuid.uuid4()), realm, names=self._limits.names, most_bytes=self._limits.name_bytes
        )
        self._sessions[session.key] = session
        realm.sessions += 1
        self.attach(session, client)
        return session

    def get(self, key: str) -> Session | None:
        """The session of that key, if there is one."""
        return self._sessions.get(key)

    def find(self, key: str, realm: Realm) -> Session:
        """The session of that key, in that realm.

        Raises:
            SessionUnknown: There is none, or no more; or it is another principal's, which nobody is told.
        """
        session = self._sessions.get(key)
        if session is None or session.realm is not realm:
            raise SessionUnknown(key)
        return session

    def attach(self, session: Session, client: Client) -> None:
        """Give the session to ``client``.

        Raises:
            SessionBusy: Another client has it.
            SessionUnknown: It ended meanwhile.
        """
        if session.client is not None:
            raise SessionBusy(session.key)
        self.find(session.key, session.realm)
        session.client = client
        session.turn += 1

    def detach(self, session: Session, now: float) -> None:
        """The client is gone; the session waits for another."""
        session.client = None
        session.turn += 1
        self._detached.add((session, session.turn), now)

    def close(self, session: Session) -> None:
        """Remove the session now."""
        session.client = None
        session.turn += 1
        if self._sessions.pop(session.key, None) is not None:
            session.realm.sessions -= 1

    def close_all(self) -> Iterator[Session]:
        """Remove and give every session."""
        for session in list(self._sessions.values()):
            self.close(session)
            yield session

    def expire(self, now: float) -> Iterator[Session]:
        """Remove and give the sessions whose time is over."""
        for session, turn in self._detached.due(now):
            if session.turn == turn:
                self.close(session)
                yield session

    @property
    def next_deadline(self) -> float | None:
        return self._detached.next_deadline
