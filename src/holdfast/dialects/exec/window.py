"""How far a process is read ahead of its client, and how much is retained for it (pure, clock passed in).

Nothing is lost to a client that is slow, or away: the process waits instead.

What must hold:

1. The valve is shut while as much is outstanding as the window allows, or more.
2. Nothing is acknowledged before it was told.
3. All that is outstanding is kept, also what an end brings at once.
4. A window that nobody uses any more opens by itself, if it is one that may.
5. For a client that is attached, what its request asked for is retained, or the default.  While no client
   is attached, and after its return until it has caught up, more is retained.
6. What a window has let through and was not acknowledged is retained in any case.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from holdfast.backend import HostedProcess, Valve
from holdfast.config import KIB, MIB
from holdfast.model import Chunk, Exit, Stream
from holdfast.value import value

_MOST_CHUNKS = 32_768
"""Pieces that may be outstanding: less than are kept of a process, however small they are."""

_SPARE = MIB
"""Bytes kept beyond the window: what the pipes hold at the end is read whether or not it fits."""

RELEASED = 1 << 62
"""Acknowledged by a client that acknowledges nothing any more: a number above all others."""

_PIECE = 64 * KIB
"""Bytes of the largest chunk of output."""


class Timer(Protocol):
    """A call that an event loop will make later, and that can be cancelled until then."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The part of an event loop that is needed here."""

    def time(self) -> float: ...

    def call_at(self, when: float, callback: Callable[[], object], /) -> Timer: ...


@value
class WindowSnapshot:
    """A window, written down.  What is outstanding is known from the output that is retained."""

    acknowledged: int
    room: int
    used: float
    """When its client was last heard of."""
    is_released: bool


class Window:
    """How far a process is read ahead of what its client has acknowledged.

    Implements ``backend.Watcher``."""

    __slots__ = (
        "_clock",
        "_is_released",
        "_make_room",
        "_outstanding",
        "_patience",
        "_readers",
        "_size",
        "_sizes",
        "_timer",
        "_used",
        "_watch",
        "acknowledged",
        "room",
        "valve",
    )

    def __init__(
        self,
        process: HostedProcess,
        size: int,
        *,
        clock: Clock,
        make_room: Callable[[int], None],
        patience: float | None = None,
    ) -> None:
        """Begin with the first event of ``process``.

        Args:
            make_room: Called when more has to be kept than ``room`` said before.
            patience: Seconds that the process is held for a client that has not been heard of.
        """
        self.valve = Valve()
        self.room = size + _SPARE
        """Bytes of output that have to be kept."""
        self._size = size
        self._make_room = make_room
        # Numbers have no gaps: the number of an event says where it is in the queue.
        self._sizes: deque[int] = deque()
        self.acknowledged = 0
        """The number up to which the client has everything."""
        self._outstanding = 0
        self._clock = clock
        self._patience = patience
        self._readers = 0
        self._used = 0.0
        self._timer: Timer | None = None
        self._is_released = False
        self._watch = process.watch(self, self.valve)

    # Written down, and read again.

    def snapshot(self) -> WindowSnapshot:
        """Return what another window of the same process needs to go on."""
        return WindowSnapshot(self.acknowledged, self.room, self._used, self._is_released)

    def let_go(self) -> None:
        """Count no more.  The valve stays as it is."""
        self._stop()

    def resume(self, snapshot: WindowSnapshot, process: HostedProcess) -> None:
        """Go on where another window of the same process has stopped; this one is new."""
        self.acknowledged = snapshot.acknowledged
        page = process.try_read(after=self.acknowledged)
        assert page is not None
        sizes = {chunk.seq: len(chunk.data) for chunk in page.chunks}
        for seq in range(self.acknowledged + 1, process.next_seq):
            self._count(sizes.get(seq, 0))
        self.room = max(self.room, snapshot.room)
        if snapshot.is_released:
            self.release()
        elif self._timer is not None:
            self._timer.cancel()
            self._used = snapshot.used
            self._arm()

    # Implements ``backend.Watcher``.

    def output(self, chunk: Chunk) -> None:
        self._count(len(chunk.data))

    def _count(self, size: int) -> None:
        self._sizes.append(size)
        self._outstanding = outstanding = self._outstanding + size
        if self.valve.is_open and (outstanding >= self._size or len(self._sizes) >= _MOST_CHUNKS):
            self._shut()
        if outstanding + _PIECE > self.room:
            self.room = outstanding + _SPARE
            self._make_room(self.room)

    def ended(self, stream: Stream) -> None:
        pass

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        self._sizes.append(0)

    def closed(self, seq: int) -> None:
        self.release()

    # The client.

    def acknowledge(self, seq: int) -> None:
        """The client has everything up to this number, and was heard of."""
        sizes = self._sizes
        for _ in range(min(seq - self.acknowledged, len(sizes))):
            self._outstanding -= sizes.popleft()
            self.acknowledged += 1
        self.use()
        if not self.valve.is_open and self._outstanding < self._size and len(sizes) < _MOST_CHUNKS:
            self.valve.open()

    def use(self) -> None:
        """The client was heard of."""
        if self._patience is not None:
            self._used = self._clock.time()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A client is there as long as it waits for output."""
        self._readers += 1
        try:
            yield
        finally:
            self._readers -= 1
            self.use()

    def release(self) -> None:
        """Hold the process no longer, for good.  May be called twice."""
        self._is_released = True
        self._stop()
        self._sizes.clear()
        self._outstanding = 0
        self.valve.open()

    def _stop(self) -> None:
        self._watch.stop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # Nobody.

    def _shut(self) -> None:
        self.valve.shut()
        self.use()
        if self._timer is None:
            self._arm()

    def _arm(self) -> None:
        if self._patience is not None:
            self._timer = self._clock.call_at(self._used + self._patience, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        if self.valve.is_open:
            return  # Armed again when it shuts.
        if self._readers:
            self.use()
        assert self._patience is not None
        if self._used + self._patience > self._clock.time():
            self._arm()
        else:
            self.release()


class Retention:
    """The number of bytes to retain of one process, from what is known of its client."""

    __slots__ = ("_attached", "_detached", "is_for_absent", "unacknowledged")

    def __init__(self, asked: int | None, *, attached: int, detached: int) -> None:
        """
        Args:
            asked: Bytes that the request for the process asks for; None if it does not say.
            attached: Bytes for a client that is attached, unless it has asked for another number.
            detached: Bytes for a client that is away.
        """
        # At least 1: a limit of 0 would retain nothing at all from then on.
        self._attached = max(1, attached if asked is None else asked)
        self._detached = detached
        self.is_for_absent = False
        """Whether the client is away, or has come back and not caught up yet."""
        self.unacknowledged = 0
        """Bytes that a window may have let through without an acknowledgement."""

    @property
    def size(self) -> int:
        """The number of bytes of output to retain."""
        attached = max(self._attached, self.unacknowledged)
        return max(attached, self._detached) if self.is_for_absent else attached
