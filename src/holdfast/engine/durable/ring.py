"""Output that outlives the server: the newest of one process, numbered, bounded, in the arena.

What must hold is what holds for ``engine.ring`` and for ``intake``.  After a restart also: what was taken and
not numbered gets the next number, which nobody has seen.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from holdfast.engine.ring import Budget, Dropped, RingSnapshot
from holdfast.errors import LimitReached
from holdfast.host.arena import SIZES, STAGE
from holdfast.model import Chunk, Stream

from . import layout
from .index import Stretch
from .intake import IN_USE, MOST_STAGED, READ_SIZE, TakingRing, waiting_in
from .layout import LENGTH_SHIFT, POSITION_SHIFT

if TYPE_CHECKING:
    from .record import Record

_STDERR = layout.STREAMS.index(Stream.STDERR)
_PTY = layout.STREAMS.index(Stream.PTY)


class DurableRing(TakingRing):
    """The newest output of one process, in the arena.  Behaves as a ``Ring`` to whoever reads it.

    ``take`` gets the bytes and commits them; ``append`` then only counts them and drops what no longer fits.
    """

    __slots__ = ("_is_counted",)

    def __init__(self, record: Record, cursor: int, *, limit: int, chunks: int, budget: Budget) -> None:
        """See ``TakingRing``."""
        super().__init__(record, cursor, limit=limit, chunks=chunks, budget=budget)
        self._is_counted = True
        """Whether it is known how much of standard error was dropped."""

    def append(self, chunk: Chunk) -> None:
        """Count what ``take`` gave, and drop what no longer fits."""
        if self.limit <= 0:
            if not self._is_silent:
                self._drop_all()
            return
        size = len(chunk.data)
        self._total += size
        budget = self._budget
        budget.used += size + self._piece
        if self._total > self.limit or budget.used > budget.limit:
            self.trim()
        elif self._head - self._tail > self._most_chunks:
            self._drop_oldest()

    # As a ring.

    @property
    def next_seq(self) -> int:
        """The number of what is said next, or happens next."""
        words, slot = self._words, self._slot
        return self._head + 1 + bool(words[slot + layout.EXIT_SEQ]) + bool(words[slot + layout.CLOSED_SEQ])

    @property
    def said_bytes(self) -> int:
        """Bytes of all output, from the first on."""
        return self._said

    @property
    def cost(self) -> int:
        return self._total + self._piece * (self._head - self._tail)

    def snapshot(self) -> RingSnapshot:
        dropped = None if self._dropped is None else self._dropped.snapshot()
        return RingSnapshot(self.limit, tuple(self.after(0)), dropped, (self._dropped_stderr, 0, 0))

    def trim(self) -> None:
        budget = self._budget
        while self._head - self._tail > 1 and (
            self._total > self.limit
            or budget.used > budget.limit
            or self._head - self._tail > self._most_chunks
        ):
            self._drop_oldest()

    def close(self) -> None:
        """Drop everything, give its room back; what is said from now on is read and not kept."""
        if self._is_silent:
            return
        self._budget.used -= self.cost
        self._words[self._slot + layout.FLAGS] |= layout.Flag.SILENT  # The commit.
        self._is_silent = True
        self._stream = None
        self.limit = self._total = 0
        arena = self._arena
        if arena.staged is self:
            arena.staged = None
            os.read(arena.stage_out, READ_SIZE)
        for stretch in self._stretches:
            arena.release(stretch.at)
        self._stretches = ()
        for at in self._entries.cells():
            arena.release(at)
        self._begin_anew()

    def after(self, seq: int, *, limit: int | None = None) -> list[Chunk]:
        words, exit_seq = self._words, self._words[self._slot + layout.EXIT_SEQ]
        found: list[Chunk] = []
        total = 0
        for entry in range(max(layout.first_above(seq, exit_seq), self._tail), self._head):
            word = words[self._entries.place(entry)]
            at, size = word >> POSITION_SHIFT, word >> LENGTH_SHIFT & layout.LENGTH_MASK
            total += size
            if limit is not None and total > limit and found:
                break
            stream = layout.STREAMS[word & layout.STREAM_MASK]
            found.append(Chunk(layout.number_of(entry, exit_seq), stream, self._map[at : at + size]))
            if limit is not None and total >= limit:
                break
        return found

    def origin(self) -> tuple[int, int, int | None]:
        if self._is_silent:
            return 0, 0, 0
        tail = self._tail
        total = self._entry(tail)[1] if tail < self._head else self._said
        seq = layout.number_of(tail - 1, self._words[self._slot + layout.EXIT_SEQ]) if tail else 0
        return seq, total, self._dropped_stderr if self._is_counted else None

    def skipped(self) -> tuple[int, int]:
        return 0, 0

    def sizes(self, seq: int, most: int) -> list[tuple[int, Stream, int]]:
        if self._is_silent:
            return []
        words, exit_seq = self._words, self._words[self._slot + layout.EXIT_SEQ]
        first = max(layout.first_above(seq, exit_seq), self._tail)
        found = []
        for entry in range(first, min(self._head, first + most)):
            word = words[self._entries.place(entry)]
            stream = layout.STREAMS[word & layout.STREAM_MASK]
            found.append(
                (layout.number_of(entry, exit_seq), stream, word >> LENGTH_SHIFT & layout.LENGTH_MASK)
            )
        return found

    def _drop_oldest(self) -> None:
        tail, words = self._tail, self._words
        word = words[self._entries.place(tail)]
        size = word >> LENGTH_SHIFT & layout.LENGTH_MASK
        if word & layout.STREAM_MASK != _PTY and self._is_counted:
            self._count_dropped(tail + 1, size if word & layout.STREAM_MASK == _STDERR else 0)
        if self._dropped is None:
            self._dropped = Dropped()
        exit_seq = words[self._slot + layout.EXIT_SEQ]
        self._dropped.add(layout.number_of(tail, exit_seq) if exit_seq else tail + 1, size)
        self._total -= size
        self._budget.used -= size + self._piece
        self._set_tail(tail + 1)

    def _count_dropped(self, tail: int, stderr: int) -> None:
        """So many bytes of standard error will have been dropped when there are ``tail`` dropped entries."""
        self._dropped_stderr += stderr
        if self._entries.start == self._slot + layout.INLINE and self._entries.segments is None:
            try:
                self._entries.grow(self._tail, self._head)  # To have room in the slot.
            except LimitReached:
                self._is_counted = False
                return
            self._refresh()
        words, place = self._words, layout.count_place(self._slot, tail)
        words[place + 1] = self._dropped_stderr
        words[place] = layout.count_word(tail)

    def _drop_all(self) -> None:
        """Retain nothing: nobody has asked for it, so that it is not missed, either."""
        for _, stream, size in self.sizes(0, self._head - self._tail) if self._is_counted else ():
            self._dropped_stderr += size if stream is Stream.STDERR else 0
        if self._is_counted and self._code != _PTY:
            self._count_dropped(self._head, 0)
        self._budget.used -= self.cost - self._piece  # The newest one was not counted yet.
        self._total = 0
        self._set_tail(self._head)

    # After a restart.

    @classmethod
    def recover(cls, record: Record, cursor: int, *, limit: int, chunks: int, budget: Budget) -> DurableRing:
        """The ring as it was.  What was taken and not numbered gets its number, also what is in the stage.

        What it retains counts in ``budget``, and is dropped only by what is said next, or ``trim``.

        Args:
            cursor: The one that the shim held; -1 if nothing more can be said.

        Raises:
            LimitReached: There is no room for the entry of bytes without a number.
        """
        made = cls(record, cursor, limit=limit, chunks=chunks, budget=budget)
        made._recover(record)
        return made

    def _recover(self, record: Record) -> None:
        words, slot = self._words, self._slot
        if words[slot + layout.FLAGS] & layout.Flag.SILENT:
            self._is_silent, self.limit = True, 0
            self._begin_anew()
            return
        self._head, self._tail = words[self._head_word], words[slot + layout.TAIL]
        self._code = words[slot + layout.STREAM]
        self._stretches = record.stretches
        self._refresh()
        exit_seq = words[slot + layout.EXIT_SEQ]
        if self._head:
            word, before = self._entry(self._head - 1)
            self._pos = (word >> POSITION_SHIFT) + (word >> LENGTH_SHIFT & layout.LENGTH_MASK)
            self._said = before + (word >> LENGTH_SHIFT & layout.LENGTH_MASK)
        dropped = self._entry(self._tail)[1] if self._tail < self._head else self._said
        self._total = self._said - dropped
        if self._tail:
            last = layout.number_of(self._tail - 1, exit_seq)
            self._dropped = Dropped.resume((last, last, (dropped,)))
            self._find_count(self._tail)
        self._budget.used += self.cost
        self._find_block(words[slot + layout.BLOCK])
        if self._cursor >= 0:
            self._adopt()
        elif words[STAGE] == slot << 3:
            self._arena.drop_stage()  # Nobody else may be given what is in it.

    def _find_count(self, tail: int) -> None:
        """How much of standard error was dropped; a server before this one did not count that."""
        words, place = self._words, layout.count_place(self._slot, tail)
        outside = self._entries.segments is not None or self._entries.start != self._slot + layout.INLINE
        if outside and words[place] == layout.count_word(tail):
            self._dropped_stderr = words[place + 1]
        else:
            self._is_counted = False

    def _entry(self, entry: int) -> tuple[int, int]:
        place = self._entries.place(entry)
        return self._words[place], self._words[place + 1]

    def _find_block(self, word: int) -> None:
        if not word:
            return
        at = layout.block_at(word)
        size = SIZES[self._arena.kind_of(at)]
        if layout.is_first(word, self._head):
            self._pos = at
        self._set_end(at, size)
        self._stretches = (*(stretch for stretch in self._stretches if stretch.at != at), Stretch(at, IN_USE))

    def _adopt(self) -> None:
        """Number what was taken and has no number.  Nobody has seen that number."""
        if self._end:
            reached = os.lseek(self._cursor, 0, os.SEEK_CUR)
            if not self._pos <= reached <= self._end:
                os.lseek(self._cursor, self._pos, os.SEEK_SET)  # It was on its way from or to another place.
            elif reached > self._pos:
                self._adopt_up_to(reached - self._pos)
        arena = self._arena
        if self._words[STAGE] != self._slot << 3:
            return
        self._stream = None
        while staged := waiting_in(arena.stage_out):
            # Taken from a terminal by the server before, which had made room for all of it.
            self._code = layout.STREAMS.index(Stream.PTY)
            if not self._make_room(min(staged, MOST_STAGED)) or not self._adopt_stage(staged):
                arena.staged = self
                return

    def _adopt_up_to(self, size: int) -> None:
        while self._head >= self._full:
            if not self._grow():
                raise LimitReached("memory of the arena", self._arena.limit, name="engine.arena_bytes")
        self._commit(self._pos, size)
        self._count(size)

    def _adopt_stage(self, staged: int) -> bool:
        before = self._said
        self._empty_stage(staged)
        if self._said > before:
            self._count(self._said - before)
        return self._arena.staged is None

    def _count(self, size: int) -> None:
        self._total += size
        self._budget.used += size + self._piece
