"""What one principal has at the endpoint, which nobody else can see (pure, clock passed in).

What must hold:

1. Two clients are in one realm if, and only if, their tokens name the same principal.
2. A realm is there as long as a client, a session or a kept process is in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from holdfast.backend import KeptBackend
from holdfast.config import SessionLimits
from holdfast.errors import LimitReached
from holdfast.principal import Identity, Principal

from .kept import Commons


class Realm:
    """The clients of one principal, and what is theirs."""

    __slots__ = ("backend", "clients", "commons", "identity", "sessions")

    def __init__(self, identity: Identity, backend: KeptBackend, limits: SessionLimits) -> None:
        self.identity = identity
        self.backend = backend
        """For what has ended; clients start with their own, because their tokens may differ."""
        self.clients = 0
        self.sessions = 0
        self.commons = Commons(self, limits)

    @property
    def is_empty(self) -> bool:
        return not (self.clients or self.sessions or len(self.commons.session.scope))


class Realms:
    """All of an endpoint."""

    def __init__(self, limits: SessionLimits) -> None:
        self._limits = limits
        self._realms: dict[Identity, Realm] = {}
        # Those with kept processes that have ended, once each, by when the first of them is due.
        self._due: list[tuple[float, Identity]] = []

    def __len__(self) -> int:
        return len(self._realms)

    def __iter__(self) -> Iterator[Realm]:
        return iter(list(self._realms.values()))

    def enter(self, principal: Principal, backend: KeptBackend) -> Realm:
        """A client of this principal is here.

        Raises:
            LimitReached: There are too many principals.
        """
        realm = self._realms.get(principal.identity)
        if realm is None:
            most = self._limits.principals
            if len(self._realms) >= most:
                raise LimitReached("principals", most, name="session.principals")
            realm = Realm(principal.identity, backend, self._limits)
            self._realms[principal.identity] = realm
        realm.clients += 1
        return realm

    def leave(self, realm: Realm) -> None:
        """One of its clients is gone."""
        realm.clients -= 1
        self.tidy(realm)

    def tidy(self, realm: Realm) -> None:
        """Something of it is gone; if that was the last, so is the realm."""
        if realm.is_empty:
            self._realms.pop(realm.identity, None)

    # Ends of kept processes.

    def ended(self, realm: Realm, name: str, now: float) -> Iterator[str]:
        """A kept process has closed; give those for which there is no room any more."""
        first = realm.commons.next_deadline is None
        yield from realm.commons.ended(name, now)
        if first:
            self._push(realm)

    def due(self, now: float) -> Iterator[tuple[Realm, str]]:
        """Give the kept processes whose time is over."""
        while self._due and self._due[0][0] <= now:
            realm = self._realms.get(heappop(self._due)[1])
            if realm is not None:
                for name in realm.commons.due(now):
                    yield realm, name
                self._push(realm)

    def _push(self, realm: Realm) -> None:
        deadline = realm.commons.next_deadline
        if deadline is not None:
            heappush(self._due, (deadline, realm.identity))

    @property
    def next_deadline(self) -> float | None:
        return self._due[0][0] if self._due else None
