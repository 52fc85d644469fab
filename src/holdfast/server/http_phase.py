"""A socket while it speaks HTTP: requests in, answers out, until its client is let through to WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import TYPE_CHECKING, Any

from holdfast.config import ConnectionLimits
from holdfast.errors import LimitReached

from .routes import HttpRequests, HttpSocket, RouteCall, Routes, no_room

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
