"""The output of a process, from the events of the backend to whoever reads it.

What must hold:

1. Output is read in the order of its numbers, and nothing twice.  Where some is missing, an ``OutputGap``
   is raised once.
2. While nobody reads, a stream holds at most ``2 * LIMIT`` bytes and one chunk, and a queue of chunks
   ``2 * _QUEUE``.  Then the valve is shut until half of that is read.  Once the feeds of a host together hold
   as much as they may, the bound is ``2 * _LEAST``.
3. Output is read as chunks or as streams, not both.
4. Output from before a handle was attached is requested page by page, when somebody reads.  Until then live
   output waits behind the valve, in the process.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from enum import Enum

from holdfast.allowance import Allowance
from holdfast.backend import Process, Valve
from holdfast.errors import HoldfastError, OutOfTurn, OutputGap
from holdfast.model import Chunk, Exit, Stream

from .opening import Opening
from .reader import LIMIT, Reader

_QUEUE = 8 * LIMIT
"""Bytes held of output that is read chunk by chunk.  With less, the valve would move for every few chunks."""

_LEAST = LIMIT // 2
"""Half of what is held in any case.  As with a pipe, a process that writes less can end without a reader."""

_BOUNDLESS = Allowance(sys.maxsize)

Routes = Mapping[Stream, Stream | None]
"""For each stream, the reader that gets its bytes; None if they are dropped."""


class Reading(Enum):
    """Which of several ways the output of a process is read in."""

    NOT = "not at all"
    """Nobody has asked for it.  The process keeps it."""
    UNDECIDED = "not yet"
    CHUNKS = "chunk by chunk"
    STREAMS = "through stdout and stderr"


class OutputFeed:
    """The output of one process.  Implements ``backend.Watcher`` and ``reader.OutputSource``."""

    def __init__(
        self,
        process: Process,
        routes: Routes,
        *,
        after: int | None = None,
        unread: Allowance | None = None,
        most: int | None = None,
        opening: Opening | None = None,
    ) -> None:
        """
        Args:
            after: The number behind which reading begins, for a process that was found.  The process is
                watched once somebody reads.  None for a process that was just started: it is watched now.
            unread: How much all feeds of a host may hold together; None for no bound.
            most: Bytes after which the output is cut; None to have all of it.
            opening: How a terminal that was found begins.
        """
        self._process = process
        self._routes = routes
        self._loop = asyncio.get_running_loop()
        self._reading = Reading.UNDECIDED if after is None else Reading.NOT
        self._last = after or 0  # The number of the last chunk that was taken.
        self._is_catching_up = after is not None  # Whether older output has to be requested.
        self._room = most
        self.cut = 0
        """Bytes that were cut off."""
        self._asking = False
        self._queue: deque[Chunk | OutputGap] = deque()
        self._queued = 0
        self._held = (unread or _BOUNDLESS).grant(0)
        self._news = asyncio.Event()
        self._closed = process.closed
        self._error: HoldfastError | None = None
        self._collecting = False
        self._patience: float | None = None
        self.before_wait: Callable[[], object] = lambda: None
        """Called before a reader waits; it may raise an error that makes the wait pointless."""
        self._timer: asyncio.TimerHandle | None = None
        self.readers = {
            stream: Reader(self, self._loop)
            for stream in dict.fromkeys(routes.values())
            if stream is not None
        }
        self._valve = Valve()
        self._watch = process.watch(self, self._valve) if after is None else None
        self._opening = opening
        if opening is not None and (first := opening.first()) is not None:
            self._take(first)

    # Events of the process.

    def output(self, chunk: Chunk) -> None:
        if chunk.seq <= self._last:
            return
        if self._is_catching_up:
            self._valve.shut()  # Rule 4.  This chunk will be part of a page.
            return
        self._take(chunk)
        self.balance()
        self._news.set()

    def ended(self, stream: Stream) -> None:
        if not self._is_catching_up:
            self._end(stream)
            self._news.set()

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        if self._patience is not None:
            self._start_timer(self._patience)
        self._news.set()

    def closed(self, seq: int) -> None:
        self._close()

    def lost(self, error: HoldfastError) -> None:
        """Take note that some output is missing, or that no more will come."""
        if not isinstance(error, OutputGap):
            self._error = error
            self._close()
        elif not self._is_catching_up:
            self._last = max(self._last, error.last)
            self._put(error)
            self._news.set()

    def _take(self, chunk: Chunk) -> None:
        self._last = chunk.seq
        if self._room is not None:
            size, chunk = len(chunk.data), Chunk(chunk.seq, chunk.stream, chunk.data[: self._room])
            self._room -= len(chunk.data)
            self.cut += size - len(chunk.data)
            if not chunk.data:
                return
        stream = self._routes[chunk.stream]
        if stream is not None:
            self._put(chunk if stream is chunk.stream else Chunk(chunk.seq, stream, chunk.data))

    def _put(self, item: Chunk | OutputGap) -> None:
        if self._reading is not Reading.STREAMS:
            self._queue.append(item)
            self._queued += len(item.data) if isinstance(item, Chunk) else 0
        elif isinstance(item, Chunk):
            self.readers[item.stream].add(item.data)
        else:
            for reader in self.readers.values():
                reader.add(item)

    def _end(self, stream: Stream) -> None:
        """End the reader of a stream, if all streams that it reads have ended."""
        target = self._routes.get(stream)
        self._routes = {source: to for source, to in self._routes.items() if source is not stream}
        if target is not None and target not in self._routes.values() and self._reading is Reading.STREAMS:
            self.readers[target].finish()

    def _close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._news.set()

    # Reading.

    def read_as(self, reading: Reading) -> None:
        """Choose how to read.  The first choice is final.

        Raises:
            OutOfTurn: Another way was chosen before.
        """
        if self._reading is reading:
            return
        if self._reading in (Reading.CHUNKS, Reading.STREAMS):
            raise OutOfTurn(f"the output is read {self._reading.value} already, not {reading.value}")
        if self._reading is Reading.NOT and not self._closed:
            self._watch = self._process.watch(self, self._valve)
        self._reading = reading
        if reading is Reading.STREAMS:
            queue, self._queue, self._queued = self._queue, deque(), 0
            for item in queue:
                self._put(item)
            for stream in self.readers.keys() - set(self._routes.values()):
                self.readers[stream].finish()
            self.balance()

    def claim(self) -> None:
        self.read_as(Reading.STREAMS)

    def balance(self) -> None:
        """Open or shut the valve, by how much is unread.  Opening it may add output before this returns."""
        if self._reading is Reading.STREAMS:
            unread = [reader.unread for reader in self.readers.values()]
            held, total, limit = max(unread), sum(unread), LIMIT
        else:
            held, total, limit = self._queued, self._queued, _QUEUE
        # Output that is collected is not unread.
        self._held.resize(0 if self._collecting else total)
        if self._is_catching_up:
            return
        if self._held.is_too_much:
            limit = _LEAST
        valve = self._valve
        if held > (2 * limit if valve.is_open else limit) and not self._collecting:
            valve.shut()
        elif not valve.is_open:
            valve.open()

    @property
    def complete(self) -> bool:
        """Whether no more output will come."""
        return self._error is not None or (self._closed and not self._is_catching_up)

    def check(self) -> None:
        """Raise the error that cut the output off, if there is one."""
        if self._error is not None:
            raise self._error

    async def pull(self) -> None:
        """Wait for more output or its end; request it, if it is older.  Cancelling loses nothing."""
        self.before_wait()
        if not self._is_catching_up or self._asking:
            self._news.clear()
            await self._news.wait()
            return
        self._asking = True
        try:
            page = await self._process.read(after=self._last, limit=LIMIT)
        finally:
            self._asking = False
            self._news.set()
        if page.gap is not None and page.gap.last > self._last:
            self._put(OutputGap(page.gap.first, page.gap.last, page.gap.size))
        for chunk in page.chunks:
            if chunk.seq > self._last:
                self._take(chunk if self._opening is None else self._opening.old(chunk))
        self._last = max(self._last, page.next_seq - 1)
        # A page that is not empty may end before the output does, although that is closed.
        is_whole = not page.closed or not page.chunks
        # No other code has run since the answer was read, so whatever comes now is an event.
        if is_whole and self._last + 1 >= self._process.next_seq:
            self._is_catching_up = False
            if self._opening is not None and (rest := self._opening.rest(self._last)) is not None:
                self._take(rest)
            self._closed = self._closed or page.closed
            self.balance()

    def wake(self) -> None:
        """Wake those who wait, so that they check again."""
        self._news.set()

    async def chunk(self) -> Chunk | None:
        """Return the next chunk; None at the end."""
        self.read_as(Reading.CHUNKS)
        while not self._queue:
            if self.complete:
                self.check()
                return None
            await self.pull()
        item = self._queue.popleft()
        if isinstance(item, OutputGap):
            raise item
        self._queued -= len(item.data)
        self.balance()
        return item

    async def collect(self) -> None:
        """Wait for the end of the output, and hold all of it, without a bound, in the readers.

        Raises:
            OutputGap: Some of it is lost.  Call this again to collect the rest.
        """
        self.claim()
        self._collecting = True
        try:
            self.balance()
            while not self.complete:
                await self.pull()
            self.check()
            for gap in [reader.join() for reader in self.readers.values()]:
                if gap is not None:
                    raise gap
        finally:
            self._collecting = False
            self.balance()

    # The end.

    def expect_end(self, patience: float) -> None:
        """Stop reading ``patience`` seconds after the exit, if the output is still open then."""
        self._patience = patience
        if self._process.exit is not None and not self._closed:
            self._start_timer(patience)

    def _start_timer(self, patience: float) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(patience, self.stop)

    def stop(self) -> None:
        """Stop reading.  The process goes on, and its output is kept there."""
        if self._watch is not None:
            self._watch.stop()
        self._is_catching_up = False
        self._close()


class OutputChunks(AsyncIterator[Chunk]):
    """The output as chunks, from where the last iteration was left."""

    def __init__(self, feed: OutputFeed) -> None:
        self._feed = feed

    async def __anext__(self) -> Chunk:
        chunk = await self._feed.chunk()
        if chunk is None:
            raise StopAsyncIteration
        return chunk


class OutputBytes(AsyncIterator[bytes]):
    """The bytes of the output, from where the last iteration was left."""

    def __init__(self, feed: OutputFeed) -> None:
        self._chunks = OutputChunks(feed)

    async def __anext__(self) -> bytes:
        return (await self._chunks.__anext__()).data
