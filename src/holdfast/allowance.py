"""A bound on the output that is held unread, of all processes together (pure).

What must hold:

1. All reservations together are never larger than the total, except for one byte each: with a byte a process
   delivers one chunk of output and waits.
2. The bytes of a reservation return when it is deleted, also if nobody has released it.
"""

from __future__ import annotations

from collections import deque

_PART = 8
"""A reservation gets at most this part of what is left, so that later ones get something, too."""


class Allowance:
    """The bytes that may be held unread, and how many of them are reserved."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._used = 0
        # A reservation may be deleted in any thread.  There, only this is touched.
        self._forgotten: deque[int] = deque()

    @property
    def is_used_up(self) -> bool:
        return self._left() <= 0

    def grant(self, most: int) -> Reservation:
        """Reserve up to ``most`` bytes, at least one unless ``most`` is 0."""
        reservation = Reservation(self)
        reservation.renew(most)
        return reservation

    def _left(self) -> int:
        forgotten = self._forgotten
        while forgotten:
            self._used -= forgotten.popleft()
        return self._total - self._used


class Reservation:
    """Bytes of an allowance.  They return to it when this object is deleted."""

    __slots__ = ("_allowance", "size")

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance
        self.size = 0

    @property
    def is_too_much(self) -> bool:
        """Whether more is reserved and held, by all together, than the allowance has."""
        return self._allowance.is_used_up

    def renew(self, most: int) -> int:
        """Return all bytes and reserve up to ``most`` again; return how many they are."""
        self.resize(0)
        self.resize(max(1, min(most, self._allowance._left() // _PART)) if most else 0)
        return self.size

    def resize(self, size: int) -> None:
        """Set the number of bytes, even if fewer are left: they are held already."""
        self._allowance._used += size - self.size
        self.size = size

    def __del__(self) -> None:
        if self.size:
            self._allowance._forgotten.append(self.size)
