"""Output that outlives the server: taken from a pipe or terminal and put into the arena by one system call.

What must hold, beside what holds for ``engine.ring``:

1. A byte that was taken is in the arena, in the place that the cursor has passed.  So what was taken and
   has no entry yet lies between the end of the last entry and the cursor; the slot names its stream.
2. The number of entries is the commit: an entry is complete before, and nobody is told of it earlier.
3. The cursor is moved to a cell or block before the slot names that.  The cursor outlives commands and may
   stand anywhere, also in that very cell.
4. The stage, by which the bytes of terminals come, is empty whenever nobody is in ``take``.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import termios
from os import SPLICE_F_NONBLOCK, splice
from typing import TYPE_CHECKING

from holdfast.engine.ring import Budget, Dropped, Ring, RingSnapshot
from holdfast.errors import LimitReached
from holdfast.host import arena as cells
from holdfast.host.arena import BLOCK, CELL, SIZES
from holdfast.model import Chunk, Stream

from . import layout
from .index import Index, Run
from .layout import LENGTH_SHIFT, POSITION_SHIFT

if TYPE_CHECKING:
    from .record import Record

READ_SIZE = 65_536
"""One splice: the usual capacity of a pipe."""

_LEAST = 512
"""Room below which a cell or block counts as used up: smaller chunks would cost more than the room."""

_LEAST_OF_BLOCK = 8192
"""The same for a block."""

_PIECE = 4096
"""What a terminal gives at once; the system makes pages for whatever it is asked for."""

_PIECES = 15
"""Pieces of a terminal that are joined to one chunk: each may take one of the 16 places in the stage."""

_FULL_PIECE = 4095
"""A piece as large as this may be followed by another one."""

_IN_USE = 1 << 62
"""The end of the run that is not at its end."""

_MOST_CHUNKS = (layout.DIRECTORY - 2) * layout.SEGMENT


class DurableRing(Ring):
    """The newest output of one process, in the arena.  Behaves as a ``Ring`` to whoever reads it.

    ``take`` gets the bytes and commits them; ``append`` then only counts them and drops what no longer fits.
    """

    __slots__ = (
        "_arena",
        "_code",
        "_cursor",
        "_end",
        "_entries",
        "_full",
        "_head_word",
        "_is_block",
        "_is_silent",
        "_map",
        "_mask",
        "_pos",
        "_runs",
        "_said",
        "_slot",
        "_start",
        "_stream",
        "_tail",
        "_words",
        "starved",
    )

    def __init__(
        self, record: Record, cursor: int, *, limit: int, chunks: int, budget: Budget, recovers: bool = False
    ) -> None:
        """
        Args:
            cursor: An open file description of the arena that only this ring uses; stays the caller's.
            recovers: Whether there is something in the arena already; see ``recover``.
        """
        super().__init__(limit=limit, chunks=min(chunks, _MOST_CHUNKS), budget=budget)
        self._arena = arena = record.arena
        self._words, self._map = arena.words, arena.map
        self._slot = slot = record.slot
        self._head_word = slot + layout.HEAD
        self._cursor = cursor
        # ``_head`` is how many entries were ever made, here; ``_chunks`` stays empty.
        self._tail = self._said = 0
        self._stream: Stream | None = None
        self._code = -1
        self._pos = self._end = 0
        self._is_block = False
        self._runs: list[Run] = []
        self._is_silent = False
        self.starved = False
        """Whether the last ``take`` gave nothing for want of memory.

        Whoever called it pauses, and then calls it again, whether or not the poller tells anything.
        """
        if recovers:
            self._recover(record)
        else:
            self._entries = Index(arena, slot)
            self._refresh()

    def _refresh(self) -> None:
        self._start, self._mask = self._entries.start, self._entries.mask
        self._full = self._entries.full_at(self._tail)

    def is_starved(self) -> bool:
        return self.starved

    # The hot path.

    def take(self, fd: int, stream: Stream) -> bytes | None:
        """What is there; empty at the end; None if nothing is now or, if ``starved``, no room for it."""
        if stream is not self._stream:
            return self._take_other(fd, stream)
        pos, head = self._pos, self._head
        room = self._end - pos
        if room < _LEAST or head >= self._full or (room < _LEAST_OF_BLOCK and self._is_block):
            if not self._make_room(_LEAST):
                return None
            pos, head = self._pos, self._head
            room = self._end - pos
        try:
            size = splice(
                fd, self._cursor, READ_SIZE if room > READ_SIZE else room, None, None, SPLICE_F_NONBLOCK
            )
        except BlockingIOError:
            return None
        except OSError:
            self.starved = True  # For want of memory, say.
            return None
        if not size:
            return b""
        words = self._words
        place = self._start + (head & self._mask) * 2
        words[place] = pos << POSITION_SHIFT | size << LENGTH_SHIFT | self._code
        words[place + 1] = self._said
        words[self._head_word] = head + 1  # The commit: it has a number.
        self._head = head + 1
        self._said += size
        self._pos = end = pos + size
        return self._map[pos:end]

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

    # What is not usual.

    def _take_other(self, fd: int, stream: Stream) -> bytes | None:
        """Take from a terminal, from another stream than last time, or for nobody."""
        if self._is_silent or self._cursor < 0:
            return _read(fd)
        if stream is Stream.PTY:
            self._set_stream(stream)
            self._stream = None  # So that every call comes here.
            return self._take_terminal(fd)
        self._set_stream(stream)
        return self.take(fd, stream)

    def _set_stream(self, stream: Stream) -> None:
        code = layout.STREAMS.index(stream)
        if code != self._code:
            self._words[self._slot + layout.STREAM] = code
            self._code = code
        self._stream = stream

    def _take_terminal(self, fd: int) -> bytes | None:
        """By the stage: from a terminal no way leads into the arena.  What is joined there is one chunk."""
        arena = self._arena
        if arena.staged is not None:
            if arena.staged is not self:
                self.starved = True
                return None
            return self._empty_stage(_waiting(arena.stage_out))
        if not self._make_room(_LEAST):
            return None
        room = min(self._end - self._pos, _PIECES * _PIECE)
        self._words[cells.STAGE] = self._slot << 3
        staged, at_end = 0, False
        while staged < room:
            try:
                size = splice(fd, arena.stage_in, min(room - staged, _PIECE), None, None, SPLICE_F_NONBLOCK)
            except BlockingIOError:
                break
            except OSError as error:
                at_end = error.errno == errno.EIO  # How a terminal says that everybody has closed it.
                self.starved = not at_end
                break
            staged += size
            if size < _FULL_PIECE:
                at_end = not size
                break
        if not staged:
            return b"" if at_end else None
        return self._empty_stage(staged)

    def _empty_stage(self, staged: int) -> bytes | None:
        """Make one chunk of what is in the stage; there is room for it."""
        arena, pos = self._arena, self._pos
        moved = 0
        arena.staged = self
        try:
            while moved < staged:
                moved += splice(arena.stage_out, self._cursor, staged - moved, None, None, SPLICE_F_NONBLOCK)
        except OSError:
            self.starved = True  # The rest stays there, and nobody else can use the stage.
        else:
            arena.staged = None
        if not moved:
            return None
        self._commit(pos, moved)
        return self._map[pos : pos + moved]

    def _commit(self, pos: int, size: int) -> None:
        """Give a number to bytes that are in the arena."""
        words, place = self._words, self._entries.place(self._head)
        words[place] = pos << POSITION_SHIFT | size << LENGTH_SHIFT | self._code
        words[place + 1] = self._said
        words[self._head_word] = self._head + 1
        self._head += 1
        self._said += size
        self._pos = pos + size

    # Room.

    def _make_room(self, need: int) -> bool:
        """See to it that there is room for an entry and so many bytes; False if there is none to be had."""
        room = self._end - self._pos
        is_used_up = room < need or (room < _LEAST_OF_BLOCK and self._is_block)
        has_room = not is_used_up or self._turn(need)
        if has_room and self._head >= self._full:
            has_room = self._grow()
        self.starved = not has_room
        return has_room

    def _turn(self, need: int) -> bool:
        """Go on in another cell or block: first a small one, because most processes say little."""
        at = self._new_place(CELL if not self._end and need <= SIZES[CELL] - layout.MARGIN else BLOCK)
        if not at and need <= SIZES[CELL] - layout.MARGIN:
            at = self._new_place(CELL)
        if not at:
            return False
        size = SIZES[self._arena.kind_of(at)]
        os.lseek(self._cursor, at, os.SEEK_SET)
        self._words[self._slot + layout.BLOCK] = layout.block_word(at, self._head)
        if self._runs:
            self._runs[-1] = Run(self._runs[-1].at, self._head)
        self._runs.append(Run(at, _IN_USE))
        self._is_block = size == SIZES[BLOCK]
        self._pos, self._end = at, at + size - layout.MARGIN
        self._release_runs()
        return True

    def _new_place(self, kind: int) -> int:
        """A cell or block, if need be that of the oldest output, as if this were over its limit; or 0."""
        while True:
            try:
                return self._arena.allocate(kind)
            except LimitReached:
                if not self._drop_run():
                    return 0

    def _drop_run(self) -> bool:
        """Drop the oldest chunks until a cell or block is free; False if that would take the newest."""
        oldest = self._runs[0] if len(self._runs) > 1 else None
        if oldest is None or oldest.end >= self._head:
            return False
        while self._tail < oldest.end:
            self._drop_oldest()
        return True

    def _grow(self) -> bool:
        """Make room in the index, if need be by dropping."""
        try:
            self._entries.grow(self._tail, self._head)
        except LimitReached:
            if self._head - self._tail <= 1:
                return False
            self._drop_oldest()
            return self._entries.segments is None
        self._refresh()
        return True

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
        return RingSnapshot(self.limit, tuple(self.after(0)), dropped)

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
        for run in self._runs:
            arena.release(run.at)
        self._runs = []
        for at in self._entries.cells():
            arena.release(at)
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Have an index that nobody uses."""
        self._words[self._slot + layout.INDEX] = 0
        self._entries = Index(self._arena, self._slot)
        self._tail = self._head = self._words[self._head_word]
        self._refresh()

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

    def _drop_oldest(self) -> None:
        tail, words = self._tail, self._words
        size = words[self._entries.place(tail)] >> LENGTH_SHIFT & layout.LENGTH_MASK
        if self._dropped is None:
            self._dropped = Dropped()
        self._dropped.add(layout.number_of(tail, words[self._slot + layout.EXIT_SEQ]), size)
        self._total -= size
        self._budget.used -= size + self._piece
        self._set_tail(tail + 1)

    def _drop_all(self) -> None:
        """Retain nothing: nobody has asked for it, so that it is not missed, either."""
        self._budget.used -= self.cost - self._piece  # The newest one was not counted yet.
        self._total = 0
        self._set_tail(self._head)

    def _set_tail(self, tail: int) -> None:
        self._tail = tail
        self._words[self._slot + layout.TAIL] = tail
        if self._entries.segments is None:
            self._full = tail + self._mask + 1
        elif not tail & layout.SEGMENT - 1:
            self._entries.drop_before(tail, self._head)
        if self._runs and self._runs[0].end <= tail:
            self._release_runs()

    def _release_runs(self) -> None:
        """Give back what has dropped chunks only.  The last one is in use."""
        runs, tail = self._runs, self._tail
        while len(runs) > 1 and runs[0].end <= tail:
            self._arena.release(runs.pop(0).at)

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
        return cls(record, cursor, limit=limit, chunks=chunks, budget=budget, recovers=True)

    def _recover(self, record: Record) -> None:
        words, slot = self._words, self._slot
        if words[slot + layout.FLAGS] & layout.Flag.SILENT:
            self._is_silent, self.limit = True, 0
            self._begin_anew()
            return
        self._head, self._tail = words[self._head_word], words[slot + layout.TAIL]
        self._code = words[slot + layout.STREAM]
        self._runs = list(record.runs)
        self._entries = Index(self._arena, slot)
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
        self._budget.used += self.cost
        self._find_block(words[slot + layout.BLOCK])
        if self._cursor >= 0:
            self._adopt()

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
        self._end, self._is_block = at + size - layout.MARGIN, size == SIZES[BLOCK]
        if self._runs and self._runs[-1].at == at:
            self._runs[-1] = Run(at, _IN_USE)
        else:
            self._runs.append(Run(at, _IN_USE))

    def _adopt(self) -> None:
        """Number what was taken and has no number.  Nobody has seen that number."""
        if self._end:
            reached = os.lseek(self._cursor, 0, os.SEEK_CUR)
            if not self._pos <= reached <= self._end:
                os.lseek(self._cursor, self._pos, os.SEEK_SET)  # It was on its way from or to another place.
            elif reached > self._pos:
                self._adopt_up_to(reached - self._pos)
        arena = self._arena
        if self._words[cells.STAGE] != self._slot << 3:
            return
        self._stream = None
        while staged := _waiting(arena.stage_out):
            # Taken from a terminal by the server before, which had made room for all of it.
            self._code = layout.STREAMS.index(Stream.PTY)
            if not self._make_room(min(staged, _PIECES * _PIECE)) or not self._adopt_stage(staged):
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


def _waiting(fd: int) -> int:
    """Bytes in a pipe."""
    count = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]


def _read(fd: int) -> bytes | None:
    """As ``DurableRing.take``, for nobody."""
    try:
        return os.read(fd, READ_SIZE)
    except OSError as error:
        return b"" if error.errno == errno.EIO else None
