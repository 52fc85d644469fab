"""How much output of a process is retained for its client (pure).

What must hold:

1. For a client that is attached, what its request asked for is retained, or the default.
2. While no client is attached, and after its return until it has caught up, more is retained.
3. What a window has let through and was not acknowledged is retained in any case.
"""

from __future__ import annotations


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
        """Bytes to retain."""
        attached = max(self._attached, self.unacknowledged)
        return max(attached, self._detached) if self.is_for_absent else attached
