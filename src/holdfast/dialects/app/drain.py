"""When the output of a process that has exited is complete (pure, clock and verdicts passed in).

Children that a process left behind may hold its output open, and go on talking.
On a busy host one that is about to talk may have to wait for a processor: silence
means something only if nobody who could break it has anything to do.  So the owner
looks at them from time to time.  What must hold:

1. It is over when every stream has ended, when the quiet window is over and a look
   after it has found nobody at work, or at the hard deadline; never before the exit.
2. Every byte heard starts the quiet window anew, and so does every look that finds
   somebody at work, up to the hard deadline.
3. What is ready wins over a deadline: the owner takes in what is there before it
   asks whether a deadline has ended the wait.
4. At most one look is under way, and a verdict that is late delays nothing beyond
   the hard deadline.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.model import Stream

_LOOKS = 5
"""Looks in a quiet window.  The more there are the less is waited for who fell asleep in its midst."""

_PACE = 0.01
"""Seconds between two looks at the least."""


class Drain:
    """The wait of one process for the rest of its output."""

    __slots__ = (
        "_asked_at",
        "_hard",
        "_hard_at",
        "_look_at",
        "_open",
        "_quiet",
        "_quiet_at",
        "_silent",
        "timed_out",
    )

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
        self._look_at: float | None = None
        self._asked_at = 0.0
        self._silent = False
        self.timed_out = False
        """Whether it was the hard deadline that ended the wait."""

    def exited(self, now: float) -> None:
        """Start the wait: the process has exited."""
        self._hard_at = now + self._hard
        self.on_output(now)
        if self._quiet is not None:
            self._look_at = now  # What later looks find is compared with this.

    def on_output(self, now: float) -> None:
        """Something came that belongs to the output."""
        if self._hard_at is None or self._quiet is None:
            return
        self._quiet_at = now + self._quiet
        self._silent = False
        if self._look_at is not None:
            self._look_at = self._next_look(now)  # Who talks is at work.

    def _next_look(self, now: float) -> float:
        assert self._quiet is not None
        assert self._quiet_at is not None
        return min(self._quiet_at, now + max(self._quiet / _LOOKS, _PACE))

    # Looks at those who hold the output open.

    def is_to_look(self, now: float) -> bool:
        """Whether it is time to look; then ``looked`` is called once, when it is known what they do."""
        if self._look_at is None or now < self._look_at:
            return False
        self._look_at, self._asked_at = None, now
        return True

    def looked(self, now: float, *, at_work: bool) -> None:
        """What the look has found: whether one of them is at work, or was since the look before."""
        assert self._quiet_at is not None
        if at_work:
            self.on_output(now)
        elif self._asked_at >= self._quiet_at:
            self._silent = True
        self._look_at = self._next_look(now)

    def ended(self, stream: Stream) -> None:
        """Wait no longer for this stream: it has ended, or its cap is reached."""
        self._open.discard(stream)

    def all_ended(self) -> None:
        """End the wait, because every stream has ended."""
        self._open.clear()
        self.timed_out = False

    @property
    def unfinished(self) -> bool:
        """Whether more output may come that the client wants."""
        return bool(self._open)

    @property
    def deadline(self) -> float:
        """When to look again, if nothing happens before; only after the exit."""
        assert self._hard_at is not None
        return self._hard_at if self._look_at is None else min(self._look_at, self._hard_at)

    def is_over(self, now: float) -> bool:
        """Whether the output is as complete as it gets."""
        if self._hard_at is None:
            return False
        # The earlier of two deadlines counts, also if both have passed when somebody looks.
        hard_first = self._quiet_at is None or self._hard_at <= self._quiet_at
        self.timed_out = bool(self._open) and hard_first and now >= self._hard_at
        return not self._open or self._silent or now >= self._hard_at
