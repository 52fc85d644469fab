"""The life of one process: output, exit, close.

What must hold:

1. Output, exit and close share one gapless series of numbers.
2. What the child wrote before it ended is numbered before its exit.
3. ``exited`` comes once, when the child has ended; ``closed`` comes once, after
   the exit and after the last output ended.
4. A chunk is never split, merged or changed after it has a number.
5. A watcher that raises is removed and logged; nobody else is affected.
6. While a watcher's valve is shut nothing is read, and the end waits too.
7. Whoever ends a process ends everything it has started.
"""

from __future__ import annotations

import asyncio

from holdfast.backend import Valve, Watcher
from holdfast.config import EngineLimits
from holdfast.errors import NoTerminal, StdinFailed
from holdfast.host.orders import News, Report
from holdfast.model import (
    PLAIN,
    Cause,
    Chunk,
    Ended,
    Exit,
    Kind,
    Leftovers,
    Page,
    Size,
    Stream,
    Terms,
    Usage,
    WriteStatus,
)
from holdfast.poller import Poller
from holdfast.value import replace

from .children import Child
from .ending import end_of
from .output import Output
from .past import pack
from .prompt import Prompt
from .reading import is_news, page
from .ring import Ring
from .state import Owner, State
from .stdin import Stdin
from .tree import GONE, Tree
from .waiting import Waiting
from .watches import LocalWatch

_PATIENCE = 3.0
"""Seconds for a warden to say who survived; it takes a third of them to be sure."""


