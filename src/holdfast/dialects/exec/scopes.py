"""Tenants and their scopes: sessions, and what all clients share (pure, clock passed in).

What must hold:

1. For whoever asks, a name means one process: its own, or one that its tenant shares.
2. A shared process that has ended is retained for its time, or until too many others have ended after it.
3. Two clients are of one tenant if, and only if, their tokens name the same principal.
4. A tenant exists as long as it has a client, a session or a shared process.
5. A session has at most one client.  Nobody takes it from a client that is alive without saying so.
6. A session without a client is removed when its time is over, not before, and not if a client came back.
"""

from __future__ import annotations

import marshal
import uuid
from collections import OrderedDict, deque
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Generic, TypeVar
from weakref import proxy

from holdfast.backend import HostedBackend, HostedProcess, Ledger, Valve
from holdfast.config import SessionLimits
from holdfast.dialects.dialect import Client
from holdfast.dialects.scope import Scope, Starting, Strays
from holdfast.errors import LimitReached, NameTaken, SessionBusy, SessionUnknown
from holdfast.principal import Identity, Principal
from holdfast.value import value

from .entries import ArchivedEntry, Entry, EntrySnapshot, StartSummary

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


@value
class SharedSnapshot:
    """The shared processes of one tenant, written down."""

    identity: Identity
    entries: Written
    strays: tuple[HostedProcess, ...]


class ProcessScope(Scope[Entry | ArchivedEntry]):
    """Processes by name, and whoever is notified of what they do.  Implements ``entries.Home``."""

    __slots__ = ("client", "extended", "strays", "tenant", "valve")

    key = ""
    """By which a client resumes it; empty if no client can."""
    is_shared = False
    """Whether its processes belong to no client."""

    def __init__(self, tenant: Tenant, *, limit: int, most_bytes: int, what: str, name: str) -> None:
        """``limit`` bounds the processes, ``most_bytes`` their names; the rest is for errors."""
        super().__init__(limit=limit, most_bytes=most_bytes, what=what, name=name)
        self.tenant = tenant
        self.client: Client | None = None
        self.extended = False
        self.valve = Valve()
        self.strays = Strays()
        """Ended processes that are no longer retained and have left somebody behind."""

    @property
    def entries(self) -> list[Entry]:
        """The entries of processes that run, or ended so recently that they are not archived yet."""
        return [entry for entry in self if isinstance(entry, Entry)]


class Session(ProcessScope):
    """A scope that outlives its connection: the processes of one client, and the client while it is there."""

    __slots__ = ("epoch", "key", "number")

    def __init__(self, key: str, tenant: Tenant, limits: SessionLimits, number: int = 0) -> None:
        """``number`` is its place in the ledger of what outlives this server."""
        super().__init__(
            tenant,
            limit=limits.names,
            most_bytes=limits.name_bytes,
            what="processes of one client",
            name="session.names",
        )
        self.key = key
        self.number = number
        self.epoch = 0
        """Counts comings and goings, so that an old deadline is known to be one."""

    def snapshot(self, deadline: float | None, entries: Written) -> SessionSnapshot:
        """Return what another session needs to go on.  ``deadline`` is when it is removed."""
        return SessionSnapshot(
            self.key, self.tenant.identity, self.extended, deadline, entries, tuple(self.strays)
        )


class SharedProcesses(ProcessScope):
    """The processes that belong to no client, and that every client of one tenant sees beside its own.

    It never has a client, so nobody is notified of what its processes do: whoever wants to know asks.
    """

    __slots__ = ("_ended", "_most_ended", "_seconds")

    is_shared = True

    def __init__(self, tenant: Tenant, limits: SessionLimits) -> None:
        super().__init__(
            # It is the tenant's own, and must not keep it: whoever uses the one has the other.
            proxy(tenant),
            limit=limits.kept_names,
            most_bytes=limits.name_bytes,
            what="kept processes",
            name="session.kept_names",
        )
        self._seconds = limits.kept_seconds
        self._most_ended = limits.kept_ended
        self._ended: OrderedDict[str, float] = OrderedDict()

    def snapshot(self, entries: Written) -> SharedSnapshot:
        """Return what the shared processes of another endpoint need to go on."""
        return SharedSnapshot(self.tenant.identity, entries, tuple(self.strays))

    def ended(self, name: str, now: float) -> Iterator[str]:
        """A process has closed; give those for which there is no room any more."""
        self._ended[name] = now + self._seconds
        while len(self._ended) > self._most_ended:
            yield self._ended.popitem(last=False)[0]

    def due(self, now: float) -> Iterator[str]:
        """Give those whose time is over."""
        while self._ended and next(iter(self._ended.values())) <= now:
            yield self._ended.popitem(last=False)[0]

    def resume_ended(self, name: str, deadline: float) -> None:
        """A process that closed earlier is due at its deadline."""
        self._ended[name] = deadline

    def deadline(self, name: str) -> float | None:
        """When an ended process is forgotten."""
        return self._ended.get(name)

    @property
    def next_deadline(self) -> float | None:
        return next(iter(self._ended.values()), None)


