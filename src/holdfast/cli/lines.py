"""The last lines of what a process said (pure)."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.model import Chunk


class LastLines:
    """Keeps the end of what it is given: so many lines, of all streams together, and no more than that."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._kept: deque[tuple[Chunk, int]] = deque()  # With the number of ends of lines in each.
        self._ends = 0

    def add(self, chunk: Chunk) -> None:
        """Take the next piece; drop those that no longer matter."""
        if self._count == 0:
            return
        ends = chunk.data.count(b"\n")
        self._kept.append((chunk, ends))
        self._ends += ends
        # One end more than lines: the first line that is left may have lost its beginning.
        while self._ends - self._kept[0][1] > self._count:
            self._ends -= self._kept.popleft()[1]

    def take(self) -> list[Chunk]:
        """What was kept, cut at the beginning of a line; after that, nothing is."""
        from holdfast.model import Chunk

        chunks = [chunk for chunk, _ in self._kept]
        self._kept.clear()
        unfinished = bool(chunks) and not chunks[-1].data.endswith(b"\n")
        over = self._ends + unfinished - self._count
        self._ends = 0
        while over > 0 and chunks:
            first = chunks[0]
            here = first.data.count(b"\n")
            if here < over:
                over -= here
                del chunks[0]
                continue
            start = 0
            for _ in range(over):
                start = first.data.index(b"\n", start) + 1
            rest = first.data[start:]
            chunks[:1] = [Chunk(first.seq, first.stream, rest)] if rest else []
            break
        return chunks
