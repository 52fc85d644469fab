"""What a process on a server does, told in order to those who watch it.

What must hold:

1. A watcher is told every number once and in order, over any number of connections, or is told
   of the gap.
2. What has come and not been told is bounded: by the window we gave the server, or by
   asking it again later; of all processes together by an allowance.
3. Nothing is told after ``closed``, or after a loss.

Output comes in one of two ways.  The server pushes what a process of our own session says;
a number that is missing is asked for.  What is kept for everybody has to be asked for.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

import msgspec

from holdfast.allowance import Reservation
from holdfast.backend import Valve, Watcher
from holdfast.config import MIB
from holdfast.errors import (
    HoldfastError,
    LinkLost,
    OutputGap,
    ProcessLost,
    SessionUnknown,
    UnknownProcess,
)
from holdfast.model import Chunk, Exit, Stream

from . import reading
from .calls import Answer, Within
from .link import Link
from .pages import Closed, Event, Exited, events, number

_log = logging.getLogger(__name__)

_MOST_PENDING = 8 * MIB
"""Bytes that wait for a watcher if the server knows no window: the rest is asked for later."""

PULL_MS = 10_000
"""How long a server holds an empty answer back; then it hears of us again."""

_PULL_BYTES = MIB
"""Output in one answer, so that those who watch are never far behind in what they have."""

_MOST_UNACKNOWLEDGED = 4096
"""Events, however small: a server waits for us after so many bytes, and after some ten thousand pieces."""

_CUT_SHORT = 8 * MIB
"""An answer this long may not have been all there was."""


class RemoteWatch:
    """One watcher's hold on one process.  Implements ``backend.Watch``."""

    __slots__ = ("_process", "valve", "watcher")

    def __init__(self, process: Following, watcher: Watcher, valve: Valve | None) -> None:
        self._process = process
        self.watcher = watcher
        self.valve = valve

    def stop(self) -> None:
        self._process.drop(self)


