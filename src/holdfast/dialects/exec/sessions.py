"""All sessions of an endpoint: how each is opened, changes hands and ends (pure, clock passed in).

What must hold:

1. A session has at most one client.  Nobody takes it from a client that is alive without saying so.
2. A session without a client is removed when its time is over, not before, and not if a client came back.
"""

from __future__ import annotations

import marshal
import uuid
from collections.abc import Iterator

from holdfast.backend import Ledger
from holdfast.config import SessionLimits
from holdfast.dialects.dialect import Client
from holdfast.errors import LimitReached, SessionBusy, SessionUnknown

from .expiry import Expiry
from .scopes import Session, SessionSnapshot, Tenant


class Sessions:
    """All sessions of an endpoint."""

    def __init__(self, limits: SessionLimits, ledger: Ledger | None = None) -> None:
        """``ledger`` has them for a server that goes on after this one."""
        self._limits = limits
        self._ledger = ledger
        self._sessions: dict[str, Session] = {}
        self._detached: Expiry[tuple[Session, int]] = Expiry(limits.detached_seconds)

    def __len__(self) -> int:
        return len(self._sessions)

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self._sessions.values()))

    def open(self, client: Client, tenant: Tenant) -> Session:
        """A new session for ``client``.

        Raises:
            LimitReached: There are too many.
        """
        if len(self._sessions) >= self._limits.sessions:
            raise LimitReached("sessions", self._limits.sessions, name="session.sessions")
        most = client.principal.grant.sessions
        if most is not None and tenant.sessions >= most:
            raise LimitReached("sessions of one principal", most, name="token.sessions")
        key = str(uuid.uuid4())
        number = 0
        if self._ledger is not None and client.comes_back:
            number = self._ledger.put(marshal.dumps((key, tenant.identity)))
        session = self._add(key, tenant, number)
        self.attach(session, client)
        return session

    def _add(self, key: str, tenant: Tenant, number: int = 0) -> Session:
        session = Session(key, tenant, self._limits, number)
        self._sessions[key] = session
        tenant.sessions += 1
        return session

    def get(self, key: str) -> Session | None:
        """The session of that key, if there is one."""
        return self._sessions.get(key)

    def find(self, key: str, tenant: Tenant) -> Session:
        """The session of that key, of that tenant.

        Raises:
            SessionUnknown: There is none, or no more; or it is another principal's, which nobody is told.
        """
        session = self._sessions.get(key)
        if session is None or session.tenant is not tenant:
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
        self.find(session.key, session.tenant)
        session.client = client
        session.epoch += 1

    def detach(self, session: Session, now: float) -> None:
        """The client is gone; the session waits for another."""
        session.client = None
        session.epoch += 1
        self._detached.add((session, session.epoch), now)

    def close(self, session: Session) -> None:
        """Remove the session now."""
        session.client = None
        session.epoch += 1
        if self._sessions.pop(session.key, None) is not None:
            session.tenant.sessions -= 1
            if self._ledger is not None:
                self._ledger.remove(session.number)

    def close_all(self) -> Iterator[Session]:
        """Remove and give every session."""
        for session in self:
            self.close(session)
            yield session

    def expire(self, now: float) -> Iterator[Session]:
        """Remove and give the sessions whose time is over."""
        for session, epoch in self._detached.due(now):
            if session.epoch == epoch:
                self.close(session)
                yield session

    @property
    def next_deadline(self) -> float | None:
        return self._detached.next_deadline

    # Written down, and read again.

    def deadlines(self) -> dict[Session, float]:
        """When each session without a client is removed."""
        return {session: deadline for (session, epoch), deadline in self._detached if session.epoch == epoch}

    def resume(self, snapshot: SessionSnapshot, tenant: Tenant, now: float, number: int = 0) -> Session:
        """A session as it was written down.  It has no client until one resumes it.

        ``number`` is its place in the ledger.

        Sessions are to be resumed in the order of their deadlines, those with a client last.
        """
        session = self._add(snapshot.key, tenant, number)
        session.extended = snapshot.extended
        left = self._limits.detached_seconds if snapshot.deadline is None else snapshot.deadline - now
        self.detach(session, now + left - self._limits.detached_seconds)
        return session
