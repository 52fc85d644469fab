"""The tenants of an endpoint: what one principal has, and nobody else can see (pure, clock passed in).

What must hold:

1. Two clients are of one tenant if, and only if, their tokens name the same principal.
2. A tenant is there as long as it has a client, a session or a shared process.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from holdfast.backend import KeptBackend
from holdfast.config import SessionLimits
from holdfast.errors import LimitReached
from holdfast.principal import Identity, Principal

from .scopes import Tenant


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

    def enter(self, principal: Principal, backend: KeptBackend) -> Tenant:
        """A client of this principal is here.

        Raises:
            LimitReached: There are too many principals.
        """
        if principal.identity not in self._tenants and len(self._tenants) >= self._limits.principals:
            raise LimitReached("principals", self._limits.principals, name="session.principals")
        tenant = self.resume(principal.identity, backend)
        tenant.clients += 1
        return tenant

    def resume(self, identity: Identity, backend: KeptBackend) -> Tenant:
        """The tenant of that identity, whether or not a client of it is here."""
        tenant = self._tenants.get(identity)
        if tenant is None:
            self._tenants[identity] = tenant = Tenant(identity, backend, self._limits)
        return tenant

    def leave(self, tenant: Tenant) -> None:
        """One of its clients is gone."""
        tenant.clients -= 1
        self.tidy(tenant)

    def tidy(self, tenant: Tenant) -> None:
        """Something of it is gone; if that was the last, so is the tenant."""
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
