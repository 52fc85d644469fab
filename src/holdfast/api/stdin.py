"""The standard input of a process: bytes are delivered in order, and each once.

What must hold:

1. Bytes reach the process in the order in which they were written, or not at all.  After a piece that could
   not be delivered nothing follows, not even the end of input, which would make the input look complete.
2. An error that kept bytes from the process is raised by some call.  That the process reads no more is
   ordinary, and raised only by calls about stdin.  Any other error is *trouble*, and also raised by calls
   that wait for the process: it may be waiting for its input, and neither write output nor end.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

from holdfast import old_names
from holdfast.backend import Process
from holdfast.errors import OutOfTurn, StdinFailed, Unsupported
from holdfast.model import WriteStatus

_HIGH = 65_536
"""Bytes that may be queued before ``drain`` waits, as in ``asyncio``."""

_PIECE = 262_144
"""Bytes that are delivered at once: at most so many go into one message to a server."""


class StdinWriter:
    """The standard input of a process.  Shaped like ``asyncio.StreamWriter``.

    A task delivers what is written.  It exists only while there is something to deliver.
    """

    def __init__(
        self, process: Process, *, can_end: bool = True, wake: Callable[[], object] = lambda: None
    ) -> None:
        """
        Args:
            can_end: Whether the host can close stdin.
            wake: Called when there is trouble that no call has raised yet.  Whoever waits for the
                process can call ``raise_trouble`` then.
        """
        self._process = process
        self._can_end = can_end
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._queue: deque[memoryview] = deque()
        self._size = 0
        self._closing = False
        self._closed = False  # Everything was delivered, the end of input too.
        self._error: BaseException | None = None
        self._trace: TracebackType | None = None
        self._was_raised = False  # Whether a call has raised the error.
        self._waiting = 0  # Calls that raise the error as soon as there is one.
        self._interrupts: set[Callable[[], object]] = set()
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        # A process may have several handles, one after the other.  Their write identifiers must differ.
        self._prefix = os.urandom(6).hex()
        self._number = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Queue bytes for the process.  Call ``drain`` to keep the queue short.

        Bytes for a process that reads no more are dropped.

        Raises:
            OutOfTurn: This stdin was closed.
            HoldfastError: Bytes that were written before could not be delivered.
        """
        self._check_trouble()
        if self._closing:
            raise OutOfTurn("stdin was closed")
        if data and self._error is None:
            self._queue.append(memoryview(bytes(data)))
            self._size += len(data)
            self._run()

    def writelines(self, data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Queue all of these for the process."""
        self.write(b"".join(data))

    async def drain(self) -> None:
        """Wait until the queue is short.

        Raises:
            BrokenPipeError: The process reads no more: it has closed its stdin, or ended.
            LinkLost: The connection is lost.
            HoldfastError: Bytes could not be delivered.
        """
        while self._error is None and self._size > _HIGH:
            await self._next()
        self._check()

    def can_write_eof(self) -> bool:
        """Whether the host can close stdin.  Servers of other makers may not support it."""
        return self._can_end

    def write_eof(self) -> None:
        """Close stdin once everything was delivered.  A terminal stays open, and its reader gets end-of-file.

        Raises:
            Unsupported: The server cannot close stdin.
            HoldfastError: Bytes could not be delivered.  Stdin stays open, so that the process does
                not take its input for complete.
        """
        self._check_trouble()
        if not self.is_closing():
            if not self._can_end:
                raise Unsupported("the end of stdin")
            self._closing = True
            self._run()

    def close(self) -> None:
        """Close stdin once everything was delivered, like ``write_eof``."""
        self.write_eof()

    def finish(self, data: bytes | None) -> None:
        """Write ``data``, if there is any, and close stdin, unless it is closed already.

        Raises:
            HoldfastError: Bytes could not be delivered.
        """
        if data is not None:
            self._check_trouble()
        if self._closing:
            return
        if data is not None:
            self.write(data)
        if self._error is None:
            self.write_eof()

    def is_closing(self) -> bool:
        """Whether stdin was closed, here or by the process, or failed."""
        return self._closing or self._error is not None

    async def wait_closed(self) -> None:
        """Wait until everything was delivered and stdin is closed.

        Raises:
            BrokenPipeError: The process did not read everything.
            LinkLost: The connection is lost.
            HoldfastError: Bytes could not be delivered.
        """
        while self._error is None and not self._closed:
            await self._next()
        self._check()

    async def _next(self) -> None:
        self._news.clear()
        self._waiting += 1
        try:
            await self._news.wait()
        finally:
            self._waiting -= 1

    # Errors.

    def _check(self) -> None:
        if self._error is not None:
            self._was_raised = True
            # With the traceback of the first time, however often it is raised.
            raise self._error.with_traceback(self._trace)

    def _check_trouble(self) -> None:
        if not isinstance(self._error, BrokenPipeError):
            self._check()

    def raise_trouble(self) -> None:
        """Raise the error that kept bytes from the process, unless a call has raised it already."""
        if not self._was_raised:
            self._check_trouble()

    @contextmanager
    def raising_trouble(self) -> Iterator[None]:
        """Raise trouble with stdin in a block that waits for the process, as soon as there is any.

        An error that a call has raised already is not raised again: its caller decides what to do.
        """
        self.raise_trouble()
        task = asyncio.current_task()
        assert task is not None
        asked, interrupted = task.cancelling(), False

        def interrupt() -> None:
            nonlocal interrupted
            interrupted = True
            task.cancel()

        self._interrupts.add(interrupt)
        try:
            yield
        except asyncio.CancelledError:
            # The task may have been cancelled by others, too.
            if interrupted and task.cancelling() - 1 <= asked:
                self._check()
            raise
        finally:
            self._interrupts.discard(interrupt)
            if interrupted:
                task.uncancel()

    def _fail(self, error: BaseException) -> None:
        self._error, self._trace = error, error.__traceback__
        self._queue.clear()
        self._size = 0
        if isinstance(error, BrokenPipeError) or self._waiting:
            return
        for interrupt in self._interrupts:
            interrupt()
        if not self._interrupts:
            self._wake()

    # The task.

    def _run(self) -> None:
        if self._task is None and self._error is None:
            self._task = self._loop.create_task(self._hand_over())
            self._task.add_done_callback(self._on_handed_over)

    def _on_handed_over(self, task: asyncio.Task[None]) -> None:
        self._task = None
        if task.cancelled():  # By the end of the loop: nothing else refers to the task.
            self._fail(OutOfTurn("the event loop ended before everything was handed to the process"))
        elif (error := task.exception()) is not None:
            self._fail(error)
        elif self._queue or (self._closing and not self._closed):
            self._run()  # More was written after the task ended and before this callback.
        self._news.set()

    async def _hand_over(self) -> None:
        while self._queue:
            await self._write(self._next_piece())
        if self._closing:
            await self._process.close_stdin(write_id=self._next_id())
            self._closed = True

    async def _write(self, piece: bytes) -> None:
        try:
            status = await self._process.write(piece, write_id=self._next_id())
        except StdinFailed:
            status = WriteStatus.STDIN_CLOSED
        if status is not WriteStatus.ACCEPTED:
            raise BrokenPipeError(errno.EPIPE, "the process takes no more input")
        self._size -= len(piece)
        self._news.set()

    def _next_piece(self) -> bytes:
        """Take as much from the queue as one message may have."""
        pieces, room = [], _PIECE
        while self._queue and room:
            first = self._queue.popleft()
            pieces.append(first[:room])
            if len(first) > room:
                self._queue.appendleft(first[room:])
            room -= len(pieces[-1])
        return b"".join(pieces)

    def _next_id(self) -> str:
        self._number += 1
        return f"{self._prefix}-{self._number}"


if not TYPE_CHECKING:
    __getattr__ = old_names(__name__, {"Stdin": "StdinWriter"})
