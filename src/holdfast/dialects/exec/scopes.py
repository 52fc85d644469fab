"""Tenants and their scopes: sessions, and what all clients share (pure, clock passed in).

What must hold:

1. For whoever asks, a name means one process: its own, or one that its tenant shares.
2. A shared process that has ended is retained for its time, or until too many others have ended after it.
3. Two clients are of one tenant if, and only if, their tokens name the same principal.
4. A tenant exists as long as it has a client, a session or a shared process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any
from weakref import proxy

from holdfast.aliases import Aliases
from holdfast.backend import HostedBackend, HostedProcess, Valve
from holdfast.config import SessionLimits
from holdfast.dialects.dialect import Client
from holdfast.dialects.scope import Scope, Starting, Strays
from holdfast.errors import LimitReached, NameTaken
from holdfast.principal import Identity, Principal
from holdfast.value import value

from .entries import ArchivedEntry, Entry, EntrySnapshot, StartSummary
from .shells import ShellSnapshots

if TYPE_CHECKING:
    from holdfast.announcing import Announcer

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

    __slots__ = ("aliases", "client", "extended", "strays", "tenant", "valve")

    key = ""
    """By which a client resumes it; empty if no client can."""
    is_shared = False
    """Whether its processes belong to no client."""

    def __init__(self, tenant: Tenant, *, limit: int, most_bytes: int, what: str, name: str) -> None:
        """``limit`` bounds the processes, ``most_bytes`` their names; the rest is for errors."""
        super().__init__(limit=limit, most_bytes=most_bytes, what=what, name=name)
        self.tenant = tenant
        self.aliases = Aliases()
        self.client: Client | None = None
        self.extended = False
        self.valve = Valve()
        self.strays = Strays()
        """Ended processes that are no longer retained and have left somebody behind."""

    @property
    def entries(self) -> list[Entry]:
        """The entries of processes that run, or ended so recently that they are not archived yet."""
        return [entry for entry in self if isinstance(entry, Entry)]

    # Identifiers, and with them aliases.

    def reserve(self, name: str, request: Any = None, *, size: int = 0) -> Starting:
        if request is None:
            return super().reserve(name, request, size=size)
        starting = super().reserve(name, request, size=size + len(request.again))
        if request.alias:
            self.aliases.reserve(request.alias, name)
        return starting

    def settle(self, starting: Starting, entry: Entry | ArchivedEntry) -> None:
        if starting.request is not None and starting.request.alias:
            self.aliases.settle(starting.name)
        super().settle(starting, entry)

    def release(self, name: str) -> None:
        self.aliases.release(name)
        super().release(name)

    def called(self, alias: str) -> Entry | ArchivedEntry | Starting | None:
        """The process with this alias."""
        name = self.aliases.find(alias)
        return None if name is None else self.find(name)


class Session(ProcessScope):
    """A scope that outlives its connection: the processes of one client, and the client while it is there."""

    __slots__ = ("epoch", "key", "number", "shells")

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
        self.shells: ShellSnapshots | None = None
        """There are some once a command has asked for one."""
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

    __slots__ = ("_ended", "_most_ended", "_seconds", "_short", "_unlisted")

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
        self._short = limits.closed_seconds
        self._most_ended = limits.kept_ended
        self._ended: OrderedDict[str, float] = OrderedDict()
        # Those whom no list has any more.  Who still reads one gets as long as a client for its own.
        self._unlisted: OrderedDict[str, float] = OrderedDict()

    def snapshot(self, entries: Written) -> SharedSnapshot:
        """Return what the shared processes of another endpoint need to go on."""
        return SharedSnapshot(self.tenant.identity, entries, tuple(self.strays))

    def ended(self, name: str, now: float, *, is_listed: bool = True) -> Iterator[str]:
        """A process has closed; give those for which there is no room any more."""
        if not is_listed:
            self._unlisted[name] = now + self._short
            return
        self._ended[name] = now + self._seconds
        while len(self._ended) > self._most_ended:
            yield self._ended.popitem(last=False)[0]

    def removed(self, name: str) -> None:
        """An ended process is forgotten before its time."""
        for queue in (self._ended, self._unlisted):
            queue.pop(name, None)

    def due(self, now: float) -> Iterator[str]:
        """Give those whose time is over."""
        for queue in (self._ended, self._unlisted):
            while queue and next(iter(queue.values())) <= now:
                yield queue.popitem(last=False)[0]

    def resume_ended(self, name: str, deadline: float, *, is_listed: bool = True) -> None:
        """A process that closed earlier is due at its deadline."""
        (self._ended if is_listed else self._unlisted)[name] = deadline

    def is_listed(self, name: str) -> bool:
        """Whether a list has the process."""
        return name not in self._unlisted

    def deadline(self, name: str) -> float | None:
        """When an ended process is forgotten."""
        return self._ended.get(name) or self._unlisted.get(name)

    @property
    def next_deadline(self) -> float | None:
        firsts = [next(iter(queue.values())) for queue in (self._ended, self._unlisted) if queue]
        return min(firsts, default=None)


class Tenant:
    """The clients of one principal, their sessions, and the processes that they share."""

    __slots__ = (
        "__weakref__",
        "announcer",
        "backend",
        "clients",
        "identity",
        "next_event",
        "sessions",
        "shared",
    )

    def __init__(self, identity: Identity, backend: HostedBackend, limits: SessionLimits) -> None:
        self.identity = identity
        self.backend = backend
        """For what has ended; clients start with their own, because their tokens may differ."""
        self.clients = 0
        self.sessions = 0
        self.shared = SharedProcesses(self, limits)
        self.announcer: Announcer | None = None
        """Tells what happens to all processes; None while nobody has subscribed to that."""
        self.next_event = 1
        """The number of the next announcer's first event."""

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
            NameTaken: The client means another process by it, or one that lives by the alias.
            LimitReached: There are too many.
        """
        home, other = (self.shared, session) if keep else (session, self.shared)
        if other.find(name) is not None:
            raise NameTaken(name)
        alias = request.alias
        if alias and any(is_live(scope.called(alias) or scope.find(alias)) for scope in (home, other)):
            raise NameTaken(alias)
        return home, home.reserve(name, request)

    def called(
        self, session: Session, alias: str
    ) -> tuple[ProcessScope, Entry | ArchivedEntry | Starting] | None:
        """The process with this alias and its scope: one that lives before one that has ended."""
        found = [(home, entry) for home in (session, self.shared) if (entry := home.called(alias))]
        return min(found, key=lambda one: not is_live(one[1]), default=None)


def is_live(entry: Entry | ArchivedEntry | Starting | None) -> bool:
    """Whether a process is starting or has not ended."""
    return isinstance(entry, Starting) or (isinstance(entry, Entry) and entry.process.running)


class Tenants:
    """The tenants of one endpoint, by principal."""

    def __init__(self, limits: SessionLimits) -> None:
        self._limits = limits
        self._tenants: dict[Identity, Tenant] = {}
        # Those with shared processes that have ended, by when the first of them is due, or was: it may have
        # been removed since.  A tenant is there again only if one is due earlier than it is there for.
        self._due: list[tuple[float, Identity]] = []
        self._queued: dict[Identity, list[float]] = {}

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

    def ended(self, tenant: Tenant, name: str, now: float, *, is_listed: bool = True) -> Iterator[str]:
        """A shared process has closed; give those for which there is no room any more."""
        yield from tenant.shared.ended(name, now, is_listed=is_listed)
        self._push(tenant)

    def resume_ended(self, tenant: Tenant, name: str, deadline: float, *, is_listed: bool = True) -> None:
        """A shared process that closed earlier is due at its deadline; the earliest come first."""
        tenant.shared.resume_ended(name, deadline, is_listed=is_listed)
        self._push(tenant)

    def due(self, now: float) -> Iterator[tuple[Tenant, str]]:
        """Give the shared processes whose time is over."""
        while self._due and self._due[0][0] <= now:
            identity = heappop(self._due)[1]
            queued = self._queued[identity]
            queued.pop()  # The earliest of them.
            if not queued:
                del self._queued[identity]
            tenant = self._tenants.get(identity)
            if tenant is not None:
                for name in tenant.shared.due(now):
                    yield tenant, name
                self._push(tenant)

    def _push(self, tenant: Tenant) -> None:
        deadline = tenant.shared.next_deadline
        if deadline is None:
            return
        queued = self._queued.setdefault(tenant.identity, [])
        if not queued or deadline < queued[-1]:
            queued.append(deadline)
            heappush(self._due, (deadline, tenant.identity))

    @property
    def next_deadline(self) -> float | None:
        return self._due[0][0] if self._due else None
