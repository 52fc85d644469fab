"""The engine in this program: runs processes on this host, by name, without a server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from holdfast.backend import Valve, Watch, Watcher
from holdfast.config import EngineLimits
from holdfast.engine.local import LocalBackend
from holdfast.errors import LimitReached, NameTaken, OutOfTurn, StillStarting, UnknownProcess
from holdfast.host.environ import Environment
from holdfast.host.info import host_info, own_environment
from holdfast.host.shim import ForkServer, compiled
from holdfast.host.spawn import Spawner
from holdfast.model import (
    PLAIN,
    Chunk,
    Ended,
    EnvironmentPolicy,
    Exit,
    HostInfo,
    Listing,
    Page,
    ProcessState,
    Size,
    Spec,
    Stream,
    WriteStatus,
)
from holdfast.value import replace

if TYPE_CHECKING:
    from holdfast.backend import Http
    from holdfast.engine.process import LocalProcess
    from holdfast.files import Files
    from holdfast.host.child import ShimChild
    from holdfast.host.outliving import Holding
    from holdfast.host.sandbox.confinement import Confinement
    from holdfast.host.sandbox.rules import PolicySearch
    from holdfast.sandbox import Guarantees

_CLOSED = 30.0
"""Seconds for which a kept process can be found after its end, as on a server."""

_STOP = 5.0
"""Seconds that processes have to end when the host is closed, as on a server."""

_STARTS = 0.5
"""Seconds that starts under way have then.  The engine cancels those that take longer."""

_ARGV_MOST = 1024
"""Characters of a command line in a listing."""


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


class EmbeddedProcess:
    """A process of the engine with a name.  Implements ``place.NamedProcess``."""

    can_end_stdin = True

    def __init__(
        self, name: str, spec: Spec, process: LocalProcess, started: float, *, is_shared: bool
    ) -> None:
        self.name = name
        self.spec = spec
        self.process = process
        self.started = started
        self.is_shared = is_shared

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def exit(self) -> Exit | None:
        return self.process.exit

    @property
    def exit_code(self) -> int | None:
        return self.process.exit_code

    @property
    def closed(self) -> bool:
        return self.process.closed

    @property
    def next_seq(self) -> int:
        return self.process.next_seq

    def watch(self, watcher: Watcher, valve: Valve | None = None) -> Watch:
        return self.process.watch(watcher, valve)

    async def read(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Page:
        return await self.process.read(after=after, limit=limit, wait=wait)

    async def wait(self, seconds: float) -> Exit | None:
        return await self.process.wait(seconds)

    async def write(self, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        return await self.process.write(data, write_id=write_id)

    async def close_stdin(self, *, write_id: str | None = None) -> WriteStatus:
        return await self.process.close_stdin(write_id=write_id)

    async def resize(self, size: Size) -> None:
        await self.process.resize(size)

    async def signal(self, number: int, *, tree: bool = False) -> None:
        await self.process.signal(number, tree=tree)

    async def end(self, *, grace: float = 0.0, by: str = "client") -> Ended:
        return await self.process.end(grace=grace, by=by)

    def release(self) -> None:
        pass  # Only its watchers can hold it back.

    def listing(self) -> Listing:
        end = self.process.exit
        return replace(
            _listing(self.name, self.spec, self.started, is_shared=self.is_shared),
            pid=self.process.pid,
            state=_state(self.process),
            exit_code=self.process.exit_code,
            outcome=None if end is None else end.outcome,
            next_seq=self.process.next_seq,
            retained=self.process.retained(),
        )


def _state(process: LocalProcess) -> ProcessState:
    if process.closed:
        return ProcessState.CLOSED
    return ProcessState.RUNNING if process.exit is None else ProcessState.EXITED


def _listing(name: str, spec: Spec, started: float, *, is_shared: bool) -> Listing:
    """Return the listing of a process that starts."""
    return Listing(
        name=name,
        pid=None,
        argv=_cut(spec.argv),
        cwd=spec.cwd,
        terminal=spec.terminal is not None,
        started=started,
        state=ProcessState.STARTING,
        exit_code=None,
        outcome=None,
        next_seq=1,
        retained=0,
        kept=is_shared,
    )


def _cut(argv: Sequence[str]) -> Sequence[str]:
    """Return a command line, cut to the length of a listing."""
    length = 0
    for index, argument in enumerate(argv):
        length += len(argument)
        if length > _ARGV_MOST:
            return [*argv[:index], "..."]
    return argv


class _Closing:
    """Calls a function when a process has closed.  Implements ``backend.Watcher``."""

    def __init__(self, on_closed: partial[None]) -> None:
        self._on_closed = on_closed

    def output(self, chunk: Chunk) -> None:
        pass

    def ended(self, stream: Stream) -> None:
        pass

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        pass

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
        self._starting: dict[str, Listing] = {}
        self._names: dict[str, EmbeddedProcess] = {}
        self._number = 0
        self._closed = False
        self._settled = asyncio.Event()  # Set when a start has succeeded or failed.
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._children = _Children()
        given = {"processes": processes, "retained_bytes": retained_bytes}
        limits = replace(EngineLimits(), **{key: value for key, value in given.items() if value is not None})
        self._backend = LocalBackend(self._children, host_info, self._loop, limits=limits)

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

    async def start(
        self, spec: Spec, *, name: str | None = None, keep: bool = False, retain: int | None = None
    ) -> EmbeddedProcess:
        self._check_open()
        name = self._free_name() if name is None else name
        if name in self._names or name in self._starting:
            raise NameTaken(name)
        if spec.sandbox is not None:
            self._children.equip()
        started = time.time()
        self._starting[name] = _listing(name, spec, started, is_shared=keep)
        try:
            process = await self._backend.start(spec)
        except LimitReached:
            self._check_open()  # An engine that is closed reports a limit.
            raise
        finally:
            del self._starting[name]
            self._settled.set()
        self._check_open()  # If not, ``aclose`` ends it with all others.
        if retain is not None:
            process.retain(retain)
        named = EmbeddedProcess(name, spec, process, started, is_shared=keep)
        # The last reference may go away in any thread.
        weakref.finalize(named, _soon, self._loop, process.forget).atexit = False
        self._names[name] = named
        process.watch(_Closing(partial(self._on_closed, name, keep=keep)))
        return named

    def _check_open(self) -> None:
        if self._closed:
            raise OutOfTurn("the host was closed")

    def _free_name(self) -> str:
        while True:
            self._number += 1
            if (name := f"process-{self._number}") not in self._names and name not in self._starting:
                return name

    def _on_closed(self, name: str, *, keep: bool) -> None:
        if keep:
            self._timers[name] = self._loop.call_later(_CLOSED, self._drop, name)
        else:
            self._drop(name)

    def _drop(self, name: str) -> None:
        del self._names[name]
        self._timers.pop(name, None)

    async def find(self, name: str) -> EmbeddedProcess:
        if name in self._starting:
            raise StillStarting(name)
        if name not in self._names:
            raise UnknownProcess(name)
        return self._names[name]

    async def list(self) -> Sequence[Listing]:
        listed = [*self._starting.values(), *(named.listing() for named in self._names.values())]
        return sorted(listed, key=lambda listing: listing.started)

    # The end.

    async def aclose(self) -> None:
        self._closed = True
        live = [named.process for named in self._names.values() if not named.closed]
        for process in live:
            process.kill()
        # Readers and waiters get to see the end, unless it takes too long.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP):
                for process in live:
                    await process.end()
        for timer in self._timers.values():
            timer.cancel()
        self._names.clear()
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
