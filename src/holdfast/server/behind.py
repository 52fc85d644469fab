"""Messages that wait behind a long one (pure)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence


class Behind:
    """Messages in the order in which they will be sent; their size counts as unsent."""

    __slots__ = ("_messages", "size")

    def __init__(self) -> None:
        self._messages: deque[Sequence[bytes]] = deque()
        self.size = 0
        """Bytes that wait."""

    def put(self, parts: Sequence[bytes]) -> None:
        self._messages.append(parts)
        self.size += sum(map(len, parts))

    def take(self) -> Iterator[Sequence[bytes]]:
        """What has waited, one after the other.  It waits no longer."""
        self.size = 0
        while self._messages:
            yield self._messages.popleft()


NOTHING_BEHIND = Behind()
"""Of everybody who is not in the middle of a long message: an idle connection has none of its own."""
