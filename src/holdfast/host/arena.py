"""The arena: memory that outlives the server, cut into cells and blocks; it knows no rule about processes.

What must hold:

1. What is in use is named by somebody in the arena itself.  The lists of what is free are in the
   memory of the server only; after a restart, what nobody names is free (``rebuild``).
2. A word is changed by one store of eight bytes, so that it has the old value or the new one at every
   instruction at which the server may be killed.
3. A store into a cell cannot fail for want of memory: a cell has its memory before it is given out.
4. A page that was lent to a pipe is never written again: it is given back to the system first.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import struct
import time
import zlib
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from itertools import compress

from holdfast.errors import LimitReached

LAYOUT = 2
"""Changes whenever an older server would misread the arena, or a newer one an older arena."""

SHIFT = 18
BLOCK_SIZE = 1 << SHIFT
PAGE = 4096

# Kinds of cells, as the table of blocks has them.  0 is a block that is not cut.
SLOT, CELL_256, CELL_512, CELL_1K, CELL_2K, CELL = 1, 2, 3, 4, 5, 6
LENT_CELL = 7
"""As large as ``CELL``; its pages may be passed to pipes."""
BLOCK = 8
LENT_BLOCK = 9

SIZES = (0, 256, 256, 512, 1024, 2048, PAGE, PAGE, BLOCK_SIZE, BLOCK_SIZE)

# The first block: words, then a byte for each block of the arena.
_MAGIC = int.from_bytes(b"holdfast", "little")
_W_MAGIC, _W_LAYOUT, _W_BORN, _W_KEY = 0, 1, 2, 3
STAGE = 8
"""The word that says whose bytes are in the stage."""
_TABLE = 4096

_WARM = 32
"""Free blocks that keep their memory: fresh pages cost twice as much as a read."""

_STEP = 16_384
"""Bytes by which the cells of a block get their memory."""

_IDLE_MOST = 65_536
"""Memory that a block without a used cell may keep, if it is the only one of its kind."""

_RESERVED = 16
"""Blocks at the end, for what must not be refused: how a process ended."""

_MFD_NOEXEC_SEAL = 8
_BLOB = struct.Struct("<QII")
"""Before the bytes of a piece of a blob: the next piece, a checksum, how many bytes there are."""


class Damaged(ValueError):
    """What is in the arena is not what was put there."""


def size_for(retained_bytes: int) -> int:
    """The size of an arena for so much output: most of it is never in memory."""
    return 4 * retained_bytes + (1 << 30)


def create(size: int) -> int:
    """A new arena, as a descriptor: it can neither grow nor shrink, nor be run as a program."""
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        fd = os.memfd_create("holdfast-arena", flags | _MFD_NOEXEC_SEAL)
    except OSError:  # Before Linux 6.3.
        fd = os.memfd_create("holdfast-arena", flags)
    try:
        blocks = max(-(-size // BLOCK_SIZE), 4 * _RESERVED)
        os.ftruncate(fd, blocks * BLOCK_SIZE)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        os.posix_fallocate(fd, 0, _TABLE + blocks)
        os.pwrite(fd, struct.pack("<QQdQ", _MAGIC, LAYOUT, time.time(), 1), 0)
    except BaseException:
        os.close(fd)
        raise
    return fd


def create_stage() -> tuple[int, int]:
    """A new stage: the descriptors of the end that is read and of the end that is written."""
    return os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)


class Arena:
    """The arena as one server sees it.  Whoever made the descriptors owns them."""

    def __init__(self, fd: int, stage: tuple[int, int], *, limit: int) -> None:
        """
        Args:
            limit: Bytes of memory to use at the most.

        Raises:
            Damaged: This is no arena, or one of another layout.
        """
        self.fd = fd
        self.stage_out, self.stage_in = stage
        self.limit = limit
        size = os.fstat(fd).st_size
        self._blocks = size >> SHIFT
        self.map = mmap.mmap(fd, size)
        self.map.madvise(mmap.MADV_DONTDUMP)
        self.view = memoryview(self.map)
        self.words = self.view.cast("Q")
        if self.words[_W_MAGIC] != _MAGIC or self.words[_W_LAYOUT] != LAYOUT:
            found = self.words[_W_LAYOUT] if self.words[_W_MAGIC] == _MAGIC else "none"
            self.close()
            raise Damaged(f"the arena has layout {found}, and this server knows {LAYOUT}")
        self._table = self.view[_TABLE : _TABLE + self._blocks]
        self._first = (_TABLE + self._blocks + BLOCK_SIZE - 1) >> SHIFT
        self._path = f"/proc/self/fd/{fd}"
        # Of the cells: per kind the blocks that have free ones, and those; up to where a block has memory.
        self._open: tuple[dict[int, list[int]], ...] = tuple({} for _ in SIZES)
        self._backed: dict[int, int] = {}
        # Of the blocks: free ones with memory, given back ones, those never used, how many are cut.
        self._warm: list[int] = []
        self._returned: list[int] = []
        self._next = self._first
        self._cut = 0
        self.rebuilt = not any(self._table)
        """Whether the lists of what is free are right; before that nothing may be allocated."""
        self.staged: object = None
        """Whose bytes are in the stage and cannot be taken out for now: nobody else may use it."""

    def close(self) -> None:
        """Give up the map."""
        with contextlib.suppress(AttributeError):
            self._table.release()
        self.words.release()
        self.view.release()
        with contextlib.suppress(BufferError):  # Somebody has a view of it; then it goes with the process.
            self.map.close()

    @property
    def born(self) -> float:
        """When the arena was made, as seconds since the epoch."""
        (born,) = struct.unpack_from("<d", self.view, 8 * _W_BORN)
        return float(born)

    @property
    def used(self) -> int:
        """Bytes of memory in use."""
        return os.fstat(self.fd).st_blocks * 512

    @property
    def cells(self) -> int:
        """Cells and blocks in use."""
        table = bytes(self._table)
        all_of_them = sum(table.count(kind) * (BLOCK_SIZE // SIZES[kind]) for kind in range(1, len(SIZES)))
        free = sum(len(free) for blocks in self._open for free in blocks.values())
        return all_of_them - free - len(self._warm)

    def new_key(self) -> int:
        """A number that was never given before, by this server or an earlier one."""
        key = self.words[_W_KEY]
        self.words[_W_KEY] = key + 1
        return key

    def open_cursor(self) -> int:
        """A descriptor with an offset of its own, which nobody else moves."""
        return os.open(self._path, os.O_RDWR | os.O_CLOEXEC)

    def drop_stage(self) -> None:
        """Forget the bytes in the stage, which are nobody's."""
        self.staged = None
        with contextlib.suppress(BlockingIOError):
            while os.read(self.stage_out, BLOCK_SIZE):
                pass

    # Cells and blocks.

    def allocate(self, kind: int, *, beyond_limit: bool = False) -> int:
        """The place of a free cell or block, with whatever was in it before.

        Cells have memory.  What is lent, and blocks, get theirs by ``back`` or by a system call that writes.

        Raises:
            LimitReached: There is none, or no memory for it.
        """
        if kind >= BLOCK:
            if kind == BLOCK and self._warm:
                return self._warm.pop()
            return self._cut_block(kind, beyond_limit=beyond_limit)
        blocks, size = self._open[kind], SIZES[kind]
        if not blocks:
            start = self._cut_block(kind, beyond_limit=beyond_limit)
            self._backed[start >> SHIFT] = start
            blocks[start >> SHIFT] = list(range(start + BLOCK_SIZE - size, start - 1, -size))
        number = next(reversed(blocks))
        free = blocks[number]
        at = free.pop()
        if not free:
            del blocks[number]
        try:
            if kind != LENT_CELL and at + size > self._backed[number]:
                end = (at + size + _STEP - 1) & -_STEP
                self.back(self._backed[number], end - self._backed[number])
                self._backed[number] = end
        except LimitReached:
            self.release(at)
            raise
        return at

    def release(self, at: int) -> None:
        """Give back a cell or block that nobody in the arena names any more."""
        number = at >> SHIFT
        kind = self._table[number]
        if kind == BLOCK and len(self._warm) < _WARM:
            self._warm.append(at)
        elif kind >= BLOCK:
            self._give_back(number)
        else:
            self._release_cell(number, kind, at)

    def _release_cell(self, number: int, kind: int, at: int) -> None:
        size, blocks = SIZES[kind], self._open[kind]
        if kind == LENT_CELL:
            self.erase(at, size)
        free = blocks.get(number)
        if free is None:
            blocks[number] = free = []
        free.append(at)
        if len(free) * size == BLOCK_SIZE:
            memory = 0 if kind == LENT_CELL else self._backed[number] - (number << SHIFT)
            if len(blocks) > 1 or memory > _IDLE_MOST:
                del blocks[number]
                self._give_back(number)

    def _cut_block(self, kind: int, *, beyond_limit: bool) -> int:
        assert self.rebuilt
        while not self._has_block(beyond_limit=beyond_limit):
            if not self._warm:
                raise LimitReached("memory of the arena", self.limit, name="engine.arena_bytes")
            self._give_back(self._warm.pop() >> SHIFT)
        if self._returned:
            number = self._returned.pop()
        else:
            number = self._next
            self._next += 1
        self._table[number] = kind
        self._cut += 1
        return number << SHIFT

    def _has_block(self, *, beyond_limit: bool) -> bool:
        """Whether one more block may be cut, and is there."""
        if beyond_limit:
            return bool(self._returned) or self._next < self._blocks
        # Blocks are rarely full: it is asked for the truth only if they could be too many.
        if (self._cut + 1) << SHIFT > self.limit and self.used + BLOCK_SIZE > self.limit:
            return False
        return bool(self._returned) or self._next < self._blocks - _RESERVED

    def _give_back(self, number: int) -> None:
        self.erase(number << SHIFT, BLOCK_SIZE)
        self._table[number] = 0  # After its memory: what is not cut has none.
        self._backed.pop(number, None)
        self._returned.append(number)
        self._cut -= 1

    def back(self, at: int, size: int) -> None:
        """See to it that these bytes have memory, without a change to them.

        Raises:
            LimitReached: The system has none.
        """
        try:
            os.posix_fallocate(self.fd, at, size)
        except OSError as error:
            raise LimitReached("memory of the arena", self.limit, name="engine.arena_bytes") from error

    def erase(self, at: int, size: int) -> None:
        """Give these pages back to the system; a pipe that has one of them keeps it as it is."""
        self.map.madvise(mmap.MADV_REMOVE, at, size)

    def kind_of(self, at: int) -> int:
        """The kind of cell that begins at this place.

        Raises:
            Damaged: None begins there.
        """
        number = at >> SHIFT
        if not self._first <= number < self._blocks:
            raise Damaged(f"{at} is not in the arena")
        kind = self._table[number]
        if not 0 < kind < len(SIZES) or at % SIZES[kind]:
            raise Damaged(f"nothing begins at {at}")
        return kind

    def cell_of(self, at: int) -> tuple[int, int]:
        """Where the cell begins that has this place in it, and its size.

        Raises:
            Damaged: None has.
        """
        number = at >> SHIFT
        if not self._first <= number < self._blocks or not 0 < self._table[number] < len(SIZES):
            raise Damaged(f"{at} is not in use")
        size = SIZES[self._table[number]]
        return at & -size, size

    # Blobs: bytes that never change, with a checksum.

    def write_blob(self, data: bytes, *, beyond_limit: bool = False) -> int:
        """Put these bytes into the arena; return their place, which is not 0.

        Raises:
            LimitReached: There is no room for them.
        """
        room = BLOCK_SIZE - _BLOB.size
        following = 0
        try:
            for start in reversed(range(0, len(data) or 1, room)):
                piece = data if len(data) <= room else data[start : start + room]
                following = self._write_piece(piece, following, beyond_limit=beyond_limit)
        except LimitReached:
            self.free_blob(following)
            raise
        return following

    def _write_piece(self, piece: bytes, following: int, *, beyond_limit: bool) -> int:
        size = _BLOB.size + len(piece)
        kind = next((each for each in range(CELL_256, CELL + 1) if size <= SIZES[each]), BLOCK)
        at = self.allocate(kind, beyond_limit=beyond_limit)
        if kind == BLOCK:
            try:
                self.back(at, size)
            except LimitReached:
                self.release(at)
                raise
        _BLOB.pack_into(self.view, at, following, _checksum(following, piece), len(piece))
        self.view[at + _BLOB.size : at + size] = piece
        return at

    def read_blob(self, at: int) -> bytes:
        """The bytes of a blob.

        Raises:
            Damaged: They are not what was written.
        """
        return b"".join(data for _, data in self._pieces(at))

    def cells_of_blob(self, at: int) -> list[int]:
        """The cells and blocks of a blob, none if ``at`` is 0.

        Raises:
            Damaged: It is not what was written.
        """
        return [place for place, _ in self._pieces(at)]

    def _pieces(self, at: int) -> Iterator[tuple[int, bytes]]:
        for _ in range(self._blocks):  # There are no more, unless they go round in a circle.
            if not at:
                return
            kind = self.kind_of(at)
            following, checksum, length = _BLOB.unpack_from(self.view, at)
            if kind in (SLOT, LENT_CELL, LENT_BLOCK) or length > SIZES[kind] - _BLOB.size:
                raise Damaged(f"there is no blob at {at}")
            data = self.map[at + _BLOB.size : at + _BLOB.size + length]
            if _checksum(following, data) != checksum:
                raise Damaged(f"the blob at {at} fails its checksum")
            yield at, data
            at = following
        raise Damaged(f"the blob at {at} has no end")

    def free_blob(self, at: int) -> None:
        """Give back the cells of a blob that nobody names any more; 0 is none."""
        while at:
            (following,) = struct.unpack_from("<Q", self.view, at)
            self.release(at)
            at = following

    # After a restart.

    def slots(self) -> Iterator[int]:
        """The places of all slots whose first word is not 0."""
        table, size = bytes(self._table), SIZES[SLOT]
        number = table.find(SLOT)
        while number >= 0:
            start = number << SHIFT
            # Not by the map, which would give memory to pages that have none.
            states = memoryview(os.pread(self.fd, BLOCK_SIZE, start)).cast("Q")[:: size >> 3].tolist()
            yield from compress(range(start, start + BLOCK_SIZE, size), states)
            number = table.find(SLOT, number + 1)

    def rebuild(self, named: AbstractSet[int]) -> None:
        """Make the lists of what is free: everything that begins at no place of ``named``."""
        for blocks in self._open:
            blocks.clear()
        self._warm, self._returned, self._backed, self._cut = [], [], {}, 0
        table = bytes(self._table).rstrip(b"\0")
        self._next = max(len(table), self._first)
        for number in range(self._first, self._next):
            kind = table[number]
            self._cut += 1
            if kind == 0:
                self._returned.append(number)
                self._cut -= 1
            elif kind < len(SIZES):
                self._rebuild_block(number, kind, named)
        self.rebuilt = True

    def _rebuild_block(self, number: int, kind: int, named: AbstractSet[int]) -> None:
        start, size = number << SHIFT, SIZES[kind]
        free = sorted(set(range(start, start + BLOCK_SIZE, size)) - named, reverse=True)
        if len(free) * size == BLOCK_SIZE:
            if kind == BLOCK and len(self._warm) < _WARM:
                self._warm.append(start)
            else:
                self._give_back(number)
            return
        if kind >= BLOCK:
            return
        self._backed[number] = start
        if kind == LENT_CELL:
            for at in free:
                self.erase(at, size)
        if free:
            self._open[kind][number] = free


def _checksum(following: int, data: bytes) -> int:
    return zlib.crc32(data, zlib.crc32(struct.pack("<QI", following, len(data))))
