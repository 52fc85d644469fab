"""The scopes that processes are in: those of one client, or those that a tenant's clients share (pure).

What must hold:

1. For whoever asks, a name means one process: its own, or one that its tenant shares.
2. A shared process that has ended is retained for its time, or until too many others have ended after it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from holdfast.backend import KeptBackend, Valve
from holdfast.config import SessionLimits
from holdfast.dialects.dialect import Client
from holdfast.dialects.scope import Scope, Starting, Strays
from holdfast.errors import NameTaken
from holdfast.principal import Identity

from .entries import ArchivedEntry, Entry, StartSummary


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
        """Those that run, or have ended a moment ago."""
        return [entry for entry in self if isinstance(entry, Entry)]


class Session(ProcessScope):
    """One client's processes, and the client while it is there."""

    __slots__ = ("epoch", "key")

    def __init__(self, key: str, tenant: Tenant, limits: SessionLimits) -> None:
        super().__init__(
            tenant,
            limit=limits.names,
            most_bytes=limits.name_bytes,
            what="processes of one client",
            name="session.names",
        )
        self.key = key
        self.epoch = 0
        """Counts comings and goings, so that an old deadline is known to be one."""


class SharedProcesses(ProcessScope):
    """The processes that belong to no client, and that every client of one tenant sees beside its own.

    It never has a client, so nobody is notified of what its processes do: whoever wants to know asks.
    """

    __slots__ = ("_ended", "_most_ended", "_seconds")

    is_shared = True

    def __init__(self, tenant: Tenant, limits: SessionLimits) -> None:
        super().__init__(
            tenant,
            limit=limits.kept_names,
            most_bytes=limits.name_bytes,
            what="kept processes",
            name="session.kept_names",
        )
        self._seconds = limits.kept_seconds
        self._most_ended = limits.kept_ended
        self._ended: OrderedDict[str, float] = OrderedDict()

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

    __slots__ = ("backend", "clients", "identity", "sessions", "shared")

    def __init__(self, identity: Identity, backend: KeptBackend, limits: SessionLimits) -> None:
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
