"""Processes that have closed, for as long as they can still be read (clock passed in)."""

from __future__ import annotations

from holdfast.config import SessionLimits
from holdfast.dialects.scope import Starting

from .entries import ArchivedEntry, Entry, EntryOwner
from .expiry import Expiry
from .scopes import ProcessScope, Tenant, Tenants
from .sessions import Sessions

_FRESH = 1.0
"""Seconds after its close in which a process is most likely read, and kept as it is."""


class Archive:
    """All processes of an endpoint that have closed: first as they are, then each in one block of memory."""

    def __init__(
        self, owner: EntryOwner, *, sessions: Sessions, tenants: Tenants, limits: SessionLimits
    ) -> None:
        self._owner = owner
        self._sessions = sessions
        self._tenants = tenants
        fresh = min(_FRESH, limits.closed_seconds / 2)
        self._rest = limits.closed_seconds - fresh
        self._fresh: Expiry[tuple[ProcessScope, Entry]] = Expiry(fresh)
        self._closed: Expiry[tuple[ProcessScope, Entry] | ArchivedEntry] = Expiry(self._rest)

    def add(self, home: ProcessScope, entry: Entry, now: float) -> None:
        """Take in a process that has closed, to forget it when its time is over."""
        self._fresh.add((home, entry), now)
        if home.is_shared:
            is_listed = not entry.request.auto_remove
            for name in self._tenants.ended(home.tenant, entry.name, now, is_listed=is_listed):
                self._evict_shared(home.tenant, name)

    def resume(self, home: ProcessScope, entry: Entry, deadline: float) -> None:
        """Have a process that closed earlier forgotten at its deadline; the earliest are resumed first."""
        if home.is_shared:
            is_listed = not entry.request.auto_remove
            self._tenants.resume_ended(home.tenant, entry.name, deadline, is_listed=is_listed)
        self._pack(home, entry, deadline - self._rest)

    def restore(self, home: ProcessScope, entry: ArchivedEntry) -> Entry:
        """The entry as it was before it was archived."""
        return entry.restore(home, home.tenant.backend, self._owner)

    def expire(self, now: float) -> None:
        """Archive or forget those whose time it is."""
        for home, entry in self._fresh.due(now):
            self._pack(home, entry, now)
        for closed in self._closed.due(now):
            self._evict(closed)
        for tenant, name in self._tenants.due(now):
            self._evict_shared(tenant, name)
            self._tenants.tidy(tenant)

    def remove(self, home: ProcessScope, entry: Entry) -> None:
        """Forget a process that has ended, before its time is over."""
        if home.is_shared:
            home.tenant.shared.removed(entry.name)
        self._forget(home, entry)
        self._tenants.tidy(home.tenant)

    @property
    def next_deadlines(self) -> tuple[float | None, ...]:
        return self._fresh.next_deadline, self._closed.next_deadline, self._tenants.next_deadline

    def deadlines(self) -> dict[tuple[str, str], float]:
        """When each process of a session is forgotten, by the keys of sessions and names."""
        found = {(home.key, entry.name): when + self._rest for (home, entry), when in self._fresh}
        for closed, when in self._closed:
            if isinstance(closed, ArchivedEntry):
                found[closed.key, closed.name] = when
            else:
                found[closed[0].key, closed[1].name] = when
        return found

    def _pack(self, home: ProcessScope, entry: Entry, now: float) -> None:
        """Retain an ended process for the rest of its time, in as little memory as can be."""
        if home.find(entry.name) is not entry:
            return  # Its session has ended, or it was forgotten.
        if home.is_shared and entry.request.auto_remove:
            return  # It does not stay long, and a list has to know that it is none of its own.
        archived = ArchivedEntry.of(entry, home.key)
        if archived is not None:
            home.replace(entry.name, archived)
        if not home.is_shared:
            self._closed.add(archived or (home, entry), now)

    def _evict(self, closed: tuple[ProcessScope, Entry] | ArchivedEntry) -> None:
        """The time of an ended process is over."""
        if not isinstance(closed, ArchivedEntry):
            home, entry = closed
            if home.find(entry.name) is entry:  # Otherwise its session has ended.
                self._forget(home, entry)
            return
        session = self._sessions.get(closed.key)
        if session is not None and session.find(closed.name) is closed:
            self._forget(session, self.restore(session, closed))

    def _evict_shared(self, tenant: Tenant, name: str) -> None:
        entry = tenant.shared.find(name)
        assert entry is not None
        assert not isinstance(entry, Starting)
        self._forget(
            tenant.shared, self.restore(tenant.shared, entry) if isinstance(entry, ArchivedEntry) else entry
        )

    def _forget(self, home: ProcessScope, entry: Entry) -> None:
        home.release(entry.name)
        entry.forget()
        home.strays.keep(entry.process)
