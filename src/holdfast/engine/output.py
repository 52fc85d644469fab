"""The way out: the descriptors a child writes to.

The hot path starts here: descriptor ready, one read, ``Process.said``; no task,
no queue, no wait.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import errno
import fcntl
import os
import termios
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from holdfast.host import pty
from holdfast.model import Size, Stream
from holdfast.poller import NEWS_ONLY, READABLE, Poller

from .speaker import CountedSpeaker, Speaker, UnheardSpeaker

READ_SIZE = 65_536
"""One read of a pipe, whose usual capacity this is; larger buffers only fault pages in."""

_DRAIN_MOST = 1 << 20
"""Bytes taken from a terminal after the child's end: more than its buffers can hold."""

_SMALL = 4096
"""A read below this, again and again, is a child that writes in small pieces."""

_SMALL_RUN = 32
"""Small reads in a row before we let them gather; a human never gets there."""

_RUSH = 4
"""Full reads in a row before others get their turn."""

_F_SETPIPE_SZ = 1031

_RETRY = 0.05
"""Seconds until it is tried again to take what there was no room for."""

_PACE = 0.001
"""How long small pieces gather, and how close together they must come on average to be a run."""


_PTY: Final = Stream.PTY

Take = Callable[[int, Stream], "bytes | None"]
"""Takes what a child has written to a descriptor: empty at the end, None when there is nothing now."""


def read(fd: int, stream: Stream) -> bytes | None:
    """Read what there is, once."""
    try:
        data = os.read(fd, READ_SIZE)
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno == errno.EIO:  # How a terminal says that everybody has closed it.
            return b""
        return None  # For want of memory, say: the poller tells again.
    return _gather(fd, data) if stream is _PTY and len(data) >= _SMALL - 1 else data


def widen(fd: int) -> None:
    """Let a pipe hold what several reads or writes of the usual size are."""
    with contextlib.suppress(OSError):  # No pipe, or the user's share of pipe memory is used up.
        fcntl.fcntl(fd, _F_SETPIPE_SZ, _RUSH * READ_SIZE)


def _gather(fd: int, data: bytes) -> bytes:
    """A terminal gives at most 4 KiB per read: join what is there to one chunk."""
    pieces, total = [data], len(data)
    while total <= READ_SIZE - _SMALL:
        try:
            data = os.read(fd, READ_SIZE - total)
        except OSError:
            break  # Empty, or at its end, which the next read tells again.
        if not data:
            break
        pieces.append(data)
        total += len(data)
    return b"".join(pieces)


class Taker(Protocol):
    """Takes the output of one process, to keep it elsewhere than in our memory."""

    @property
    def take(self) -> Take:
        """What takes it."""

    def is_starved(self) -> bool:
        """Whether ``take`` gave nothing because there is no room for it, and is to be called again later."""


