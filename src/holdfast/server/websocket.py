"""A WebSocket connection: HTTP first, then frames, then the closing handshake."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from enum import Enum
from functools import partial
from time import monotonic
from typing import Final

from holdfast.config import ConnectionLimits
from holdfast.errors import LimitReached
from holdfast.poller import Poller
from holdfast.principal import ANYBODY, Principal
from holdfast.wire import websocket as wire
from holdfast.wire.websocket import BINARY, CLOSE, PING, PONG, SHORT_TEXT, TEXT, FrameReader, header

from .channel import EMPTY_QUEUE, Probe, SendQueue
from .connection import Connection
from .http_phase import HttpPhase, Run
from .listen import TcpListen
from .routes import Routes, no_room

_FLUSH_AT = 256 * 1024
"""Bytes gathered within one batch of events before they are sent without waiting for its end."""

_GATHER_FROM = 32 * 1024
"""Bytes from which the parts of a batch are handed to the system as they are: copying costs more."""

_GATHER_MOST = 512
"""Parts that the system takes at once, with a margin."""

_RECEIVE = memoryview(bytearray(256 * 1024))
"""Where all sockets receive.  One is enough: what arrives is taken before the next one receives."""


_FRAMES = 256
"""Frames after which we look how long it took: each may be so small that nobody else does."""

_NOTHING_NEW = memoryview(b"")


class Phase(Enum):
    """How far a connection is."""

    HTTP = 1
    OPEN = 2
    LONG = 5
    """Open, and in the middle of a long message."""
    CLOSING = 3
    """Our close frame is out; nothing the peer says counts but its own."""
    CLOSED = 4


# Looked up once: for a member of an enum Python 3.11 takes as long as for ten lines.
_OPEN: Final = Phase.OPEN
_LONG: Final = Phase.LONG
_CLOSED: Final = Phase.CLOSED


class WebSocketChannel(asyncio.BufferedProtocol):
    """One socket of a WebSocket listener.  Implements ``channel.Channel``."""

    __slots__ = (
        "_batch",
        "_batch_size",
        "_connection",
        "_first",
        "_http",
        "_is_held",
        "_limits",
        "_loop",
        "_make",
        "_most",
        "_on_limit",
        "_on_lost",
        "_on_refused",
        "_phase",
        "_ping",
        "_poller",
        "_probe",
        "_queue",
        "_reader",
        "_received",
        "_routes",
        "_run",
        "_timer",
        "_transport",
        "_turn",
        "congested",
        "full",
        "peer",
        "principal",
    )

    transport = "websocket"
    comes_back = True

    def __init__(
        self,
        make: Callable[[WebSocketChannel], Connection],
        *,
        routes: Routes,
        limits: ConnectionLimits,
        loop: asyncio.AbstractEventLoop,
        poller: Poller,
        on_lost: Callable[[WebSocketChannel], None],
        run: Run,
        on_refused: Callable[[str, str], None] = lambda peer, reason: None,
        on_limit: Callable[[str, str], None] = lambda limit, peer: None,
    ) -> None:
        """
        Args:
            run: Runs what routes of the HTTP phase do as tasks of the server.
            on_refused: Is told who was not let in, and why.
            on_limit: Is told which limit ended whom.
        """
        self._make = make
        self._on_lost = on_lost
        self._on_limit = on_limit
        self._poller = poller
        self._limits = limits
        self._most = limits.fragment_bytes
        self._loop = loop
        self._phase = Phase.HTTP
        self._routes = routes
        self._run = run
        self._on_refused = on_refused
        self._http: HttpPhase | None = None
        self._connection: Connection | None = None
        self._reader: FrameReader | None = None
        self._batch: list[bytes] = []
        self._batch_size = 0
        self._probe: Probe | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._received = False
        self._ping: bytes | None = None
        self._queue = EMPTY_QUEUE
        self._first = False
        self._is_held = False
        self._turn: asyncio.Handle | None = None
        self.full = False
        self.congested = False
        self.peer = ""
        self.principal = ANYBODY

    # Implements ``asyncio.BufferedProtocol``.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=self._limits.output_bytes)
        address = transport.get_extra_info("peername")  # A Unix socket's peer has none.
        self.peer = TcpListen(*address[:2]).address if isinstance(address, tuple) else "unix"
        self._http = HttpPhase(
            transport,
            self,
            self._routes,
            loop=self._loop,
            limits=self._limits,
            run=self._run,
            refused=lambda reason: self._on_refused(self.peer, reason),
        )

    def get_buffer(self, sizehint: int) -> memoryview:
        return _RECEIVE

    def buffer_updated(self, nbytes: int) -> None:
        data = _RECEIVE[:nbytes]
        if self._probe is not None:
            self._probe.settle(True)
            self._probe = None
        if self._http is not None:
            self._http.receive(data)
        else:
            self._received = True
            self._on_frames(data)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self.full = True
        self._set_congested()

    def resume_writing(self) -> None:
        self.full = False
        if self._ping is not None:
            self._pong(self._ping)
        if self._http is not None:
            self._http.on_room()
        if self._phase is Phase.LONG:
            self._received = True  # It takes what it is sent, and may have far to go to the next ping.
            if self._connection is not None:
                self._connection.on_room()
        else:
            self._set_congested()

    def _set_congested(self) -> None:
        congested = self.full or self._phase is Phase.LONG
        if congested != self.congested:
            self.congested = congested
            if self._connection is not None:
                (self._connection.congested if congested else self._connection.drained)()

    def connection_lost(self, exc: Exception | None) -> None:
        self._close()
        self._on_lost(self)

    # HTTP.  Implements ``http_phase.HttpSocket``.

    def upgrade(self, principal: Principal, accepted: bytes, rest: bytes) -> None:
        self.principal = principal
        try:
            self._connection = self._make(self)
        except LimitReached as limit:
            self._transport.write(no_room(limit))
            self._transport.close()
            return
        self._transport.write(accepted)
        self._end_http()
        self._phase = Phase.OPEN
        self._reader = FrameReader(self._limits.message_bytes)
        self._set_timer(self._limits.ping_seconds, self._on_ping_due)
        if rest:
            self._on_frames(memoryview(rest))

    def _end_http(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            http.end()

    # Frames in.

    def _on_frames(self, data: memoryview) -> None:
        reader, connection = self._reader, self._connection
        if reader is None or connection is None:
            return
        if self._turn is not None:
            deque(reader.feed(data, 0), maxlen=0)  # Behind the rest, which waits for its turn.
            return
        connection.until = 0.0
        try:
            text = reader.whole(data)
            if text is not None:
                if self._phase is _OPEN or self._phase is _LONG:
                    connection.receive(text)
                return
            until = monotonic() + self._limits.turn_seconds
            while True:
                for op, payload in reader.feed(data, _FRAMES):
                    if op <= BINARY:  # Text or binary: a whole message.
                        if self._phase is _OPEN or self._phase is _LONG:
                            connection.receive(payload, op == BINARY)
                    elif op == PING:
                        self._pong(payload)
                    elif op == CLOSE:
                        connection.call_after_queued(
                            partial(self._on_close_frame, payload, wire.close_reason(payload))
                        )
                        return
                if not reader.left or self._phase is _CLOSED:
                    return
                if monotonic() > until:
                    self._give_turn()
                    return
                data = _NOTHING_NEW
        except wire.Violation as violation:
            connection.call_after_queued(partial(self._on_violation, violation, connection))

    def _give_turn(self) -> None:
        """Let others have their turn, and go on in the next one.  Nothing more is read until then."""
        self._transport.pause_reading()
        self._turn = asyncio.get_running_loop().call_soon(self._on_turn)

    def _on_turn(self) -> None:
        self._turn = None
        if not self._is_held:
            self._transport.resume_reading()
        self._on_frames(_NOTHING_NEW)

    def _on_violation(self, violation: wire.Violation, connection: Connection) -> None:
        if violation.limit:
            self._on_limit(violation.limit, self.peer)
        self._end(violation.code, violation.reason)
        connection.lost()

    def _pong(self, ping: bytes) -> None:
        """Answer a ping, later if the peer does not read now; then only the last one."""
        self._ping = ping if self.full else None
        if not self.full:
            self._write_frame(header(PONG, len(ping)) + ping)

    def _on_close_frame(self, payload: bytes, code: int) -> None:
        if self._is_open:
            echo = payload[:2] if code != wire.CloseCode.NO_STATUS else b""
            self._write_frame(header(CLOSE, len(echo)) + echo)
        self.flush()
        self._transport.close()
        self._close()

    # Frames out.

    def write(self, *parts: bytes) -> None:
        if self._phase is not _OPEN:
            if self._phase is _LONG:
                self._queue.put(parts)
            return
        size = len(parts[0]) if len(parts) == 1 else sum(map(len, parts))
        if size > self._most:
            self._write_fragments(b"".join(parts))
            return
        batch = self._batch
        if not batch:
            self._poller.defer(self.flush)
        batch.append(SHORT_TEXT[size] if size < 126 else header(TEXT, size))
        batch += parts
        self._batch_size += size
        if self._batch_size > _FLUSH_AT:
            self.flush()

    # A long message.

    def begin(self) -> None:
        if self._phase is Phase.OPEN:
            self._phase = Phase.LONG
            self._queue = SendQueue()
            self._first = True
            self._set_congested()

    def piece(self, data: bytes, *, last: bool) -> None:
        if self._phase is not Phase.LONG:
            return
        self._write_fragments(data, first=self._first, last=last)
        self._first = False
        if last:
            self._phase = Phase.OPEN
            for parts in self._queue.take():
                self.write(*parts)
            self._set_congested()

    def _write_fragments(self, data: bytes, *, first: bool = True, last: bool = True) -> None:
        for frame in wire.fragments(data, self._most, first=first, last=last):
            self._write_frame(*frame)

    def _write_frame(self, *parts: bytes) -> None:
        if not self._batch:
            self._poller.defer(self.flush)
        self._batch += parts
        self._batch_size += sum(map(len, parts))

    def flush(self) -> None:
        """Send everything of this batch of events at once."""
        batch = self._batch
        if batch and self._phase is not _CLOSED:
            size, self._batch, self._batch_size = self._batch_size, [], 0
            if size < _GATHER_FROM or len(batch) > _GATHER_MOST:
                self._transport.write(b"".join(batch))
            else:
                self._transport.writelines(batch)

    @property
    def _is_open(self) -> bool:
        return self._phase is Phase.OPEN or self._phase is Phase.LONG

    @property
    def unsent(self) -> int:
        return self._transport.get_write_buffer_size() + self._batch_size + self._queue.size

    def hold(self) -> None:
        self._is_held = True
        self._transport.pause_reading()

    def go_on(self) -> None:
        self._is_held = False
        if self._phase is not Phase.CLOSED and self._turn is None:
            self._transport.resume_reading()

    # Life signs.

    def _set_timer(self, seconds: float, callback: Callable[..., None], *facts: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, callback, *facts)

    def _on_ping_due(self) -> None:
        self._received = False
        self.flush()
        delivery = self._transport.get_extra_info("delivery")
        self._write_frame(header(PING, 0))
        self.flush()
        # What the peer's system takes of the ping alone says nothing of the peer.
        taken = delivery.taken if delivery.waiting else None
        self._set_timer(self._limits.pong_seconds, self._on_pong_due, taken)

    def _on_pong_due(self, taken: int | None) -> None:
        # A peer that is slow to read what we sent before the ping is alive, too.
        if self._received or (taken is not None and self._transport.get_extra_info("delivery").taken > taken):
            self._set_timer(self._limits.ping_seconds - self._limits.pong_seconds, self._on_ping_due)
        else:
            self.abort("connection.pong_seconds")

    def abort(self, limit: str) -> None:
        """Wait no longer for a peer that has used up its time, or that never reads."""
        self._on_limit(limit, self.peer)
        self._transport.abort()
        self._close()

    async def is_alive(self, within: float) -> bool:
        if not self._is_open:
            return False
        if self._probe is None or self._probe.settled:
            self._probe = Probe(self._loop, within)
            self._write_frame(header(PING, 0))
        return await self._probe.answer()

    # The end.

    def end(self, reason: str, *, stopping: bool = False) -> None:
        self._end(wire.CloseCode.GOING_AWAY if stopping else wire.CloseCode.POLICY_VIOLATION, reason)

    def hang_up(self) -> None:
        """Let go of the socket once what was written is sent; the peer's answer is not waited for."""
        self._transport.close()

    def _end(self, code: wire.CloseCode, reason: str) -> None:
        if self._is_open:
            self._phase = Phase.CLOSING
            self._write_frame(wire.close_frame(code, reason))
            self.flush()
            self._set_timer(self._limits.close_seconds, self._transport.abort)

    def _close(self) -> None:
        """The socket is gone, or nothing more is wanted of it."""
        self._phase = Phase.CLOSED
        for due in (self._timer, self._turn):
            if due is not None:
                due.cancel()
        self._timer = self._turn = None
        if self._probe is not None:
            self._probe.settle(False)
        self._end_http()
        connection, self._connection = self._connection, None
        self._reader = None
        if connection is not None:
            connection.lost()
