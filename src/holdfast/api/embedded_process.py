"""A process of the engine in this program, with its names."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from holdfast.backend import Valve, Watch, Watcher
from holdfast.conditions import Condition, Waited
from holdfast.errors import StillRunning
from holdfast.inspecting import inspect
from holdfast.inspection import Inspection
from holdfast.model import Ended, Exit, Listing, Page, ProcessState, Size, Spec, Stream, WriteStatus
from holdfast.ranges import OutputRange
from holdfast.screens import ScreenSnapshot
from holdfast.value import replace
from holdfast.waiting import wait_for

if TYPE_CHECKING:
    from holdfast.backend import Backend
    from holdfast.engine.process import LocalProcess
    from holdfast.place import Naming

_ARGV_MOST = 1024
"""Characters of a command line in a listing."""


class EmbeddedProcess:
    """A process of the engine with a name.  Implements ``place.NamedProcess``."""

    can_end_stdin = True

    def __init__(
        self,
        about: Listing,
        request: tuple[Spec, Naming],
        process: LocalProcess,
        drop: Callable[[], None],
        backend: Backend,
    ) -> None:
        """
        Args:
            about: What a list said of it while it was starting.
            request: What was asked for.
            drop: Makes its place forget it.
            backend: Whose process it is.
        """
        self.name = about.name
        self.identifier = about.identifier
        self.request = request
        self.process = process
        self._about = about
        self._drop = drop
        self._backend = backend

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

    async def inspect(self) -> Inspection:
        return await inspect(self.process)

    async def wait_for(self, condition: Condition, seconds: float) -> Waited:
        return await wait_for(self.process, condition, self._backend, seconds=seconds)

    async def write(self, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        return await self.process.write(data, write_id=write_id)

    async def close_stdin(self, *, write_id: str | None = None) -> WriteStatus:
        return await self.process.close_stdin(write_id=write_id)

    async def resize(self, size: Size) -> None:
        await self.process.resize(size)

    async def snapshot(self) -> ScreenSnapshot:
        until = self.next_seq - 1
        while (found := self.process.try_snapshot(until)) is None:
            await _others()
        return found

    async def read_range(self, stream: Stream | None, offset: int, length: int) -> OutputRange:
        until = self.next_seq - 1
        while (found := self.process.try_read_range(stream, offset, length, until=until)) is None:
            await _others()
        return found

    async def signal(self, number: int, *, tree: bool = False) -> None:
        await self.process.signal(number, tree=tree)

    async def end(self, *, grace: float = 0.0, by: str = "client") -> Ended:
        return await self.process.end(grace=grace, by=by)

    def release(self) -> None:
        pass  # Only its watchers can hold it back.

    async def remove(self) -> None:
        if self.process.running:
            raise StillRunning(self.name)
        self._drop()

    def listing(self) -> Listing:
        end = self.process.exit
        return replace(
            self._about,
            pid=self.process.pid,
            state=_state(self.process),
            exit_code=self.process.exit_code,
            outcome=None if end is None else end.outcome,
            next_seq=self.process.next_seq,
            retained=self.process.retained(),
        )


async def _others() -> None:
    """Let others have their turn."""
    loop = asyncio.get_running_loop()
    turn = loop.create_future()
    loop.call_soon(turn.set_result, None)
    await turn


def _state(process: LocalProcess) -> ProcessState:
    if process.closed:
        return ProcessState.CLOSED
    return ProcessState.RUNNING if process.exit is None else ProcessState.EXITED


def listing_of(name: str, identifier: str, spec: Spec, *, is_shared: bool) -> Listing:
    """Return the listing of a process that starts now."""
    return Listing(
        name=name,
        identifier=identifier,
        pid=None,
        argv=_cut(spec.argv),
        cwd=spec.cwd,
        terminal=spec.terminal is not None,
        started=time.time(),
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
