"""What a connection must know of its transport, and what transports have in common."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from holdfast.principal import Principal


class Channel(Protocol):
    """The bytes' side of a connection: a WebSocket or a pair of pipes."""

    transport: str
    peer: str
    principal: Principal
    comes_back: bool

    def write(self, *parts: bytes) -> None:
        """Send one message, given in parts.  Never waits; does nothing after the end."""

    def begin(self) -> None:
        """Begin a long message.  Until its end the peer counts as behind, and what is written waits."""

    def piece(self, data: bytes, *, last: bool) -> None:
        """Send a piece of the long message; behind the last one goes what has waited, in its order."""

    @property
    def full(self) -> bool:
        """Whether the peer should first take what it was sent; ``on_room`` tells when it has."""

    def flush(self) -> None:
        """Send now what was gathered."""

    @property
    def unsent(self) -> int:
        """Bytes written and not yet taken by the system."""

    @property
    def congested(self) -> bool:
        """Whether the peer is so far behind that no more output should come."""

    def hold(self) -> None:
        """Receive no more for now."""

    def go_on(self) -> None:
        """Receive again."""

    async def is_alive(self, within: float) -> bool:
        """Ask the peer for a sign of life, and wait for it that many seconds at the most."""

    def end(self, reason: str, *, stopping: bool = False) -> None:
        """Tell the peer why, and end: because of the peer, or because the server stops."""


class SendQueue:
    """The messages that wait, in order, until a long one is sent; their size counts as unsent."""

    __slots__ = ("_messages", "size")

    def __init__(self) -> None:
        self._messages: deque[Sequence[bytes]] = deque()
        self.size = 0
        """Bytes that wait."""

    def put(self, parts: Sequence[bytes]) -> None:
        self._messages.append(parts)
        self.size += sum(map(len, parts))

    def take(self) -> Iterator[Sequence[bytes]]:
        """Take the messages out, one after the other."""
        self.size = 0
        while self._messages:
            yield self._messages.popleft()


EMPTY_QUEUE = SendQueue()
"""The queue of every connection that is not sending a long message: an idle one has none of its own."""


class Probe:
    """A question whether a peer is alive, shared by all who ask it; anything the peer says is the answer."""

    __slots__ = ("_answer",)

    def __init__(self, loop: asyncio.AbstractEventLoop, within: float) -> None:
        """``within`` are the seconds after which silence is the answer."""
        self._answer: asyncio.Future[bool] = loop.create_future()
        loop.call_later(within, self.settle, False)

    def settle(self, alive: bool) -> None:  # noqa: FBT001  (it is the answer itself)
        """Give the answer.  Only the first one counts."""
        if not self._answer.done():
            self._answer.set_result(alive)

    @property
    def settled(self) -> bool:
        return self._answer.done()

    async def answer(self) -> bool:
        """Wait for the answer.  If a caller is cancelled, the others still get it."""
        return await asyncio.shield(self._answer)
