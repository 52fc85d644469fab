"""Where the entries of a ring are: inside its slot, then in one cell, then in blocks that a directory names.

What must hold:

1. Entries from the oldest that is retained to the newest can be read at every instruction at which the server
   may be killed; the newest one also if it is dropped, because it says where the next bytes go.
2. What is new is complete before the word of the slot names it.
"""

from __future__ import annotations

from holdfast.host.arena import BLOCK, BLOCK_SIZE, CELL, CELL_512, PAGE, SIZES, Arena, Damaged
from holdfast.value import value

from . import layout

_ENTRY_WORDS = layout.ENTRY_SIZE // 8
_BACKED = 4096
"""Entries for which a block gets memory at once."""


class Index:
    """The entries of one ring."""

    __slots__ = ("_arena", "_backed", "_slot", "cell", "mask", "segments", "start")

    def __init__(self, arena: Arena, slot: int) -> None:
        """
        Args:
            slot: The first word of the slot.

        Raises:
            Damaged: There is no such index.
        """
        self._arena = arena
        self._slot = slot
        self.segments: dict[int, int] | None = None
        """The first words of the blocks of entries, if there is a directory."""
        self._backed = 0
        word = arena.words[slot + layout.INDEX]
        self.cell = word & ~layout.FORM_MASK
        self.start, self.mask = slot + layout.INLINE, layout.INLINE_MASK
        if word:
            self._read(word & layout.FORM_MASK)

    def _read(self, form: int) -> None:
        arena, words = self._arena, self._arena.words
        kind = arena.kind_of(self.cell)
        if form == layout.Form.CELL and CELL_512 <= kind <= CELL:
            self.start, self.mask = self.cell >> 3, SIZES[kind] // layout.ENTRY_SIZE - 1
            return
        head, tail = words[self._slot + layout.HEAD], words[self._slot + layout.TAIL]
        low, high = _oldest(tail, head) >> layout.SEGMENT_SHIFT, (head - 1) >> layout.SEGMENT_SHIFT
        if form != layout.Form.DIRECTORY or kind != CELL or not 0 <= high - low < layout.DIRECTORY:
            raise Damaged(f"there is no index at {self.cell}")
        self.segments = {}
        for number in range(low, high + 1):
            at = words[(self.cell >> 3) + number % layout.DIRECTORY]
            if arena.kind_of(at) != BLOCK:
                raise Damaged(f"there are no entries at {at}")
            self.segments[number] = at >> 3
        self.start, self.mask, self._backed = self.segments[high], layout.SEGMENT - 1, head

    def place(self, entry: int) -> int:
        """The first word of an entry."""
        start = self.start if self.segments is None else self.segments[entry >> layout.SEGMENT_SHIFT]
        return start + (entry & self.mask) * _ENTRY_WORDS

    def full_at(self, tail: int) -> int:
        """How many entries there can be, ever, without ``grow``."""
        return tail + self.mask + 1 if self.segments is None else self._backed

    def grow(self, tail: int, head: int) -> None:
        """Make room for one more entry at least.

        Raises:
            LimitReached: There is none.
        """
        if self.segments is not None:
            self._grow_segment(self.segments, head)
        elif self.mask == layout.INLINE_MASK:
            self._move(self._arena.allocate(CELL_512), tail, head)
        elif self.mask + 1 < SIZES[CELL] // layout.ENTRY_SIZE:
            self._move(self._arena.allocate(CELL), tail, head)
        else:
            self._divide(tail, head)

    def _move(self, cell: int, tail: int, head: int) -> None:
        words, mask = self._arena.words, SIZES[self._arena.kind_of(cell)] // layout.ENTRY_SIZE - 1
        for entry in range(_oldest(tail, head), head):
            old, new = self.place(entry), (cell >> 3) + (entry & mask) * _ENTRY_WORDS
            words[new], words[new + 1] = words[old], words[old + 1]
        before, self.cell = self.cell, cell
        words[self._slot + layout.INDEX] = cell | layout.Form.CELL
        self.start, self.mask = cell >> 3, mask
        if before:
            self._arena.release(before)

    def _divide(self, tail: int, head: int) -> None:
        """Leave the one cell for blocks."""
        arena, words = self._arena, self._arena.words
        segments: dict[int, int] = {}
        directory = arena.allocate(CELL)
        try:
            for number in range(
                _oldest(tail, head) >> layout.SEGMENT_SHIFT, (head >> layout.SEGMENT_SHIFT) + 1
            ):
                segments[number] = arena.allocate(BLOCK) >> 3
                arena.back(segments[number] << 3, BLOCK_SIZE)
        except BaseException:
            for at in (directory, *(start << 3 for start in segments.values())):
                arena.release(at)
            raise
        for entry in range(_oldest(tail, head), head):
            old = self.place(entry)
            new = segments[entry >> layout.SEGMENT_SHIFT] + (entry & layout.SEGMENT - 1) * _ENTRY_WORDS
            words[new], words[new + 1] = words[old], words[old + 1]
        for number, start in segments.items():
            words[(directory >> 3) + number % layout.DIRECTORY] = start << 3
        before, self.cell = self.cell, directory
        words[self._slot + layout.INDEX] = directory | layout.Form.DIRECTORY
        self.segments, self.start = segments, segments[head >> layout.SEGMENT_SHIFT]
        self.mask = layout.SEGMENT - 1
        self._backed = (head | self.mask) + 1
        arena.release(before)

    def _grow_segment(self, segments: dict[int, int], head: int) -> None:
        arena, number = self._arena, head >> layout.SEGMENT_SHIFT
        start = segments.get(number)
        if start is None:
            start = arena.allocate(BLOCK) >> 3
        first = head & layout.SEGMENT - 1 & -_BACKED
        try:
            arena.back((start << 3) + first * layout.ENTRY_SIZE, _BACKED * layout.ENTRY_SIZE)
        except BaseException:
            if number not in segments:
                arena.release(start << 3)
            raise
        if number not in segments:
            arena.words[(self.cell >> 3) + number % layout.DIRECTORY] = start << 3
            segments[number] = start
        self.start = start
        self._backed = (head | _BACKED - 1) + 1

    def drop_before(self, tail: int, head: int) -> None:
        """Give back the blocks whose entries are all dropped."""
        if self.segments is not None:
            low = _oldest(tail, head) >> layout.SEGMENT_SHIFT
            for number in [each for each in self.segments if each < low]:
                self._arena.release(self.segments.pop(number) << 3)

    def cells(self) -> list[int]:
        """Everything that the index consists of, outside of the slot."""
        blocks = [] if self.segments is None else [start << 3 for start in self.segments.values()]
        return [self.cell, *blocks] if self.cell else []


