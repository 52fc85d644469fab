"""A terminal that is recorded on its own host: what it shows, and perhaps what is typed, as asciicast.

What must hold:

1. Neither the output nor the event loop waits for the disk: lines are made and written in a thread, one
   batch after the other.
2. What waits for the disk is bounded.  What is left out because of that is counted, and a mark tells it.
3. The file has whole lines, and no more bytes than were allowed.
"""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.model import Chunk, Exit, Leftovers, Size, Spec, Stream, WriteStatus
from holdfast.terminal.asciicast import Recording
from holdfast.wording import counted

from .life import Descriptors
from .process import LocalProcess
from .stdin import ACCEPTED

if TYPE_CHECKING:
    from holdfast.host.files.making import NewFile
    from holdfast.recordings import HostRecording

    from .workers import Workers

_log = logging.getLogger(__name__)

_WAITING_MOST = 1 << 20
"""Bytes that wait for the disk: a second of a busy terminal."""

_EVENT = 128
"""Bytes that an event takes beside its own, about: a program may write single ones."""

_ROOM = 256
"""Bytes that are kept free for the mark at the end of a recording that is as long as it may be."""

_WRITES = 1024
"""Identifiers of writes that are remembered, so that one that is repeated is not recorded twice."""

Event = tuple[Callable[[Recording, float, Any], str], float, Any]
"""What makes the line, when it was, and what it was."""


class CastFile:
    """The file of one recording, used by one thread at a time."""

    def __init__(self, file: NewFile, most: int) -> None:
        self._file = file
        self._most = self._left = most
        self._lines = Recording(0.0)

    def begin(self, now: float, header: str) -> bool:
        """Write the first line; return whether there is room for more."""
        self._lines = Recording(now)
        return self._write([header], now)

    def add(self, events: Sequence[Event]) -> bool:
        """Write events; return whether there is room for more."""
        return self._write([make(self._lines, now, what) for make, now, what in events], events[-1][1])

    def _write(self, lines: Sequence[str], now: float) -> bool:
        whole, has_room = list[bytes](), True
        for line in map(str.encode, lines):
            if len(line) + _ROOM > self._left:
                words = f"the recording ends here: it may have {counted(self._most, 'byte')}"
                whole.append(self._lines.marked(now, words).encode())
                has_room = False
                break
            self._left -= len(line)
            whole.append(line)
        rest = memoryview(b"".join(whole))
        while rest:
            rest = rest[os.write(self._file.fd, rest) :]
        return has_room

    def close(self) -> None:
        """Let go of the file."""
        with suppress(OSError):
            self._file.close()

    def discard(self) -> None:
        """Take the file away again."""
        with suppress(OSError):
            self._file.discard()


class TerminalRecording:
    """Records one process, from its start on.  Implements ``backend.Watcher``."""

    def __init__(
        self, file: CastFile, terms: HostRecording, workers: Workers, *, clock: Callable[[], float]
    ) -> None:
        self._file = file
        self._with_input = terms.input
        self._path = terms.path
        self._workers = workers
        self._clock = clock
        self._events: list[Event] = []
        self._waiting = 0  # Their bytes.
        self._left_out = 0
        self._busy = self._over = False
        self._code = 0
        self._writes: deque[str] = deque(maxlen=_WRITES)

    def begin(self, size: Size, argv: Sequence[str]) -> None:
        """The process runs: write the first line."""
        header = Recording.header(size, timestamp=time.time(), command=argv)
        self._work(partial(self._file.begin, self._clock(), header))

    async def discard(self) -> None:
        """There is no process: take the file away again."""
        self._over = True
        await self._workers.run(self._file.discard)

    def discard_soon(self) -> None:
        """Do the same without waiting for it."""
        self._over = True
        self._workers.post(self._file.discard)

    # What happens.

    def output(self, chunk: Chunk) -> None:
        self._take(Recording.output, bytes(chunk.data))

    def input(self, data: bytes, write_id: str | None) -> None:
        """Take note of what was typed; a write that is repeated counts once."""
        if not self._with_input or (write_id is not None and write_id in self._writes):
            return
        if write_id is not None:
            self._writes.append(write_id)
        self._take(Recording.input, bytes(data))

    def resized(self, size: Size) -> None:
        """The terminal has another size."""
        self._take(Recording.resized, size)

    def ended(self, stream: Stream) -> None:
        pass

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        self._code = exit.code

    def closed(self, seq: int) -> None:
        if not self._over:
            self._add(Recording.ended, self._code)
        self.finish()

    def finish(self) -> None:
        """Take nothing more: write what waits, and close the file."""
        if not self._over:
            self._over = True
            self._go_on()

    # The way to the disk.

    def _take(self, make: Callable[[Recording, float, Any], str], what: Any) -> None:
        if self._over:
            return
        size = len(what) if isinstance(what, bytes) else 0
        if self._waiting + size > _WAITING_MOST:
            self._left_out += size
            return
        self._add(make, what)
        self._waiting += size + _EVENT
        self._go_on()

    def _add(self, make: Callable[[Recording, float, Any], str], what: Any) -> None:
        """Put an event behind those that wait, and before it the mark for what is missing there."""
        now = self._clock()
        if self._left_out:
            words = f"left out here, because the disk was too slow: {counted(self._left_out, 'byte')}"
            self._events.append((Recording.marked, now, words))
            self._left_out = 0
        self._events.append((make, now, what))

    def _go_on(self) -> None:
        if self._busy:
            return
        if self._events:
            events, self._events, self._waiting = self._events, [], 0
            self._work(partial(self._file.add, events))
        elif self._over:
            self._workers.post(self._file.close)

    def _work(self, call: Callable[[], bool]) -> None:
        self._busy = True
        try:
            self._workers.begin(call, self._on_done)
        except OSError as error:  # The system has no more threads.
            self._on_done(has_room=False, error=error)

    def _on_done(self, has_room: bool | None, error: BaseException | None) -> None:  # noqa: FBT001
        self._busy = False
        if not has_room:
            if error is not None:
                _log.warning("the recording %s ends here: %s", self._path, error)
            self._over, self._events = True, []
        self._go_on()


class RecordedProcess(LocalProcess):
    """A process whose terminal is recorded."""

    __slots__ = ("_recording",)

    _recording: TerminalRecording

    def record(self, recording: TerminalRecording) -> None:
        """Record all that it says and is given from now on."""
        self._recording = recording
        self.watch(recording)

    def try_write(self, data: bytes, *, write_id: str | None = None) -> WriteStatus | None:
        status = super().try_write(data, write_id=write_id)
        if status is ACCEPTED:
            self._recording.input(data, write_id)
        return status

    async def write(self, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        status = self.try_write(data, write_id=write_id)
        if status is None:
            assert self._stdin is not None
            status = await self._stdin.write(data, write_id)
            if status is ACCEPTED:
                self._recording.input(data, write_id)
        return status

    def resize_now(self, size: Size) -> None:
        super().resize_now(size)
        self._recording.resized(size)

    def let_go(self) -> Descriptors:
        self._recording.finish()
        return super().let_go()

    def forget(self, leftovers: Leftovers = Leftovers.SPARE) -> None:
        super().forget(leftovers)
        self._recording.finish()


def recorded(recording: TerminalRecording, spec: Spec, *parts: Any, **facts: Any) -> RecordedProcess:
    """Return a process that has just started, and is recorded from its first byte on.

    Args:
        parts: With ``facts``, the arguments of ``LocalProcess``.
    """
    assert spec.terminal is not None
    process = RecordedProcess(*parts, **facts)
    recording.begin(spec.terminal, spec.argv)
    process.record(recording)
    return process
