"""The way out: from a watched process to whoever reads what it says.

What must hold:

1. Output is read in the order of its numbers, nothing twice.  What is missing is
   told, where it is missing, by an ``OutputGap`` that is raised once.
2. As long as nobody reads, a stream holds ``2 * LIMIT`` bytes and one chunk at the
   most, and a queue of chunks ``2 * _QUEUE``: then the valve is shut until it is half of that.
3. Output is read as chunks or as streams, not both.
4. What was said before a handle was attached is asked for page by page, by those
   who read it.  Meanwhile live output waits behind the valve, in the process.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from enum import Enum

from holdfast.backend import Process, Valve
from holdfast.errors import HoldfastError, OutOfTurn, OutputGap
from holdfast.model import Chunk, Exit, Stream

from .reader import LIMIT, Reader

_QUEUE = 8 * LIMIT
"""What is held of output that is read chunk by chunk: with less, a flood stops and starts for each."""

Routes = Mapping[Stream, Stream | None]
"""Where the bytes of a stream are read; None: nowhere."""


class Reading(Enum):
    """How the output is read."""

    NOT = "not at all"
    """It was not asked for, and is left to the process to keep."""
    UNDECIDED = "not yet"
    CHUNKS = "chunk by chunk"
    STREAMS = "through stdout and stderr"


class Feed:
    """What one process says.  Implements ``backend.Watcher`` and ``reader.Source``."""

    def __init__(self, process: Process, routes: Routes, *, after: int | None = None) -> None:
        """
        Args:
            after: Listen when somebody reads, and begin behind this number, which may be long
                ago.  None: the process was just started; listen now.
        """
        self._process = process
        self._routes = routes
        self._loop = asyncio.get_running_loop()
        self._reading = Reading.UNDECIDED if after is None else Reading.NOT
        self._last = after or 0  # The last number that was taken in.
        self._behind = after is not None  # Whether there are pages to ask for.
        self._asking = False
        self._queue: deque[Chunk | OutputGap] = deque()
        self._queued = 0
        self._news = asyncio.Event()
        self._closed = process.closed
        self._error: HoldfastError | None = None
        self._collecting = False
        self._patience: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self.readers = {
            stream: Reader(self, self._loop)
            for stream in dict.fromkeys(routes.values())
            if stream is not None
        }
        self._valve = Valve()
        self._watch = process.watch(self, self._valve) if after is None else None

    # What the process says.

    def output(self, chunk: Chunk) -> None:
        if chunk.seq <= self._last:
            return
        if self._behind:
            self._valve.shut()  # Rule 4; this chunk comes again, on a page.
            return
        self._take(chunk)
        self.balance()
        self._news.set()

    def ended(self, stream: Stream) -> None:
        if not self._behind:
            self._end(stream)
            self._news.set()

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        if self._patience is not None:
            self._start_timer(self._patience)
        self._news.set()

    def closed(self, seq: int) -> None:
        self._close()

    def lost(self, error: HoldfastError) -> None:
        """Something is missing, or everything that would have followed."""
        if not isinstance(error, OutputGap):
            self._error = error
            self._close()
        elif not self._behind:
            self._last = max(self._last, error.last)
            self._put(error)
            self._news.set()

    def _take(self, chunk: Chunk) -> None:
        self._last = chunk.seq
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
        """A reader is at its end when all that come to it are."""
        target = self._routes.get(stream)
        self._routes = {source: to for source, to in self._routes.items() if source is not stream}
        if target is not None and target not in self._routes.values() and self._reading is Reading.STREAMS:
            self.readers[target].finish()

    def _close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._news.set()

    # Who reads it.

    def read_as(self, reading: Reading) -> None:
        """Decide how to read.

        Raises:
            OutOfTurn: It was decided otherwise before.
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
        """Open or shut the valve.  What this lets in may be here before it returns."""
        if self._behind:
            return
        if self._reading is Reading.STREAMS:
            held, limit = max(reader.unread for reader in self.readers.values()), LIMIT
        else:
            held, limit = self._queued, _QUEUE
        valve = self._valve
        if held > (2 * limit if valve.is_open else limit) and not self._collecting:
            valve.shut()
        elif not valve.is_open:
            valve.open()

    @property
    def complete(self) -> bool:
        """Whether nothing more will come."""
        return self._error is not None or (self._closed and not self._behind)

    def check(self) -> None:
        """Raise what cut the output off, if anything did."""
        if self._error is not None:
            raise self._error

    async def pull(self) -> None:
        """Wait for more, or for the end; ask for it, if it is old.  Cancelling loses nothing."""
        if not self._behind or self._asking:
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
                self._take(chunk)
        self._last = max(self._last, page.next_seq - 1)
        # Since the answer was read nobody else has run: what comes now is told to us.
        if self._last + 1 >= self._process.next_seq:
            self._behind = False
            self._closed = self._closed or page.closed
            self.balance()

    async def chunk(self) -> Chunk | None:
        """The next chunk; None at the end."""
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
        """Wait for the end of the output, and meanwhile take in whatever comes.

        Raises:
            OutputGap: Some of it is lost.  What is left can be collected still.
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
        """Wait so many seconds for the end of the output once the process has exited."""
        self._patience = patience
        if self._process.exit is not None and not self._closed:
            self._start_timer(patience)

    def _start_timer(self, patience: float) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(patience, self.stop)

    def stop(self) -> None:
        """Take no more: the process goes on, and what it says is no longer read here."""
        if self._watch is not None:
            self._watch.stop()
        self._behind = False
        self._close()