class Output:
    """One output of a child: stdout, stderr, or a terminal."""

    __slots__ = (
        "_fd",
        "_final",
        "_hung_up",
        "_loop",
        "_poller",
        "_run",
        "_since",
        "_speaker",
        "_take",
        "_taker",
        "_watched",
        "_widened",
        "_writes",
        "stream",
    )

    def __init__(
        self,
        stream: Stream,
        fd: int,
        speaker: Speaker,
        *,
        loop: asyncio.AbstractEventLoop,
        poller: Poller,
        taker: Taker | None = None,
    ) -> None:
        """``taker`` takes what the child writes; without one it is read into our memory."""
        self.stream = stream
        self._fd = fd
        self._speaker = speaker
        self._take = read if taker is None else taker.take
        self._taker = taker
        self._loop = loop
        self._poller = poller
        self._run = 0
        self._since = 0.0
        self._writes = 0
        self._widened = False
        self._watched = True
        self._final = stream is not _PTY
        self._hung_up = False
        poller.add(fd, self)

    # The hot path.

    def on_ready(self, events: int = 0) -> None:
        """Pass on what one read gives."""
        for valve in self._speaker.valves:
            if not valve.is_open:
                self.pause()
                valve.wait(self.resume)
                return
        data = self._take(self._fd, self.stream)
        if data:
            if self._hung_up:
                self._set_hung_up(False)
            self._speaker.said(self.stream, data)
            if self._fd < 0:
                return  # Whoever was told has given us up.
            if len(data) < _SMALL or self._run >= _SMALL_RUN:
                self._run += 1
                if self._run >= _SMALL_RUN:
                    self._pace(len(data))
            else:
                self._run = 0
                if len(data) == READ_SIZE:
                    self._rush()
        elif data is not None:
            if self._final:
                self.close()
                self._speaker.ended(self)
            elif not self._hung_up:
                self._set_hung_up(True)
        elif self._taker is not None and self._taker.is_starved():
            # The poller would tell again at once, and without end.
            self.pause()
            self._loop.call_later(_RETRY, self.resume)

    def _rush(self) -> int:
        """The pipe was full: make it larger, and take a few reads before others get their turn.

        Returns how many bytes that were.
        """
        if not self._widened:
            self._widened = True
            widen(self._fd)
        total = 0
        for _ in range(_RUSH - 1):
            if not all(valve.is_open for valve in self._speaker.valves):
                break
            data = self._take(self._fd, self.stream)
            if not data:
                break  # Nothing now, or the end: the poller tells again.
            self._speaker.said(self.stream, data)
            total += len(data)
            if len(data) < READ_SIZE or self._fd < 0:
                break
        return total

    def _pace(self, size: int) -> None:
        """After a run of small pieces in quick succession, let them gather for a moment.

        Halves the cost of a child that writes 64 bytes at a time, and delays no
        lone line: only a run gets here, and what ends it is a write to stdin,
        whose answer the next piece may be, or a moment in which little came, or
        more than small pieces can be.
        """
        now, writes = self._loop.time(), self._speaker.writes
        if self._run > _SMALL_RUN:
            if size == READ_SIZE:
                size += self._rush()
            quick = _SMALL // 4 <= size < _RUSH * READ_SIZE
        else:
            quick = now - self._since < _SMALL_RUN * _PACE
        if quick and self._writes == writes:
            self.pause()
            self._loop.call_later(_PACE, self.resume)
        else:
            self._run = 0
        self._since, self._writes = now, writes

    def _set_hung_up(self, hung_up: bool) -> None:  # noqa: FBT001
        """Nobody has the terminal open, or somebody has again.

        As long as the child lives it can open it again, or those whom it has started.  The
        poller would tell of the hang-up without end, so it is asked for news only: what is
        said by whoever comes back is that.
        """
        self._hung_up = hung_up
        if self._watched:
            self._poller.modify(self._fd, self._events)

    @property
    def _events(self) -> int:
        return NEWS_ONLY | READABLE if self._hung_up else READABLE

    # Stop and go.

    def pause(self) -> None:
        if self._watched:
            self._watched = False
            self._poller.remove(self._fd)

    def rest(self) -> None:
        """Read on in a moment."""
        if self._watched:
            self.pause()
            self._loop.call_later(_PACE, self.resume)

    def resume(self) -> None:
        if not self._watched and self._fd >= 0:
            self._watched = True
            self._poller.add_again(self._fd, self, self._events)

    # The end.

    def expect_end(self) -> None:
        """The child has ended: a terminal that nobody has open from now on is at its end."""
        self._final = True

    def finish(self) -> None:
        """The child has ended: pass on what it wrote, and then the end, if nobody else has it open."""
        self.expect_end()
        self.drain()
        self.on_ready()

    def drain(self) -> None:
        """Pass on what was written up to now, whether or not anybody is ready for it.

        Bounded by what is in the pipe at this moment, whoever goes on writing.
        """
        if self._fd < 0:
            return
        left = _DRAIN_MOST if self.stream is _PTY else self._waiting()
        while left > 0 and self._fd >= 0:
            data = self._take(self._fd, self.stream)
            if not data:
                break
            self._speaker.said(self.stream, data)
            left -= len(data)

    def fileno(self) -> int:
        return self._fd

    def _waiting(self) -> int:
        """Bytes in the pipe."""
        count = array.array("i", [0])
        try:
            fcntl.ioctl(self._fd, termios.FIONREAD, count)
        except OSError:
            return _DRAIN_MOST
        return count[0]

    def end_of_input(self) -> bytes:
        """What to write to a terminal so that its reader sees the end: after whole lines only."""
        return b"\n" + pty.end_of_file(self._fd) if self._fd >= 0 else b""

    def resize(self, size: Size) -> None:
        """Give a terminal another size."""
        if self._fd >= 0:
            pty.resize(self._fd, size)

    def mute(self) -> None:
        """Read on, so that nobody waits or fails, and pass nothing on."""
        self._speaker = UnheardSpeaker(self._speaker)
        self._take, self._taker = read, None  # Whatever keeps what is taken gets no more.

    def truncate(self, drop: Callable[[int], object]) -> None:
        """Read on, whoever is behind; pass nothing on, but tell how many bytes there were."""
        self._speaker = CountedSpeaker(self._speaker, self, drop)
        self._take, self._taker = read, None
        self.resume()  # A valve may have held it up, of which nothing is to be waited for any more.

    def let_go(self) -> tuple[Stream, int]:
        """Read no more, and return the descriptor for whoever goes on."""
        self.pause()
        fd, self._fd = self._fd, -1
        return self.stream, fd

    def close(self) -> None:
        """Give up the descriptor.  May be called twice."""
        if self._fd >= 0:
            self.pause()
            os.close(self._fd)
            self._fd = -1


