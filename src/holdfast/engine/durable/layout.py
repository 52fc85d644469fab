"""What is where in a slot, in an entry of the index and in an entry of the journal (pure).

A slot is 32 words of eight bytes.  The numbers of words are counted from its begin.  A change of anything
here is another ``host.arena.LAYOUT``.
"""

from __future__ import annotations

import hashlib
import struct
from enum import IntEnum

from holdfast.model import Stream

WORDS = 32


class SlotState(IntEnum):
    """What a slot is used for, and where its process is in its life.

    Of a process only ``STARTING``, ``RUNNING`` and ``STRAY`` are ever stored.  Whether it has exited or
    closed is told by the numbers of those events, so that one store says it.
    """

    FREE = 0
    STARTING = 1
    """Nobody has said yet that it runs."""
    RUNNING = 2
    EXITED = 3
    CLOSED = 4
    STRAY = 5
    """Forgotten, but somebody of its tree is left: there is a key and nothing else."""
    LEDGER = 6
    """No process: a number and some bytes."""


# The words of a slot.  Those of blobs are places, 0 for none; those of times are floats, 0 for none.
STATE, KEY, FACTS, EXIT, CAUSE = 0, 1, 2, 3, 4
INDEX = 5
"""0: the entries are in the slot.  Else the place of a cell, with a ``Form``."""
HEAD, TAIL = 6, 7
"""Entries that were ever made, and how many of them are dropped."""
BLOCK = 8
"""Where the next bytes go: see ``block_word``; 0 before the first ones."""
STREAM = 9
"""Of which stream the next bytes are: a place in ``STREAMS``."""
EXIT_SEQ, CLOSED_SEQ, PID = 10, 11, 12
STARTED, EXITED_AT, CLOSED_AT, KILL_AT, ACTIVE = 13, 14, 15, 16, 17
ACKED = 18
IN_TABLE = 19
"""The place of the table of the journal, 0 before the first write."""
IN_COUNT, IN_TAIL = 20, 21
"""Entries of the journal that were ever made, and how many of them were written to the child."""
IN_FLAGS, FLAGS = 22, 23
INLINE = 24
"""The first entries of the index: there is room for four."""


class Flag:
    """What else is known of a process: bits.  Plain numbers, because enumerations are slow at that."""

    AUDITED = 1
    """Its end is in the audit log."""
    MUTED = 2
    """Its output is read and dropped."""
    SILENT = 4
    """Its output was forgotten, and what it still says is not kept: the words of the index mean nothing."""
    FORGOTTEN = 8
    """Nobody asks for it any more, but somebody of its tree is left."""
    NOBODYS = SILENT | FORGOTTEN
    """One of these: output is forgotten first, and only with its process."""
    ASKED = 16
    """Its tree was asked to end.  Without this, a server may have died before it could do that."""


DROPPED_SHIFT = 16
"""The rest of the word of the flags: bytes of output that were not kept.

Servers before this one left it 0 and look at the bits of flags only, so it is no other layout.
"""
FLAG_MASK = (1 << DROPPED_SHIFT) - 1
MOST_DROPPED = (1 << 63 - DROPPED_SHIFT) - 1
"""That is 128 TiB."""

STREAMS = (Stream.STDOUT, Stream.STDERR, Stream.PTY)

# Output.

INLINE_MASK = 3
"""Entries inside the slot, less one."""

_COUNT_SHIFT = 4
_COUNT_MARK = 15


def count_place(slot: int, tail: int) -> int:
    """Where in a slot the bytes of standard error are counted that were dropped when ``tail`` entries were.

    In place of entries, once these are elsewhere.  There are two such places, for two tails in turn: each
    has the tail, which is written last, and the bytes.  Servers before this one do not look there.
    """
    return slot + INLINE + (tail & 1) * ENTRY_SIZE // 8


def count_word(tail: int) -> int:
    """The tail in such a place: no entry has a stream with this number."""
    return tail << _COUNT_SHIFT | _COUNT_MARK


ENTRY_SIZE = 16


class Form(IntEnum):
    """How the index is stored; in the low bits of its word."""

    CELL = 1
    """The entries are in one cell, round and round."""
    DIRECTORY = 2
    """The cell has the places of blocks, and those have the entries."""


FORM_MASK = 255

SEGMENT_SHIFT = 14
SEGMENT = 1 << SEGMENT_SHIFT
"""Entries in a block of them."""

DIRECTORY = 512
"""Blocks of entries that a directory can have."""

MARGIN = 8
"""Bytes at the end of a cell or block of output that are never used.

So the place behind the last byte of one is never the begin of another one.
"""

# An entry is two words: place, length and stream; and the bytes of all entries before it.
POSITION_SHIFT = 24
LENGTH_SHIFT = 4
LENGTH_MASK = (1 << 20) - 1
STREAM_MASK = 15

_BLOCK_SHIFT = 12
_HEAD_BITS = 32
_HEAD_MASK = (1 << _HEAD_BITS) - 1


