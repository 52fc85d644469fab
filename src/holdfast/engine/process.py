"""The life of one process: output, exit, close.

What must hold:

1. Output, exit and close share one gapless series of numbers.
2. What the child wrote before it ended is numbered before its exit.
3. ``exited`` comes once, when the child has ended; ``closed`` once, after the exit and the last output.
4. A chunk is never split, merged or changed after it has a number.
5. A watcher that raises is removed and logged; nobody else is affected.
6. While a watcher's valve is shut nothing is read, and the end waits too.
7. Whoever ends a process ends everything it has started.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast.backend import ImmediateControls, Packed, Valve, Watcher
from holdfast.errors import StdinFailed
from holdfast.model import (
    PLAIN,
    Cause,
    Chunk,
    Ended,
    Exit,
    Kind,
    Leftovers,
    Page,
    ProcessTerms,
    Stream,
    Usage,
    WriteStatus,
)
from holdfast.reports import NEWS_LOST, Report
from holdfast.value import replace

from . import life
from .children import Child
from .ended import pack
from .inspecting import TreeLooks
from .life import FORGOTTEN, Descriptors, Owner, ProcessSnapshot, State, end_of, may_become
from .measured import MeasuredProcess
from .output import Output, Outputs
from .recorder import NO_RECORDER, EngineParts, Recorder
from .ring import Ring, is_news, page
from .screen import Screen, Shown, begin_screen
from .stdin import ACCEPTED, STDIN_CLOSED, Stdin
from .tree import GONE, Tree
from .watchdog import Watchdog
from .watches import LocalWatch, Waiting, notify, wait_for_one


class LocalProcess(MeasuredProcess, Shown, ImmediateControls, TreeLooks):
    """A process on this host.  Implements ``backend.HostedProcess``."""

    __slots__ = (
        "_cause",
        "_drain_timer",
        "_loop",
        "_owner",
        "_ring",
        "_seq",
        "_state",
        "_stdin",
        "_terms",
        "_waiting",
        "_watchdog",
        "_watches",
        "exit",
        "has_terminal",
        "outputs",
        "pid",
        "recorder",
        "screen",
        "tree",
        "valves",
        "writes",
    )

    def __init__(
        self,
        child: Child,
        ring: Ring,
        parts: EngineParts,
        *,
        owner: Owner,
        terms: ProcessTerms = PLAIN,
        recorder: Recorder = NO_RECORDER,
        snapshot: ProcessSnapshot | None = None,
    ) -> None:
        """``child`` runs, and the poller watches it, unless ``snapshot`` is of one whose tree is gone."""
        self.pid = child.pid
        self.exit: Exit | None = None
        self._ring = ring
        self.recorder = recorder
        self._loop = loop = parts.loop
        self._owner = owner
        self._terms = terms
        self._state = life.RUNNING
        self._cause: Cause | None = None
        self._seq = self.writes = 0
        self._watches: tuple[LocalWatch, ...] = ()
        self.valves: tuple[Valve, ...] = ()
        self._waiting: Waiting | None = None
        self._drain_timer: asyncio.TimerHandle | None = None
        self._stdin: Stdin | None = None
        if child.stdin is not None or (snapshot is not None and snapshot.stdin is not None):
            self._stdin = recorder.open_stdin(child.stdin, parts)
        self.outputs = Outputs(
            Output(*opened, self, loop=loop, poller=parts.poller, taker=recorder.taker)
            for opened in child.outputs
        )
        self.has_terminal = bool(child.outputs) and child.outputs[0][0] is Stream.PTY
        child.hand_over()
        heard_exit = snapshot is not None and snapshot.exit is not None
        self.tree = GONE
        if child.fileno() >= 0:
            self.tree = Tree(child, self, parts, heard_exit=heard_exit)
        self._watchdog: Watchdog | None = None
        if terms is not PLAIN and (snapshot is None or snapshot.state is not life.CLOSED):
            self._watchdog = Watchdog(self, terms, loop, snapshot)
        if snapshot is not None:
            self._resume(snapshot)
        self.screen: Screen | None = begin_screen(self, ring, parts)

    # Written down, and read again.

    def snapshot(self) -> ProcessSnapshot:
        """Return what another object needs to go on as this one, besides the child and the descriptors."""
        return ProcessSnapshot(
            self.pid,
            self.has_terminal,
            self._state,
            self._seq,
            self.exit,
            self._cause,
            self.tree.killed_at,
            None if self._drain_timer is None else self._drain_timer.when(),
            self._terms,
            self._ring.snapshot(),
            None if self._stdin is None else self._stdin.snapshot(),
            None if self._watchdog is None else self._watchdog.snapshot(),
        )

    def let_go(self) -> Descriptors:
        """Leave the process to another object.  Nothing ends, and no event is told by this one any more."""
        for part in (self._drain_timer, self._watchdog):
            if part is not None:
                part.cancel()
        self.tree.let_go()
        for watch in self._watches:
            watch.stop()
        stdin = None if self._stdin is None else self._stdin.let_go()
        return Descriptors(stdin, self.outputs.let_go())

    def _resume(self, snapshot: ProcessSnapshot) -> None:
        """What was so before, and what had begun: a kill, a grace, a wait for the output of others."""
        self.exit, self._cause = snapshot.exit, snapshot.cause
        self._state, self._seq, self.has_terminal = snapshot.state, snapshot.seq, snapshot.terminal
        if self._stdin is not None and snapshot.stdin is not None:
            self._stdin.resume(snapshot.stdin)
        if self._cause is not None and self._cause.kind is Kind.OUTPUT_LIMIT:
            self.outputs.mute()
        if self.exit is not None:
            self.outputs.expect_end()
        if self._state is life.KILLED:
            self.tree.kill()  # Perhaps again: an order that was sent twice does no harm.
        elif snapshot.kill_at is not None:
            self.tree.kill_at(snapshot.kill_at, self.kill, ask=not snapshot.was_asked)
        if snapshot.drain_at is not None:
            self._drain_timer = self._loop.call_at(snapshot.drain_at, self._on_drained)

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
            self._waiting.wake_by_output(seq)

    # The end.

    def must_wait(self) -> bool:
        """Whether the news of the exit has to wait for a watcher."""
        return self._state is not life.KILLED and wait_for_one(self.valves, self.tree.resume)

    def exited(self, report: Report) -> None:
        """First what it said, then its end.  It may have left others who write to its outputs."""
        self.outputs.finish()
        end = end_of(report, self._cause, self.tree, self._ring, self.outputs.dropped)
        # Of a lost process, whoever is left is out of our sight: nobody is waited for.
        waits = report.news is not NEWS_LOST and self._state is not life.KILLED
        if waits and self.outputs:
            held_by = self.tree.holders(self.outputs, lambda holders: self._amend(held_by=holders))
            end = replace(end, held_by=held_by)
        self._exit(end, self._terms.drain if waits and self.outputs else None)
        if not waits:
            self.outputs.close()
        self._close_if_done()

    def ended(self, output: Output) -> None:
        """One output is at its end."""
        self.outputs.remove(output)
        notify(self._watches, lambda watcher: watcher.ended(output.stream))
        self._close_if_done()

    def _move(self, state: State) -> None:
        """The one place where the state changes."""
        assert may_become(self._state, state)
        self._state = state

    def _exit(self, end: Exit, drain: float | None) -> None:
        """Number the exit, write it down, and tell everybody."""
        self._move(life.EXITED)
        self._seq += 1
        if self._stdin is not None:
            self._stdin.close()
        self.exit = end
        if drain is not None:
            self._drain_timer = self._loop.call_later(drain, self._on_drained)
        self.recorder.exited(self._seq, end, drain)
        self._owner.exited(self)
        notify(self._watches, lambda watcher: watcher.exited(self._seq, end))
        self._wake()

    def _close_if_done(self) -> None:
        """Close an exited process that has no output left."""
        if self.outputs or self._state is not life.EXITED:
            return
        self._move(life.CLOSED)
        self._seq += 1
        self.recorder.closed(self._seq)
        notify(self._watches, lambda watcher: watcher.closed(self._seq))
        self._wake()
        self._set_watches(())  # Nothing follows; what is kept of a closed process should be small.
        if self._stdin is not None and not self._stdin.remembers:
            self._stdin = None
        if self._drain_timer is not None:
            self._drain_timer.cancel()
        self._drain_timer, self._watchdog, self._terms = None, None, PLAIN
        if self.tree.is_empty:
            self.tree.outputs_ended()
        self._owner.closed(self)

    def _on_drained(self) -> None:
        """Whoever holds the output open has held it for long enough."""
        self.drain()
        self._close()

    def used(self, usage: Usage) -> None:
        self._amend(usage=usage)

    def _amend(self, **facts: object) -> None:
        """Add what has become known of its end after that was told."""
        if self.exit is not None:
            self.exit = replace(self.exit, **facts)
            self.recorder.amended(self.exit)

    def gone(self) -> None:
        self._wake()
        self.tree = GONE  # What is kept of an ended process should be small.
        self.recorder.gone()
        self._owner.gone(self)

    def _close(self) -> None:
        """Wait no longer for the output of an exited process."""
        if self._state is life.EXITED:
            self.outputs.close()
            self._close_if_done()
            self.tree.drop_outputs()

    def signal_now(self, number: int, *, tree: bool = False) -> None:
        self.tree.signal(number, all_of_it=tree)

    async def end(self, *, grace: float = 0.0, by: str = "client") -> Ended:
        running = self.end_for(Cause(Kind.TERMINATED, by), grace)
        survivors = await self.tree.outlive(self._line(), self._loop.time() + grace)
        return Ended(running, survivors, exact=self.exit is None or self.exit.outcome.kind is not Kind.LOST)

    def end_now(self) -> None:
        self.end_for(Cause(Kind.TERMINATED, "client"))

    def end_for(self, cause: Cause, grace: float = 0.0) -> bool:
        """End the tree, with time to end by itself; say whether the process still ran."""
        running = self.exit is None
        if running and self._cause is None:
            self._cause = cause
            if cause.kind is Kind.OUTPUT_LIMIT:
                self.outputs.mute()
        if grace <= 0 or self._state is life.KILLED:
            self.kill()
        else:
            self.recorder.ending(self._cause, self._loop.time() + grace)
            if self._state is life.RUNNING:
                self._move(life.STOPPING)
            self.tree.stop(grace, self.kill)
            self.recorder.ending(self._cause, self._loop.time() + grace, asked=True)
        return running

    def kill(self) -> None:
        """End the tree now."""
        self.recorder.ending(self._cause, self._loop.time())
        self.tree.kill()
        if self._state in (life.RUNNING, life.STOPPING):
            self._move(life.KILLED)
            self._go_on()
        else:
            self._close()

    def forget(self, leftovers: Leftovers = Leftovers.SPARE) -> None:
        for watch in self._watches:
            watch.stop()
        if self._watchdog is not None:
            self._watchdog.cancel()  # Nobody tells it of the exit now, and its timers would hold the process.
        self._ring.close()
        self.outputs.mute()
        self.recorder.forgotten()
        if self.exit is None:
            self.end_for(FORGOTTEN)
        elif leftovers is Leftovers.END:
            self.kill()
        else:
            if leftovers is Leftovers.END_GROUP:
                self.tree.kill_group()
            self._close()

    # What can be asked of it.

    @property
    def running(self) -> bool:
        return self.exit is None and not self.tree.has_ended()

    @property
    def closed(self) -> bool:
        return self._state is life.CLOSED

    @property
    def has_leftovers(self) -> bool:
        return self.exit is not None and not self.tree.gone

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
        self.outputs.resume()
        self.tree.resume()

    def try_read(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Page | None:
        found = self._page(after, limit)
        return found if wait <= 0 or is_news(found, after) else None

    async def read(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Page:
        deadline = self._loop.time() + wait
        while (found := self.try_read(after=after, limit=limit, wait=deadline - self._loop.time())) is None:
            await self._line().next_event(deadline, after)
        return found

    def listen(self, tell: Callable[[], object], *, after: int, deadline: float) -> Callable[[], None]:
        return self._line().listen(tell, deadline, after)

    def _page(self, after: int, limit: int | None) -> Page:
        return page(self._ring, after, limit, next_seq=self._seq + 1, end=self.exit, closed=self.closed)

    async def wait(self, seconds: float) -> Exit | None:
        await self._line().until(lambda: self.exit is not None, self._loop.time() + seconds)
        return self.exit

    def _line(self) -> Waiting:
        self._waiting = self._waiting or Waiting(self._loop)
        return self._waiting

    def _wake(self) -> None:
        if self._waiting is not None:
            self._waiting.wake()

    survived = _wake

    def try_write(self, data: bytes, *, write_id: str | None = None) -> WriteStatus | None:
        if self._stdin is None:
            return STDIN_CLOSED
        if self._state is life.KILLED:
            if self._stdin.has_accepted(write_id):
                return ACCEPTED
            raise StdinFailed
        self.writes += 1
        if self._watchdog is not None:
            self._watchdog.given()
        return self._stdin.try_write(data, write_id)

    async def write(self, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        status = self.try_write(data, write_id=write_id)
        if status is None:
            assert self._stdin is not None
            status = await self._stdin.write(data, write_id)
        return status

    def close_stdin_now(self, *, write_id: str | None = None) -> WriteStatus:
        if self._stdin is None:
            return STDIN_CLOSED
        # A pipe tells its reader by being closed, a terminal by a character.
        last = self.outputs.end_of_input() if self.has_terminal else b""
        return self._stdin.finish(last, write_id)

    def drain(self) -> None:
        self.outputs.drain()

    def retain(self, limit: int) -> None:
        if self.screen is not None:
            self.screen.retaining(limit)
        self._ring.retain(limit)

    def acknowledged(self, seq: int) -> None:
        self.recorder.acknowledged(seq)

    def pack(self) -> Packed | None:
        in_use = self._stdin or self._watches or self.recorder.holding  # What is held is not in our memory.
        if not self.closed or self.has_leftovers or in_use:
            return None
        terminal = self.has_terminal if self.screen is None else self.screen.sizes()
        return pack(self.pid, self.next_seq, self.exit, self._ring, terminal=terminal)
