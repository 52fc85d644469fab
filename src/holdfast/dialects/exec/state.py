"""Everything at the exec endpoint that outlives connections: tenants, sessions, and what ends by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.backend import HostedBackend, HostedProcess
from holdfast.config import FileLimits, HttpLimits, SandboxLimits, SessionLimits
from holdfast.dialects.dialect import Client
from holdfast.dialects.scope import Room, Starting
from holdfast.errors import SessionBusy
from holdfast.model import Exit, Leftovers
from holdfast.principal import Identity, principal_of
from holdfast.value import value

from .archive import Archive
from .entries import ArchivedEntry, Entry, StartSummary
from .expiry import Expiry
from .notes import found_again
from .places import CodexPlaces, codex_places
from .scopes import (
    ProcessScope,
    Session,
    SessionSnapshot,
    SharedSnapshot,
    Tenant,
    Tenants,
    Written,
)
from .sessions import Sessions
from .shells import ShellSnapshots
from .window import Retention, Window

if TYPE_CHECKING:
    from .notifying import WebhookSender


@value
class EndpointSnapshot:
    """Everything of an endpoint that outlives connections, written down as values, to go on from later.

    Processes that are starting are not part of it.
    """

    sessions: tuple[SessionSnapshot, ...]
    shared: tuple[SharedSnapshot, ...]


class ExecState:
    """All tenants and sessions, and the processes in them.  Implements ``entries.EntryOwner``."""

    def __init__(
        self,
        backend: HostedBackend,
        *,
        loop: asyncio.AbstractEventLoop,
        limits: SessionLimits | None = None,
        http_limits: HttpLimits | None = None,
        file_limits: FileLimits | None = None,
        sandbox_limits: SandboxLimits | None = None,
        webhooks: WebhookSender | None = None,
        places: CodexPlaces | None = None,
    ) -> None:
        self.backend = backend
        self.limits = limits or SessionLimits()
        self.http_limits = http_limits or HttpLimits()
        self.file_limits = file_limits or FileLimits()
        self.sandbox_limits = sandbox_limits or SandboxLimits()
        self.webhooks = webhooks
        """Tells the ends of processes to whom their clients have named; None if nobody may be named."""
        if places is not None:
            self.places = places
        self.http_room = Room(
            self.http_limits.buffered_total, "bytes of buffered HTTP responses", name="http.buffered_total"
        )
        self._shell_room = Room(
            self.limits.shell_snapshot_bytes, "bytes of shell snapshots", name="session.shell_snapshot_bytes"
        )
        self.sessions = Sessions(self.limits, backend.ledger)
        self.tenants = Tenants(self.limits)
        self.loop = loop
        self._archive = Archive(self, sessions=self.sessions, tenants=self.tenants, limits=self.limits)
        self._returned: Expiry[tuple[Session, int]] = Expiry(self.limits.detached_seconds)
        self._timer: asyncio.TimerHandle | None = None
        self._recover()

    def usage(self) -> Mapping[str, int]:
        return {
            "session.sessions": len(self.sessions),
            "session.principals": len(self.tenants),
            "session.kept_names": max((len(tenant.shared) for tenant in self.tenants), default=0),
            "session.shell_snapshot_bytes": self._shell_room.taken,
            "http.buffered_total": self.http_room.taken,
        }

    # Comings and goings of clients.

    async def attach(self, key: str, client: Client, tenant: Tenant, *, by_force: bool) -> Session:
        """Give the session of that key to ``client``, unless its holder is alive, or even then.

        A holder that looks attached is asked for a sign of life; one that has
        silently gone loses the session to the client who asks.
        """
        session = self.sessions.find(key, tenant)
        holder = session.client
        if holder is not None:
            # One that cannot come back takes its session with it.
            by_force = by_force and holder.comes_back
            if not by_force and await holder.is_alive(self.limits.probe_seconds):
                raise SessionBusy(key)
            if session.client is holder:
                holder.cut("the session was resumed by another connection")
        self.sessions.attach(session, client)
        # What was retained while the client was away stays until it was read, or for a while.
        self._returned.add((session, session.epoch), self.loop.time())
        self._arm()
        return session

    def leave(self, session: Session, client: Client) -> None:
        """The client of a session is gone."""
        if not client.comes_back:
            self.sessions.close(session)
            self._end(session)
            return
        for entry in session.entries:
            entry.leave()
        session.valve.open()
        self.sessions.detach(session, self.loop.time())
        self._arm()

    @cached_property
    def places(self) -> CodexPlaces:
        """Where Codex's own are.  Not before somebody asks: the facts of the host wait for its sandboxes."""
        return codex_places(self.backend.info.home)

    def shells(self, session: Session) -> ShellSnapshots | None:
        """The shell snapshots of a session; None if it is over, and nobody would end what they leave."""
        if session.shells is None and self.sessions.get(session.key) is session:
            session.shells = ShellSnapshots(self._shell_room, self.limits.shell_snapshots)
        return session.shells

    # Processes.

    def enter(
        self, home: ProcessScope, starting: Starting, process: HostedProcess, request: StartSummary
    ) -> Entry:
        """A process that was asked for runs.  Its client may be gone already."""
        entry = self._entry(home, starting.name, process, request)
        home.settle(starting, entry)
        if request.window is not None:
            self._open_window(home, entry, request.window)
        if home.client is None and not home.is_shared:
            entry.leave()
        else:
            entry.catch_up()
        announcer = home.tenant.announcer
        if announcer is not None:
            entry.announce(announcer, kept=home.is_shared)
        return entry

    def _entry(self, home: ProcessScope, name: str, process: HostedProcess, request: StartSummary) -> Entry:
        limits = self.limits
        retention = Retention(request.retain, attached=limits.attached_bytes, detached=limits.detached_bytes)
        return Entry(home, name, process, request, owner=self, retention=retention)

    def _open_window(self, home: ProcessScope, entry: Entry, size: int) -> Window:
        return entry.open_window(
            min(size, self.limits.window_bytes),
            clock=self.loop,
            patience=self.limits.detached_seconds if home.is_shared else None,
        )

    def find(self, session: Session, name: str) -> Entry | Starting | None:
        """The process of that name, as it is, or was when it had ended; the client's own before others."""
        entry: Entry | ArchivedEntry | Starting | None = session.find(name)
        if type(entry) is Entry:
            return entry
        home, entry = session.tenant.find(session, name)
        return self._archive.restore(home, entry) if isinstance(entry, ArchivedEntry) else entry

    def remove(self, home: ProcessScope, entry: Entry) -> None:
        """Forget a process that has ended."""
        self._archive.remove(home, entry)

    def closed(self, entry: Entry) -> None:
        assert isinstance(entry.home, ProcessScope)
        self._archive.add(entry.home, entry, self.loop.time())
        self._arm()

    def notify(self, entry: Entry, end: Exit | None) -> None:
        if self.webhooks is not None:
            self.webhooks.ended(entry, end)

    # The end of sessions.

    async def finish(self, session: Session) -> list[int]:
        """End a session now, with everything in it; return who could not be ended."""
        self.sessions.close(session)
        entries = session.entries
        processes = [*session.strays.take(), *(entry.process for entry in entries)]
        cancelled = [self._cancel(entry) for entry in session if isinstance(entry, Starting)]
        try:
            ended = await asyncio.gather(*(process.end() for process in processes))
            # What waits for a start is refused before a new session could be mistaken for its own.
            for settled in cancelled:
                await settled.wait()
        finally:
            self._end(session)
        return [pid for each in ended for pid in each.survivors]

    @staticmethod
    def _cancel(starting: Starting) -> asyncio.Event:
        """Cancel a start; what is returned is set when that is done."""
        settled = asyncio.Event()
        starting.when_settled(settled.set)
        starting.cancel()
        return settled

    def _end(self, home: ProcessScope) -> None:
        home.strays.end()
        if isinstance(home, Session) and home.shells is not None:
            home.shells.end()
        for entry in home:
            if isinstance(entry, Starting):
                entry.cancel()
                continue
            if isinstance(entry, ArchivedEntry):
                self._archive.restore(home, entry).forget()
            else:
                announcer = home.tenant.announcer
                if announcer is not None and entry.process.exit is None:
                    announcer.forgotten(entry.name, entry.request.alias, entry.process)
                if entry.request.notify and entry.process.exit is None:
                    self.notify(entry, None)
                entry.forget(Leftovers.END)
            # It knows its scope: as long as that knows it, too, neither is freed before somebody looks.
            home.release(entry.name)
        self.tenants.tidy(home.tenant)

    def close(self) -> None:
        """End every session, and what belongs to none.  No timer fires after this."""
        for home in (*self.sessions.close_all(), *(tenant.shared for tenant in self.tenants)):
            self._end(home)
        if self.webhooks is not None:
            self.webhooks.close()
        self._disarm()

    # One timer for everything that ends by itself.

    def _arm(self) -> None:
        deadlines = (
            self.sessions.next_deadline,
            self._returned.next_deadline,
            *self._archive.next_deadlines,
        )
        next_deadline = min((deadline for deadline in deadlines if deadline is not None), default=None)
        if self._timer is not None and (next_deadline is None or next_deadline < self._timer.when()):
            # Not all of them last equally long: what came later may be due sooner.
            self._disarm()
        if self._timer is None and next_deadline is not None:
            self._timer = self.loop.call_at(next_deadline, self._on_timer)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timer(self) -> None:
        self._timer = None
        now = self.loop.time()
        for session in self.sessions.expire(now):
            self._end(session)
        self._archive.expire(now)
        for session, epoch in self._returned.due(now):
            if session.epoch == epoch:
                for entry in session.entries:
                    if entry.retention.is_for_absent:
                        entry.catch_up()
        self._arm()

    # Written down, and read again.

    def snapshot(self) -> EndpointSnapshot:
        """Return what another endpoint needs to go on, as if this one had only lost its connections."""
        expiries = self.sessions.deadlines()
        closed = self._archive.deadlines()
        sessions = []
        for session in self.sessions:
            entries = self._written(session, lambda name, key=session.key: closed.get((key, name)))  # type: ignore[misc]
            sessions.append(session.snapshot(expiries.get(session), entries))
        shared = [
            tenant.shared.snapshot(self._written(tenant.shared, tenant.shared.deadline))
            for tenant in self.tenants
        ]
        return EndpointSnapshot(tuple(sessions), tuple(shared))

    def let_go(self) -> None:
        """Leave everything to another endpoint.  No process ends, and no timer fires after this."""
        self._disarm()
        for home in (*self.sessions, *(tenant.shared for tenant in self.tenants)):
            for entry in home.entries:
                if entry.window is not None:
                    entry.window.let_go()

    def _written(self, home: ProcessScope, deadline: Callable[[str], float | None]) -> Written:
        found = []
        for entry in home:
            if isinstance(entry, ArchivedEntry):
                entry = self._archive.restore(home, entry)
            if isinstance(entry, Entry):
                found.append((entry.snapshot(deadline(entry.name)), entry.process))
        return tuple(found)

    def _recover(self) -> None:
        """Go on with what the server before has left."""
        ledger = self.backend.ledger
        if ledger is None:
            return
        sessions, shared, nobodys = found_again(
            ledger.items(), self.backend.recovered(), self.limits, self.loop.time()
        )
        for process in nobodys:
            process.process.forget(Leftovers.END)
        numbers = {session.key: number for number, session in sessions}
        self.resume(EndpointSnapshot(tuple(session for _, session in sessions), shared), numbers)

    def resume(self, snapshot: EndpointSnapshot, numbers: Mapping[str, int] | None = None) -> None:
        """Go on where another endpoint has stopped.  Nothing was opened here yet.

        ``numbers`` are the places of sessions in the ledger, by their keys.
        """
        now = self.loop.time()
        closed: list[tuple[float, ProcessScope, Entry]] = []
        for session in sorted(snapshot.sessions, key=lambda one: (one.deadline is None, one.deadline)):
            tenant = self._tenant(session.identity)
            home = self.sessions.resume(session, tenant, now, (numbers or {}).get(session.key, 0))
            closed += self._read(home, session.entries, session.strays)
        for shared in snapshot.shared:
            tenant = self._tenant(shared.identity)
            closed += self._read(tenant.shared, shared.entries, shared.strays)
        for deadline, scope, entry in sorted(closed, key=lambda one: one[0]):
            self._archive.resume(scope, entry, deadline)
        self._arm()

    def _tenant(self, identity: Identity) -> Tenant:
        """The tenant of that identity; what its ended processes retain counts on its principal's account."""
        return self.tenants.resume(identity, self.backend.on_behalf_of(principal_of(identity)))

    def _read(
        self, home: ProcessScope, entries: Written, strays: Iterable[HostedProcess]
    ) -> Iterator[tuple[float, ProcessScope, Entry]]:
        for process in strays:
            if process.has_leftovers:
                home.strays.keep(process)
            else:
                process.forget(Leftovers.END)  # Nobody was to be served it any more.
        # The last one that gets an alias has it: those that still run come last.
        for written, process in sorted(entries, key=lambda one: one[0].deadline or float("inf")):
            request = written.request
            entry = self._entry(home, written.name, process, request)
            home.settle(home.reserve(written.name, request), entry)
            room = written.unacknowledged
            if written.window is not None and request.window is not None:
                window = self._open_window(home, entry, request.window)
                window.resume(written.window, process)
                room = room if written.window.is_released else max(room, window.room)
            entry.retention.unacknowledged = room
            if home.is_shared:
                entry.catch_up()
            else:
                entry.leave()
            if written.deadline is not None:
                yield written.deadline, home, entry
