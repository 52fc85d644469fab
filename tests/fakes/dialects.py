"""Stand-ins for what a dialect talks to: a client, a process, a backend and a clock moved by hand."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from holdfast.backend import (
    ImmediateControls,
    Ledger,
    Packed,
    RecoveredProcess,
    Valve,
    Watcher,
)
from holdfast.dialects.dialect import LongResult, Postponed
from holdfast.files import Files
from holdfast.inspection import Inspection
from holdfast.model import (
    Chunk,
    Ended,
    Exit,
    HostInfo,
    Kind,
    Leftovers,
    Outcome,
    Page,
    Size,
    Spec,
    Stream,
    WriteStatus,
)
from holdfast.principal import ANYBODY, Principal
from holdfast.ranges import OutputRange
from holdfast.reports import Load
from holdfast.screens import ScreenSnapshot
from holdfast.web import Http
from holdfast.wire.jsonrpc import Id
from tests.fakes.http import FakeHttp

HOST = HostInfo(
    shell="/bin/bash",
    cwd="/srv/a b",
    home="/home/é",
    temp="/tmp",
    temp_dirs=(),
    provider="sha256:00",
    version="9.9.9",
)


class FakeClient:
    """Implements ``dialect.Client``: remembers what it was sent."""

    def __init__(
        self,
        *,
        transport: str = "websocket",
        peer: str = "127.0.0.1:5",
        alive: bool = False,
        principal: Principal = ANYBODY,
    ) -> None:
        self.principal = principal
        self.transport = transport
        self.peer = peer
        self.comes_back = transport != "stdio"
        self.alive = alive
        self.asked: list[float] = []
        """For how long it was given to prove that it is alive, each time."""
        self.on_asked: Callable[[], None] = lambda: None
        self.cuts: list[str] = []
        self.on_cut: Callable[[], None] = lambda: None
        self.raw: list[bytes] = []

    @property
    def send(self) -> Callable[..., None]:
        return self._send

    def _send(self, *parts: bytes) -> None:
        self.raw.append(b"".join(parts))

    def send_long(self, message: LongResult) -> None:
        """At once: nobody else has a turn."""

        async def gather() -> None:
            self._send(message.head, *[piece async for piece in message.pieces], message.tail)
            message.close()

        gathering = gather()
        with contextlib.suppress(StopIteration):
            while True:
                gathering.send(None)

    def cancel(self, key: Id) -> bool:
        """Nothing waits here."""
        return False

    @property
    def sent(self) -> list[Any]:
        """The messages, decoded."""
        return [json.loads(message) for message in self.raw]

    async def is_alive(self, within: float) -> bool:
        self.asked.append(within)
        self.on_asked()
        return self.alive

    def cut(self, reason: str) -> None:
        self.cuts.append(reason)
        self.on_cut()


class FakeWatch:
    """Implements ``backend.Watch``."""

    def __init__(self) -> None:
        self.stopped = False

    def stop(self) -> None:
        self.stopped = True


async def settled(result: Any) -> Any:
    """What a handler's result comes to, as a server would wait for it."""
    while True:
        if isinstance(result, Postponed):
            event: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            stop = result.listen(partial(event.set_result, None))
            try:
                await event
            except asyncio.CancelledError:
                stop()
                raise
            result = result.result()
        elif inspect.isawaitable(result):
            result = await result
        else:
            return result


