"""How long the event loop was held by one callback, and by which; above a bound the log says so.

What counts as one callback is what nobody else gets a turn in between: a source
that the poller tells of an event, a piece of deferred work, or everything that an
event loop of ours does between two looks for events (tasks, timers and callbacks
of one turn, together).  The time is that of the wall: waiting for a disk, or for a
processor, holds up everybody just as well.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic
from typing import Any

_log = logging.getLogger(__name__)

WORTH_A_WARNING = 0.25
"""Seconds above which a callback is named in the log: longer than people take for at once."""

QUIET = 10.0
"""Seconds after a warning in which others are only counted: what stalls once often stalls again at once."""


class Stalls:
    """The longest time that one callback held the loop since somebody last asked."""

    __slots__ = ("_clock", "_left_out", "_longest", "_warned", "_worth", "bar", "doing")

    def __init__(self, clock: Callable[[], float] = monotonic, worth: float = WORTH_A_WARNING) -> None:
        """``worth`` a warning is what took more seconds than that."""
        self._clock = clock
        self._worth = worth
        self._longest = 0.0
        self._left_out = 0
        self._warned: float | None = None
        self.bar = 0.0
        """Seconds that have to be told to ``saw``; what took less is of no interest."""
        self.doing = ""
        """The method of the request that was worked on last; set by whoever does, emptied between callbacks.

        One that we have: what a client calls something that we do not have is not for our log.
        """

    def saw(self, seconds: float, what: Any) -> None:
        """Take note of a callback that took longer than ``bar``: an object, or words for what it was."""
        self._longest = max(self._longest, seconds)
        self.bar = min(self._longest, self._worth)
        if seconds <= self._worth:
            return
        now = self._clock()
        if self._warned is not None and now - self._warned < QUIET:
            self._left_out += 1
            return
        self._warned = now
        others = f"; {self._left_out} more since the last such line" if self._left_out else ""
        self._left_out = 0
        said = _name(what) + (f", last for {self.doing}" if self.doing else "")
        facts = {"seconds": seconds, "method": self.doing or None}
        _log.warning("the event loop was held for %.3f s by %s%s", seconds, said, others, extra=facts)

    def take(self) -> float:
        """The longest time in seconds; from here on it is measured anew."""
        longest, self._longest = self._longest, 0.0
        self.bar = 0.0
        return longest


def _name(what: Any) -> str:
    """What a callback is called in the source: never what it was called with."""
    if isinstance(what, str):
        return what
    owner = getattr(what, "func", what)  # Of a partial, what it calls.
    return str(getattr(owner, "__qualname__", type(owner).__qualname__))
