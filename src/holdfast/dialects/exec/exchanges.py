"""The HTTP requests of one client: their number, the names of the streamed ones, and whether they flow."""

from __future__ import annotations

import asyncio

from holdfast.config import HttpLimits
from holdfast.errors import BadRequest, LimitReached


class Room:
    """Bytes that all bodies which are kept for answers share."""

    __slots__ = ("left", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.left = size

    def take(self, size: int) -> None:
        """
        Raises:
            LimitReached: There is not so much left; nothing was taken.
        """
        if size > self.left:
            raise LimitReached("bytes of buffered HTTP responses", self.size, name="http.buffered_total")
        self.left -= size

    def give(self, size: int) -> None:
        self.left += size


class Exchanges:
    """What a connection keeps of its HTTP requests."""

    __slots__ = ("_count", "_flowing", "_limits", "_streams")

    def __init__(self, limits: HttpLimits, *, behind: bool) -> None:
        """``behind``: the client is, at this moment."""
        self._limits = limits
        self._count = 0
        self._streams: set[str] = set()
        self._flowing = asyncio.Event()
        if not behind:
            self._flowing.set()

    def __len__(self) -> int:
        return self._count

    def begin(self, stream: str | None) -> None:
        """One more, streamed under a name or not; to be ended once.

        Raises:
            BadRequest: A stream of that name is not over yet.
            LimitReached: There are too many.
        """
        if stream in self._streams:
            raise BadRequest(
                f"http/request streamResponse requestId `{stream}` is already active", field="requestId"
            )
        if self._count >= self._limits.connection_requests:
            most = self._limits.connection_requests
            raise LimitReached("HTTP requests of a connection", most, name="http.connection_requests")
        self._count += 1
        if stream is not None:
            self._streams.add(stream)

    def end(self, stream: str | None) -> None:
        self._count -= 1
        if stream is not None:
            self._streams.remove(stream)

    # Back-pressure.

    def hold(self) -> None:
        """The client is behind: nothing more is to be received for it."""
        self._flowing.clear()

    def go_on(self) -> None:
        self._flowing.set()

    async def flow(self) -> None:
        """Wait while the client is behind."""
        # Again and again: whoever is woken first may have put the client behind once more.
        while not self._flowing.is_set():
            await self._flowing.wait()