def block_word(at: int, head: int) -> int:
    """The word for a cell or block that gets the bytes of the entries from ``head`` on."""
    return at >> _BLOCK_SHIFT << _HEAD_BITS | head & _HEAD_MASK


def block_at(word: int) -> int:
    """The place in such a word."""
    return word >> _HEAD_BITS << _BLOCK_SHIFT


def is_first(word: int, head: int) -> bool:
    """Whether the next entry is the first one of that cell or block."""
    return word & _HEAD_MASK == head & _HEAD_MASK


def number_of(entry: int, exit_seq: int) -> int:
    """The number of the chunk of an entry: output and exit share one series."""
    return entry + 1 if not exit_seq or entry + 1 < exit_seq else entry + 2


def first_above(seq: int, exit_seq: int) -> int:
    """The entry with the first chunk numbered above ``seq``."""
    return seq if not exit_seq or seq < exit_seq else seq - 1


# Input.

WRITE_SIZE = 64
WRITE_WORDS = WRITE_SIZE // 8
"""An entry of the journal: place, facts, identifier."""

IDENTIFIER_MOST = WRITE_SIZE - 16
"""Bytes of an identifier that are stored as they are; a longer one is told by its digest."""

WRITE_LENGTH_MASK = (1 << 32) - 1
_FLAGS_SHIFT = 32
SIZE_SHIFT = 40
_SIZE_MASK = 255
LAP_SHIFT = 48
_LAP_MASK = (1 << 16) - 1

TABLE_SHIFT = 12
"""Entries of a table as large as it gets; before that none is overwritten."""


class WriteFlag:
    """What an entry of the journal is beside bytes."""

    NAMED = 1
    """It has an identifier, which may be empty."""
    DIGEST = 2
    """The identifier is stored as digest and length."""
    END = 4
    """The end of input: nothing is accepted after it but what was offered before; no bytes of its own."""
    LAST = 8
    """The last bytes, which come after everything else."""
    MORE = 16
    """It is a part of the same write as the entry before it."""


class InputFlag:
    """What is known of a child's stdin beside its journal."""

    FINISHED = 1
    CLOSED = 2


def write_word(length: int, flags: int, size: int) -> int:
    """The facts of an entry of the journal; ``size`` is that of the identifier as it is stored."""
    return length | flags << _FLAGS_SHIFT | size << SIZE_SHIFT


def lap_of(number: int) -> int:
    """What the facts of an entry say of how often its place was used before.

    It is stored first.  So an entry that somebody has begun to overwrite is not taken for what it was.
    """
    return (number >> TABLE_SHIFT & _LAP_MASK) << LAP_SHIFT


def read_write_word(word: int) -> tuple[int, int, int]:
    """Length, flags and the size of the identifier."""
    return word & WRITE_LENGTH_MASK, word >> _FLAGS_SHIFT & 255, word >> SIZE_SHIFT & _SIZE_MASK


def stored_identifier(write_id: str) -> tuple[bytes, int]:
    """An identifier as an entry of the journal has it, and the flags of that."""
    data = write_id.encode("utf-8", "surrogatepass")
    if len(data) <= IDENTIFIER_MOST:
        return data, WriteFlag.NAMED
    return digest_of(write_id), WriteFlag.NAMED | WriteFlag.DIGEST


_LENGTH = struct.Struct("<Q")


def digest_of(write_id: str) -> bytes:
    """What stands for an identifier that is too long to be stored: its digest and its length."""
    data = write_id.encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=32).digest() + _LENGTH.pack(len(write_id))


def restored_identifier(stored: bytes, flags: int) -> tuple[str | bytes, int]:
    """The identifier, or the digest of one, and its length."""
    if flags & WriteFlag.DIGEST:
        (length,) = _LENGTH.unpack(stored[-_LENGTH.size :])
        return stored, length
    write_id = stored.decode("utf-8", "surrogatepass")
    return write_id, len(write_id)


LAST_MOST = 6
"""The last bytes, which come after all others, are two at the most: the end of a line and of a file."""


def packed_last(last: bytes) -> int:
    """The last bytes as a part of a word: their number, then they themselves; the first byte is free."""
    assert len(last) <= LAST_MOST
    return len(last) << 8 | int.from_bytes(last, "little") << 16


def unpacked_last(word: int) -> bytes:
    """The bytes of such a word."""
    length = min(word >> 8 & 255, LAST_MOST)
    return (word >> 16).to_bytes(LAST_MOST, "little")[:length]


# Times.

_FLOAT = struct.Struct("<d")


def time_word(at: float | None) -> int:
    """A time as a word, in which 0 is none."""
    if at is None:
        return 0
    return int.from_bytes(_FLOAT.pack(at or -0.0), "little")


def word_time(word: int) -> float | None:
    """The time in a word."""
    if not word:
        return None
    (at,) = _FLOAT.unpack(word.to_bytes(8, "little"))
    return float(at) + 0.0
