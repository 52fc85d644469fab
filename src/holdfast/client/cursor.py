"""Every event of a process on a server once and in order, over any number of connections (pure).

A server pushes what a process of our session does, and it answers reads.  A cursor is given both.  It says
which event is to be told next, what has to be asked for, and what is to be acknowledged.

What must hold:

1. ``next`` returns every number once and in order, or a gap in the place of those that are gone.
2. What has come and was not returned yet is bounded: by the window that the server was given, else by
   dropping what does not fit and asking for it again; of all processes together by an allowance.
3. At most one read is under way.
4. Nothing follows a close or a loss.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from enum import Enum

from holdfast.allowance import Reservation
from holdfast.config import MIB
from holdfast.errors import LinkLost, OutputGap
from holdfast.model import Chunk, Exit, Page
from holdfast.value import value

MOST_WAITING = 8 * MIB
"""Bytes that wait to be told if the server knows no window: the rest is asked for later."""

PULL_MS = 10_000
"""How long a server holds an empty answer back; then it hears of us again."""

_PULL_BYTES = MIB
"""Output in one answer, so that those who watch are never far behind in what they have."""

_MOST_UNACKNOWLEDGED = 4096
"""Events, however small: a server waits for us after so many bytes, and after some ten thousand pieces."""

_CUT_SHORT = 8 * MIB
"""An answer this long may not have been all there was."""


@value
class Exited:
    """The exit of a process, with its number."""

    seq: int
    exit: Exit


@value
class Closed:
    """The end of a process's output, with its number."""

    seq: int


Event = Chunk | Exited | Closed | OutputGap | LinkLost
"""What can happen to a process on a server.  A gap counts as its last number; nothing follows a loss."""


@value
class Ask:
    """A read that is to be made."""

    after: int
    limit: int | None = None
    wait_ms: int | None = None


class Intake(Enum):
    """Where the next event comes from."""

    PUSHED = "a notification"
    DUE = "a read: something was missed, or has to be asked for in any case"
    BLOCKED = "nowhere: more has come than may wait, and the rest is asked for when that was told"
    OVER = "nowhere: the last event there can be has come"


class ExitNews(Enum):
    """What is known of the exit."""

    NONE = "nothing"
    UNNUMBERED = "that there was one, not which number it has"
    TAKEN = "it was taken"


class Cursor:
    """How far a client is with the events of one process on a server.

    Whatever it is given, ``next`` and ``ask`` are called afterwards.
    """

    __slots__ = (
        "_acknowledged",
        "_asking",
        "_exit",
        "_held",
        "_intake",
        "_seen",
        "_started",
        "_unacknowledged",
        "_waiting",
        "_waiting_bytes",
        "delivered",
        "pulled",
        "window",
    )

    def __init__(self, *, seen: int = 0, window: int = 0, pulled: bool = False, held: Reservation) -> None:
        """
        Args:
            seen: The last number that is no news.
            window: How far ahead of us the server goes; 0 if it does not wait for anybody.
            pulled: Whether the server pushes nothing, because the process is not of our session.
            held: Of what all processes of the client may hold together: the window, if there is one.
        """
        self.pulled = pulled
        self.window = window
        self.delivered = seen
        """The last number that ``next`` has returned."""
        self._seen = seen
        self._started = pulled  # A process that does not run yet cannot be asked about.
        self._intake = Intake.DUE if pulled else Intake.PUSHED
        self._asking = False
        self._exit = ExitNews.NONE
        self._waiting: deque[Event] = deque()
        self._waiting_bytes = 0
        self._held = held
        self._unacknowledged = 0
        self._acknowledged = seen

    @property
    def is_over(self) -> bool:
        """Whether the last event there can be has come; it may still wait to be told."""
        return self._intake is Intake.OVER

    # What comes in.

    def started(self, *, missed: bool) -> None:
        """The server says that it runs; ``missed`` if it may have pushed something that did not get here."""
        self._started = True
        if missed:
            self.resumed()

    def resumed(self) -> None:
        """There is a new connection: what was pushed in between was missed."""
        # A read that is under way is made again on the new connection, and its answer has everything.
        if self._intake is Intake.PUSHED and not self._asking:
            self._intake = Intake.DUE

    def skips_queue(self, chunk: Chunk) -> bool:
        """Take a chunk for told, if it is the next number and nothing waits before it.

        The hot path: what this returns True for is told at once, without ``pushed`` and ``next``.
        """
        if chunk.seq != self._seen + 1 or self._waiting or self._intake in _SHUT:
            return False
        self._seen = self.delivered = chunk.seq
        self._unacknowledged += len(chunk.data)
        return True

    def pushed(self, event: Chunk | Exited | Closed) -> None:
        """The server pushed an event."""
        if self.pulled or self._intake in _SHUT:
            return
        # An exit comes before the close; if it has not, it was lost with the output around it.
        is_early = isinstance(event, Closed) and self._exit is not ExitNews.TAKEN
        if event.seq == self._seen + 1 and not is_early:
            self._take(event)
        elif event.seq > self._seen and not self._asking:
            # While a read is under way this is no news: its answer has what came before it.
            self._intake = Intake.DUE

    def answered(self, page: Page) -> None:
        """The server answered the read that ``ask`` told of."""
        self._asking = False
        if not self.is_over:
            self._take_page(page)

    def _take_page(self, page: Page) -> None:
        for event in events(page, self._seen, exit_known=self._exit is ExitNews.TAKEN):
            self._take(event)
        if self.is_over:
            return
        if page.exit is not None and self._exit is not ExitNews.TAKEN:
            self._exit = ExitNews.UNNUMBERED
        size = sum(len(chunk.data) for chunk in page.chunks)
        more = self.pulled or size >= _CUT_SHORT or self._exit is ExitNews.UNNUMBERED
        self._intake = Intake.DUE if more else Intake.PUSHED

    def lost(self, error: LinkLost) -> None:
        """Nothing more will come, and this is why."""
        if not self.is_over:
            self._take(error)

    def _take(self, event: Event) -> None:
        if not isinstance(event, LinkLost):
            self._seen = number(event)
        if isinstance(event, Exited):
            self._exit = ExitNews.TAKEN
        elif isinstance(event, Closed | LinkLost):
            self._intake = Intake.OVER
        self._waiting.append(event)
        if isinstance(event, Chunk):
            self._hold(len(event.data))

    # What goes out.

    def next(self) -> Event | None:
        """Return the next event, which counts as passed on from now; None if there is none."""
        if not self._waiting:
            return None
        event = self._waiting.popleft()
        if isinstance(event, Chunk):
            self._hold(-len(event.data))
            self._unacknowledged += len(event.data)
        if not isinstance(event, LinkLost):
            self.delivered = number(event)
        if not self._waiting:
            if self._intake is Intake.BLOCKED:
                self._intake = Intake.DUE
            if self.pulled and not self._asking:
                self._held.resize(0)
        return event

    def ask(self, *, wanted: bool) -> Ask | None:
        """The read that is to be made now; None if there is none.

        Args:
            wanted: Whether anybody watches and can be told.  What has to be pulled is asked for only then.
        """
        self._make_room()
        if self._intake is not Intake.DUE or self._asking or not self._started:
            return None
        if not self.pulled:
            self._asking = True
            return Ask(self._seen)
        if not wanted or self._waiting:
            return None
        self._asking = True
        wait = 0 if self._exit is ExitNews.UNNUMBERED else PULL_MS
        return Ask(self._seen, self._held.renew(_PULL_BYTES), wait)

    def acknowledge(self) -> int | None:
        """The number up to which the server is to be told now that everything has come; None if not now."""
        if not self.window or self.pulled:
            return None
        many = self.delivered - self._acknowledged >= _MOST_UNACKNOWLEDGED
        if not many and self._unacknowledged * 2 < self.window:
            return None
        self._unacknowledged = 0
        self._acknowledged = self.delivered
        return self.delivered

    def _make_room(self) -> None:
        """Take no more if too much waits: without a window the server goes on whether or not we follow."""
        if self._intake in _SHUT or self.window or self.pulled or not self._waiting_bytes:
            return
        if self._waiting_bytes > MOST_WAITING or self._held.is_too_much:
            self._intake = Intake.BLOCKED

    def _hold(self, size: int) -> None:
        """Count bytes that wait, or do not any more."""
        self._waiting_bytes += size
        if not self.window and not self.pulled:
            self._held.resize(self._waiting_bytes)


