"""Standard output that can be written faster than it is read: what its reader lags behind is kept on disk.

A body that comes from a server cannot be slowed down, and is given up if it is not taken fast enough.  So it
is taken at once, and written out as fast as whoever reads it allows.

What must hold:

1. Bytes are written out in the order in which they came.
2. No more than a few megabytes are in memory, and no more than a bound on disk.
3. The task that writes has ended when ``complete`` or ``discard`` returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections import deque
from typing import IO

from holdfast.config import MIB

from .report import Failure
from .streams import DescriptorWriter

_MOST_IN_MEMORY = 4 * MIB
"""Bytes: a reader that keeps up never needs the disk."""

_MOST_ON_DISK = 1024 * MIB
"""Bytes: what comes without end must not fill the disk."""

_BLOCK = MIB
"""Bytes of one read from the disk."""


class SpooledOutput:
    """A descriptor for which what it cannot take yet is kept."""

    def __init__(self, fd: int, *, most: int = _MOST_ON_DISK) -> None:
        """Must be called in a running event loop.

        Args:
            most: Bytes that may be on disk.
        """
        self._out = DescriptorWriter(fd, asyncio.get_running_loop())
        self._most = most
        self._memory: deque[bytes] = deque()
        self._in_memory = 0
        self._file: IO[bytes] | None = None
        self._written = self._read = 0  # Positions in the file.
        self._news = asyncio.Event()
        self._is_complete = False
        self._task = asyncio.get_running_loop().create_task(self._write_out())

    async def write(self, data: bytes) -> None:
        """Take bytes; they are written out later.

        Raises:
            BrokenPipeError: The reading end is closed.
            Failure: The reader is too far behind.
        """
        if self._task.done():
            await self._task
        if self._written == self._read and self._in_memory + len(data) <= _MOST_IN_MEMORY:
            self._memory.append(data)
            self._in_memory += len(data)
        else:
            self._keep(data)
        # Nothing waits here: the next piece is there already, or its reader waits for it.
        self._news.set()

    def _keep(self, data: bytes) -> None:
        if self._written - self._read + len(data) > self._most:
            raise Failure(
                f"the reader of the output is {self._most} bytes behind, and no more are kept;"
                " -o FILE writes to a file"
            )
        if self._file is None:
            # It has no name, so nothing is left of it, however this program ends.
            self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115  (closed by ``_close``)
        self._file.seek(self._written)
        rest = memoryview(data)
        while rest:
            count = self._file.write(rest)
            self._written += count
            rest = rest[count:]

    async def complete(self) -> None:
        """Return when everything is written out.

        Raises:
            BrokenPipeError: The reading end is closed.
        """
        self._is_complete = True
        self._news.set()
        await self._task
        self._close()

    async def discard(self) -> None:
        """Drop what is not written out.  May be called after ``complete``."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await self._task
        self._close()

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._out.close()

    async def _write_out(self) -> None:
        while True:
            self._news.clear()
            while piece := self._next():
                await self._out.write(piece)
            if self._is_complete:
                return
            await self._news.wait()

    def _next(self) -> bytes:
        """Return the oldest bytes that are kept; none if there are none."""
        if self._memory:
            piece = self._memory.popleft()
            self._in_memory -= len(piece)
            return piece
        if self._file is None or self._read == self._written:
            return b""
        self._file.seek(self._read)
        piece = self._file.read(min(_BLOCK, self._written - self._read))
        self._read += len(piece)
        if self._read == self._written:
            self._file.truncate(0)
            self._read = self._written = 0
        return piece
