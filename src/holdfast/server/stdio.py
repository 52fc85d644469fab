"""One client on our standard input and output: a message per line."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable

from holdfast.config import ConnectionLimits
from holdfast.poller import Poller
from holdfast.principal import ANYBODY
from holdfast.wire.jsonrpc import Lines, LineTooLong

from .channel import EMPTY_QUEUE, SendQueue
from .connection import Connection

_READ_SIZE = 256 * 1024


class StdioChannel(asyncio.Protocol):
    """Both directions as one channel.  Implements ``channel.Channel``.

    Pipes, sockets and terminals are watched by the loop.  Files cannot be, and
    never block: they are read and written as they are.
    """

    transport = "stdio"
    peer = ""
    principal = ANYBODY
    comes_back = False

    def __init__(
        self,
        make: Callable[[StdioChannel], Connection],
        *,
        limits: ConnectionLimits,
        loop: asyncio.AbstractEventLoop,
        poller: Poller,
        on_end: Callable[[], None],
        on_limit: Callable[[str], None] = lambda limit: None,
    ) -> None:
        """``on_limit`` is told the limit that ended the connection."""
        self._poller = poller
        self._limits = limits
        self._loop = loop
        self._on_end: Callable[[], None] | None = on_end
        self._on_limit = on_limit
        self._lines = Lines(limits.message_bytes)
        self._reader: asyncio.ReadTransport | None = None
        self._writer: asyncio.WriteTransport | None = None
        self._batch: list[bytes] = []
        self._held = False
        self._output = 1
        self._written: asyncio.Future[None] = loop.create_future()
        # Others may share these descriptors: they get them back as they were.
        self._blocking: dict[int, bool] = {}
        self._long = False
        self._queue = EMPTY_QUEUE
        self.full = False
        self.congested = False
        self._connection = make(self)

    async def open(self, source: int, output: int) -> None:
        """Take over the two descriptors."""
        self._output = output
        self._blocking = {fd: os.get_blocking(fd) for fd in (source, output)}
        if not _is_file(output):
            self._writer, _ = await self._loop.connect_write_pipe(
                lambda: _Writing(self), os.fdopen(output, "wb", 0, closefd=False)
            )
            self._writer.set_write_buffer_limits(high=self._limits.output_bytes)
        if _is_file(source):
            self._read_file(source)
        else:
            self._reader, _ = await self._loop.connect_read_pipe(
                lambda: self, os.fdopen(source, "rb", 0, closefd=False)
            )

    def _read_file(self, source: int) -> None:
        if self._on_end is None:
            return
        data = b"" if self._held else os.read(source, _READ_SIZE)
        if data:
            self.data_received(data)
        if data or self._held:
            self._loop.call_soon(self._read_file, source)
        else:
            self.eof_received()

    # Implements ``asyncio.Protocol``.

    def data_received(self, data: bytes) -> None:
        self._connection.until = 0.0
        try:
            for line in self._lines.feed(data):
                self._receive(line)
        except LineTooLong:
            self._connection.call_after_queued(self._on_too_long)

    def _on_too_long(self) -> None:
        self._on_limit("connection.message_bytes")
        self._finish()

    def eof_received(self) -> bool:
        self._connection.until = 0.0
        rest = self._lines.rest()
        if rest:
            self._receive(rest)
        self._connection.call_after_queued(self._finish)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish()

    def _receive(self, line: bytes) -> None:
        if self._on_end is None:
            return
        try:
            blank = not line.decode().strip()
        except UnicodeDecodeError:
            # Not text: there is no telling where the next message begins.
            self._connection.call_after_queued(self._finish)
            return
        if not blank:
            self._connection.receive(line)

    # Implements ``channel.Channel``.

    def write(self, *parts: bytes) -> None:
        if self._on_end is None:
            return
        if self._long:
            self._queue.put(parts)
            return
        if not self._batch:
            self._poller.defer(self.flush)
        self._batch += parts
        self._batch.append(b"\n")

    def begin(self) -> None:
        self._long = True
        self._queue = SendQueue()
        self._set_congested()

    def piece(self, data: bytes, *, last: bool) -> None:
        if self._on_end is None:
            return
        if not self._batch:
            self._poller.defer(self.flush)
        self._batch.append(data)
        if last:
            self._batch.append(b"\n")
            self._long = False
            for parts in self._queue.take():
                self.write(*parts)
            self._set_congested()

    def flush(self) -> None:
        """Write everything of this batch of events at once."""
        batch, self._batch = self._batch, []
        if not batch:
            return
        data = b"".join(batch)
        if self._writer is not None:
            self._writer.write(data)
            return
        left = memoryview(data)
        while left:
            left = left[os.write(self._output, left) :]

    @property
    def unsent(self) -> int:
        written = self._writer.get_write_buffer_size() if self._writer is not None else 0
        return written + self._queue.size

    def hold(self) -> None:
        self._held = True
        if self._reader is not None:
            self._reader.pause_reading()

    def go_on(self) -> None:
        self._held = False
        if self._reader is not None:
            self._reader.resume_reading()

    def on_congestion(self, *, congested: bool) -> None:
        self.full = congested
        if self._long and not congested:
            self._connection.on_room()
        else:
            self._set_congested()

    def _set_congested(self) -> None:
        congested = self.full or self._long
        if congested != self.congested:
            self.congested = congested
            (self._connection.congested if congested else self._connection.drained)()

    async def is_alive(self, within: float) -> bool:
        """Pipes end together with the process that holds them."""
        return self._on_end is not None

    def end(self, reason: str, *, stopping: bool = False) -> None:
        self._finish()

    def _finish(self) -> None:
        on_end, self._on_end = self._on_end, None
        if on_end is None:
            return
        self.flush()
        self._connection.lost()
        on_end()

    async def close(self) -> None:
        """Let go of the descriptors, when everything written has been taken or cannot be."""
        if self._reader is not None:
            self._reader.close()
        if self._writer is not None and not self._written.done():
            self._writer.close()
            timer = self._loop.call_later(self._limits.close_seconds, self.on_written)
            await self._written
            timer.cancel()
        for fd, blocking in self._blocking.items():
            os.set_blocking(fd, blocking)

    def on_written(self) -> None:
        """Take note that the output is closed, or that no longer anybody waits for it."""
        if not self._written.done():
            self._written.set_result(None)


class _Writing(asyncio.BaseProtocol):
    """What the loop tells of the output."""

    def __init__(self, channel: StdioChannel) -> None:
        self._channel = channel

    def pause_writing(self) -> None:
        self._channel.on_congestion(congested=True)

    def resume_writing(self) -> None:
        self._channel.on_congestion(congested=False)

    def connection_lost(self, exc: Exception | None) -> None:
        self._channel.on_written()
        self._channel.connection_lost(exc)


def _is_file(fd: int) -> bool:
    return stat.S_ISREG(os.fstat(fd).st_mode) or os.path.samestat(os.fstat(fd), os.stat(os.devnull))