class Following:
    """The half of a process on a server that listens."""

    def __init__(
        self,
        link: Link,
        name: str,
        *,
        terminal: bool = False,
        seen: int = 0,
        window: int = 0,
        held: Reservation,
        pulled: bool = False,
        closed: Callable[[Following], object] = lambda process: None,
    ) -> None:
        """
        Args:
            seen: The last number that is no news.
            window: How far ahead of us the server goes; 0 if it does not wait for anybody.
            held: Of what all processes of the client may hold together: the window, if there is one.
            pulled: Whether output has to be asked for.
            closed: Told when nothing more can be told of this process.
        """
        self.name = name
        self.pid: int | None = None
        self.exit: Exit | None = None
        self.closed = False
        self.link = link
        self.loop = asyncio.get_running_loop()
        self.window = window
        self.pulled = pulled
        self.within = Within.ANY if pulled else Within.OWN
        """In which session its name means this process: what is pulled is there for all of them."""
        self._when_closed = closed
        self._streams = (Stream.PTY,) if terminal else (Stream.STDOUT, Stream.STDERR)
        self._hurried = False
        self._begun = pulled
        self._seen = seen
        self._told = seen
        self._unacknowledged = 0
        self._acknowledged = seen
        self._exit_seen = False
        self._exit_due = False  # Whether there was one, whose number is still to be found out.
        self._pending: deque[Event] = deque()
        self._pending_bytes = 0
        self._held = held
        self._counts = not window and not pulled  # Whether what is held has to be counted.
        self.watches: tuple[RemoteWatch, ...] = ()
        self._settled = pulled
        self._behind = False
        self._asking = False
        self.lost: LinkLost | None = None
        self._waiting: set[asyncio.Future[None]] = set()

    # The beginning.

    def hurry(self) -> None:
        """Its end was asked for and has come: whoever watches is told the rest, ready or not."""
        self._hurried = True
        self._flush()

    def begin(self, *, missed: bool) -> None:
        """The server says that it runs; ``missed`` if it may have said more that did not get here."""
        self._begun = True
        if missed:
            self.catch_up()
        self.loop.call_soon(self._settle)

    def resumed(self) -> None:
        """There is a new connection: ask for what was missed, if the server knows of the process."""
        if self._begun:
            self.catch_up()

    def _settle(self) -> None:
        """The caller has had its chance to watch: from now on what nobody watches is passed over."""
        self._settled = True
        self._flush()

    # What comes in.

    def said(self, chunk: Chunk) -> None:
        """The server pushed something."""
        if chunk.seq == self._seen + 1 and not self._behind and not self._pending and self._ready():
            # The hot path: nothing is missing and nobody has to wait.
            self._seen = chunk.seq
            self._tell(chunk)
        else:
            self.happened(chunk)

    def happened(self, event: Chunk | Exited | Closed) -> None:
        """The server pushed something."""
        if self.pulled or self._behind or self._over:
            return
        if event.seq == self._seen + 1:
            self._take(event)
        elif event.seq > self._seen:
            self.catch_up()

    def catch_up(self) -> None:
        """Ask for what was missed."""
        if self._asking or self._over or self.pulled:
            return
        self._asking = True
        self.link.ask("process/read", self.about(afterSeq=self._seen), self._caught_up, within=self.within)

    def _caught_up(self, answer: Answer) -> None:
        size = self._taken(answer)
        self._asking = False
        if size >= _CUT_SHORT or self._exit_due:
            self.catch_up()

    def _pull(self) -> None:
        """Ask for what comes next, if somebody wants it."""
        if self._asking or self._over or not self.watches or not self._ready() or self._pending:
            return
        self._asking = True
        wait = 0 if self._exit_due else PULL_MS
        params = self.about(afterSeq=self._seen, maxBytes=self._held.renew(_PULL_BYTES), waitMs=wait)
        self.link.ask("process/read", params, self._pulled_page, within=self.within)

    def _pulled_page(self, answer: Answer) -> None:
        self._taken(answer)  # Whoever is told may want more: not before all of this is taken.
        self._asking = False
        if not self._pending:
            self._held.resize(0)
        self._pull()

    def _taken(self, answer: Answer) -> int:
        """Take what a read has found; return how many bytes it was."""
        if isinstance(answer, HoldfastError):
            self.lose(self.loss(answer))
            return 0
        try:
            page = reading.page(reading.read_result(answer))
        except (msgspec.DecodeError, ValueError, HoldfastError) as error:
            self.lose(LinkLost(f"the server's answer about process {self.name!r} makes no sense: {error}"))
            return 0
        for event in events(page, self._seen, exit_known=self._exit_seen):
            self._take(event)
        self._exit_due = page.exit is not None and not self._exit_seen
        return sum(len(chunk.data) for chunk in page.chunks)

    def loss(self, error: HoldfastError) -> LinkLost:
        """Make a new error for another raise: one that is raised twice collects both tracebacks."""
        if isinstance(error, UnknownProcess | SessionUnknown):
            return ProcessLost(self.name, "the server does not know it any more")
        if isinstance(error, ProcessLost):
            return ProcessLost(self.name, error.reason)
        return LinkLost(error.reason if isinstance(error, LinkLost) else str(error))

    def lose(self, error: LinkLost) -> None:
        """Nothing more will be told."""
        if not self._over:
            self._take(error)

    # What is told.

    @property
    def _over(self) -> bool:
        """Whether the last event there can be has come."""
        return (
            self.closed
            or self.lost is not None
            or (bool(self._pending) and isinstance(self._pending[-1], Closed | LinkLost))
        )

    def _ready(self) -> bool:
        """Whether whoever watches can be told."""
        if not self._settled:
            return False
        if self._hurried:
            return True
        for watch in self.watches:
            if watch.valve is not None and not watch.valve.is_open:
                watch.valve.wait(self._flush)
                return False
        return True

    def _take(self, event: Event) -> None:
        if not isinstance(event, LinkLost):
            self._seen = number(event)
        if isinstance(event, Exited):
            self._exit_seen = True
        self._pending.append(event)
        if isinstance(event, Chunk):
            self._hold(len(event.data))
        self._flush()
        # Without a window the server goes on: what does not fit is dropped, and asked for later.
        crowded = self._counts and self._pending_bytes > 0 and self._held.is_too_much
        if crowded or (self._pending_bytes > _MOST_PENDING and not self.window):
            self._behind = True

    def _hold(self, size: int) -> None:
        """So many bytes more wait to be told, or less."""
        self._pending_bytes += size
        if self._counts:
            self._held.resize(self._pending_bytes)

    def _flush(self) -> None:
        """Tell what waits, as far as those who watch want it."""
        pending = self._pending
        while pending and self._ready():
            event = pending.popleft()
            if isinstance(event, Chunk):
                self._hold(-len(event.data))
            self._tell(event)
        if not pending and self._settled:
            if self.pulled and not self._asking:
                self._held.resize(0)
            if self._behind:
                self._behind = False
                self.catch_up()
            if self.pulled:
                self._pull()

    def _tell(self, event: Event) -> None:
        if isinstance(event, Chunk):
            self._told = event.seq
            for watch in self.watches:
                try:
                    watch.watcher.output(event)
                except Exception:  # noqa: BLE001  (a watcher that fails is nobody else's trouble)
                    self._remove(watch)
            self._acknowledge(len(event.data))
            return
        match event:
            case Exited(seq, end):
                self._told, self.exit = seq, end
                for watch in self.watches:
                    self._call(watch, watch.watcher.exited, seq, end)
            case Closed(seq):
                self._told, self.closed = seq, True
                for watch in self.watches:
                    # Servers do not tell when a single stream ends.
                    for stream in self._streams:
                        self._call(watch, watch.watcher.ended, stream)
                    self._call(watch, watch.watcher.closed, seq)
                self._end()
            case OutputGap(last=last):
                self._told = last
                self._tell_loss(event)
            case LinkLost():
                self.lost = event
                self._tell_loss(event)
                self._end()
        self._wake()

    def _call(self, watch: RemoteWatch, event: Callable[..., None], *facts: object) -> None:
        try:
            event(*facts)
        except Exception:  # noqa: BLE001  (the same)
            self._remove(watch)

    def _remove(self, watch: RemoteWatch) -> None:
        _log.exception("a watcher of process %s failed and is removed", self.name)
        watch.stop()

    def _tell_loss(self, error: HoldfastError) -> None:
        """Tell those who want to know; ``lost`` is what a watcher of remote processes may have."""
        for watch in self.watches:
            lost = getattr(watch.watcher, "lost", None)
            if lost is not None:
                self._call(watch, lost, error)

    def _acknowledge(self, size: int) -> None:
        """Let the server go on, now and then."""
        self._unacknowledged += size
        many = self._told - self._acknowledged >= _MOST_UNACKNOWLEDGED
        if self.window and not self.pulled and (many or self._unacknowledged * 2 >= self.window):
            self._unacknowledged = 0
            self._acknowledged = self._told
            self.link.post("process/ack", self.about(seq=self._told), within=self.within)

    def _end(self) -> None:
        self.watches = ()
        self._held.resize(0)
        self._when_closed(self)

    # Those who watch.

    def watch(self, watcher: Watcher, valve: Valve | None = None) -> RemoteWatch:
        watch = RemoteWatch(self, watcher, valve)
        self.watches = (*self.watches, watch)
        if self.lost is not None:
            self.loop.call_soon(self._tell_loss, self.lost)
        elif self.pulled:
            self.loop.call_soon(self._pull)
        return watch

    def drop(self, watch: RemoteWatch) -> None:
        """Tell this watch nothing more."""
        self.watches = tuple(other for other in self.watches if other is not watch)
        if self._settled:
            self.loop.call_soon(self._flush)

    async def next_event(self, seconds: float) -> None:
        waiting: asyncio.Future[None] = self.loop.create_future()
        self._waiting.add(waiting)
        try:
            await asyncio.wait((waiting,), timeout=seconds)
        finally:
            self._waiting.discard(waiting)

    def _wake(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    def about(self, **params: object) -> dict[str, object]:
        return {"processId": self.name, **params}
