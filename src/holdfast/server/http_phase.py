"""A socket while it speaks HTTP: requests in, answers out, until its client is let through to WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from http import HTTPStatus
from time import monotonic
from typing import TYPE_CHECKING, Any

from holdfast.config import ConnectionLimits
from holdfast.errors import LimitReached
from holdfast.wire.http import HEAD_LIMIT, MOST_FIELDS, BadHead, read_head

from .routes import HttpSocket, Reply, RouteCall, Routes, no_room, reply, turned_away

if TYPE_CHECKING:
    from .exchange import HttpExchange

Run = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]
"""Runs a coroutine as a task of the server; raises ``LimitReached`` if there are too many."""


class HttpPhase:
    """The part of a socket's life in which it speaks HTTP: from its acceptance to its upgrade or its end."""

    __slots__ = (
        "_exchange",
        "_is_served",
        "_limits",
        "_loop",
        "_requests",
        "_run",
        "_socket",
        "_task",
        "_timer",
        "_transport",
        "_turn",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        socket: HttpSocket,
        routes: Routes,
        *,
        loop: asyncio.AbstractEventLoop,
        limits: ConnectionLimits,
        run: Run,
        refused: Callable[[str], None],
    ) -> None:
        """``refused`` is told why somebody was not let in, in a word."""
        self._transport = transport
        self._socket = socket
        self._requests = HttpRequests(routes, refused, socket.peer)
        self._loop = loop
        self._limits = limits
        self._run = run
        self._is_served = False
        self._exchange: HttpExchange | None = None
        self._task: asyncio.Task[None] | None = None
        self._turn: asyncio.Handle | None = None
        self._timer = loop.call_later(limits.handshake_seconds, self._on_due)

    def receive(self, data: memoryview) -> None:
        """Take what has arrived."""
        if self._exchange is not None:
            self._exchange.receive(bytes(data))
            return
        if self._requests.add(data) and self._turn is None:
            self._answer()

    def _answer(self) -> None:
        """Answer what can be answered now, for as long as a turn is."""
        until = monotonic() + self._limits.turn_seconds
        for answered in self._requests.answers():
            if answered.call is not None:
                self._begin_exchange(answered.call)
                return
            if answered.upgrade is not None:
                self._socket.upgrade(answered.upgrade, answered.data, self._requests.rest())
                return
            self._transport.write(answered.data)
            self._is_served = True
            if self._socket.full:
                # It asks, and does not read: what it loses it can ask for again.
                self._socket.abort("connection.output_bytes")
                return
            if answered.close:
                self._transport.close()
                return
            if self._requests.has_rest and monotonic() > until:
                self._give_turn()
                return

    def _give_turn(self) -> None:
        """Let others have their turn, and go on in the next one.  Nothing more is read until then."""
        self._transport.pause_reading()
        self._turn = asyncio.get_running_loop().call_soon(self._on_turn)

    def _on_turn(self) -> None:
        self._turn = None
        # First: whoever is let through decides by itself whether to read.
        self._transport.resume_reading()
        self._answer()

    def on_room(self) -> None:
        """The peer has taken what it was sent."""
        if self._exchange is not None:
            self._exchange.on_room()

    def _on_due(self) -> None:
        if self._is_served:  # It has got what it asked for, and holds the socket for the next time.
            self._transport.abort()
        else:
            self._socket.abort("connection.handshake_seconds")

    # Routes that take their time.

    def _begin_exchange(self, call: RouteCall) -> None:
        """Have a route answer; until it has, what arrives belongs to its request."""
        # Imported here: few servers have such routes, and importing h11 takes its time.
        from .exchange import HttpExchange

        self._timer.cancel()
        exchange = HttpExchange(call, self._transport, self._socket, loop=self._loop, limits=self._limits)
        try:
            self._task = self._run(self._finish(exchange))
        except LimitReached as limit:
            exchange.drop()
            self._transport.write(no_room(limit))
            self._transport.close()
            return
        self._exchange = exchange
        exchange.receive(self._requests.rest())

    async def _finish(self, exchange: HttpExchange) -> None:
        """Wait for the end of the answer; go on with what came behind the request."""
        rest = await exchange.run()
        self._task = None
        if rest is None:
            # The exchange goes on taking what is sent, for nothing: if the socket were closed now, the
            # system could tell the peer of that before the peer has read its answer.
            self._timer = self._loop.call_later(self._limits.close_seconds, self._transport.close)
            return
        self._exchange = None
        self._is_served = True
        self._timer = self._loop.call_later(self._limits.handshake_seconds, self._on_due)
        if rest:
            self.receive(memoryview(rest))

    def end(self) -> None:
        """The socket is gone, or it no longer speaks HTTP."""
        self._timer.cancel()
        if self._turn is not None:
            self._turn.cancel()
        if self._task is not None:
            self._task.cancel()


class HttpRequests:
    """Splits the bytes of a socket into requests, and answers those that need not wait."""

    __slots__ = ("_head", "_lines", "_peer", "_refused", "_routes")

    def __init__(self, routes: Routes, refused: Callable[[str], None], peer: str = "") -> None:
        self._routes = routes
        self._peer = peer
        self._refused = refused
        self._head = bytearray()
        self._lines = 0

    def add(self, data: memoryview) -> bool:
        """Take what has come.  Return whether there may be something to answer now."""
        first = not self._head
        self._head += data
        lines = data.tobytes().count(b"\n")
        self._lines += lines
        # A head that comes byte by byte is looked at when there is a line more, not with every byte.
        return first or lines > 0 or len(self._head) > HEAD_LIMIT

    @property
    def has_rest(self) -> bool:
        """Whether something is here that was not answered."""
        return bool(self._head)

    def answers(self) -> Iterator[Reply]:
        """Answer what is here.  The last answer may close, let through, or be left to a route.

        Whoever stops in between can go on later with another iterator.
        """
        try:
            while (found := read_head(self._head)) is not None:
                head, end = found
                answered = reply(head, self._routes, self._peer)
                if answered.call is not None:
                    yield answered  # Whoever reads its body reads the head again.
                    return
                # Those of this head, not of all behind it: there may be thousands.
                self._lines -= self._head.count(b"\n", 0, end)
                del self._head[:end]
                if answered.refusal:
                    self._refused(answered.refusal)
                yield answered
                if answered.upgrade is not None or answered.close:
                    return
            if self._lines > MOST_FIELDS + 1:
                raise BadHead(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        except BadHead as bad:
            yield turned_away(bad.status)

    def rest(self) -> bytes:
        """Take what was not answered: what follows an upgrade, or the whole request to a route."""
        rest, self._lines = bytes(self._head), 0
        self._head.clear()
        return rest
