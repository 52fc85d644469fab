"""When the output of a process that has exited is complete (pure, clock passed in).

Children that a process left behind may hold its output open, and go on talking.
What must hold:

1. It is over when every stream has ended, when nothing was heard for the quiet
   window, or at the hard deadline; never before the exit.
2. Every byte heard starts the quiet window anew, up to the hard deadline.
3. What is ready wins over a deadline: the owner takes in what is there before it
   asks whether a deadline has ended the wait.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.model import Stream


class Drain:
    """The wait of one process for the rest of its output."""

    __slots__ = ("_hard", "_hard_at", "_open", "_quiet", "_quiet_at", "timed_out")

    def __init__(self, streams: Iterable[Stream], *, quiet: float | None, hard: float) -> None:
        """
        Args:
            quiet: Seconds of silence that end the wait; None waits for the end of the streams.
            hard: Seconds after the exit at which the wait is over in any case.
        """
        self._open = set(streams)
        self._quiet = quiet
        self._hard = hard
        self._hard_at: float | None = None
        self._quiet_at: float | None = None
        self.timed_out = False
        """Whether it was the hard deadline that ended the wait."""

    def exited(self, now: float) -> None:
        """The process has ended."""
        self._hard_at = now + self._hard
        self.heard(now)

    def heard(self, now: float) -> None:
        """Something came that belongs to the output."""
        if self._hard_at is not None and self._quiet is not None:
            self._quiet_at = now + self._quiet

    def ended(self, stream: Stream) -> None:
        """Nothing of this stream is wanted any more: it has ended, or its cap is reached."""
        self._open.discard(stream)

    def all_ended(self) -> None:
        """Every stream has ended."""
        self._open.clear()
        self.timed_out = False

    @property
    def unfinished(self) -> bool:
        """Whether something may still be said that is wanted."""
        return bool(self._open)

    @property
    def deadline(self) -> float:
        """When to look again, if nothing happens before; only after the exit."""
        assert self._hard_at is not None
        if self._quiet_at is None:
            return self._hard_at
        return min(self._quiet_at, self._hard_at)

    def is_over(self, now: float) -> bool:
        """Whether the output is as complete as it gets."""
        if self._hard_at is None:
            return False
        # The earlier of two deadlines counts, also if both have passed when somebody looks.
        hard_first = self._quiet_at is None or self._hard_at <= self._quiet_at
        self.timed_out = bool(self._open) and hard_first and now >= self._hard_at
        return not self._open or now >= self.deadline