class LocalProcess(Prompt):
    """A process on this host.  Implements ``backend.KeptProcess``."""

    __slots__ = (
        "_cause",
        "_drain_timer",
        "_loop",
        "_outputs",
        "_owner",
        "_ring",
        "_seq",
        "_state",
        "_stdin",
        "_terminal",
        "_terms",
        "_waiting",
        "_watches",
        "exit",
        "pid",
        "tree",
        "valves",
        "writes",
    )

    # Birth.

    def __init__(
        self,
        child: Child,
        ring: Ring,
        *,
        loop: asyncio.AbstractEventLoop,
        poller: Poller,
        limits: EngineLimits,
        owner: Owner,
        terms: Terms = PLAIN,
    ) -> None:
        """``child`` runs, and the poller watches it."""
        self.pid = child.pid
        self.exit: Exit | None = None
        self._ring = ring
        self._loop = loop
        self._owner = owner
        self._terms = terms
        self._state = State.RUNNING
        self._cause: Cause | None = None
        self._seq = 0
        self.writes = 0
        self._watches: tuple[LocalWatch, ...] = ()
        self.valves: tuple[Valve, ...] = ()
        self._waiting: Waiting | None = None
        self._drain_timer: asyncio.TimerHandle | None = None
        self._stdin: Stdin | None = None
        if child.stdin is not None:
            self._stdin = Stdin(child.stdin, loop=loop, poller=poller, limits=limits)
        outputs = (Output(stream, fd, self, loop=loop, poller=poller) for stream, fd in child.outputs)
        self._outputs = tuple(outputs)
        self._terminal = any(stream is Stream.PTY for stream, _ in child.outputs)
        child.hand_over()
        self.tree = Tree(child, self, loop=loop, poller=poller)

    # The hot path.

    def said(self, stream: Stream, data: bytes) -> None:
        """Number what the child said, keep it, and tell everybody."""
        self._seq = seq = self._seq + 1
        chunk = Chunk(seq, stream, data)
        self._ring.append(chunk)
        for watch in self._watches:
            try:
                watch.watcher.output(chunk)
            except Exception:  # noqa: BLE001  (rule 5)
                watch.fail()
        if self._waiting is not None:
            self._wake()

    # The end.

    def must_wait(self) -> bool:
        """Whether the news of the exit has to wait for a watcher."""
        if self._state is not State.TERMINATING:
            for valve in self.valves:
                if not valve.is_open:
                    valve.wait(self.tree.resume)
                    return True
        return False

    def exited(self, report: Report) -> None:
        """First what it said, then its end."""
        self.drain()
        for output in self._outputs:
            output.on_ready()  # Usually the end.
        end = end_of(report, self._cause, self.tree, self._ring)
        if report.news is News.LOST:
            self._state = State.TERMINATING  # Whoever is left is out of our sight.
        elif self._outputs and self._state is not State.TERMINATING:
            holders = self.tree.holders([output.fileno() for output in self._outputs])
            end = replace(end, held_by=holders)
        self._become(State.EXITED, end)

    def ended(self, output: Output) -> None:
        """One output is at its end."""
        self._outputs = tuple(other for other in self._outputs if other is not output)
        for watch in self._watches:
            try:
                watch.watcher.ended(output.stream)
            except Exception:  # noqa: BLE001  (rule 5)
                watch.fail()
        if not self._outputs and self._state is State.EXITED:
            self._become(State.CLOSED)

    def _become(self, state: State, end: Exit | None = None) -> None:
        """The one place where the state changes to one that is told; it also tells whom it concerns."""
        before, self._state = self._state, state
        self._seq += 1
        if state is State.EXITED:
            assert end is not None
            if self._stdin is not None:
                self._stdin.close()
            self.exit = end
            self._owner.exited(self)
            self._tell("exited", end)
            if before is State.TERMINATING:
                self._close_outputs()
            elif self._outputs and self._terms.drain is not None:
                self._drain_timer = self._loop.call_later(self._terms.drain, self._on_drained)
            if not self._outputs and self._state is State.EXITED:
                self._become(State.CLOSED)
        else:
            self._tell("closed")
            for watch in self._watches:
                watch.stop()  # Nothing follows; what is kept of a closed process should be small.
            if self._stdin is not None and not self._stdin.remembers:
                self._stdin = None
            if self._drain_timer is not None:
                self._drain_timer.cancel()
                self._drain_timer = None
            self._terms = PLAIN
            self._owner.closed(self)

    def _on_drained(self) -> None:
        """Whoever holds the output open has held it for long enough."""
        self.drain()
        self._close()

    def used(self, usage: Usage) -> None:
        if self.exit is not None:
            self.exit = replace(self.exit, usage=usage)

    def changed(self) -> None:
        self._wake()
        if self.tree.gone:
            self.tree = GONE  # What is kept of an ended process should be small.
            self._owner.gone(self)

    def _tell(self, event: str, *facts: Exit) -> None:
        for watch in self._watches:
            try:
                getattr(watch.watcher, event)(self._seq, *facts)
            except Exception:  # noqa: BLE001  (rule 5)
                watch.fail()
        self._wake()

    def _close(self) -> None:
        """Wait no longer for the output of an exited process."""
        if self._state is State.EXITED:
            self._close_outputs()
            self._become(State.CLOSED)

    def _close_outputs(self) -> None:
        outputs, self._outputs = self._outputs, ()
        for output in outputs:
            output.close()

    def signal_now(self, number: int, *, tree: bool = False) -> None:
        self.tree.signal(number, all_of_it=tree)

    async def terminate(self, *, grace: float = 0.0, by: str = "client") -> Ended:
        running = self.end(Cause(Kind.TERMINATED, by), grace)
        tree, deadline = self.tree, self._loop.time() + grace + _PATIENCE
        while tree.survivors is None and self._loop.time() < deadline:
            await self._next_event(deadline)
        survivors = tree.members() if tree.survivors is None else tree.survivors
        return Ended(running, survivors, exact=self.exit is None or self.exit.outcome.kind is not Kind.LOST)

    def end(self, cause: Cause, grace: float = 0.0) -> bool:
        """End the tree, with time to end by itself; say whether the process still ran."""
        running = self.exit is None
        if running and self._cause is None:
            self._cause = cause
            if cause.kind is Kind.OUTPUT_LIMIT:
                for output in self._outputs:
                    output.mute()
        if grace <= 0 or self._state is State.TERMINATING:
            self.kill()
        else:
            if self._state is State.RUNNING:
                self._state = State.STOPPING
            self.tree.stop(grace, self.kill)
        return running

    def kill(self) -> None:
        """End the tree now."""
        self.tree.kill()
        if self._state in (State.RUNNING, State.STOPPING):
            self._state = State.TERMINATING
            self._go_on()
        else:
            self._close()

    def forget(self, leftovers: Leftovers = Leftovers.SPARE) -> None:
        for watch in self._watches:
            watch.stop()
        self._ring.close()
        if self.exit is None or leftovers is Leftovers.END:
            self.kill()
            return
        if leftovers is Leftovers.END_GROUP:
            self.tree.kill_group()
        self._close()

    # What can be asked of it.

    @property
    def exit_code(self) -> int | None:
        return None if self.exit is None else self.exit.code

    @property
    def running(self) -> bool:
        return self.exit is None and not self.tree.has_ended()

    @property
    def closed(self) -> bool:
        return self._state is State.CLOSED

    @property
    def has_leftovers(self) -> bool:
        return self.exit is not None and not self.tree.gone

    def limits_kept(self) -> dict[str, str]:
        return self.tree.keepers()

    @property
    def next_seq(self) -> int:
        return self._seq + 1

    def watch(self, watcher: Watcher, valve: Valve | None = None) -> LocalWatch:
        watch = LocalWatch(self, watcher, valve)
        self._set_watches((*self._watches, watch))
        return watch

    def drop(self, watch: LocalWatch) -> None:
        """Tell this watch nothing more."""
        self._set_watches(tuple(other for other in self._watches if other is not watch))
        self._go_on()

    def _set_watches(self, watches: tuple[LocalWatch, ...]) -> None:
        self._watches = watches
        self.valves = tuple(watch.valve for watch in watches if watch.valve is not None)

    def _go_on(self) -> None:
        """Read on, whatever held us up; a valve that is still shut holds us up again."""
        for output in self._outputs:
            output.resume()
        self.tree.resume()

    def try_read(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Page | None:
        found = self._page(after, limit)
        return found if wait <= 0 or is_news(found, after) else None

    async def read(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Page:
        deadline = self._loop.time() + wait
        found = self._page(after, limit)
        while not is_news(found, after) and self._loop.time() < deadline:
            await self._next_event(deadline)
            found = self._page(after, limit)
        return found

    def _page(self, after: int, limit: int | None) -> Page:
        return page(self._ring, after, limit, next_seq=self._seq + 1, end=self.exit, closed=self.closed)

    async def wait(self, seconds: float) -> Exit | None:
        deadline = self._loop.time() + seconds
        while self.exit is None and self._loop.time() < deadline:
            await self._next_event(deadline)
        return self.exit

    async def _next_event(self, deadline: float) -> None:
        """Wait for output, exit, close or the end of the tree, at most until the deadline."""
        if self._waiting is None:
            self._waiting = Waiting(self._loop)
        await self._waiting.next_event(deadline)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.wake()

    def try_write(self, data: bytes, *, write_id: str | None = None) -> WriteStatus | None:
        if self._stdin is None:
            return WriteStatus.STDIN_CLOSED
        if self._state is State.TERMINATING:
            if self._stdin.has_accepted(write_id):
                return WriteStatus.ACCEPTED
            raise StdinFailed
        self.writes += 1
        return self._stdin.try_write(data, write_id)

    async def write(self, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        status = self.try_write(data, write_id=write_id)
        if status is None:
            assert self._stdin is not None
            status = await self._stdin.write(data, write_id)
        return status

    def close_stdin_now(self, *, write_id: str | None = None) -> WriteStatus:
        if self._stdin is None:
            return WriteStatus.STDIN_CLOSED
        # A pipe tells its reader by being closed, a terminal by a character.
        last = b"".join(output.end_of_input() for output in self._outputs) if self._terminal else b""
        return self._stdin.finish(last, write_id)

    def resize_now(self, size: Size) -> None:
        if not self._terminal:
            raise NoTerminal
        for output in self._outputs:
            output.resize(size)

    def drain(self) -> None:
        for output in self._outputs:
            output.drain()

    def retain(self, limit: int) -> None:
        self._ring.limit = limit
        self._ring.trim()

    def retained(self) -> int:
        return self._ring.total

    def pack(self) -> bytes | None:
        if not self.closed or self.has_leftovers or self._stdin is not None or self._watches:
            return None
        return pack(self.pid, self.next_seq, self.exit, self._ring, terminal=self._terminal)
