"""The engine as far as one client may use it: its token's grant, its principal's quotas, the audit log.

What must hold:

1. What is asked for is checked before anything is done, and refused as a whole.
2. A process counts from the request for it until nobody of its tree is left, whichever
   connection of its principal has asked.
3. Nothing is started that the audit log does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from os.path import realpath
from typing import TYPE_CHECKING

from holdfast.backend import Ledger, Packed, RecoveredProcess
from holdfast.errors import Forbidden, HoldfastError, LimitReached
from holdfast.host import environ
from holdfast.model import HostInfo, Spec
from holdfast.principal import Grant, Principal
from holdfast.telemetry import Audit, AuditRecord
from holdfast.value import replace

from .ended import EndedProcess
from .process import LocalProcess
from .ring import Budget, Share

if TYPE_CHECKING:
    from holdfast.model import HttpRequest

    from .files import LocalFiles
    from .http import HostHttp, HostResponse
    from .local import LocalBackend


class Account:
    """What one principal uses, over all its connections."""

    __slots__ = ("__weakref__", "budget", "live", "pending")

    def __init__(self, whole: Budget) -> None:
        self.pending = 0
        self.live: set[LocalProcess] = set()
        self.budget = Share(whole)

    @property
    def processes(self) -> int:
        return self.pending + len(self.live)


class AccountBackend:
    """The engine for one client.  Implements ``backend.HostedBackend``."""

    def __init__(
        self, engine: LocalBackend, account: Account, principal: Principal, peer: str, audit: Audit | None
    ) -> None:
        self._engine = engine
        self._account = account
        self._principal = principal
        self._grant = principal.grant
        self._peer = peer
        self._audit = audit
        self._entries: dict[LocalProcess, AuditRecord] = {}
        # Of several tokens of one principal the last one that came counts.
        account.budget.most = self._grant.retained_bytes

    @property
    def info(self) -> HostInfo:
        return self._engine.info

    @property
    def is_durable(self) -> bool:
        return self._engine.is_durable

    @property
    def ledger(self) -> Ledger | None:
        return self._engine.ledger

    def recovered(self) -> Sequence[RecoveredProcess]:
        """None: the engine's are everybody's."""
        return ()

    @property
    def budget(self) -> Budget:
        """What the principal's output counts in."""
        return self._account.budget

    @property
    def files(self) -> LocalFiles:
        files = self._engine.files
        return files if self._grant.roots is None else files.within(self._grant.roots)

    @property
    def http(self) -> AccountHttp:
        return AccountHttp(self._engine.http, self._grant)

    def on_behalf_of(self, principal: Principal, peer: str = "") -> LocalBackend | AccountBackend:
        return self._engine.on_behalf_of(principal, peer)

    def unpack(self, packed: Packed) -> EndedProcess:
        return EndedProcess(packed, self._account.budget)

    async def aclose(self) -> None:
        """Nothing: the engine is everybody's."""

    async def start(self, spec: Spec) -> LocalProcess:
        self._engine.check(spec)
        await self._check_variables(spec)
        most = self._grant.processes
        if most is not None and self._account.processes >= most:
            raise LimitReached("processes of one principal", most, name="token.processes")
        self._account.pending += 1
        try:
            await self._check_directory(spec.cwd)
            if spec.user is not None:
                await self._check_user(spec.user.name)
            entry = None if self._audit is None else self._audit.start(self._principal, self._peer, spec)
            process = await self._begin(replace(spec, variables=self._grant.variables), entry)
        finally:
            self._account.pending -= 1
        self._account.live.add(process)
        return process

    async def _begin(self, spec: Spec, entry: AuditRecord | None) -> LocalProcess:
        try:
            ref = None if entry is None else entry.ref
            facts = self, self._account.budget, self._principal.identity, ref
            if spec.record is not None:
                process = await self._engine.start_recorded(spec.record, self.files, spec, *facts)
            else:
                process = await self._engine.start_for(spec, *facts)
        except BaseException as error:
            if entry is not None:
                entry.failed(str(error) if isinstance(error, HoldfastError) else type(error).__name__)
            raise
        if entry is not None:
            entry.running(process.pid)
            self._entries[process] = entry
        return process

    async def _check_variables(self, spec: Spec) -> None:
        if self._grant.variables is None:
            return
        given = [name for name, value in spec.env.items() if value is not None]
        if spec.env_policy is not None:
            given += [name for name, _ in spec.env_policy.set]
        look = partial(self._grant.first_forbidden, given)
        is_short = sum(map(len, given)) <= environ.AT_ONCE
        forbidden = look() if is_short else await self._engine.files.workers.run(look)
        if forbidden is not None:
            raise Forbidden("variable", forbidden)

    async def _check_directory(self, cwd: str) -> None:
        roots = self._grant.roots
        if roots is None:
            return
        allowed = self._grant.allows_path(cwd)
        if allowed:
            # By its links it may be elsewhere, and so may the roots.
            look = self._engine.files.workers.run
            place, *real = await look(lambda: [realpath(path) for path in (cwd, *roots)])
            allowed = Grant(roots=tuple(real)).allows_path(place)
        if not allowed:
            raise Forbidden("directory", cwd)

    async def _check_user(self, name: str) -> None:
        """Refuse a user before the host is asked of it: who may not be that user learns nothing."""
        if not self._principal.allows_user(name) and not await self._engine.users.is_own(name):
            raise Forbidden("user", name)

    # Implements ``life.Owner``.

    def adopted(self, process: LocalProcess, audit: str | None) -> None:
        if not process.closed or process.has_leftovers:
            self._account.live.add(process)
        if audit is not None and self._audit is not None:
            self._entries[process] = self._audit.resume(audit, process.pid)
            if process.exit is not None:
                self._record_end(process)
        self._engine.adopted(process, audit)

    def exited(self, process: LocalProcess) -> None:
        self._record_end(process)
        self._engine.exited(process)

    def _record_end(self, process: LocalProcess) -> None:
        entry = self._entries.pop(process, None)
        if entry is not None and process.exit is not None:
            entry.ended(process.exit)
            process.recorder.audited()

    def closed(self, process: LocalProcess) -> None:
        if not process.has_leftovers:
            self._account.live.discard(process)
        self._engine.closed(process)

    def gone(self, process: LocalProcess) -> None:
        if process.closed:
            self._account.live.discard(process)
        self._engine.gone(process)


class AccountHttp:
    """HTTP requests of one client.  Implements ``backend.Http``."""

    def __init__(self, http: HostHttp, grant: Grant) -> None:
        self._http = http
        self._grant = grant

    async def request(self, request: HttpRequest) -> HostResponse:
        for header in request.headers:
            if header.variable is not None and not self._grant.allows_variable(header.variable):
                raise Forbidden("variable", header.variable)
        return await self._http.request(request)
