"""One output of a process, as a stream of bytes."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Protocol

from holdfast.errors import OutputGap

LIMIT = 65_536
"""Bytes up to which a line may be long, and half of what waits for a reader: as in ``asyncio``."""


class Source(Protocol):
    """Where the bytes come from."""

    @property
    def complete(self) -> bool:
        """Whether nothing more will come."""

    def claim(self) -> None:
        """Somebody reads here.

        Raises:
            OutOfTurn: The output is read in another way.
        """

    def check(self) -> None:
        """Raise what cut the output off, if anything did."""

    def balance(self) -> None:
        """What waits here is more, or less."""

    async def pull(self) -> None:
        """Wait for more, or for the end."""


class Reader(asyncio.StreamReader):
    """One output of a process.

    It keeps its own buffer: that of its parent has no place for an error between
    bytes, and raises one before the bytes that came before it.
    """

    def __init__(self, source: Source, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(LIMIT, loop)
        self._source = source
        self._data = bytearray()
        self._later: deque[bytes | OutputGap] = deque()  # From the next gap on.
        self._over = False
        self._wanted = False

    @property
    def unread(self) -> int:
        """Bytes that wait to be read; none while somebody waits for more of them."""
        if self._wanted:
            return 0
        return len(self._data) + sum(len(item) for item in self._later if isinstance(item, bytes))

    # What comes.

    def add(self, item: bytes | OutputGap) -> None:
        if isinstance(item, bytes) and not self._later:
            self._data += item
        else:
            self._later.append(item)

    def finish(self) -> None:
        """Nothing more will come here."""
        self._over = True

    # What is read.

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
            # As in ``asyncio``: the line goes, as far as it is here.
            self._cut(error.consumed + self._data.startswith(b"\n", error.consumed))
            raise ValueError(*error.args) from error

    def _cut(self, size: int) -> bytes:
        data = bytes(memoryview(self._data)[:size])
        del self._data[:size]
        self._source.balance()
        return data

    async def _more(self) -> bool:
        """Wait for more bytes; False at the end.  Nothing that is here goes before they are."""
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
        """Raise the gap that is next, and forget it: whoever reads on gets what is behind it."""
        gap, *rest = self._later
        self._later.clear()
        for item in rest:
            self.add(item)
        assert isinstance(gap, OutputGap)
        raise gap

    def join(self) -> OutputGap | None:
        """Forget all gaps, and return the first."""
        first: OutputGap | None = None
        later, self._later = self._later, deque()
        for item in later:
            if isinstance(item, OutputGap):
                first = first or item
            else:
                self.add(item)
        return first
