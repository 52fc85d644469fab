"""Attempts to connect: how many there may be, and how long to wait between two (pure, but for chance)."""

from __future__ import annotations

import random

_FIRST_PAUSE = 0.05
"""Seconds before the second attempt; each further one waits twice as long."""

_LONGEST_PAUSE = 2.0
"""Seconds between two attempts, however many there were."""


class Attempts:
    """A series of attempts, up to a deadline."""

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self._pause = _FIRST_PAUSE

    def are_over(self, now: float) -> bool:
        """Whether there is no time for another pause and another attempt."""
        return now + self._pause >= self.deadline

    def pause(self) -> float:
        """Seconds to wait before the next attempt.

        No two clients wait equally long: those of a server that was restarted do not come back at
        the same moment.
        """
        pause, self._pause = self._pause, min(2 * self._pause, _LONGEST_PAUSE)
        return pause * random.uniform(0.5, 1.0)  # noqa: S311  (no secret)
