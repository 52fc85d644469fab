"""The way in: bytes for a process, in order, each once."""

from __future__ import annotations

import asyncio
import errno
import os
from collections import deque
from collections.abc import Iterable

from holdfast.backend import Process
from holdfast.errors import LinkLost, OutOfTurn, StdinFailed, Unsupported
from holdfast.model import WriteStatus

_HIGH = 65_536
"""Bytes that may wait here before ``drain`` waits: as in ``asyncio``."""

_PIECE = 262_144
"""Bytes handed over at once: one message to a server, however much was written."""


class Stdin:
    """A process's standard input.  Shaped like ``asyncio.StreamWriter``.

    What is written is handed over by a task, which lives as long as there is
    something to hand over and the process takes it.
    """

    def __init__(self, process: Process, *, can_end: bool = True) -> None:
        """``can_end`` says whether the host has a word for the end of stdin."""
        self._process = process
        self._can_end = can_end
        self._loop = asyncio.get_running_loop()
        self._queue: deque[memoryview] = deque()
        self._size = 0
        self._closing = False
        self._error: BrokenPipeError | LinkLost | None = None
        self._task: asyncio.Task[None] | None = None
        self._news = asyncio.Event()
        # A process may have several writers, one after the other: their identifiers must differ.
        self._prefix = os.urandom(6).hex()
        self._number = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Hand bytes to the process, soon and in order.  ``drain`` keeps them from piling up.

        What is written to a process that takes nothing any more is dropped.

        Raises:
            OutOfTurn: This stdin was closed.
        """
        if self._closing:
            raise OutOfTurn("stdin was closed")
        if data and self._error is None:
            self._queue.append(memoryview(bytes(data)))
            self._size += len(data)
            self._run()

    def writelines(self, data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Hand all of these to the process."""
        self.write(b"".join(data))

    async def drain(self) -> None:
        """Wait until little of what was written is still here.

        Raises:
            BrokenPipeError: The process takes no more: it has closed its stdin, or ended.
            LinkLost: It cannot be reached.
        """
        while self._error is None and self._size > _HIGH:
            await self._next()
        self._check()

    def can_write_eof(self) -> bool:
        """Whether the host has a word for the end of stdin.  Servers of others may have none."""
        return self._can_end

    def write_eof(self) -> None:
        """Close stdin behind what was written.  A terminal stays open, and its reader is told the end.

        Raises:
            Unsupported: The server has no word for it.
        """
        if not self._closing:
            if not self._can_end:
                raise Unsupported("the end of stdin")
            self._closing = True
            self._run()

    def close(self) -> None:
        """The same: nothing that was written is lost."""
        self.write_eof()

    def is_closing(self) -> bool:
        """Whether it was closed, here or by the process."""
        return self._closing or self._error is not None

    async def wait_closed(self) -> None:
        """Wait until everything was handed over and stdin is closed.

        Raises:
            BrokenPipeError: The process did not take everything.
            LinkLost: It cannot be reached.
        """
        while self._error is None and not (self._closing and self._task is None):
            await self._next()
        self._check()

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    async def _next(self) -> None:
        self._news.clear()
        await self._news.wait()

    # The task.

    def _run(self) -> None:
        if self._task is None and self._error is None:
            self._task = self._loop.create_task(self._hand_over())

    async def _hand_over(self) -> None:
        try:
            while self._queue:
                await self._write(self._next_piece())
            if self._closing:
                await self._process.close_stdin(write_id=self._next_id())
        except (BrokenPipeError, LinkLost) as error:
            self._error = error
            self._queue.clear()
        finally:
            self._task = None
            self._news.set()

    async def _write(self, piece: bytes) -> None:
        try:
            status = await self._process.write(piece, write_id=self._next_id())
        except StdinFailed:
            status = WriteStatus.STDIN_CLOSED
        if status is WriteStatus.STDIN_CLOSED:
            raise BrokenPipeError(errno.EPIPE, "the process takes no more input")
        self._size -= len(piece)
        self._news.set()

    def _next_piece(self) -> bytes:
        """As much of what waits as makes one piece."""
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
