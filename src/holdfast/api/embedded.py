"""The engine in this program: runs processes on this host, by name, without a server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import weakref
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from holdfast.aliases import LEAST_PREFIX, Aliases, coin, coin_identifier, complaint
from holdfast.config import EngineLimits
from holdfast.engine.files import LocalFiles
from holdfast.engine.local import LocalBackend
from holdfast.engine.screen import Screens
from holdfast.errors import (
    BadRequest,
    LimitReached,
    NameAmbiguous,
    NameTaken,
    OutOfTurn,
    StillRunning,
    StillStarting,
    UnknownProcess,
    Unsupported,
)
from holdfast.host.environ import Environment
from holdfast.host.info import host_info, own_environment
from holdfast.host.shim import ForkServer, compiled
from holdfast.host.spawn import Spawner
from holdfast.model import (
    PLAIN,
    Chunk,
    CurrentUsage,
    EnvironmentPolicy,
    Exit,
    HostInfo,
    Listing,
    Spec,
    Stream,
)
from holdfast.place import UNNAMED, Naming
from holdfast.poller import Poller
from holdfast.terminal import emulator
from holdfast.usage import current_usage
from holdfast.value import replace

from .embedded_events import EmbeddedEvents
from .embedded_process import EmbeddedProcess, listing_of

if TYPE_CHECKING:
    from holdfast.files import Files
    from holdfast.host.child import ShimChild
    from holdfast.host.outliving import Holding
    from holdfast.host.sandbox.confinement import Confinement
    from holdfast.host.sandbox.rules import PolicySearch
    from holdfast.sandbox import Guarantees
    from holdfast.web import Http

_CLOSED = 30.0
"""Seconds for which a kept process can be found after its end, as on a server."""

_STOP = 5.0
"""Seconds that processes have to end when the host is closed, as on a server."""

_STARTS = 0.5
"""Seconds that starts under way have then.  The engine cancels those that take longer."""


@contextlib.asynccontextmanager
async def files_here() -> AsyncIterator[Files]:
    """Give the files of this host, for a program that runs nothing here; their threads end with the block."""
    poller = Poller()
    poller.attach(asyncio.get_running_loop())
    files = LocalFiles(asyncio.get_running_loop(), poller)
    try:
        yield files
    finally:
        files.close()
        poller.close()


class _OwnEnvironment(Environment):
    """The variables that this program has when a child starts, as with ``subprocess``."""

    def __init__(self) -> None:
        super().__init__({})

    def child(
        self,
        policy: EnvironmentPolicy | None,
        overlay: Mapping[str, str | None],
        allowed: tuple[str, ...] | None = None,
    ) -> dict[str, str]:
        own = own_environment() if policy is not None else {}
        return Environment(own).child(policy, overlay, allowed)


class _Children:
    """Starts children.  What enforces limits and sandboxes is set up for the first child that needs it.

    Implements ``engine.children.Children``.
    """

    def __init__(self) -> None:
        self._fork_server = ForkServer()
        self._fork_server.prepare()  # It starts while we go on.
        self._plain = Spawner(_OwnEnvironment(), self._fork_server)
        self._full: Spawner | None = None

    def equip(self) -> Spawner:
        """Return the spawner that enforces limits and sandboxes."""
        if self._full is None:
            from holdfast.host.limits import find_groups
            from holdfast.host.sandbox.confinement import Confiner

            self._full = Spawner(
                _OwnEnvironment(),
                self._fork_server,
                groups=find_groups(),
                confiner=Confiner(compiled()),
            )
        return self._full

    @property
    def tried_out(self) -> bool:
        return self.equip().tried_out

    @property
    def guarantees(self) -> Guarantees:
        return self.equip().guarantees

    def effort(self, spec: Spec) -> int:
        return self._plain.effort(spec)

    def settle(self, spec: Spec) -> Spec:
        return self._plain.settle(spec)

    def confine(self, spec: Spec, search: PolicySearch | None = None) -> Confinement | None:
        assert self._full is not None  # Called in a thread, where it must not be set up.
        return self._full.confine(spec, search)

    def start(
        self, spec: Spec, confinement: Confinement | None = None, holding: Holding | None = None
    ) -> ShimChild:
        plain = spec.sandbox is None and spec.terms.limits == PLAIN.limits
        return (self._plain if plain else self.equip()).start(spec, confinement, holding)

    def close(self) -> None:
        for spawner in (self._plain, self._full):
            if spawner is not None:
                spawner.close()


class _Closing:
    """Calls functions when a process has exited and closed.  Implements ``backend.Watcher``."""

    def __init__(self, on_exited: partial[None], on_closed: partial[None]) -> None:
        self._on_exited = on_exited
        self._on_closed = on_closed

    def output(self, chunk: Chunk) -> None:
        pass

    def ended(self, stream: Stream) -> None:
        pass

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        self._on_exited()

    def closed(self, seq: int) -> None:
        self._on_closed()


class Embedded:
    """The engine of this program as a place for processes.  Implements ``place.Place``.

    A process can be found until it has closed and, if it is kept, for a while after.  Its output is dropped
    when nothing refers to the process any more.
    """

    def __init__(self, *, processes: int | None = None, retained_bytes: int | None = None) -> None:
        """Must be called in a running event loop, which all methods belong to."""
        self._loop = asyncio.get_running_loop()
        self._starting: dict[str, Listing] = {}  # By identifier, as all of these.
        self._processes: dict[str, EmbeddedProcess] = {}
        self._aliases = Aliases()
        self.events = EmbeddedEvents(self._loop, self._processes)
        self._closed = False
        self._settled = asyncio.Event()  # Set when a start has succeeded or failed.
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._children = _Children()
        given = {"processes": processes, "retained_bytes": retained_bytes}
        limits = replace(EngineLimits(), **{key: value for key, value in given.items() if value is not None})
        screens = Screens.ASKED if emulator.is_available() else Screens.NONE
        self._backend = LocalBackend(self._children, host_info, self._loop, limits=limits, screens=screens)

    @property
    def info(self) -> HostInfo:
        return replace(self._backend.info, cwd=os.getcwd())

    @property
    def files(self) -> Files:
        return self._backend.files

    @property
    def http(self) -> Http:
        return self._backend.http

    # Processes.

    async def start(self, spec: Spec, naming: Naming = UNNAMED) -> EmbeddedProcess:
        self._check_open()
        if naming.notify is not None:
            raise Unsupported("a webhook without a server")
        if naming.idempotent and (found := await self._same(spec, naming)) is not None:
            return found
        about = self._reserve(spec, naming)
        identifier, keep = about.identifier, naming.keep
        if spec.sandbox is not None:
            self._children.equip()
        try:
            process = await self._backend.start(spec)
        except BaseException as error:
            self._aliases.release(identifier)
            if isinstance(error, LimitReached):
                self._check_open()  # An engine that is closed reports a limit.
            raise
        finally:
            del self._starting[identifier]
            self._settled.set()
        self._check_open()  # If not, ``aclose`` ends it with all others.
        if naming.retain is not None:
            process.retain(naming.retain)
        named = EmbeddedProcess(
            about, (spec, naming), process, partial(self._drop, identifier), self._backend
        )
        # The last reference may go away in any thread.
        weakref.finalize(named, _soon, self._loop, process.forget).atexit = False
        self._processes[identifier] = named
        self._aliases.settle(identifier)
        keep = keep and not naming.auto_remove
        process.watch(
            _Closing(partial(self.events.exited, identifier), partial(self._on_closed, identifier, keep=keep))
        )
        self.events.started(named)
        return named

    def _check_open(self) -> None:
        if self._closed:
            raise OutOfTurn("the host was closed")

    async def _same(self, spec: Spec, naming: Naming) -> EmbeddedProcess | None:
        """Return the process that the same request has started, or is about to."""
        assert naming.name is not None
        while naming.name in self._starting:
            self._settled.clear()
            await self._settled.wait()
        found = self._processes.get(naming.name)
        if found is not None and found.request != (spec, naming):
            raise NameTaken(naming.name)
        return found

    def _reserve(self, spec: Spec, naming: Naming) -> Listing:
        """Take a name and an identifier for a process."""
        name = naming.name or self._free_name()
        if (wrong := complaint(name)) is not None:
            raise BadRequest(wrong, field="name")
        if self._is_live(name):
            raise NameTaken(name)
        identifier = name if naming.idempotent else coin_identifier()
        if identifier in self._processes or identifier in self._starting:
            raise NameTaken(identifier)
        self._aliases.reserve(name, identifier)
        about = self._starting[identifier] = listing_of(name, identifier, spec, is_shared=naming.keep)
        return about

    def _free_name(self) -> str:
        while self._is_live(name := coin()):
            pass
        return name

    def _is_live(self, name: str) -> bool:
        """Whether a process with this name is starting or has not ended."""
        identifier = self._aliases.find(name)
        found = None if identifier is None else self._processes.get(identifier)
        return identifier in self._starting or (found is not None and found.process.running)

    def _on_closed(self, identifier: str, *, keep: bool) -> None:
        if keep:
            self._timers[identifier] = self._loop.call_later(_CLOSED, self._drop, identifier)
        else:
            self._drop(identifier)

    def _drop(self, identifier: str) -> None:
        """Forget a process, if that has not been done."""
        self._processes.pop(identifier, None)
        self._aliases.release(identifier)
        if (timer := self._timers.pop(identifier, None)) is not None:
            timer.cancel()

    def _resolve(self, name: str) -> str:
        """Return the identifier of the process that somebody calls so.

        Raises:
            UnknownProcess: There is none.
            NameAmbiguous: Several identifiers begin like this.
        """
        if (identifier := self._aliases.find(name)) is not None:
            return identifier
        known = (*self._starting, *self._processes)
        if name in known:
            return name
        found = [each for each in known if len(name) >= LEAST_PREFIX and each.startswith(name)]
        if len(found) > 1:
            raise NameAmbiguous(name)
        if not found:
            raise UnknownProcess(name)
        return found[0]

    async def find(self, name: str) -> EmbeddedProcess:
        identifier = self._resolve(name)
        if identifier in self._starting:
            raise StillStarting(name)
        return self._processes[identifier]

    async def restart(self, name: str, *, grace: float = 0.0) -> EmbeddedProcess:
        old = await self.find(name)
        spec, naming = old.request
        if not naming.keep:
            raise Unsupported("a restart of a process that is not kept")
        if (await old.end(grace=grace)).survivors:
            raise StillRunning(old.name)
        # Not recorded again: its recording would be in the way of another one.
        spec = replace(spec, record=None)
        return await self.start(spec, replace(naming, name=old.name, idempotent=False))

    async def describe(self, name: str) -> Listing:
        identifier = self._resolve(name)
        starting = self._starting.get(identifier)
        return self._processes[identifier].listing() if starting is None else starting

    async def list(self, *, inspect: bool = False) -> Sequence[Listing]:
        if inspect:
            return await self._list_inspected()
        listed = [*self._starting.values(), *(named.listing() for named in self._processes.values())]
        return sorted(listed, key=lambda listing: listing.started)

    async def usage(self, names: Sequence[str] | None = None) -> Sequence[CurrentUsage]:
        called = self._processes if names is None else [self._aliases.find(name) or name for name in names]
        known = [self._processes[each] for each in dict.fromkeys(called) if each in self._processes]
        measured = [(each.name, each.identifier, each.process) for each in known]
        return [found async for found in current_usage(measured)]

    async def _list_inspected(self) -> Sequence[Listing]:
        """As ``list``, with what a look at each running process shows."""
        running = [named for named in self._processes.values() if named.exit is None]
        found = await asyncio.gather(*(named.inspect() for named in running))
        waiting = {named.identifier: one.waiting_for_input for named, one in zip(running, found, strict=True)}
        return [replace(one, waiting_for_input=waiting.get(one.identifier)) for one in await self.list()]

    # The end.

    async def aclose(self) -> None:
        self._closed = True
        live = [named.process for named in self._processes.values() if not named.closed]
        for process in live:
            process.kill()
        # Readers and waiters get to see the end, unless it takes too long.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP):
                for process in live:
                    await process.end()
        self.events.close()
        for timer in self._timers.values():
            timer.cancel()
        self._processes.clear()
        # A start that is under way must not lose the engine in the middle.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STARTS):
                while self._starting:
                    self._settled.clear()
                    await self._settled.wait()
        await self._backend.aclose()


def _soon(loop: asyncio.AbstractEventLoop, work: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # The loop is closed, and the engine with it.
        loop.call_soon_threadsafe(work)