class Outputs:
    """The outputs of one child that are not at their end."""

    __slots__ = ("_open", "dropped")

    def __init__(self, outputs: Iterable[Output] = ()) -> None:
        self._open = tuple(outputs)
        self.dropped = 0
        """Bytes that were read and not passed on since ``truncate``."""

    def __bool__(self) -> bool:
        return bool(self._open)

    def __iter__(self) -> Iterator[Output]:
        return iter(self._open)

    def remove(self, output: Output) -> None:
        """This one is at its end, and closed."""
        self._open = tuple(other for other in self._open if other is not output)

    def resume(self) -> None:
        """Read on, whatever held them up."""
        for output in self._open:
            output.resume()

    def expect_end(self) -> None:
        """The child has ended: see ``Output.expect_end``."""
        for output in self._open:
            output.expect_end()

    def finish(self) -> None:
        """The child has ended: pass on what it wrote."""
        for output in self._open:
            output.finish()

    def drain(self) -> None:
        """Pass on what was written up to now: see ``Output.drain``."""
        for output in self._open:
            output.drain()

    def mute(self) -> None:
        """Read on, and pass nothing on."""
        for output in self._open:
            output.mute()

    def truncate(self, told: Callable[[], object], *, dropped: int = 0) -> None:
        """Read on, and only count; ``told`` is called whenever something was dropped.

        Args:
            dropped: What was dropped before, of a process that goes on here.
        """
        self.dropped = dropped

        def drop(size: int) -> None:
            self.dropped += size
            told()

        for output in self._open:
            output.truncate(drop)

    def resize(self, size: Size) -> None:
        """Give a terminal another size."""
        for output in self._open:
            output.resize(size)

    def end_of_input(self) -> bytes:
        """What to write to a terminal so that its reader sees the end."""
        return b"".join(output.end_of_input() for output in self._open)

    def let_go(self) -> tuple[tuple[Stream, int], ...]:
        """Read no more, and return the descriptors for whoever goes on."""
        outputs, self._open = self._open, ()
        return tuple(output.let_go() for output in outputs)

    def close(self) -> None:
        """Give up all descriptors."""
        outputs, self._open = self._open, ()
        for output in outputs:
            output.close()
