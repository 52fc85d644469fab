"""The backend on this host: starts processes, keeps the live ones, ends them all."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from holdfast.backend import Ledger, Packed, RecoveredProcess
from holdfast.config import EngineLimits, EnvironmentLimits, FileLimits, HttpLimits, SandboxLimits
from holdfast.errors import BadRequest, Fault, FileFailed, FileRefused, LimitReached
from holdfast.host import environ
from holdfast.host.info import own_environment
from holdfast.host.spawn import failed
from holdfast.model import HostInfo, Leftovers, Spec
from holdfast.poller import Poller
from holdfast.principal import ANYBODY, Identity, Principal, principal_of
from holdfast.telemetry import Audit, Silent, Telemetry
from holdfast.terminal import emulator
from holdfast.tracing import PREPARE_SANDBOX, PROCESS, SPAWN, Span, begin, span
from holdfast.value import replace

from .account import Account, AccountBackend
from .children import Children, PendingStart
from .ended import EndedProcess
from .life import Owner, result_of
from .looking import Looks
from .process import LocalProcess
from .recorder import NO_RECORDER, EngineParts, Recorder, Regainer, Store
from .ring import PIECE, Budget
from .screen import Screens

if TYPE_CHECKING:
    from holdfast.host.sandbox.confinement import Confinement
    from holdfast.host.shim import Shim
    from holdfast.recordings import HostRecording

    from .files import LocalFiles
    from .http import HostHttp
    from .recording import TerminalRecording
    from .users import Users


class LocalBackend:
    """Runs processes on this host.  Implements ``backend.Backend``."""

    def __init__(
        self,
        children: Children,
        look: Callable[[], HostInfo],
        loop: asyncio.AbstractEventLoop,
        *,
        poller: Poller | None = None,
        limits: EngineLimits | None = None,
        http_limits: HttpLimits | None = None,
        file_limits: FileLimits | None = None,
        environment_limits: EnvironmentLimits | None = None,
        sandbox_limits: SandboxLimits | None = None,
        audit: Audit | None = None,
        telemetry: Telemetry | None = None,
        store: Store | None = None,
        screens: Screens = Screens.NONE,
    ) -> None:
        """
        Args:
            look: Finds out what the host is like; asked once, when somebody wants to know.
            poller: The server's.  Without one the backend makes its own and closes it.
            audit: Where it is written down who starts what.
            telemetry: Where processes are counted and timed.
            store: Writes processes down that outlive this server; without one they all end with it.
            screens: Whether the screens of terminals are kept; needs the extra ``screen``.
        """
        self._look = look
        self._info: HostInfo | None = None
        self._children = children
        self._loop = loop
        self._limits = limits or EngineLimits()
        self._http_limits = http_limits or HttpLimits()
        self._http: HostHttp | None = None
        self._file_limits = file_limits
        self._files: LocalFiles | None = None
        self._environment_limits = environment_limits or EnvironmentLimits()
        self._sandbox_limits = sandbox_limits or SandboxLimits()
        self._own_poller = poller is None
        self._poller = poller or Poller()
        if self._own_poller:
            self._poller.attach(loop)
        self._looks = Looks(loop)
        self._users: Users | None = None
        self._parts = EngineParts(loop, self._poller, self._looks, self._limits, screens)
        self._budget = Budget(self._limits.retained_bytes, PIECE)
        self._pending: set[PendingStart] = set()
        self._live: set[LocalProcess] = set()
        self._strays: set[LocalProcess] = set()  # Closed, but not without leaving somebody behind.
        self._audit = audit
        self._store = store
        self.is_durable = store is not None
        self.ledger: Ledger | None = None if store is None else store.ledger
        self._recovered: Sequence[RecoveredProcess] = ()
        self._telemetry = telemetry or Silent()
        # When they started, and their spans; of processes whose end somebody wants to know.
        self._watched: dict[LocalProcess, tuple[float, Span | None]] = {}
        # For as long as anybody uses it: a connection, a session, a process.
        self._accounts: WeakValueDictionary[Identity, Account] = WeakValueDictionary()
        self._closing = False
        self._all_gone: asyncio.Future[None] | None = None
        self.closures = 0
        """Processes that have closed, since somebody last set this to 0."""

    async def ready(self) -> None:
        """Wait until it is known what sandboxes are worth: from then on ``info`` never waits for it."""
        if not self._children.tried_out:
            await self.files.workers.run(lambda: self._children.guarantees)

    @property
    def info(self) -> HostInfo:
        guarantees = self._children.guarantees
        if self._info is None or self._info.sandboxes is not guarantees:
            found = self._info or self._look()
            self._info = replace(
                found,
                sandboxes=guarantees,
                durable=self.is_durable,
                screens=self._parts.screens is not Screens.NONE,
            )
        return self._info

    def usage(self) -> dict[str, int]:
        """How much of its limits is in use, by their names."""
        return {
            # Whoever has left somebody behind counts apart, up to the same number.
            "engine.processes": max(len(self._live) + len(self._pending), len(self._strays)),
            "engine.retained_bytes": self._budget.used,
            "engine.arena_bytes": 0 if self._store is None else self._store.used_bytes,
            "http.requests": 0 if self._http is None else self._http.requests,
            "file.threads": 0 if self._files is None else self._files.workers.busy,
        }

    # What many programs never ask for is imported when one does: they start the sooner.

    @property
    def files(self) -> LocalFiles:
        if self._files is None:
            from .files import LocalFiles

            tmpdir = own_environment().get("TMPDIR")
            self._files = LocalFiles(
                self._loop,
                self._poller,
                self._file_limits,
                sandbox_limits=self._sandbox_limits,
                tmpdir=tmpdir,
            )
        return self._files

    @property
    def http(self) -> HostHttp:
        if self._http is None:
            from .http import HostHttp

            self._http = HostHttp(own_environment(), self._loop, self._http_limits)
        return self._http

    @property
    def users(self) -> Users:
        if self._users is None:
            from .users import Users

            self._users = Users(self._loop, self._limits.user_seconds)
        return self._users

    def check(self, spec: Spec) -> None:
        """Raise ``LimitReached`` if it gives more to its process than a request may."""
        limits = self._limits
        if len(spec.argv) > limits.arguments:
            raise LimitReached("arguments of one process", limits.arguments, name="engine.arguments")
        if sum(map(environ.size, spec.argv)) > limits.argument_bytes:
            raise LimitReached(
                "bytes of the arguments of one process", limits.argument_bytes, name="engine.argument_bytes"
            )
        environ.check(spec.env_policy, spec.env, self._environment_limits)
        if spec.record is not None and spec.terminal is None:
            raise BadRequest("a recording needs a terminal", field="record")

    async def start(self, spec: Spec) -> LocalProcess:
        self.check(spec)
        if spec.record is not None:
            return await self.start_recorded(spec.record, self.files, spec, self, self._budget)
        return await self.start_for(spec, self, self._budget)

    async def start_recorded(
        self, terms: HostRecording, files: LocalFiles, spec: Spec, *facts: Any
    ) -> LocalProcess:
        """Start a process whose terminal is recorded; ``files`` are those that its client may write.

        Args:
            facts: Further arguments of ``start_for``.
        """
        try:
            recording = await files.record(terms)
        except (FileFailed, FileRefused) as error:
            raise BadRequest(f"cannot record to {terms.path}: {error}", field="record") from error
        try:
            return await self.start_for(spec, *facts, recording=recording)
        except Exception:
            await recording.discard()
            raise
        except BaseException:
            recording.discard_soon()
            raise

    async def start_for(
        self,
        spec: Spec,
        owner: Owner,
        budget: Budget,
        identity: Identity = ANYBODY.identity,
        audit: str | None = None,
        *,
        recording: TerminalRecording | None = None,
    ) -> LocalProcess:
        """Start a process that ``owner`` keeps account of, and whose output counts in ``budget``.

        Its variables have been checked.  ``audit`` is its name in the audit log.
        """
        self._check_room()
        if spec.user is not None:
            spec = await self.users.settle(spec)
            self._check_room()
        if spec.env_policy is not None and self._children.effort(spec) > environ.AT_ONCE:
            spec = await self.files.workers.run(partial(self._children.settle, spec))
            self._check_room()
        if spec.terminal is not None and self._parts.screens is Screens.KEPT and not emulator.is_loaded():
            await self.files.workers.run(emulator.load)  # So that nobody waits for it later.
            self._check_room()
        confinement = None
        with span(PREPARE_SANDBOX):
            if spec.sandbox is not None:
                confinement = await self._confine(spec, owner)
                self._check_room()  # Meanwhile others may have started, or everything been closed.
        try:
            with span(SPAWN):
                recorder: Recorder = NO_RECORDER
                if self._store is not None and spec.note:
                    recorder = self._store.recorder(spec, identity, audit)
                process = await self._start(spec, confinement, recorder, owner, budget, recording)
        except OSError as error:
            raise failed(spec, Fault.SYSTEM, spec.argv[0], error.errno or errno.EIO) from error
        self._live.add(process)
        running = begin(PROCESS)
        if running is not None or self._telemetry.recording:
            self._telemetry.process_started()
            self._watched[process] = (self._loop.time(), running)
        return process

    async def _confine(self, spec: Spec, client: object) -> Confinement | None:
        from holdfast.host.sandbox.rules import PolicySearch

        assert spec.sandbox is not None
        search = PolicySearch(self._sandbox_limits)
        workers = self.files.lookups if spec.sandbox.has_patterns else self.files.workers
        try:
            return await workers.run(partial(self._children.confine, spec, search), client=client)
        finally:
            search.give_up()  # If the start was given up the thread is needed elsewhere.

    async def _start(
        self,
        spec: Spec,
        confinement: Confinement | None,
        recorder: Recorder,
        owner: Owner,
        budget: Budget,
        recording: TerminalRecording | None,
    ) -> LocalProcess:
        pending: PendingStart | None = None
        try:
            ordered = self._children.start(spec, confinement, recorder.holding)
            pending = PendingStart(ordered, loop=self._loop, poller=self._poller)
            self._pending.add(pending)
            try:
                child = await pending.child()
            finally:
                self._pending.discard(pending)
            ring = recorder.open(
                child, chunks=self._limits.retained_chunks, budget=budget, now=self._loop.time()
            )
            if recording is not None:
                from .recording import recorded

                return recorded(
                    recording,
                    spec,
                    child,
                    ring,
                    self._parts,
                    owner=owner,
                    terms=spec.terms,
                    recorder=recorder,
                )
            return LocalProcess(child, ring, self._parts, owner=owner, terms=spec.terms, recorder=recorder)
        except BaseException:
            if pending is not None:
                pending.give_up()
            recorder.discard()
            raise

    # What another server has started.

    def recover(self, shims: Iterable[Shim], regainer: Regainer) -> None:
        """Go on with the processes of the server before.  Waits for their shims."""
        assert self._store is not None
        self._recovered = self._store.recover(shims, regainer, self._parts, self._account_of)

    def recovered(self) -> Sequence[RecoveredProcess]:
        recovered, self._recovered = self._recovered, ()
        return recovered

    def _account_of(self, identity: Identity) -> tuple[Owner, Budget]:
        backend = self.on_behalf_of(principal_of(identity))
        return (self, self._budget) if isinstance(backend, LocalBackend) else (backend, backend.budget)

    def adopted(self, process: LocalProcess, audit: str | None) -> None:
        if not process.closed:
            self._live.add(process)
            if self._telemetry.recording:
                self._telemetry.process_started()
                self._watched[process] = (self._loop.time(), None)
        elif process.has_leftovers:
            self._strays.add(process)

    def _check_room(self) -> None:
        most = 0 if self._closing else self._limits.processes
        if len(self._live) + len(self._pending) >= most or len(self._strays) > most:
            raise LimitReached("processes", most, name="engine.processes")

    def on_behalf_of(self, principal: Principal, peer: str = "") -> LocalBackend | AccountBackend:
        if principal is ANYBODY and self._audit is None:
            return self
        account = self._accounts.get(principal.identity)
        if account is None:
            self._accounts[principal.identity] = account = Account(self._budget)
        return AccountBackend(self, account, principal, peer, self._audit)

    def unpack(self, packed: Packed) -> EndedProcess:
        return EndedProcess(packed, self._budget)

    async def aclose(self) -> None:
        if self._closing:
            return
        self._closing = True
        for pending in list(self._pending):
            pending.give_up(LimitReached("processes", 0, name="engine.processes"))
        for process in [*self._live, *self._strays]:
            process.forget(Leftovers.END)
        if self._live or self._strays:
            self._all_gone = self._loop.create_future()
            timer = self._loop.call_later(self._limits.stop_seconds, self._give_up)
            await self._all_gone
            timer.cancel()
        self._children.close()
        self._looks.close()
        if self._files is not None:
            self._files.close()
        if self._users is not None:
            self._users.close()
        if self._http is not None:
            await self._http.aclose()
        if self._own_poller:
            self._poller.close()

    # Implements ``life.Owner``.

    def exited(self, process: LocalProcess) -> None:
        watched = self._watched.pop(process, None)
        if watched is None or process.exit is None:
            return
        started, found = watched
        result = result_of(process.exit)
        self._telemetry.process_finished(result, self._loop.time() - started)
        if found is not None:
            found.set("result", result)
            found.end()

    def closed(self, process: LocalProcess) -> None:
        self.closures += 1
        self._live.discard(process)
        if process.has_leftovers:
            self._strays.add(process)
        self._check_end()

    def gone(self, process: LocalProcess) -> None:
        self._strays.discard(process)
        self._check_end()

    def _check_end(self) -> None:
        if self._all_gone is not None and not self._live and not self._strays:
            self._give_up()

    def _give_up(self) -> None:
        """Wait no longer for processes to end."""
        if self._all_gone is not None and not self._all_gone.done():
            self._all_gone.set_result(None)
