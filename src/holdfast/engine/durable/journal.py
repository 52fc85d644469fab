"""The journal of a child's stdin, as it is in the arena: a table of entries, and cells with the bytes.

What must hold:

1. The number of entries is the commit: the entries and their bytes are complete before.
2. The bytes of an entry are never written again, because the pipe may have their very pages.
3. The cursor stands in the bytes of the first entry that is not written to the child, or outside of all that
   are not.  It says how much of that entry the child was given.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from holdfast.errors import LimitReached
from holdfast.host.arena import BLOCK, BLOCK_SIZE, CELL, LENT_BLOCK, LENT_CELL, PAGE, SIZES, Arena, Damaged
from holdfast.value import value

from . import layout
from .layout import WriteFlag

_AT_ONCE = 256
"""Entries for which a table gets memory at once."""

_IDLE_MOST = 65_536
"""Bytes that the child has and that may stay in memory."""

_FIRST = SIZES[CELL] // layout.WRITE_SIZE
_MOST = SIZES[BLOCK] // layout.WRITE_SIZE


@value
class Write:
    """One entry of the journal."""

    at: int
    """The place of its bytes.  Of the end of input: the last bytes, packed."""
    length: int
    flags: int
    identifier: bytes
    """As it is stored."""


class Journal:
    """The table of a journal, and room for bytes.  What is written to the child is not its affair."""

    __slots__ = (
        "_arena",
        "_backed",
        "_erased",
        "_limit",
        "_slot",
        "cells",
        "count",
        "end",
        "full",
        "mask",
        "pos",
        "table",
    )

    def __init__(self, arena: Arena, slot: int) -> None:
        """
        Args:
            slot: The first word of the slot.

        Raises:
            Damaged: There is no such journal.
        """
        self._arena = arena
        self._slot = slot
        words = arena.words
        self.count = words[slot + layout.IN_COUNT]
        self.table = words[slot + layout.IN_TABLE]
        self.mask = -1
        self.pos = self.end = self._limit = 0
        """Where the next bytes go; up to where there is memory; up to where the cell or block goes."""
        self._erased = 0
        self._backed = 0
        self.cells: list[int] = []
        """The cells and blocks with bytes, oldest first."""
        if self.table:
            kind = arena.kind_of(self.table)
            if kind not in (CELL, BLOCK):
                raise Damaged(f"there is no table at {self.table}")
            self.mask = SIZES[kind] // layout.WRITE_SIZE - 1
            self._backed = self.count if kind == BLOCK else _FIRST
        self._set_full()

    def _set_full(self) -> None:
        """Up to how many entries, ever, there may be without another look at the table."""
        self.full = self._backed if self.mask + 1 < _MOST or self._backed < _MOST else 1 << 62

    # Reading.

    def place(self, number: int) -> int:
        """The place of an entry."""
        return self.table + (number & self.mask) * layout.WRITE_SIZE

    def read(self, number: int) -> Write:
        """An entry that was committed and is not overwritten; its bytes are gone once the child has them.

        Raises:
            Damaged: It cannot be one.
        """
        arena, place = self._arena, self.place(number)
        at = arena.words[place >> 3]
        length, flags, size = layout.read_write_word(arena.words[(place >> 3) + 1])
        if size > layout.IDENTIFIER_MOST or (flags & WriteFlag.END and length):
            raise Damaged(f"entry {number} of a journal is none")
        return Write(at, length, flags, arena.map[place + 16 : place + 16 + size])

    def remembered(self) -> range:
        """The entries that are not overwritten, or only in part: see ``is_whole``."""
        return range(max(0, self.count - self.mask - 1), self.count)

    def is_whole(self, number: int) -> bool:
        """Whether nobody has begun to overwrite an entry with one that was never committed."""
        word = self._arena.words[(self.place(number) >> 3) + 1]
        return word >> layout.LAP_SHIFT == layout.lap_of(number) >> layout.LAP_SHIFT

    # Writing.

    def begin(self) -> None:
        """Have a table.

        Raises:
            LimitReached: There is no room for it.
        """
        self.table = self._arena.allocate(CELL)
        self.mask, self._backed = _FIRST - 1, _FIRST
        self._arena.words[self._slot + layout.IN_TABLE] = self.table
        self._set_full()

    def has_room(self, entries: int, unwritten: int) -> bool:
        """Whether there can be so many entries more, if so many are still needed."""
        return unwritten + entries <= _MOST // 2 or (not unwritten and entries <= _MOST)

    def make_entries(self, entries: int) -> None:
        """See to it that so many entries can be stored.

        Raises:
            LimitReached: They cannot.
        """
        if self.count + entries > _FIRST and self.mask + 1 == _FIRST:
            self._grow()
        while self._backed < min(self.count + entries, _MOST):
            self._backed &= -_AT_ONCE
            self._arena.back(self.table + self._backed * layout.WRITE_SIZE, _AT_ONCE * layout.WRITE_SIZE)
            self._backed += _AT_ONCE
        self._set_full()

    def _grow(self) -> None:
        arena = self._arena
        table = arena.allocate(BLOCK)
        try:
            arena.back(table, _AT_ONCE * layout.WRITE_SIZE)
        except BaseException:
            arena.release(table)
            raise
        for number in self.remembered():
            old, new = self.place(number), table + number * layout.WRITE_SIZE
            arena.view[new : new + layout.WRITE_SIZE] = arena.view[old : old + layout.WRITE_SIZE]
        before, self.table, self.mask = self.table, table, _MOST - 1
        arena.words[self._slot + layout.IN_TABLE] = table
        self._backed = _AT_ONCE
        arena.release(before)

    def make_room(self, size: int, *, is_idle: bool) -> list[tuple[int, int]]:
        """Have room for so many bytes; return places and lengths, in order.

        First a small cell, because most processes are given little.

        Args:
            is_idle: Whether the child has everything that is in the journal.

        Raises:
            LimitReached: There is none; then nothing has changed.
        """
        if self.pos + size <= self._limit:
            if is_idle:
                self._erase_given()
            return [(self.pos, size)]
        if size <= PAGE and not self._limit:
            made = [(self._arena.allocate(LENT_CELL), size)]
        else:
            made = self._make_blocks(size)
        self.cells += [at for at, _ in made]
        at, _ = made[-1]
        self._erased = self.pos = self.end = at
        self._limit = sum(self._arena.cell_of(at))
        return made

    def _make_blocks(self, size: int) -> list[tuple[int, int]]:
        made: list[tuple[int, int]] = []
        try:
            for start in range(0, size, BLOCK_SIZE):
                made.append((self._arena.allocate(LENT_BLOCK), min(BLOCK_SIZE, size - start)))
        except LimitReached:
            for at, _ in made:
                self._arena.release(at)
            raise
        return made

    def _erase_given(self) -> None:
        """Give memory back before the block is full: a process may be given little for hours."""
        page = self.pos & -PAGE
        if page - self._erased >= _IDLE_MOST:
            self._arena.erase(self._erased, page - self._erased)
            self._erased = page

    def put(self, at: int, data: bytes | memoryview) -> None:
        """Put bytes where ``make_room`` has said.  They get their memory here, if they have none.

        Raises:
            LimitReached: There is none.
        """
        arena, end = self._arena, at + len(data)
        if self.pos == at and end <= self.end:
            arena.map[at:end] = data
        elif os.pwrite(arena.fd, data, at) < len(data):
            raise LimitReached("memory of the arena", arena.limit, name="engine.arena_bytes")
        self.pos, self.end = end, -(-end // PAGE) * PAGE

    def begin_anew(self, cells: int = 0) -> None:
        """Keep so many cells and blocks only, and use another one for the next bytes."""
        for at in self.cells[cells:]:
            self._arena.release(at)
        del self.cells[cells:]
        self.pos = self.end = self._limit = 0

    def keep(self, cells: list[int]) -> None:
        """Keep these of its cells and blocks, and give back the others.

        After a restart those are others whose bytes were given by a server that died before it said so.
        """
        for at in self.cells:
            if at not in cells:
                self._arena.release(at)
        self.cells = cells

    def store(self, number: int, at: int, word: int, identifier: bytes) -> None:
        """Write an entry; it counts once ``commit`` says so."""
        arena, place = self._arena, self.place(number)
        # First what says whose place it is: before it counts, it must not be taken for the entry before.
        arena.words[(place >> 3) + 1] = word | layout.lap_of(number)
        arena.words[place >> 3] = at
        arena.map[place + 16 : place + 16 + len(identifier)] = identifier

    def commit(self, count: int) -> None:
        """There are so many entries."""
        self._arena.words[self._slot + layout.IN_COUNT] = count
        self.count = count

    def leave(self, at: int) -> None:
        """Give back the cells and blocks before the one with this place; the cursor is in that one."""
        while len(self.cells) > 1 and self._arena.cell_of(at)[0] != self.cells[0]:
            self._arena.release(self.cells.pop(0))


def cells_of_journal(arena: Arena, slot: int) -> Sequence[int]:
    """Everything that a journal consists of, outside of the slot.

    Raises:
        Damaged: It does not say.
    """
    words = arena.words
    if not words[slot + layout.IN_TABLE]:
        return ()
    journal = Journal(arena, slot)
    if words[slot + layout.IN_FLAGS] & layout.InputFlag.CLOSED:
        return (journal.table,)
    return (journal.table, *cells_with_bytes(arena, journal, words[slot + layout.IN_TAIL]))


@value
class Ungiven:
    """What of a journal the child was not given."""

    tail: int
    """Entries that it was given."""
    at: int
    """The place of the next byte."""
    left: int
    """Bytes of the entry with that place."""
    queued: int
    """Bytes in all."""
    ends: tuple[int, ...]
    """For each write: how many entries there are up to its end."""


def ungiven_of(journal: Journal, tail: int, reached: int) -> Ungiven:
    """What the child was not given when the cursor stood at ``reached``.

    Raises:
        Damaged: There are no such entries.
    """
    at = left = queued = 0
    ends: list[int] = []
    for number in range(tail, journal.count):
        write = journal.read(number)
        given = 0
        if number == tail:
            if write.at <= reached <= write.at + write.length:
                given = reached - write.at
            if not write.length or given == write.length:
                tail += 1
                continue
            at, left = write.at + given, write.length - given
        queued += write.length - given
        if write.flags & WriteFlag.MORE and ends:
            ends.pop()
        ends.append(number + 1)
    return Ungiven(tail, at, left, queued, tuple(ends))


def cells_with_bytes(arena: Arena, journal: Journal, tail: int) -> list[int]:
    """The cells and blocks with bytes that the child was not given, oldest first.

    Raises:
        Damaged: There are no such entries.
    """
    if not 0 <= journal.count - tail <= journal.mask + 1:
        raise Damaged(f"a journal has {journal.count} entries, and {tail} of them were written")
    found: dict[int, None] = {}
    for number in range(tail, journal.count):
        write = journal.read(number)
        if not write.length:
            continue
        cell, size = arena.cell_of(write.at)
        if arena.kind_of(cell) not in (LENT_CELL, LENT_BLOCK) or write.at + write.length > cell + size:
            raise Damaged(f"entry {number} of a journal has no bytes")
        found[cell] = None
    return list(found)
