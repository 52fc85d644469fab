"""How a terminal that is attached to begins: with its screen, or with its old output without questions."""

from __future__ import annotations

from holdfast.errors import NoTerminal, Unsupported
from holdfast.model import Chunk, Stream
from holdfast.screens import ScreenSnapshot, ScreenSource
from holdfast.terminal.queries import QueryFilter


class Opening:
    """What is read first of a terminal that has said something before."""

    def __init__(self, shown: ScreenSnapshot | None = None) -> None:
        """``shown`` is its screen; None where nobody knows that."""
        self.shown = shown
        self._queries = QueryFilter()

    def first(self) -> Chunk | None:
        """Return the chunk that draws the screen; what is said behind its number follows it."""
        return None if self.shown is None else Chunk(self.shown.seq, Stream.PTY, self.shown.data)

    def old(self, chunk: Chunk) -> Chunk:
        """Return a chunk of old output as it is to be shown again: what it asks was answered long ago."""
        if self.shown is not None or chunk.stream is not Stream.PTY:
            return chunk
        return Chunk(chunk.seq, chunk.stream, self._queries.feed(chunk.data))

    def rest(self, seq: int) -> Chunk | None:
        """Return what is left when the old output ends: a sequence of which the rest is still to come."""
        rest = self._queries.rest()
        return Chunk(seq, Stream.PTY, rest) if rest else None


async def opening_of(process: ScreenSource) -> Opening | None:
    """Return how the terminal of a process begins; None if it has none.

    A server that does not know what terminals show is asked for all output that it keeps instead.
    """
    try:
        return Opening(await process.snapshot())
    except NoTerminal:
        return None
    except Unsupported:
        return Opening()
