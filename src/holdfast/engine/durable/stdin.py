"""Input that outlives the server: accepted bytes are in the arena before the child is given them.

What must hold, beside what holds for ``engine.stdin``:

1. A write is accepted, and its identifier remembered, by one store; before that nothing of it was given.
2. The child is given bytes by the cursor of the journal only, which the system moves by what the child took.
3. The cursor never stands in a cell that is not the journal's.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections import deque
from collections.abc import Callable
from os import sendfile
from typing import TYPE_CHECKING

from holdfast.config import EngineLimits
from holdfast.engine.life import StdinSnapshot
from holdfast.engine.stdin import ACCEPTED, FOR_NOW, STDIN_CLOSED, Stdin
from holdfast.errors import LimitReached
from holdfast.host.arena import BLOCK_SIZE
from holdfast.model import WriteStatus
from holdfast.poller import WRITABLE, Poller

from . import layout
from .journal import Journal, cells_with_bytes, ungiven_of
from .layout import InputFlag, WriteFlag

if TYPE_CHECKING:
    from .record import Record

_RETRY = 0.05
"""Seconds until those who wait for memory are looked at again: nobody tells when there is some."""

_NAMED = layout.write_word(0, WriteFlag.NAMED, 0)

_FOR_NOW = frozenset({*FOR_NOW, errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOBUFS})
"""Errors that say nothing about the child: what was accepted stays, and is given later."""

_NONE: deque[int] = deque(maxlen=0)  # That of all for whom nothing waits.

_NOWHERE = 0  # A place that is never one of a journal's.


class DurableStdin(Stdin):
    """One child's stdin, with a journal.  Behaves as a ``Stdin`` to whoever writes.

    A write for which the arena has no memory waits, as one does for which the queue has no room.
    """

    __slots__ = (
        "_at",
        "_count_word",
        "_cursor",
        "_drop",
        "_ends",
        "_has_digests",
        "_hold",
        "_journal",
        "_last",
        "_left",
        "_map",
        "_record",
        "_retry",
        "_tail",
        "_tail_word",
        "_words",
    )

    def __init__(
        self,
        record: Record,
        fd: int | None,
        *,
        loop: asyncio.AbstractEventLoop,
        poller: Poller,
        limits: EngineLimits,
        hold: Callable[[int], None],
        drop: Callable[[], None],
    ) -> None:
        """
        Args:
            fd: The pipe or terminal; None for a stdin that was closed earlier.
            hold: Has somebody hold the cursor of the journal who outlives the server.
            drop: Has that somebody close the cursor, and its copy of ``fd``.
        """
        super().__init__(fd, loop=loop, poller=poller, limits=limits)
        self._record = record
        self._hold, self._drop = hold, drop
        self._words, self._map = record.arena.words, record.arena.map
        self._count_word, self._tail_word = record.slot + layout.IN_COUNT, record.slot + layout.IN_TAIL
        self._journal = Journal(record.arena, record.slot)
        self._tail = self._words[record.slot + layout.IN_TAIL]
        self._cursor = -1
        # Where the cursor is, and how much is left of the entry in which it is.
        self._at = self._left = 0
        # For each write that the child was not given: how many entries there are up to its end.
        self._ends: deque[int] = _NONE
        self._last = b""
        self._has_digests = False
        self._retry: asyncio.TimerHandle | None = None

    # The hot path.

    def try_write(self, data: bytes, write_id: str | None) -> WriteStatus | None:
        journal, fd = self._journal, self._fd
        pos, count = journal.pos, journal.count
        end = pos + len(data)
        if (
            end > journal.end
            or count >= journal.full
            or pos != self._at
            or self._ends
            or self._line
            or self._finished
            or fd is None
            or write_id is None
            or not data
        ):
            return self._try_slowly(data, write_id)
        name = write_id.encode("utf-8", "surrogatepass")
        if len(name) > layout.IDENTIFIER_MOST:
            return self._try_slowly(data, write_id)
        ids = self._ids
        if ids is not None and write_id in ids:
            return ACCEPTED
        # The usual case: nothing waits, and there is room behind what the child has.
        words, memory = self._words, self._map
        memory[pos:end] = data
        place = journal.table + (count & journal.mask) * layout.WRITE_SIZE
        words[(place >> 3) + 1] = _NAMED | len(name) << layout.SIZE_SHIFT | layout.lap_of(count) | end - pos
        words[place >> 3] = pos  # After the facts: see ``Journal.store``.
        memory[place + 16 : place + 16 + len(name)] = name
        words[self._count_word] = count + 1  # The commit: it is ours.
        journal.count = count + 1
        journal.pos = end
        try:
            sent = sendfile(fd, self._cursor, None, end - pos)
        except OSError:
            sent = 0  # Whatever it is, it is found again by who looks closer.
        self._at = pos + sent
        if sent == end - pos:
            words[self._tail_word] = self._tail = count + 1
            return self._remember(write_id)
        self._left = end - pos - sent
        return self._after_taking(count, end - pos - sent, write_id)

    # What is not usual.

    def _try_slowly(self, data: bytes, write_id: str | None) -> WriteStatus | None:
        if self.has_accepted(write_id):
            return ACCEPTED
        if self._fd is None or self._finished:
            return STDIN_CLOSED
        self._widen(len(data))
        return None if self._line or not self._has_room() else self._take(data, write_id)

    def has_accepted(self, write_id: str | None) -> bool:
        ids = self._ids
        if ids is None or write_id is None:
            return False
        return write_id in ids or (self._has_digests and layout.digest_of(write_id) in ids)

    def _has_room(self) -> bool:
        return not self._ends or (
            len(self._ends) < self._limits.stdin_chunks and self._queued < self._limits.stdin_bytes
        )

    def _take(self, data: bytes, write_id: str | None) -> WriteStatus | None:
        if self.has_accepted(write_id):
            return ACCEPTED
        if self._fd is None:
            return STDIN_CLOSED
        before = self._journal.count
        if not self._accept(data, write_id):
            return None
        return self._after_taking(before, len(data), write_id)

    def _after_taking(self, before: int, size: int, write_id: str | None) -> WriteStatus:
        """Something was accepted.  If it is all there is, it is given to the child as far as it takes it."""
        self._queued += size
        if self._ends:
            self._ends.append(self._journal.count)
        else:
            self._ends = deque((self._journal.count,))
            self._flush()
            if self._fd is None and self._tail == before:
                # The child closed its end, or the terminal is gone.  Nobody was told that this was accepted.
                self._journal.commit(before)
                return STDIN_CLOSED
        return self._remember(write_id)

    def _accept(self, data: bytes, write_id: str | None, flags: int = 0) -> bool:
        """Make these bytes ours, by one commit; False if there is no room for them in the arena."""
        journal = self._journal
        count, cells = journal.count, len(journal.cells)
        name, named = (b"", 0) if write_id is None else layout.stored_identifier(write_id)
        try:
            if not self._begin(len(data), count):
                return False
            pieces = [(_NOWHERE, 0)]
            if data:
                pieces = journal.make_room(len(data), is_idle=not self._ends)
            view = memoryview(data)
            for at, size in pieces:
                if size:
                    journal.put(at, view[:size])
                view = view[size:]
        except (LimitReached, OSError):
            journal.begin_anew(cells)
            self._try_later()
            return False
        for number, (at, size) in enumerate(pieces, count):
            journal.store(number, at, layout.write_word(size, flags | named, len(name)), name)
            name, named, flags = b"", 0, flags | WriteFlag.MORE
        journal.commit(count + len(pieces))
        return True

    def _begin(self, size: int, count: int) -> bool:
        """See to it that there is a cursor, a table, and room in it for a write of this size."""
        journal = self._journal
        entries = max(1, -(-size // BLOCK_SIZE))
        if not journal.has_room(entries, count - self._tail):
            return False
        if self._cursor < 0:
            self._open_cursor()
        if not journal.table:
            journal.begin()
        if count + entries > journal.full:
            journal.make_entries(entries)
        return True

    def _open_cursor(self) -> None:
        try:
            cursor = self._record.arena.open_cursor()
            try:
                self._hold(cursor)
            except BaseException:
                os.close(cursor)
                raise
        except OSError as error:
            raise LimitReached("open files", 0) from error
        self._cursor = cursor

    def _try_later(self) -> None:
        """Look again in a while at those who wait for memory."""
        if self._retry is None:
            self._retry = self._loop.call_later(_RETRY, self._on_retry)

    def _on_retry(self) -> None:
        self._retry = None
        self.on_ready()

    # What the child gets.

    def _flush(self) -> None:
        """Give the child what it takes now, entry by entry."""
        fd, journal = self._fd, self._journal
        if fd is None:
            return
        while self._tail < journal.count:
            try:
                left = self._left or self._open_entry()
                sent = sendfile(fd, self._cursor, None, left) if left else 0
            except OSError as error:
                if error.errno in _FOR_NOW:
                    break
                self.close()
                return
            if left:
                self._at += sent
                self._left = left - sent
                self._queued -= sent
                if sent < left:
                    break
            self._tail += 1
            self._words[self._tail_word] = self._tail
        ends = self._ends
        while ends and ends[0] <= self._tail:
            ends.popleft()
        if bool(ends) is not self._watched:
            self._watched = bool(ends)
            if ends:
                self._poller.add_again(fd, self, WRITABLE)
            else:
                self._poller.remove(fd)

    def _open_entry(self) -> int:
        """Have the cursor in the first entry that was not given; how many bytes that is."""
        words, place = self._words, self._journal.place(self._tail) >> 3
        size = words[place + 1] & layout.WRITE_LENGTH_MASK
        if size and words[place] != self._at:
            self._at = os.lseek(self._cursor, words[place], os.SEEK_SET)
            self._journal.leave(self._at)
        return size

    # The end.

    def finish(self, last: bytes = b"", write_id: str | None = None) -> WriteStatus:
        """As of ``Stdin``.

        Raises:
            LimitReached: The arena has no room to remember it.
        """
        if self.has_accepted(write_id):
            return ACCEPTED
        if self._finished or self._fd is None:
            return STDIN_CLOSED
        if write_id is not None or last or self._line or self._ends:
            self._accept_end(last, write_id)
        self._finished = True
        self._remember(write_id)
        self._last = last
        self._close_if_done()
        return ACCEPTED

    def _accept_end(self, last: bytes, write_id: str | None) -> None:
        """Commit that nothing more is taken, and the last bytes.

        They get an entry of their own once nobody waits in line any more: they come after all others.
        """
        journal, count = self._journal, self._journal.count
        name, named = (b"", 0) if write_id is None else layout.stored_identifier(write_id)
        if not self._begin(0, count):
            raise LimitReached("writes to one process", count - self._tail)
        word = layout.write_word(0, WriteFlag.END | named, len(name))
        journal.store(count, layout.packed_last(last), word, name)
        journal.commit(count + 1)
        # The entry is overwritten one day.
        self._words[self._record.slot + layout.IN_FLAGS] = InputFlag.FINISHED | layout.packed_last(last)
        self._flush_end()

    def _flush_end(self) -> None:
        """The end has no bytes: if nothing is before it, it is given."""
        if not self._ends:
            self._tail = self._words[self._tail_word] = self._journal.count

    def _close_if_done(self) -> None:
        if not self._finished or self._line or self._fd is None:
            return
        if self._last:
            before = self._journal.count
            if not self._accept(self._last, None, WriteFlag.LAST):
                self._try_later()
                return
            size, self._last = len(self._last), b""
            self._after_taking(before, size, None)
        if not self._ends:
            self.close()

    def close(self) -> None:
        if self._fd is None:
            return
        self._words[self._record.slot + layout.IN_FLAGS] |= InputFlag.CLOSED  # The commit.
        self._ends = _NONE
        self._left = 0
        super().close()
        self._drop()
        self._let_go()

    def _let_go(self) -> None:
        self._journal.begin_anew()
        if self._cursor >= 0:
            os.close(self._cursor)
            self._cursor = -1
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None

    # Written down, and read again.

    def snapshot(self) -> StdinSnapshot:
        """What is to be known of it is in the arena, and ``recover`` reads that."""
        return StdinSnapshot((), (), self._finished)

    def let_go(self) -> int | None:
        fd = super().let_go()
        if self._cursor >= 0:
            os.close(self._cursor)
            self._cursor = -1
        return fd

    def resume(self, snapshot: StdinSnapshot) -> None:
        """Nothing: ``recover`` has read what there is."""

    @classmethod
    def recover(
        cls,
        record: Record,
        fd: int | None,
        cursor: int,
        *,
        loop: asyncio.AbstractEventLoop,
        poller: Poller,
        limits: EngineLimits,
        hold: Callable[[int], None],
        drop: Callable[[], None],
    ) -> DurableStdin:
        """The stdin as it was, which goes on where the child was left.

        Args:
            fd: The pipe or terminal that the shim held; None if it has dropped it.
            cursor: That of the journal, which becomes the stdin's own; -1 if there was none.
        """
        made = cls(record, fd, loop=loop, poller=poller, limits=limits, hold=hold, drop=drop)
        made._cursor = cursor
        made._recover()
        return made

    def _recover(self) -> None:
        journal, flags = self._journal, self._words[self._record.slot + layout.IN_FLAGS]
        self._finished, last = bool(flags & InputFlag.FINISHED), layout.unpacked_last(flags)
        for number in filter(journal.is_whole, journal.remembered()):
            write = journal.read(number)
            if write.flags & WriteFlag.NAMED:
                self._remember_stored(write.identifier, write.flags)
            if write.flags & WriteFlag.END:
                self._finished, last = True, layout.unpacked_last(write.at)
            if write.flags & WriteFlag.LAST:
                last = b""
        self._last = last if self._finished else b""
        if self._fd is not None and not flags & InputFlag.CLOSED:
            journal.cells = cells_with_bytes(self._record.arena, journal, self._tail)
        if self._fd is None:
            self._let_go()
        elif flags & InputFlag.CLOSED or (journal.count and self._cursor < 0):
            self.close()
        elif self._cursor >= 0:
            self._go_on()
        self._close_if_done()

    def _remember_stored(self, stored: bytes, flags: int) -> None:
        identifier, size = layout.restored_identifier(stored, flags)
        self._has_digests |= isinstance(identifier, bytes)
        self._remember_as(identifier, size)

    def _go_on(self) -> None:
        journal = self._journal
        rest = ungiven_of(journal, self._tail, os.lseek(self._cursor, 0, os.SEEK_CUR))
        self._tail = self._words[self._tail_word] = rest.tail  # Before the cursor says less than this.
        # If everything is given, what it stands in is nobody's any more, and may be used for a later entry.
        self._at = os.lseek(self._cursor, rest.at if rest.ends else _NOWHERE, os.SEEK_SET)
        self._left, self._queued = rest.left, rest.queued
        journal.keep(cells_with_bytes(self._record.arena, journal, self._tail))
        if rest.ends:
            self._ends = deque(rest.ends)
            self._flush()
