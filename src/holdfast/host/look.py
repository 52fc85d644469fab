"""How far one look at what the kernel shows of processes may go.

A client decides how many processes, threads and descriptors there are to look at.
"""

from __future__ import annotations

import errno
import time

_GLANCE = 32
"""Entries of a look that somebody waits for: each takes about ten microseconds."""

_ENTRIES = 1 << 20
"""Entries of a look that nobody waits for."""

_SECONDS = 1.0
"""What such a look may take: others wait for its thread."""

_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""What the system says of descriptors or memory that are used up."""


class Look:
    """The bounds of one look.  One thread looks, and another may call ``give_up``."""

    __slots__ = ("_deadline", "_left", "_seconds", "cut", "given_up")

    def __init__(self, entries: int = _ENTRIES, seconds: float = _SECONDS) -> None:
        self._left = entries
        self._seconds = seconds
        self._deadline: float | None = None
        self.cut = False
        """Whether there was more than may be looked at."""
        self.given_up = False
        """Whether nobody wants to know any more."""

    def take(self, entries: int = 1) -> bool:
        """Whether so many more entries may be looked at."""
        now = time.monotonic()
        if self._deadline is None:
            # Now, and not when it was asked for: until here it may have waited for a thread.
            self._deadline = now + self._seconds
        self._left -= entries
        if self._left < 0 or now >= self._deadline or self.given_up:
            self.cut = True
        return not self.cut

    def failed(self, error: OSError) -> None:
        """Something could not be looked at: it has ended, is another user's, or there was no room for it."""
        if error.errno in _NO_ROOM:
            self.cut = True

    @property
    def took(self) -> float:
        """Seconds since the first entry."""
        return 0.0 if self._deadline is None else time.monotonic() - self._deadline + self._seconds

    def give_up(self) -> None:
        """Have it end soon.  May be called twice, also after its end."""
        self.given_up = True


def glance() -> Look:
    """A look that takes a fraction of a millisecond, whoever is looked at."""
    return Look(_GLANCE)
