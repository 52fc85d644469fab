"""Sessions, which outlive the connections of their clients, and what expires (pure, clock passed in).

What must hold:

1. A session has at most one client; nobody takes it from a client that is alive without saying so.
2. A session without a client is removed when its time is over, not before, and
   not if a client came back in the meantime.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterator
from typing import Generic, TypeVar

from holdfast.backend import HostedProcess
from holdfast.config import SessionLimits
from holdfast.dialects.dialect import Client
from holdfast.errors import LimitReached, SessionBusy, SessionUnknown
from holdfast.principal import Identity
from holdfast.value import value

from .entries import EntrySnapshot
from .scopes import Session, Tenant

T = TypeVar("T")

_GRAIN = 1 / 128
"""Things that come within this part of the delay end together: thousands cost little more than one."""


class Expiry(Generic[T]):
    """A queue in the order of the deadlines, because all have the same delay."""

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._queue: deque[_Slice[T]] = deque()

    def add(self, item: T, now: float) -> None:
        if not self._queue or now - self._queue[-1].begin > self._delay * _GRAIN:
            self._queue.append(_Slice(now))
        last = self._queue[-1]
        last.items.append(item)
        last.deadline = now + self._delay

    def __iter__(self) -> Iterator[tuple[T, float]]:
        """Give everything that is here, with its deadline, in the order of the deadlines."""
        for part in self._queue:
            for item in part.items:
                yield item, part.deadline

    def due(self, now: float) -> Iterator[T]:
        """Take out, one by one, what has reached its deadline."""
        while self._queue and self._queue[0].deadline <= now:
            if self._queue[0].items:
                yield self._queue[0].items.popleft()
            else:
                self._queue.popleft()

    @property
    def next_deadline(self) -> float | None:
        return self._queue[0].deadline if self._queue else None


class _Slice(Generic[T]):
    """What came within one grain of time, and ends when the last of it is due."""

    __slots__ = ("begin", "deadline", "items")

    def __init__(self, begin: float) -> None:
        self.begin = self.deadline = begin
        self.items: deque[T] = deque()


Written = tuple[tuple[EntrySnapshot, HostedProcess], ...]
"""Entries that were written down, each with its process."""


@value
class SessionSnapshot:
    """A session, written down, with the processes in it."""

    key: str
    identity: Identity
    """Whose it is."""
    extended: bool
    deadline: float | None
    """When it is removed; None while a client has it."""
    entries: Written
    strays: tuple[HostedProcess, ...]


class Sessions:
    """All sessions of an endpoint."""

    def __init__(self, limits: SessionLimits) -> None:
        self._limits = limits
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
        session = self._add(str(uuid.uuid4()), tenant)
        self.attach(session, client)
        return session

    def _add(self, key: str, tenant: Tenant) -> Session:
        session = Session(key, tenant, self._limits)
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

    def resume(self, snapshot: SessionSnapshot, tenant: Tenant, now: float) -> Session:
        """A session as it was written down.  It has no client until one resumes it.

        Sessions are to be resumed in the order of their deadlines, those with a client last.
        """
        session = self._add(snapshot.key, tenant)
        session.extended = snapshot.extended
        left = self._limits.detached_seconds if snapshot.deadline is None else snapshot.deadline - now
        self.detach(session, now + left - self._limits.detached_seconds)
        return session
