"""The life of one process: output, exit, close.

What must hold:

1. Output, exit and close share one gapless series of numbers.
2. What the child wrote before it ended is numbered before its exit.
3. ``exited`` comes once, when the child is reaped; ``closed`` comes once, after
   the exit and after the last output ended.
4. A chunk is never split, merged or changed after it has a number.
5. A watcher that raises is removed and logged; nobody else is affected.
6. While a watcher's valve is shut nothing is read, and the end waits too.
"""

from __future__ import annotations

import asyncio
import logging
import signal as signals
from collections.abc import Callable
from enum import Enum

from holdfast.backend import Valve, Watcher
from holdfast.config import EngineLimits
from holdfast.errors import NoTerminal, SignalFailed, StdinFailed
from holdfast.model import Chunk, Page, Size, Stream, WriteStatus
from holdfast.poller import Poller

from .children import NO_CHILD, Child
from .output import Output
from .ring import Ring
from .stdin import Stdin

_log = logging.getLogger(__name__)


class State(Enum):
    """Where a process is in its life; it only moves down this list."""

    RUNNING = 1
    TERMINATING = 2
    """Killed by us and not reaped yet: its outputs are not waited for."""
    EXITED = 3
    CLOSED = 4


class LocalProcess:
    """A process on this host.  Implements ``backend.Process``."""

    __slots__ = (
        "_child",
        "_exit_watched",
        "_loop",
        "_on_closed",
        "_outputs",
        "_poller",
        "_ring",
        "_seq",
        "_state",
        "_stdin",
        "_terminal",
        "_waiting",
        "_watches",
        "exit_code",
        "pid",
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
        on_closed: Callable[[LocalProcess], None],
    ) -> None:
        self.pid = child.pid
        self.exit_code: int | None = None
        self._child: Child = child
        self._ring = ring
        self._loop = loop
        self._poller = poller
        self._on_closed = on_closed
        self._state = State.RUNNING
        self._seq = 0
        self.writes = 0
        self._watches: tuple[LocalWatch, ...] = ()
        self.valves: tuple[Valve, ...] = ()
        self._waiting: list[asyncio.Future[None]] | None = None
        self._stdin = (
            Stdin(child.stdin, loop=loop, poller=poller, limits=limits) if child.stdin is not None else None
        )
        self._outputs = tuple(
            Output(stream, fd, self, loop=loop, poller=poller) for stream, fd in child.outputs
        )
        self._terminal = any(stream is Stream.PTY for stream, _ in child.outputs)
        child.hand_over()
        self._exit_watched = True
        poller.add(child.exit_fd, self)

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

    def on_ready(self, events: int = 0) -> None:
        """The child has ended: first what it said, then its exit."""
        if self._state is not State.TERMINATING:
            for valve in self.valves:
                if not valve.is_open:
                    self._exit_watched = False
                    self._poller.remove(self._child.exit_fd)
                    valve.wait(self._watch_exit)
                    return
        for output in self._outputs:
            output.drain()
        code = self._child.reap()
        if code is None:
            return  # The poller spoke of a descriptor that had this number before.
        self._become(State.EXITED, code)

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

    def _become(self, state: State, code: int = 0) -> None:
        """The one place where the state changes; it also tells whom it concerns."""
        before, self._state = self._state, state
        match state:
            case State.EXITED:
                if self._stdin is not None:
                    self._stdin.close()
                if self._exit_watched:
                    self._exit_watched = False
                    self._poller.remove(self._child.exit_fd)
                self._child.release()
                self.exit_code = code
                self._seq += 1
                self._tell("exited", code)
                if before is State.TERMINATING:
                    self._close_outputs()
                for output in self._outputs:
                    output.on_ready()  # Usually the end, and then ``closed`` follows at once.
                if not self._outputs and self._state is State.EXITED:
                    self._become(State.CLOSED)
            case State.CLOSED:
                self._seq += 1
                self._tell("closed")
                for watch in self._watches:
                    watch.stop()  # Nothing follows; what is kept of a closed process should be small.
                if not self._child.has_leftovers():
                    self._child = NO_CHILD
                if self._stdin is not None and not self._stdin.remembers:
                    self._stdin = None
                self._on_closed(self)

    def _tell(self, event: str, *facts: int) -> None:
        for watch in self._watches:
            try:
                getattr(watch.watcher, event)(self._seq, *facts)
            except Exception:  # noqa: BLE001  (rule 5)
                watch.fail()
        self._wake()

    def _close_outputs(self) -> None:
        outputs, self._outputs = self._outputs, ()
        for output in outputs:
            output.close()

    # What can be asked of it.

    @property
    def running(self) -> bool:
        return self.exit_code is None and not self._child.has_ended()

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
        self._watch_exit()

    def _watch_exit(self) -> None:
        if not self._exit_watched and self.exit_code is None:
            self._exit_watched = True
            self._poller.add(self._child.exit_fd, self)

    def try_read(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Page | None:
        page = self._page(after, limit)
        return page if wait <= 0 or self._is_news(page, after) else None

    async def read(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Page:
        deadline = self._loop.time() + wait
        page = self._page(after, limit)
        while not self._is_news(page, after) and self._loop.time() < deadline:
            await self._next_event(deadline)
            page = self._page(after, limit)
        return page

    def _page(self, after: int, limit: int | None) -> Page:
        chunks = self._ring.after(after, limit=limit)
        next_seq = chunks[-1].seq + 1 if limit is not None and chunks else self._seq + 1
        return Page(chunks, next_seq, self.exit_code, self._state is State.CLOSED)

    @staticmethod
    def _is_news(page: Page, after: int) -> bool:
        return bool(page.chunks) or page.closed or (page.exited and after < page.next_seq - 1)

    async def _next_event(self, deadline: float) -> None:
        """Wait for output, exit or close, at most until the deadline.

        Nothing runs between the caller's look at the state and this, so that no
        event can be missed.
        """
        event: asyncio.Future[None] = self._loop.create_future()
        if self._waiting is None:
            self._waiting = []
        self._waiting.append(event)
        timer = self._loop.call_at(deadline, _settle, event)
        try:
            await event
        finally:
            timer.cancel()
            self._stop_waiting(event)

    def _stop_waiting(self, event: asyncio.Future[None]) -> None:
        if self._waiting is not None and event in self._waiting:
            self._waiting.remove(event)

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, None
        for event in waiting or ():
            _settle(event)

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

    def close_stdin(self) -> None:
        if self._stdin is not None:
            self._stdin.finish(self._end_of_input())

    def _end_of_input(self) -> bytes:
        """What tells the reader of a terminal that the input has ended; a pipe tells by being closed."""
        return b"".join(output.end_of_input() for output in self._outputs) if self._terminal else b""

    def resize(self, size: Size) -> None:
        if not self._terminal:
            raise NoTerminal
        for output in self._outputs:
            output.resize(size)

    def signal(self, number: int) -> None:
        if self._state is State.RUNNING:
            self._child.signal(number)

    def drain(self) -> None:
        for output in self._outputs:
            output.drain()

    async def terminate(self) -> bool:
        return self.kill()

    def kill(self) -> bool:
        """``terminate`` for those who cannot wait."""
        running = self._state in (State.RUNNING, State.TERMINATING)
        if running:
            self._child.signal(signals.SIGKILL)
            self._become(State.TERMINATING)
            self._go_on()
        return running

    def retain(self, limit: int) -> None:
        self._ring.limit = limit
        self._ring.trim()

    def retained(self) -> int:
        return self._ring.total

    def forget(self, *, leftovers: bool = False) -> None:
        for watch in self._watches:
            watch.stop()
        self._ring.close()
        try:
            running = self.kill()
        except SignalFailed:
            _log.warning("process %d cannot be killed and is left behind", self.pid)
            return
        if not running and (leftovers or self._state is State.EXITED):
            self._child.kill_leftovers()
        if self._state is State.EXITED:
            self._close_outputs()
            self._become(State.CLOSED)


class LocalWatch:
    """One watcher's hold on one process.  Implements ``backend.Watch``."""

    __slots__ = ("_process", "valve", "watcher")

    def __init__(self, process: LocalProcess, watcher: Watcher, valve: Valve | None) -> None:
        self._process: LocalProcess | None = process
        self.watcher = watcher
        self.valve = valve

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.drop(self)
            # A watcher usually holds its watch: what knows each other in a circle is
            # not freed when it is no longer needed, but when somebody looks for it.
            self.watcher = _NOBODY

    def fail(self) -> None:
        if self._process is not None:
            _log.exception("a watcher of process %d failed and is removed", self._process.pid)
        self.stop()


def _settle(event: asyncio.Future[None]) -> None:
    if not event.done():
        event.set_result(None)


class _Nobody:
    """The watcher of a watch that was stopped."""

    def output(self, chunk: Chunk) -> None:
        pass

    def ended(self, stream: Stream) -> None:
        pass

    def exited(self, seq: int, code: int) -> None:
        pass

    def closed(self, seq: int) -> None:
        pass


_NOBODY = _Nobody()
