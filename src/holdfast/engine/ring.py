"""The output that is kept: numbered, bounded, the newest (pure).

What must hold:

1. Chunks are whole and in the order of their numbers; only the oldest are dropped.
2. A ring holds at most its own limit, and all rings together at most the budget
   they share; the newest chunk stays, whatever its size.  With a limit of 0 none is added.
3. What was dropped is known: its numbers, how many bytes it was, and how many of them were standard error.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from holdfast.model import Chunk, Exit, Gap, Page, Stream
from holdfast.value import value

if TYPE_CHECKING:
    from .offsets import Offsets

_STDERR: Final = Stream.STDERR

_COMPACT_AT = 256
"""Dropped chunks before the list is rebuilt: keeps dropping constant on average."""

_MARKS = 16_384
"""Dropped chunks whose size is still known one by one: a gibibyte, if they are large."""


PIECE = 128
"""Bytes that a chunk takes beside its own, about: an object, its number, a place in a list."""


class Budget:
    """Bytes that several rings share."""

    __slots__ = ("limit", "piece", "used")

    def __init__(self, limit: int, piece: int = 0) -> None:
        """``piece`` is what a chunk costs beside its bytes: a child may write them one by one."""
        self.limit = limit
        self.piece = piece
        self.used = 0


class Share(Budget):
    """What one of many may use of a budget; it counts there, too."""

    __slots__ = ("_own", "_whole", "most")

    def __init__(self, whole: Budget, most: int | None = None) -> None:
        """``most`` is its own bound, beside that of the whole."""
        self._whole = whole
        self._own = 0
        self.most = most
        self.piece = whole.piece

    @property
    def used(self) -> int:
        return self._own

    @used.setter
    def used(self, value: int) -> None:
        self._whole.used += value - self._own
        self._own = value

    @property
    def limit(self) -> int:  # type: ignore[override]  # A budget of its own may be set; this one follows.
        """Exceeded if either of the two is."""
        left = self._own + self._whole.limit - self._whole.used
        return left if self.most is None else min(left, self.most)


@value
class RingSnapshot:
    """A ring, written down: what it retains, and the account of what it has dropped."""

    limit: int
    chunks: tuple[Chunk, ...]
    dropped: tuple[int, int, tuple[int, ...]] | None
    """Of the chunks that were dropped: the first and last number of the account, and its sums."""
    lost: tuple[int, int, int] = (0, 0, 0)
    """Bytes that were dropped of standard error; that were never kept of it, and of the other stream."""


class Ring:
    """The newest output of one process.

    This is the whole interface that the rest of the engine uses, so that output
    can be kept elsewhere than in this process's memory.
    """

    __slots__ = (
        "_budget",
        "_chunks",
        "_dropped",
        "_dropped_stderr",
        "_head",
        "_most_chunks",
        "_piece",
        "_skipped",
        "_skipped_stderr",
        "_total",
        "limit",
        "offsets",
    )

    def __init__(self, *, limit: int, chunks: int, budget: Budget) -> None:
        self.limit = limit
        """Bytes to keep; may change at any time and takes effect with the next chunk."""
        self._most_chunks = chunks
        self._budget = budget
        self._piece = budget.piece
        self._chunks: list[Chunk] = []
        self._head = 0  # Chunks before this index are dropped already.
        self._total = 0
        self._dropped: Dropped | None = None
        # Bytes that were dropped of standard error; that were never kept of it, and of the other stream.
        self._dropped_stderr = self._skipped_stderr = self._skipped = 0
        self.offsets: Offsets | None = None
        """Where the bytes of a stream are, from the first time that somebody asks."""

    # Written down, and read again.

    def snapshot(self) -> RingSnapshot:
        dropped = None if self._dropped is None else self._dropped.snapshot()
        lost = (self._dropped_stderr, self._skipped_stderr, self._skipped)
        return RingSnapshot(self.limit, tuple(self._chunks[self._head :]), dropped, lost)

    @classmethod
    def resume(cls, snapshot: RingSnapshot, *, chunks: int, budget: Budget) -> Ring:
        """A ring that goes on where another one was written down; what it retains counts in ``budget``."""
        ring = cls(limit=snapshot.limit, chunks=chunks, budget=budget)
        ring._chunks = list(snapshot.chunks)
        ring._total = sum(len(chunk.data) for chunk in snapshot.chunks)
        budget.used += ring.cost
        if snapshot.dropped is not None:
            ring._dropped = Dropped.resume(snapshot.dropped)
        ring._dropped_stderr, ring._skipped_stderr, ring._skipped = snapshot.lost
        return ring

    @property
    def total(self) -> int:
        """Bytes kept."""
        return self._total

    @property
    def cost(self) -> int:
        """What they cost in the budget."""
        return self._total + self._piece * (len(self._chunks) - self._head)

    def append(self, chunk: Chunk) -> None:
        """Keep ``chunk`` and drop what no longer fits."""
        if self.limit <= 0:
            if chunk.stream is _STDERR:
                self._skipped_stderr += len(chunk.data)
            else:
                self._skipped += len(chunk.data)
            return
        size = len(chunk.data)
        self._chunks.append(chunk)
        self._total += size
        self._budget.used += size + self._piece
        if self._total > self.limit or self._budget.used > self._budget.limit:
            self.trim()
        elif len(self._chunks) - self._head > self._most_chunks:
            self._drop_oldest()

    def retain(self, limit: int) -> None:
        """Keep at most this many bytes from now on."""
        if self.limit <= 0 < limit and (self._skipped or self._skipped_stderr):
            while len(self._chunks) > self._head:
                self._drop_oldest()  # Output that was not kept follows it: what is kept has no holes.
        self.limit = limit
        if self._total > limit:
            self.trim()

    def trim(self) -> None:
        """Drop the oldest chunks until the rest fits."""
        while len(self._chunks) - self._head > 1 and (
            self._total > self.limit
            or self._budget.used > self._budget.limit
            or len(self._chunks) - self._head > self._most_chunks
        ):
            self._drop_oldest()

    def close(self) -> None:
        """Drop everything, give its room back, and keep nothing any more."""
        self.limit = 0
        self._budget.used -= self.cost
        self._total = 0
        self._chunks = []
        self._head = 0

    def after(self, seq: int, *, limit: int | None = None) -> Sequence[Chunk]:
        """The chunks numbered above ``seq``, as many as ``limit`` bytes allow.

        The first is given whatever its size.
        """
        start = self._index(seq)
        if limit is None:
            return self._chunks[start:]
        total = 0
        for index in range(start, len(self._chunks)):
            total += len(self._chunks[index].data)
            if total > limit and index > start:
                return self._chunks[start:index]
            if total >= limit:
                return self._chunks[start : index + 1]
        return self._chunks[start:]

    def gap(self, seq: int) -> Gap | None:
        """What was dropped of the chunks numbered above ``seq``."""
        return None if self._dropped is None else self._dropped.after(seq)

    def origin(self) -> tuple[int, int, int | None]:
        """What came before the oldest chunk that is kept.

        Its last number, its bytes of all streams, and those of standard error; None if these are not known.
        """
        chunks, dropped = self._chunks, self._dropped
        if self._head < len(chunks):
            seq = chunks[self._head].seq - 1
        else:
            seq = 0 if dropped is None else dropped.last
        total, stderr = 0 if dropped is None else dropped.total, self._dropped_stderr
        if self.limit > 0 or self._head == len(chunks):
            total += self._skipped + self._skipped_stderr
            stderr += self._skipped_stderr
        return seq, total, stderr

    def skipped(self) -> tuple[int, int]:
        """Bytes that came behind what is kept and are not: of all streams, and of standard error."""
        if self.limit > 0 or self._head == len(self._chunks):
            return 0, 0
        return self._skipped + self._skipped_stderr, self._skipped_stderr

    def sizes(self, seq: int, most: int) -> list[tuple[int, Stream, int]]:
        """Number, stream and size of the first chunks above ``seq``, as many as ``most``."""
        start = self._index(seq)
        return [(one.seq, one.stream, len(one.data)) for one in self._chunks[start : start + most]]

    def _index(self, seq: int) -> int:
        """Where the first chunk numbered above ``seq`` is."""
        chunks = self._chunks
        if self._head == len(chunks) or seq < chunks[self._head].seq:
            return self._head
        if seq >= chunks[-1].seq:
            return len(chunks)
        # Numbers grow by one from chunk to chunk, but for the exit's number, which
        # lies between two of them: the guess is right, or one too far.
        guess = self._head + seq + 1 - chunks[self._head].seq
        return guess if guess < len(chunks) and chunks[guess - 1].seq <= seq else guess - 1

    def _drop_oldest(self) -> None:
        head = self._head
        size = len(self._chunks[head].data)
        if self._dropped is None:
            self._dropped = Dropped()
        self._dropped.add(self._chunks[head].seq, size)
        if self._chunks[head].stream is _STDERR:
            self._dropped_stderr += size
        self._total -= size
        self._budget.used -= size + self._piece
        self._head = head = head + 1
        if head >= _COMPACT_AT and head * 2 >= len(self._chunks):
            del self._chunks[:head]
            self._head = 0
        else:
            self._chunks[head - 1] = _DROPPED


_DROPPED = Chunk(0, None, b"")  # type: ignore[arg-type]  # Never handed out; frees the bytes.


class Dropped:
    """An account of the chunks that were dropped."""

    __slots__ = ("_first", "_last", "_sums")

    def __init__(self) -> None:
        self._last = 0
        # The bytes of everything up to a number, for the numbers from ``_first`` to ``_last``.
        self._first = 0
        self._sums = array("Q", [0])

    @property
    def last(self) -> int:
        """The last number."""
        return self._last

    @property
    def total(self) -> int:
        """Bytes of all of them."""
        return self._sums[-1]

    def snapshot(self) -> tuple[int, int, tuple[int, ...]]:
        return self._first, self._last, tuple(self._sums)

    @classmethod
    def resume(cls, snapshot: tuple[int, int, tuple[int, ...]]) -> Dropped:
        dropped = cls()
        dropped._first, dropped._last, sums = snapshot
        dropped._sums = array("Q", sums)
        return dropped

    def add(self, seq: int, size: int) -> None:
        sums = self._sums
        total = sums[-1]
        for _ in range(seq - self._last - 1):
            sums.append(total)  # The number of the exit, which has no bytes.
        sums.append(total + size)
        self._last = seq
        if len(sums) > 2 * _MARKS:
            del sums[:_MARKS]
            self._first += _MARKS

    def after(self, seq: int) -> Gap | None:
        if seq >= self._last:
            return None
        if seq >= self._first:
            return Gap(seq + 1, self._last, self._sums[-1] - self._sums[seq - self._first])
        return Gap(seq + 1, self._last, self._sums[-1] if seq == 0 else None)


# What a reader is given.


def page(ring: Ring, after: int, limit: int | None, *, next_seq: int, end: Exit | None, closed: bool) -> Page:
    """What was said since number ``after``, as far as ``limit`` allows.

    With a limit the reader may not have got everything: it then goes on behind
    the last chunk it got.
    """
    chunks = ring.after(after, limit=limit)
    if limit is not None and chunks:
        next_seq = chunks[-1].seq + 1
    return Page(chunks, next_seq, end, closed, ring.gap(after))


def is_news(found: Page, after: int) -> bool:
    """Whether a reader who knows everything up to ``after`` learns anything from ``found``."""
    return bool(found.chunks) or found.closed or (found.exited and after < found.next_seq - 1)