class FakeProcess(ImmediateControls):
    """Implements ``backend.Process``: remembers what was asked of it, answers what it was told to."""

    pid = 1

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []
        self.exit: Exit | None = None
        self.closed = False
        self.has_leftovers = False
        self.limits: dict[str, str] = {}
        """Its limits, and who keeps them."""
        self.next_seq = 1
        self.retained_bytes = 0
        self.load: Load | None = Load(1, 4096, 30_000)
        self.watcher: Watcher | None = None
        self.valve: Valve | None = None
        self._page = Page([], 1, None, closed=False)
        self.reads_wait = False
        """Whether ``try_read`` has the caller use ``read``."""
        self.write_status: WriteStatus | None = WriteStatus.ACCEPTED
        """What ``try_write`` answers; None has the caller use ``write``."""
        self.stdin_status = WriteStatus.ACCEPTED
        """What ``close_stdin`` answers."""
        self.runs = True
        self.gate: asyncio.Event | None = None
        """What ``read``, ``wait`` and ``terminate`` wait for, if there is one."""
        self.asked = asyncio.Event()
        """Set by the first of them."""
        self.at_work = False
        """Whether those who hold its output open have something to do."""
        self.inspection = Inspection(waiting_for_input=True)
        """What a look at its input shows."""
        self.survivors: tuple[int, ...] = ()
        self.exact = True
        self.snapshots: list[ScreenSnapshot | None] = [
            None,
            ScreenSnapshot(
                1, Size(2, 3), b"hi", 1, 3, cursor_visible=True, title="", alternate=False, complete=True
            ),
        ]
        """What ``try_snapshot`` answers, one after the other."""
        self.ranges: list[OutputRange | None] = [
            None,
            OutputRange(Stream.STDERR, 3, b"hi", 5, 9, 1, ended=False),
        ]
        """What ``try_read_range`` answers, one after the other."""
        self.packed: Packed | None = None
        """What ``pack`` answers."""

    @property
    def page(self) -> Page:
        """What ``read`` and ``try_read`` answer, whatever they are asked for."""
        return self._page

    @page.setter
    def page(self, page: Page) -> None:
        self._page = page
        # Nobody is told of events that there were not.
        self.next_seq = max(self.next_seq, page.next_seq)

    @property
    def exit_code(self) -> int | None:
        return None if self.exit is None else self.exit.code

    @property
    def running(self) -> bool:
        return self.runs and self.exit is None

    def limits_enforced(self) -> dict[str, str]:
        return self.limits

    def watch(self, watcher: Watcher, valve: Valve | None = None) -> FakeWatch:
        self.watcher, self.valve = watcher, valve
        return FakeWatch()

    async def _wait(self) -> None:
        self.asked.set()
        if self.gate is not None:
            await self.gate.wait()

    async def read(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Page:
        self.calls.append(("read", after, limit, wait))
        await self._wait()
        return self.page

    def try_read(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Page | None:
        self.calls.append(("try_read", after, limit, wait))
        return None if self.reads_wait else self.page

    def listen(self, tell: Callable[[], object], *, after: int, deadline: float) -> Callable[[], None]:
        """Tells when the gate opens, and ``try_read`` answers from then on."""
        self.calls.append(("listen", after))

        async def wait() -> None:
            await self._wait()
            self.reads_wait = False
            tell()

        task = asyncio.get_running_loop().create_task(wait())

        def stop() -> None:
            task.cancel()

        return stop

    async def wait(self, seconds: float) -> Exit | None:
        self.calls.append(("wait", seconds))
        await self._wait()
        return self.exit

    async def write(self, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        self.calls.append(("write", data, write_id))
        return WriteStatus.STDIN_CLOSED

    def try_write(self, data: bytes, *, write_id: str | None = None) -> WriteStatus | None:
        self.calls.append(("try_write", data, write_id))
        return self.write_status

    def close_stdin_now(self, *, write_id: str | None = None) -> WriteStatus:
        self.calls.append(("close_stdin",) if write_id is None else ("close_stdin", write_id))
        return self.stdin_status

    def resize_now(self, size: Size) -> None:
        self.calls.append(("resize", size))

    def try_snapshot(self, until: int) -> ScreenSnapshot | None:
        self.calls.append(("try_snapshot", until))
        return self.snapshots.pop(0)

    def signal_now(self, number: int, *, tree: bool = False) -> None:
        self.calls.append(("signal", number, "tree") if tree else ("signal", number))

    def end_now(self) -> None:
        self.calls.append(("end",))

    def look_at_holders(self, tell: Callable[[bool], None]) -> None:
        tell(self.at_work)

    def look_at_load(self, tell: Callable[[Load | None, float], None]) -> None:
        tell(self.load, 0.0)

    def output_bytes(self) -> int:
        return self.retained_bytes

    def look_at_input(self, tell: Callable[[Inspection], None]) -> None:
        self.calls.append(("look_at_input",))
        tell(self.inspection)

    def try_read_range(
        self, stream: Stream | None, offset: int, length: int, *, until: int
    ) -> OutputRange | None:
        self.calls.append(("try_read_range", stream, offset, length, until))
        return self.ranges.pop(0)

    def drain(self) -> None:
        self.calls.append(("drain",))

    async def end(self, *, grace: float = 0.0, by: str = "client") -> Ended:
        self.calls.append(("end", grace, by))
        running = self.exit is None
        await self._wait()
        return Ended(running, self.survivors, exact=self.exact)

    def retain(self, limit: int) -> None:
        self.calls.append(("retain", limit))

    def retained(self) -> int:
        return self.retained_bytes

    def acknowledged(self, seq: int) -> None:
        self.noted = seq

    def pack(self) -> Packed | None:
        return self.packed

    def forget(self, leftovers: Leftovers = Leftovers.SPARE) -> None:
        self.calls.append(("forget", leftovers))

    # What it does, by the hand of a test.

    def say(self, data: bytes, stream: Stream = Stream.STDOUT) -> None:
        assert self.watcher is not None
        self.watcher.output(Chunk(self._number(), stream, data))

    def exit_with(self, code: int = 0, end: Exit | None = None) -> None:
        """Exit with that code, or in another way."""
        assert self.watcher is not None
        self.exit = end or exited(code)
        self.watcher.exited(self._number(), self.exit)

    def close(self) -> None:
        assert self.watcher is not None
        self.closed = True
        self.watcher.closed(self._number())

    def _number(self) -> int:
        self.next_seq += 1
        return self.next_seq - 1


def exited(code: int) -> Exit:
    """An end by itself, with a code."""
    return Exit(code, Outcome(Kind.EXIT, exit_code=code))


class FakeBackend:
    """Implements ``backend.Backend``: each start takes the next of the given outcomes.

    An event as an outcome holds the start back until it is set, and then the one after it counts.
    """

    files: Files
    """There are none unless a test puts some here."""

    def __init__(self, *outcomes: FakeProcess | BaseException | asyncio.Event) -> None:
        self.info = HOST
        self.http: Http = FakeHttp()
        self.specs: list[Spec] = []
        self.asked = asyncio.Event()
        """Set by the first start."""
        self._outcomes = list(outcomes)
        self.is_durable = False
        self.ledger: Ledger | None = None
        self.found: list[RecoveredProcess] = []
        """What ``recovered`` gives."""
        self.unpacked: dict[Packed, FakeProcess] = {}
        """What ``unpack`` answers."""

    def on_behalf_of(self, principal: Principal, peer: str = "") -> FakeBackend:
        return self

    def recovered(self) -> list[RecoveredProcess]:
        recovered, self.found = self.found, []
        return recovered

    async def start(self, spec: Spec) -> FakeProcess:
        self.specs.append(spec)
        self.asked.set()
        outcome = self._outcomes.pop(0)
        if isinstance(outcome, asyncio.Event):
            await outcome.wait()
            outcome = self._outcomes.pop(0)
        if isinstance(outcome, FakeProcess):
            return outcome
        assert isinstance(outcome, BaseException)
        raise outcome

    def unpack(self, packed: Packed) -> FakeProcess:
        return self.unpacked[packed]

    async def aclose(self) -> None:
        self.specs.clear()


class HandTimer:
    """Implements what is needed of ``asyncio.TimerHandle``."""

    def __init__(self, loop: HandLoop, when: float, callback: Callable[[], object]) -> None:
        self._loop = loop
        self._when = when
        self.callback = callback

    def when(self) -> float:
        return self._when

    def cancel(self) -> None:
        self._loop.timers.remove(self)


class HandLoop:
    """A clock and its timers, moved by hand; no other part of an event loop."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.timers: list[HandTimer] = []

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        # A whole event loop has dozens of methods; whoever needs another one gets an AttributeError.
        return cast("asyncio.AbstractEventLoop", self)

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], object]) -> HandTimer:
        timer = HandTimer(self, when, callback)
        self.timers.append(timer)
        return timer

    def move(self, seconds: float) -> None:
        """Let time pass; timers run at their own moment, in order."""
        end = self.now + seconds
        while due := [timer for timer in self.timers if timer.when() <= end]:
            timer = min(due, key=HandTimer.when)
            self.timers.remove(timer)
            self.now = max(self.now, timer.when())
            timer.callback()
        self.now = end