def _oldest(tail: int, head: int) -> int:
    """The oldest entry that must be readable."""
    return max(0, min(tail, head - 1))


@value
class Stretch:
    """Entries whose bytes are in one cell or block."""

    at: int
    end: int
    """The entry behind the last one."""


def stretches_of(arena: Arena, index: Index, tail: int, head: int) -> list[Stretch]:
    """The cells and blocks that have the bytes of the entries, oldest first.

    Raises:
        Damaged: An entry is none.
    """
    words, found, said = arena.words, list[Stretch](), -1
    start = end = 0
    for entry in range(tail, head):
        place = index.place(entry)
        word, before = words[place], words[place + 1]
        at, length = word >> layout.POSITION_SHIFT, word >> layout.LENGTH_SHIFT & layout.LENGTH_MASK
        if not start <= at < end:
            if found:
                found[-1] = Stretch(start, entry)
            start, size = arena.cell_of(at)
            end = start + size - layout.MARGIN
            if size < PAGE:
                raise Damaged(f"there is no output at {at}")
            found.append(Stretch(start, head))
        is_stream = word & layout.STREAM_MASK < len(layout.STREAMS)
        if not length or at + length > end or not is_stream or said not in (-1, before):
            raise Damaged(f"entry {entry} is none")
        said = before + length
    return found