class Tenant:
    """The clients of one principal, their sessions, and the processes that they share."""

    __slots__ = ("__weakref__", "backend", "clients", "identity", "sessions", "shared")

    def __init__(self, identity: Identity, backend: HostedBackend, limits: SessionLimits) -> None:
        self.identity = identity
        self.backend = backend
        """For what has ended; clients start with their own, because their tokens may differ."""
        self.clients = 0
        self.sessions = 0
        self.shared = SharedProcesses(self, limits)

    @property
    def is_empty(self) -> bool:
        return not (self.clients or self.sessions or len(self.shared))

    # Names.

    def find(
        self, session: Session, name: str
    ) -> tuple[ProcessScope, Entry | ArchivedEntry | Starting | None]:
        """What a client of ``session`` means by ``name``, and the scope that it is in."""
        entry = session.find(name)
        return (self.shared, self.shared.find(name)) if entry is None else (session, entry)

    def reserve(
        self, session: Session, name: str, request: StartSummary, *, keep: bool
    ) -> tuple[ProcessScope, Starting]:
        """Take a name for a process of ``session``, or for one to be shared; give its scope, too.

        Raises:
            NameTaken: The client means another process by it.
            LimitReached: There are too many.
        """
        home, other = (self.shared, session) if keep else (session, self.shared)
        if other.find(name) is not None:
            raise NameTaken(name)
        return home, home.reserve(name, request)


class Tenants:
    """The tenants of one endpoint, by principal."""

    def __init__(self, limits: SessionLimits) -> None:
        self._limits = limits
        self._tenants: dict[Identity, Tenant] = {}
        # Those with shared processes that have ended, once each, by when the first of them is due.
        self._due: list[tuple[float, Identity]] = []

    def __len__(self) -> int:
        return len(self._tenants)

    def __iter__(self) -> Iterator[Tenant]:
        return iter(list(self._tenants.values()))

    def enter(self, principal: Principal, backend: HostedBackend) -> Tenant:
        """A client of this principal is here.

        Raises:
            LimitReached: There are too many principals.
        """
        if principal.identity not in self._tenants and len(self._tenants) >= self._limits.principals:
            raise LimitReached("principals", self._limits.principals, name="session.principals")
        tenant = self.resume(principal.identity, backend)
        tenant.clients += 1
        return tenant

    def resume(self, identity: Identity, backend: HostedBackend) -> Tenant:
        """The tenant of that identity, whether or not a client of it is here."""
        tenant = self._tenants.get(identity)
        if tenant is None:
            self._tenants[identity] = tenant = Tenant(identity, backend, self._limits)
        return tenant

    def leave(self, tenant: Tenant) -> None:
        """Take note that a client of the tenant has left."""
        tenant.clients -= 1
        self.tidy(tenant)

    def tidy(self, tenant: Tenant) -> None:
        """Forget the tenant if it has no client, no session and no process left."""
        if tenant.is_empty:
            self._tenants.pop(tenant.identity, None)

    # Ends of shared processes.

    def ended(self, tenant: Tenant, name: str, now: float) -> Iterator[str]:
        """A shared process has closed; give those for which there is no room any more."""
        first = tenant.shared.next_deadline is None
        yield from tenant.shared.ended(name, now)
        if first:
            self._push(tenant)

    def resume_ended(self, tenant: Tenant, name: str, deadline: float) -> None:
        """A shared process that closed earlier is due at its deadline; the earliest come first."""
        first = tenant.shared.next_deadline is None
        tenant.shared.resume_ended(name, deadline)
        if first:
            self._push(tenant)

    def due(self, now: float) -> Iterator[tuple[Tenant, str]]:
        """Give the shared processes whose time is over."""
        while self._due and self._due[0][0] <= now:
            tenant = self._tenants.get(heappop(self._due)[1])
            if tenant is not None:
                for name in tenant.shared.due(now):
                    yield tenant, name
                self._push(tenant)

    def _push(self, tenant: Tenant) -> None:
        deadline = tenant.shared.next_deadline
        if deadline is not None:
            heappush(self._due, (deadline, tenant.identity))

    @property
    def next_deadline(self) -> float | None:
        return self._due[0][0] if self._due else None


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
