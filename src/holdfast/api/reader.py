"""An output of a process as a stream of bytes."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from holdfast.errors import OutputGap

LIMIT = 65_536
"""The longest line in bytes, and half of what is held unread; as in ``asyncio``."""


class OutputSource(Protocol):
    """Where a reader gets its bytes from."""

    @property
    def complete(self) -> bool:
        """Whether no more output will come."""

    def claim(self) -> None:
        """Choose to read the output through readers.

        Raises:
            OutOfTurn: It is read in another way already.
        """

    def check(self) -> None:
        """Raise the error that cut the output off, if there is one."""

    def balance(self) -> None:
        """Take note that the number of unread bytes has changed."""

    async def pull(self) -> None:
        """Wait for more output, or its end."""


class Reader(asyncio.StreamReader):
    """An output of a process.

    It has a buffer of its own: that of its base class cannot hold an error between bytes, and raises an error
    before the bytes that came before it.
    """

    def __init__(self, source: OutputSource, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(LIMIT, loop)
        self._source = source
        self._data = bytearray()
        self._later: deque[bytes | OutputGap] = deque()  # From the next gap on.
        self._over = False
        self._wanted = False

    @property
    def unread(self) -> int:
        """The number of unread bytes; 0 while a reader waits for more."""
        if self._wanted:
            return 0
        return len(self._data) + sum(len(item) for item in self._later if isinstance(item, bytes))

    # Input.

    def add(self, item: bytes | OutputGap) -> None:
        """Add bytes, or the place where some are missing."""
        if isinstance(item, bytes) and not self._later:
            self._data += item
        else:
            self._later.append(item)

    def finish(self) -> None:
        """Take note that no more will be added."""
        self._over = True

    # Reading.

    def at_eof(self) -> bool:
        return not self._data and not self._later and (self._over or self._source.complete)

    async def read(self, n: int = -1) -> bytes:
        if n < 0:
            while await self._more():
                pass
        elif n > 0 and not self._data:
            await self._more()
        return self._cut(len(self._data) if n < 0 else n)

    async def readexactly(self, n: int) -> bytes:
        if n < 0:
            raise ValueError("readexactly size can not be less than zero")
        while len(self._data) < n:
            if not await self._more():
                raise asyncio.IncompleteReadError(self._cut(n), n)
        return self._cut(n)

    async def readuntil(self, separator: bytes = b"\n") -> bytes:  # type: ignore[override]  # One is enough.
        if not separator:
            raise ValueError("Separator should be at least one-byte string")
        start = 0
        while (found := self._data.find(separator, start)) < 0:
            start = max(0, len(self._data) + 1 - len(separator))
            if start > LIMIT:
                raise asyncio.LimitOverrunError("Separator is not found, and chunk exceed the limit", start)
            if not await self._more():
                raise asyncio.IncompleteReadError(self._cut(len(self._data)), None)
        if found > LIMIT:
            raise asyncio.LimitOverrunError("Separator is found, but chunk is longer than limit", found)
        return self._cut(found + len(separator))

    async def readline(self) -> bytes:
        try:
            return await self.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            return error.partial
        except asyncio.LimitOverrunError as error:
            # As in ``asyncio``: drop the line, as far as it is here.
            self._cut(error.consumed + self._data.startswith(b"\n", error.consumed))
            raise ValueError(*error.args) from error

    def _cut(self, size: int) -> bytes:
        data = bytes(memoryview(self._data)[:size])
        del self._data[:size]
        self._source.balance()
        return data

    async def _more(self) -> bool:
        """Wait for more bytes; return False at the end.  Cancelling loses none."""
        if self._wanted:
            raise RuntimeError("another task already waits for this output")
        size = len(self._data)
        self._source.claim()
        self._wanted = True
        try:
            while len(self._data) == size:
                if self._later:
                    self._pass_gap()
                elif self._over:
                    return False
                elif self._source.complete:
                    self._source.check()
                    return False
                else:
                    self._source.balance()
                    await self._source.pull()
        finally:
            self._wanted = False
            self._source.balance()
        return True

    def _pass_gap(self) -> None:
        """Raise the gap that is next, and forget it, so that the next read continues behind it."""
        gap, *rest = self._later
        self._later.clear()
        for item in rest:
            self.add(item)
        assert isinstance(gap, OutputGap)
        raise gap

    def join(self) -> OutputGap | None:
        """Remove all gaps, and return the first."""
        first: OutputGap | None = None
        later, self._later = self._later, deque()
        for item in later:
            if isinstance(item, OutputGap):
                first = first or item
            else:
                self.add(item)
        return first
