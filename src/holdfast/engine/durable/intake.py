"""Output on its way into the arena: taken from a pipe or terminal and put there by one system call.

What must hold:

1. A byte that was taken is in the arena, in the place that the cursor has passed.  So what was taken and
   has no entry yet lies between the end of the last entry and the cursor; the slot names its stream.
2. The number of entries is the commit: an entry is complete before, and nobody is told of it earlier.
3. The cursor is moved to a cell or block before the slot names that.  The cursor outlives commands and may
   stand anywhere, also in that very cell.
4. The stage, by which the bytes of terminals come, is empty whenever nobody is in ``take``.
5. A cell or block is given back after the arena has ceased to name it, never before.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import termios
from os import SPLICE_F_NONBLOCK, splice
from typing import TYPE_CHECKING

from holdfast.engine.ring import Budget, Ring
from holdfast.errors import LimitReached
from holdfast.host.arena import BLOCK, CELL, SIZES, STAGE
from holdfast.model import Chunk, Stream

from . import layout
from .index import Index, Stretch
from .layout import LENGTH_SHIFT, POSITION_SHIFT

if TYPE_CHECKING:
    from .record import Record

READ_SIZE = 65_536
"""One splice: the usual capacity of a pipe."""

_LEAST = 512
"""Room below which a cell or block counts as used up: smaller chunks would cost more than the room."""

_LEAST_OF_BLOCK = 8192
"""Room below which a block counts as used up: most reads of a busy pipe are larger."""

_PIECE = 4096
"""What a terminal gives at once; the system makes pages for whatever it is asked for."""

_PIECES = 15
"""Pieces of a terminal that are joined to one chunk: each may take one of the 16 places in the stage."""

MOST_STAGED = _PIECES * _PIECE

_FULL_PIECE = 4095
"""A piece as large as this may be followed by another one."""

IN_USE = 1 << 62
"""The end of the stretch that is not at its end."""

_COPIED = 4096
"""Bytes from which what was taken is not copied out of the arena."""

_NO_CHUNKS: list[Chunk] = []
"""That of all: nothing is ever added."""

_MOST_CHUNKS = (layout.DIRECTORY - 2) * layout.SEGMENT


class TakingRing(Ring):
    """The part of a ring in the arena that takes bytes.  ``DurableRing`` counts them and tells of them."""

    __slots__ = (
        "_arena",
        "_code",
        "_cursor",
        "_end",
        "_entries",
        "_full",
        "_head_word",
        "_is_silent",
        "_low",
        "_map",
        "_mask",
        "_pos",
        "_said",
        "_slot",
        "_start",
        "_stream",
        "_stretches",
        "_tail",
        "_words",
        "starved",
    )

    def __init__(self, record: Record, cursor: int, *, limit: int, chunks: int, budget: Budget) -> None:
        """``cursor`` is an open file of the arena, which nobody else moves; it stays the caller's."""
        super().__init__(limit=limit, chunks=min(chunks, _MOST_CHUNKS), budget=budget)
        self._arena = arena = record.arena
        self._words, self._map = arena.words, arena.map
        self._slot = slot = record.slot
        self._head_word = slot + layout.HEAD
        self._cursor = cursor
        # ``_head`` is how many entries were ever made, here.
        self._chunks = _NO_CHUNKS
        self._tail = self._said = 0
        self._stream: Stream | None = None
        self._code = -1
        # Where the next bytes go, from where on too little room is left, and where there is none.
        self._pos = self._end = 0
        self._low = -1
        self._stretches: tuple[Stretch, ...] = ()
        self._is_silent = False
        self.starved = False
        """Whether the last ``take`` gave nothing for want of memory.

        Whoever called it pauses, and then calls it again, whether or not the poller tells anything.
        """
        if self._words[slot + layout.FLAGS] & layout.Flag.SILENT:
            self._words[slot + layout.INDEX] = 0  # Whatever it was, it is given back.
        self._entries = Index(arena, slot)
        self._refresh()

    def _refresh(self) -> None:
        self._start, self._mask = self._entries.start, self._entries.mask
        self._full = self._entries.full_at(self._tail)

    def is_starved(self) -> bool:
        return self.starved

    # The hot path.

    def take(self, fd: int, stream: Stream) -> bytes | None:
        """What is there; empty at the end; None if nothing is now or, if ``starved``, no room for it.

        Much of it is given as a view of the arena, to be read before the next call.
        """
        if stream is not self._stream:
            return self._take_other(fd, stream)
        pos, head = self._pos, self._head
        if pos > self._low or head >= self._full:
            if not self._make_room(_LEAST if self._end else max(_LEAST, min(waiting_in(fd), READ_SIZE))):
                return None
            pos, head = self._pos, self._head
        room = self._end - pos
        try:
            size = splice(
                fd, self._cursor, READ_SIZE if room > READ_SIZE else room, None, None, SPLICE_F_NONBLOCK
            )
        except BlockingIOError:
            self.starved = False
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
        if size < _COPIED:
            return self._map[pos:end]
        return self._arena.view[pos:end]  # type: ignore[return-value]  # Read like bytes, and without a copy.

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
            staged = waiting_in(arena.stage_out)
            return self._empty_stage(staged) if self._make_room(staged) else None
        if not self._make_room(_LEAST):
            return None
        room = min(self._end - self._pos, MOST_STAGED)
        self._words[STAGE] = self._slot << 3
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
        is_used_up = self._pos > self._low or self._end - self._pos < need
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
        try:
            os.lseek(self._cursor, at, os.SEEK_SET)
        except OSError:
            self._arena.release(at)
            return False
        self._words[self._slot + layout.BLOCK] = layout.block_word(at, self._head)
        ended = [Stretch(stretch.at, self._head) for stretch in self._stretches[-1:]]
        self._stretches = (*self._stretches[:-1], *ended, Stretch(at, IN_USE))
        self._pos = at
        self._set_end(at, size)
        self._release_stretches()
        return True

    def _set_end(self, at: int, size: int) -> None:
        self._end = at + size - layout.MARGIN
        self._low = self._end - (_LEAST_OF_BLOCK if size == SIZES[BLOCK] else _LEAST)

    def _new_place(self, kind: int) -> int:
        """A cell or block, if need be that of the oldest output, as if this were over its limit; or 0."""
        while True:
            try:
                return self._arena.allocate(kind)
            except LimitReached:
                if not self._drop_stretch():
                    return 0

    def _drop_stretch(self) -> bool:
        """Drop the oldest chunks until a cell or block is free; False if that would take the newest."""
        oldest = self._stretches[0] if len(self._stretches) > 1 else None
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

    def _begin_anew(self) -> None:
        """Have an index that nobody uses."""
        self._words[self._slot + layout.INDEX] = 0
        self._entries = Index(self._arena, self._slot)
        self._tail = self._head = self._words[self._head_word]
        self._refresh()

    def _set_tail(self, tail: int) -> None:
        self._tail = tail
        self._words[self._slot + layout.TAIL] = tail
        if self._entries.segments is None:
            self._full = tail + self._mask + 1
        elif not tail & layout.SEGMENT - 1:
            self._entries.drop_before(tail, self._head)
        if self._stretches and self._stretches[0].end <= tail:
            self._release_stretches()

    def _release_stretches(self) -> None:
        """Give back what has dropped chunks only.  The last one is in use."""
        while len(self._stretches) > 1 and self._stretches[0].end <= self._tail:
            oldest, *rest = self._stretches
            self._stretches = tuple(rest)
            self._arena.release(oldest.at)


def waiting_in(fd: int) -> int:
    """Bytes in a pipe."""
    count = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]


def _read(fd: int) -> bytes | None:
    """As ``TakingRing.take``, for nobody."""
    try:
        return os.read(fd, READ_SIZE)
    except OSError as error:
        return b"" if error.errno == errno.EIO else None
