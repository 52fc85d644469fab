"""The output of a process as lines of text.

What must hold:

1. A character whose bytes come in several reads is decoded whole.
2. However long a line is, no more of it is held than the limit and what one read gives; it comes in pieces.
3. Nothing is lost when the iteration is cancelled or left: it, or another reader, goes on from there.
"""

from __future__ import annotations

import codecs
import io
from collections import deque
from collections.abc import AsyncIterator
from typing import Protocol

from holdfast.errors import OutputGap

from .reader import LIMIT


class _Source(Protocol):
    async def read(self, n: int = -1) -> bytes: ...


class TextLines(AsyncIterator[str]):
    """Iterates over lines.  Each ends in a newline, except the last one perhaps, and pieces of a long one."""

    def __init__(
        self,
        source: _Source,
        *,
        encoding: str = "utf-8",
        errors: str = "replace",
        universal: bool = True,
        limit: int = LIMIT,
    ) -> None:
        """
        Args:
            universal: Whether CR and CR LF end a line, too, and become a newline.
            limit: Characters after which a line is given although it has not ended.

        Raises:
            LookupError: There is no such encoding.
            ValueError: The limit is not positive.
        """
        if limit < 1:
            raise ValueError("limit must be at least 1")
        self._source = source
        self._limit = limit
        decoder = codecs.getincrementaldecoder(encoding)(errors)
        self._decoder = io.IncrementalNewlineDecoder(decoder, translate=True) if universal else decoder
        self._ready: deque[str] = deque()
        self._rest = ""  # Of a line that has not ended; no newline is in it.
        self._over = False
        self._gap: OutputGap | None = None  # To be raised once what came before it was given.

    async def __anext__(self) -> str:
        while not self._ready:
            if self._gap is not None:
                gap, self._gap = self._gap, None
                raise gap
            if self._over:
                raise StopAsyncIteration
            try:
                data = await self._source.read(LIMIT)
            except OutputGap as gap:
                self._finish()  # What comes behind the gap is not the rest of this line.
                self._gap = gap
            else:
                if data:
                    self._add(self._decoder.decode(data))
                else:
                    self._over = True
                    self._finish()
        return self._ready.popleft()

    def _add(self, text: str) -> None:
        *whole, rest = (self._rest + text).split("\n")
        for line in whole:
            start = self._cut(line)
            self._ready.append(f"{line[start:]}\n")
        self._rest = rest[self._cut(rest) :]

    def _cut(self, line: str) -> int:
        """Give what is over the limit in pieces; return where the rest begins."""
        start = 0
        while len(line) - start > self._limit:
            self._ready.append(line[start : start + self._limit])
            start += self._limit
        return start

    def _finish(self) -> None:
        self._add(self._decoder.decode(b"", final=True))
        self._decoder.reset()
        if self._rest:
            self._ready.append(self._rest)
            self._rest = ""