_SHUT = (Intake.BLOCKED, Intake.OVER)


# The answer to a read, taken apart.


def events(page: Page, after: int, *, exit_known: bool) -> Iterator[Event]:
    """What happened behind number ``after``, as far as the page tells, in the order of the numbers.

    A read gives the chunks that are kept and says whether the process has exited and closed; it does not
    say which numbers these two have.  They are the ones that are missing.  If more are missing, output is.

    An exit whose number the page does not show is left to the next page, as long as there may be one.
    If it turns out that it was lost with the output around it, it comes with the number ``after``.

    Args:
        exit_known: Whether the exit was told before ``after``.
    """
    missing = _missing(page, after)
    found: list[tuple[int, Event]] = [(chunk.seq, chunk) for chunk in page.chunks if chunk.seq > after]
    # With a limit a page ends behind its last chunk, whatever there is behind that.
    last = not found
    if page.closed and missing and missing[-1][1] == page.next_seq - 1:
        last, closed = True, page.next_seq - 1
        missing = _without(missing, closed)
        found.append((closed, Closed(closed)))
    if page.exit is not None and not exit_known:
        exited = _exit_number(page, missing, after, last=last)
        if exited is not None:
            missing = _without(missing, exited)
            found.append((exited, Exited(exited, page.exit)))
    gap = page.gap
    for start, end in missing:
        size = gap.size if gap is not None and start <= gap.last and end >= gap.first else None
        found.append((start, OutputGap(start, end, size)))
    found.sort(key=lambda each: each[0])
    for _, event in found:
        yield event


def _exit_number(page: Page, missing: list[tuple[int, int]], after: int, *, last: bool) -> int | None:
    """The number of the exit; None if one of the next pages shows it."""
    gap = page.gap
    shown = [end for _, end in missing if gap is None or end > gap.last]
    if shown:
        return shown[-1]
    if not last:
        return None
    # Somebody went on talking for so long that even the exit's neighbours are gone.
    return missing[0][0] if missing else after


def _missing(page: Page, after: int) -> list[tuple[int, int]]:
    """Numbers that are neither told nor still to come, as ranges with both ends included."""
    ranges, at = [], after + 1
    for chunk in page.chunks:
        if chunk.seq > at:
            ranges.append((at, chunk.seq - 1))
        at = max(at, chunk.seq + 1)
    if page.next_seq > at:
        ranges.append((at, page.next_seq - 1))
    return ranges


def _without(ranges: list[tuple[int, int]], number: int) -> list[tuple[int, int]]:
    """The ranges without one number at an end of one of them."""
    left = []
    for first, last in ranges:
        if first <= number <= last:
            left += [part for part in ((first, number - 1), (number + 1, last)) if part[0] <= part[1]]
        else:
            left.append((first, last))
    return left


def number(event: Chunk | Exited | Closed | OutputGap) -> int:
    """The number up to which an event brings its reader."""
    return event.last if isinstance(event, OutputGap) else event.seq
