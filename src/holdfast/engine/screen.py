"""The screen of one process: what its terminal shows, drawn from its output when it has to be.

What must hold:

1. A snapshot and the output behind its number show what the whole output shows; if not, it says so.
2. Nothing is drawn before it has to be: when somebody asks, or when much output could leave the ring undrawn.
3. Drawing one chunk takes no longer than ``_AT_ONCE``; a process that is drawn too slowly goes on undrawn.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from time import thread_time
from typing import TYPE_CHECKING, Protocol

from holdfast.errors import NoTerminal, Unsupported
from holdfast.host import pty
from holdfast.model import Chunk, Exit, Size, Stream
from holdfast.screens import ScreenSnapshot
from holdfast.terminal import emulator
from holdfast.terminal.emulator import Emulator

from .output import Outputs
from .ring import Ring

if TYPE_CHECKING:
    from .process import LocalProcess
    from .recorder import EngineParts

NO_SCREENS = "a snapshot of a terminal, which needs the extra 'screen' (pip install 'holdfast[screen]'),"

_BEHIND = 65_536
"""Bytes that are not drawn before somebody asks: most terminals never say so much."""

_TIGHT = 4 * _BEHIND
"""A ring that keeps less than this could lose what is not drawn: then everything is drawn at once."""

_AT_ONCE = 0.008
"""Seconds of our processor time before others get their turn; a full chunk takes half of it at most."""

_SIZES = 16
"""Changes of the size that are remembered until they are drawn."""

_FIRST, _LEAST, _MOST = 4096, 64, 16_384
"""Bytes that are drawn between two looks at the clock: by how long the last ones took."""


class Screens(Enum):
    """Whether the screens of terminals are kept."""

    NONE = "none: nobody can ask"
    ASKED = "from the first time that somebody asks"
    KEPT = "from the start"


class Screen:
    """What the terminal of one process shows.  Implements ``backend.Watcher``."""

    __slots__ = (
        "_closed",
        "_drawn",
        "_final",
        "_part",
        "_piece",
        "_ring",
        "_seq",
        "_size",
        "_sizes",
        "_unseen",
        "complete",
    )

    def __init__(self, ring: Ring, size: Size) -> None:
        self._ring = ring
        self._size = size
        self._sizes: deque[tuple[int, Size]] = deque()
        self._drawn: Emulator | None = None
        self._final: ScreenSnapshot | None = None
        self._closed = False
        self._seq = 0  # The last chunk that was drawn as a whole.
        self._part = (0, 0)  # A chunk that was not, and how many bytes of it were.
        self._piece = _FIRST
        self._unseen = 0
        self.complete = True
        """Whether nothing that was said is missing."""

    # Implements ``backend.Watcher``.

    def output(self, chunk: Chunk) -> None:
        self._unseen += len(chunk.data)
        is_tight = self._ring.limit < _TIGHT
        if self._unseen < _BEHIND and not is_tight:
            return
        self._unseen = 0
        self.catch_up()
        if is_tight and self._seq < chunk.seq and self._ring.limit <= 0:
            # It is nowhere else.
            if not self._is_too_large:
                self._emulator()
            self.complete = self._draw(chunk, thread_time() + _AT_ONCE) and self.complete
            self._seq = chunk.seq

    def ended(self, stream: Stream) -> None:
        pass

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        pass

    def closed(self, seq: int) -> None:
        """Nothing follows: what is kept of an ended process should be small.

        If there was no time for all of it, the emulator goes on when somebody asks.
        """
        self._closed = True
        if self._drawn is not None and self.catch_up() and self._drawn is not None:
            self._final, self._drawn = self._drawn.snapshot(self._seq, complete=self.complete), None

    def retaining(self, limit: int) -> None:
        """Soon the ring keeps no more than so many bytes."""
        if limit < _TIGHT and self._unseen:
            self.catch_up()

    # Sizes.

    def resize(self, seq: int, size: Size) -> None:
        """The terminal has another size behind number ``seq``."""
        if size == (self._sizes[-1][1] if self._sizes else self._size):
            return
        if len(self._sizes) >= _SIZES:
            self.catch_up()
        if len(self._sizes) >= _SIZES:
            self._sizes.popleft()  # There was no time to draw what lies between them.
        self._sizes.append((seq, size))

    def sizes(self) -> tuple[tuple[int, int, int], ...]:
        """The sizes it had, as plain values; of one that nothing was drawn of yet."""
        known = (0, self._size), *self._sizes
        return tuple((seq, size.rows, size.cols) for seq, size in known)

    # Drawing.

    def snapshot(self, until: int) -> ScreenSnapshot | None:
        """Return what the terminal shows, up to ``until`` at least; None if more time is needed.

        Raises:
            Unsupported: It is too large.
        """
        if self._final is None:
            # Of a chunk that was begun the rest is drawn, too: who reads behind the number gets whole chunks.
            if not self.catch_up(None if self._closed else max(until, self._part[0])):
                return None
            if self._is_too_large:
                raise Unsupported("the screen of so large a terminal")
            found = self._emulator().snapshot(self._seq, complete=self.complete)
            if not self._closed:
                return found
            self._final, self._drawn = found, None
        return self._final

    def catch_up(self, until: int | None = None) -> bool:
        """Draw what is not drawn yet, for a moment, up to ``until``; return whether that was all."""
        if self._ring.gap(self._seq) is not None:
            self.complete = False
        chunks = self._ring.after(self._seq, limit=_BEHIND)
        if chunks and not self._is_too_large:
            self._emulator()  # The first one takes time, which is not that of the output.
        deadline = thread_time() + _AT_ONCE
        while chunks:
            for chunk in chunks:
                if until is not None and chunk.seq > until:
                    return True
                if not self._draw(chunk, deadline):
                    return False
            chunks = self._ring.after(self._seq, limit=_BEHIND)
        while self._sizes:
            self._change_size()
        return True

    def _draw(self, chunk: Chunk, deadline: float) -> bool:
        """Draw one chunk; return whether there was time for all of it."""
        while self._sizes and self._sizes[0][0] < chunk.seq:
            self._change_size()
        if self._is_too_large:
            self._seq, self.complete = chunk.seq, False
            return True
        drawn, data = self._emulator(), bytes(chunk.data)
        at = self._part[1] if self._part[0] == chunk.seq else 0
        now = thread_time()
        while at < len(data):
            if now > deadline:
                self._part = (chunk.seq, at)
                return False
            drawn.feed(data[at : at + self._piece])
            at += self._piece
            before, now = now, thread_time()
            # A short sequence can fill a whole screen, and a piece have a thousand of them.
            if now - before > _AT_ONCE / 8:
                self._piece = max(_LEAST, self._piece // 4)
            elif now - before < _AT_ONCE / 32:
                self._piece = min(_MOST, self._piece * 2)
        self._seq = chunk.seq
        return True

    def _change_size(self) -> None:
        _, self._size = self._sizes.popleft()
        if self._drawn is not None and self._is_too_large:
            self._drawn, self.complete = None, False
        elif self._drawn is not None:
            self._drawn.resize(self._size)

    @property
    def _is_too_large(self) -> bool:
        return self._size.rows * self._size.cols > emulator.MOST_CELLS

    def _emulator(self) -> Emulator:
        if self._drawn is None:
            self._drawn = Emulator(self._size)
        return self._drawn


class _HasScreen(Protocol):
    """What ``Shown`` is mixed into."""

    has_terminal: bool
    screen: Screen | None
    outputs: Outputs

    @property
    def next_seq(self) -> int: ...


class Shown:
    """Mixed into processes of this host: their terminals."""

    __slots__ = ()

    def resize_now(self: _HasScreen, size: Size) -> None:
        if not self.has_terminal:
            raise NoTerminal
        self.outputs.resize(size)
        if self.screen is not None:
            self.screen.resize(self.next_seq - 1, size)

    def try_snapshot(self: _HasScreen, until: int) -> ScreenSnapshot | None:
        if not self.has_terminal:
            raise NoTerminal
        if self.screen is None:
            raise Unsupported(NO_SCREENS)
        return self.screen.snapshot(until)


def begin_screen(process: LocalProcess, ring: Ring, parts: EngineParts) -> Screen | None:
    """Return the screen of a process, which watches it if screens are kept; None if it can have none."""
    if not process.has_terminal or parts.screens is Screens.NONE:
        return None
    screen = Screen(ring, _size_now(process))
    if process.next_seq > 1:
        emulator.load()  # Of a server that goes on after another one, and serves nobody yet.
        screen.complete = ring.total > 0 and ring.gap(0) is None
    if parts.screens is Screens.KEPT and not process.closed:
        process.watch(screen)
    return screen


def _size_now(process: LocalProcess) -> Size:
    for output in process.outputs:
        if (size := pty.size(output.fileno())) is not None:
            return size
    return Size()
