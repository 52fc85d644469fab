"""The way in: bytes for a child's stdin, in order, bounded, each write once.

What must hold:

1. Accepted bytes are written in the order of the calls that offered them.
2. An accepted identifier is remembered before anything else can run, and the
   same identifier is never written twice while it is remembered.
3. Bytes of a call that was cancelled while it waited are not written.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections import OrderedDict, deque
from typing import Final

from holdfast.config import EngineLimits
from holdfast.model import WriteStatus
from holdfast.poller import WRITABLE, Poller

from .life import StdinSnapshot
from .output import widen

ACCEPTED: Final = WriteStatus.ACCEPTED
STDIN_CLOSED: Final = WriteStatus.STDIN_CLOSED

FOR_NOW = (errno.EAGAIN, errno.ENOMEM, errno.ENOBUFS)
"""What the system says when it cannot take bytes at this moment; the next one may be better."""

_LARGE = 32 * 1024
"""Bytes of a write for which it is worth while to make the pipe larger."""

_EMPTY: deque[bytes | memoryview] = deque(maxlen=0)
"""The queue of those who never got a byte, or can take none any more."""


class Stdin:
    """One child's stdin: a pipe or the writing side of a terminal."""

    __slots__ = (
        "_end_place",
        "_fd",
        "_finished",
        "_ids",
        "_ids_size",
        "_is_wide",
        "_limits",
        "_line",
        "_loop",
        "_poller",
        "_queue",
        "_queued",
        "_watched",
    )

    def __init__(
        self, fd: int | None, *, loop: asyncio.AbstractEventLoop, poller: Poller, limits: EngineLimits
    ) -> None:
        """``fd`` is None for a stdin that was closed earlier."""
        if fd is not None:
            os.set_blocking(fd, False)
        self._fd = fd
        self._loop = loop
        self._poller = poller
        self._limits = limits
        self._watched = self._is_wide = False
        self._finished = False
        # Made when first needed: most processes never get a byte.
        self._ids: OrderedDict[str | bytes, int] | None = None
        self._ids_size = 0
        self._queue: deque[bytes | memoryview] = _EMPTY
        self._queued = 0
        # Who waits for room, with bytes and identifier.  Whoever is gone leaves at once, wherever it stands.
        self._line: OrderedDict[asyncio.Future[WriteStatus], tuple[bytes, str | None]] | None = None
        # The place of the end of the input in that line: accepted already, as nobody waits for it.
        self._end_place: asyncio.Future[WriteStatus] | None = None

    # Written down, and read again.

    def snapshot(self) -> StdinSnapshot:
        """Return what another object needs to go on: what was accepted, the end of the input included."""
        queue = [bytes(data) for data in self._queue]
        if self._end_place is not None and self._line and self._end_place in self._line:
            queue.append(self._line[self._end_place][0])
        return StdinSnapshot(tuple(queue), tuple(map(str, self._ids or ())), self._finished)

    def let_go(self) -> int | None:
        """Write no more, and return the descriptor for whoever goes on; None if it is closed."""
        fd, self._fd = self._fd, None
        if self._watched and fd is not None:
            self._poller.remove(fd)
        self._watched = False
        return fd

    def resume(self, snapshot: StdinSnapshot) -> None:
        """Go on where another one was written down; this one is new, and its descriptor the same."""
        for write_id in snapshot.write_ids:
            self._remember(write_id)
        self._finished = snapshot.is_finished
        if self._fd is not None:
            for data in snapshot.queue:
                self._enqueue(data)
            self._flush()
            self._close_if_done()

    @property
    def closed(self) -> bool:
        return self._fd is None

    @property
    def is_behind(self) -> bool:
        """Whether there are bytes that the child has no room for."""
        return self._queued > 0

    def fileno(self) -> int:
        """Return its descriptor; -1 once it is closed."""
        return -1 if self._fd is None else self._fd

    @property
    def remembers(self) -> bool:
        """Whether a retry could come of a write that was accepted."""
        return self._ids is not None

    def has_accepted(self, write_id: str | None) -> bool:
        """Whether a write of that identifier was accepted, as far as that is remembered."""
        return self._ids is not None and write_id in self._ids

    def try_write(self, data: bytes, write_id: str | None) -> WriteStatus | None:
        """Queue ``data``, if that can be done without waiting."""
        self._widen(len(data))
        if self._queue or self._line:
            if self.has_accepted(write_id):
                return ACCEPTED
            if self._finished:
                return STDIN_CLOSED
            return None if self._line or not self._has_room() else self._take(data, write_id)
        if self._ids is not None and write_id in self._ids:
            return ACCEPTED
        if self._fd is None or self._finished:
            return STDIN_CLOSED
        # The usual case: nothing waits, and the pipe takes it all.
        try:
            written = os.write(self._fd, data)
        except OSError as error:
            if error.errno not in FOR_NOW:
                self.close()  # The child closed its end, or the terminal is gone.
                return STDIN_CLOSED
            written = 0
        if written < len(data):
            self._enqueue(memoryview(data)[written:])
        return self._remember(write_id)

    async def write(self, data: bytes, write_id: str | None) -> WriteStatus:
        """Queue ``data`` when it is its turn.  See ``Process.write``."""
        status = self.try_write(data, write_id)
        if status is not None:
            return status
        answer = self._get_in_line(data, write_id)
        try:
            return await answer
        finally:
            # It may have been taken in the meantime: then it is written, and remembered.
            if self._line is not None:
                self._line.pop(answer, None)

    def _widen(self, size: int) -> None:
        """Give the pipe room for several large writes, before the first of them."""
        if size >= _LARGE and not self._is_wide and self._fd is not None:
            self._is_wide = True
            widen(self._fd)

    def _get_in_line(self, data: bytes, write_id: str | None) -> asyncio.Future[WriteStatus]:
        if self._line is None:
            self._line = OrderedDict()
        answer: asyncio.Future[WriteStatus] = self._loop.create_future()
        self._line[answer] = data, write_id
        return answer

    def finish(self, last: bytes = b"", write_id: str | None = None) -> WriteStatus:
        """Take no more; close once everything offered before is written, and ``last``.

        With a ``write_id`` that was accepted before, it is accepted again.
        """
        if self.has_accepted(write_id):
            return ACCEPTED
        if self._finished or self._fd is None:
            return STDIN_CLOSED
        self._finished = True
        self._remember(write_id)
        if last:
            # In line behind those who wait: it must come after their bytes.
            self._end_place = self._get_in_line(last, None)
            self._admit()
            self._flush()
        self._close_if_done()
        return ACCEPTED

    def _close_if_done(self) -> None:
        if self._finished and not self._queue and not self._line:
            self.close()

    def close(self) -> None:
        """Give up the descriptor; what was not written yet is dropped."""
        if self._fd is None:
            return
        if self._watched:
            self._poller.remove(self._fd)
        os.close(self._fd)
        self._fd = None
        self._queue = _EMPTY
        self._queued = 0
        self._admit()

    def on_ready(self, events: int = 0) -> None:
        """There is room in the pipe again, or nobody reads it any more."""
        self._flush()
        self._admit()
        self._close_if_done()

    # What the child gets.

    def _has_room(self) -> bool:
        return not self._queue or (
            len(self._queue) < self._limits.stdin_chunks and self._queued < self._limits.stdin_bytes
        )

    def _take(self, data: bytes, write_id: str | None) -> WriteStatus | None:
        """Make ``data`` ours, unless it was before or nobody can read it; None if there is no room for it."""
        if self.has_accepted(write_id):
            return ACCEPTED
        if self._fd is None:
            return STDIN_CLOSED
        self._enqueue(data)
        return self._remember(write_id)

    def _remember(self, write_id: str | None) -> WriteStatus:
        if write_id is not None:
            self._remember_as(write_id, len(write_id))
        return ACCEPTED

    def _remember_as(self, key: str | bytes, size: int) -> None:
        """Remember an identifier of this size by a key, and forget the oldest ones."""
        ids = self._ids
        if ids is None:
            ids = self._ids = OrderedDict()
        ids[key] = size
        self._ids_size += size
        limits = self._limits
        while len(ids) > limits.write_ids or (self._ids_size > limits.write_id_bytes and len(ids) > 1):
            self._ids_size -= ids.popitem(last=False)[1]

    def _enqueue(self, data: bytes | memoryview) -> None:
        if not self._queue:
            self._queue = deque()
            if not self._watched:
                assert self._fd is not None
                self._poller.add_again(self._fd, self, WRITABLE)
                self._watched = True
        self._queue.append(data)
        self._queued += len(data)

    def _flush(self) -> None:
        """Write what the pipe takes now."""
        queue, fd = self._queue, self._fd
        if fd is None:
            return
        while queue:
            data = queue[0]
            try:
                written = os.write(fd, data)
            except OSError as error:
                if error.errno not in FOR_NOW:
                    self.close()
                return
            self._queued -= written
            if written < len(data):
                queue[0] = memoryview(data)[written:]
                return
            queue.popleft()
        if self._watched:
            self._poller.remove(fd)
            self._watched = False

    def _admit(self) -> None:
        """Let those in line in, in order, as far as there is room."""
        while self._line and self._has_room():
            answer, (data, write_id) = self._line.popitem(last=False)
            if answer.done():
                continue
            status = self._take(data, write_id)
            if status is None:
                self._line[answer] = data, write_id
                self._line.move_to_end(answer, last=False)
                return
            answer.set_result(status)
