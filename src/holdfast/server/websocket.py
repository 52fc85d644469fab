"""A WebSocket connection: HTTP first, then frames, then the closing handshake."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from http import HTTPStatus

from holdfast.config import ConnectionLimits
from holdfast.poller import Poller
from holdfast.wire.http import BadHead, read_head
from holdfast.wire.websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    SHORT_TEXT,
    TEXT,
    CloseCode,
    FrameReader,
    Violation,
    close_frame,
    close_reason,
    header,
)

from .behind import NOTHING_BEHIND, Behind
from .connection import Connection
from .http import Routes, answer, reply

_FLUSH_AT = 256 * 1024
"""Bytes gathered within one batch of events before they are sent without waiting for its end."""

_GATHER_FROM = 32 * 1024
"""Bytes from which the parts of a batch are handed to the system as they are: copying costs more."""

_GATHER_MOST = 512
"""Parts that the system takes at once, with a margin."""

_RECEIVE = memoryview(bytearray(256 * 1024))
"""Where all sockets receive.  One is enough: what arrives is taken before the next one receives."""


class Phase(Enum):
    """How far a connection is."""

    HTTP = 1
    OPEN = 2
    LONG = 5
    """Open, and in the middle of a long message."""
    CLOSING = 3
    """Our close frame is out; nothing the peer says counts but its own."""
    CLOSED = 4


class WebSocketChannel(asyncio.BufferedProtocol):
    """One socket of a WebSocket listener.  Implements ``connection.Channel``."""

    __slots__ = (
        "_batch",
        "_batch_size",
        "_behind",
        "_connection",
        "_first",
        "_head",
        "_heard",
        "_limits",
        "_loop",
        "_make",
        "_most",
        "_on_lost",
        "_phase",
        "_poller",
        "_probe",
        "_reader",
        "_routes",
        "_timer",
        "_transport",
        "congested",
        "full",
        "peer",
    )

    transport = "websocket"
    comes_back = True

    def __init__(
        self,
        make: Callable[[WebSocketChannel], Connection | None],
        *,
        routes: Routes,
        limits: ConnectionLimits,
        loop: asyncio.AbstractEventLoop,
        poller: Poller,
        on_lost: Callable[[WebSocketChannel], None],
    ) -> None:
        self._make = make
        self._on_lost = on_lost
        self._poller = poller
        self._routes = routes
        self._limits = limits
        self._most = limits.fragment_bytes
        self._loop = loop
        self._phase = Phase.HTTP
        self._head: bytearray | None = bytearray()
        self._connection: Connection | None = None
        self._reader: FrameReader | None = None
        self._batch: list[bytes] = []
        self._batch_size = 0
        self._probe: asyncio.Future[bool] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._heard = False
        self._behind = NOTHING_BEHIND
        self._first = False
        self.full = False
        self.congested = False
        self.peer = ""

    # Implements ``asyncio.BufferedProtocol``.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=self._limits.output_bytes)
        address = transport.get_extra_info("peername")
        self.peer = _address(address)
        self._timer = self._loop.call_later(self._limits.handshake_seconds, transport.abort)

    def get_buffer(self, sizehint: int) -> memoryview:
        return _RECEIVE

    def buffer_updated(self, nbytes: int) -> None:
        data = _RECEIVE[:nbytes]
        if self._probe is not None:
            self._prove(alive=True)
        if self._phase is Phase.HTTP:
            self._on_http(data)
        else:
            self._heard = True
            self._on_frames(data)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self.full = True
        self._set_congested()

    def resume_writing(self) -> None:
        self.full = False
        if self._phase is Phase.LONG:
            self._heard = True  # It takes what it is sent, and may have far to go to the next ping.
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

    # HTTP.

    def _on_http(self, data: memoryview) -> None:
        assert self._head is not None
        self._head += data
        try:
            while (found := read_head(self._head)) is not None:
                head, end = found
                answered = reply(head, self._routes)
                if answered.upgrade:
                    self._open(answered.data, bytes(self._head[end:]))
                    return
                self._transport.write(answered.data)
                if answered.close:
                    self._transport.close()
                    return
                del self._head[:end]
        except BadHead as bad:
            self._transport.write(answer(bad.status, connection="close"))
            self._transport.close()

    def _open(self, accepted: bytes, rest: bytes) -> None:
        """Become a WebSocket; ``rest`` is what came right behind the request."""
        connection = self._make(self)
        if connection is None:
            raise BadHead(HTTPStatus.SERVICE_UNAVAILABLE)
        self._transport.write(accepted)
        self._head = None
        self._phase = Phase.OPEN
        self._connection = connection
        self._reader = FrameReader(
            frame_limit=self._limits.frame_bytes, message_limit=self._limits.message_bytes
        )
        self._set_timer(self._limits.ping_seconds, self._on_ping_due)
        if rest:
            self._on_frames(memoryview(rest))

    # Frames in.

    def _on_frames(self, data: memoryview) -> None:
        reader, connection = self._reader, self._connection
        if reader is None or connection is None:
            return
        try:
            for op, payload in reader.feed(data):
                if op in (TEXT, BINARY):
                    if self._phase is Phase.OPEN or self._phase is Phase.LONG:
                        connection.receive(payload, binary=op == BINARY)
                elif op == PING:
                    self._write_frame(header(PONG, len(payload)) + payload)
                elif op == CLOSE:
                    self._on_close_frame(payload)
                    return
        except Violation as violation:
            self._end(violation.code, violation.reason)
            connection.lost()

    def _on_close_frame(self, payload: bytes) -> None:
        code = close_reason(payload)
        if self._is_open:
            echo = payload[:2] if code != CloseCode.NO_STATUS else b""
            self._write_frame(header(CLOSE, len(echo)) + echo)
        self.flush()
        self._transport.close()
        self._close()

    # Frames out.

    def write(self, *parts: bytes) -> None:
        if self._phase is not Phase.OPEN:
            if self._phase is Phase.LONG:
                self._behind.put(parts)
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
            self._behind = Behind()
            self._first = True
            self._set_congested()

    def piece(self, data: bytes, *, last: bool) -> None:
        if self._phase is not Phase.LONG:
            return
        for at in range(0, len(data), self._most):
            part = data[at : at + self._most]
            final = last and at + self._most >= len(data)
            self._write_frame(header(TEXT if self._first else CONTINUATION, len(part), final=final), part)
            self._first = False
        if last:
            self._phase = Phase.OPEN
            for parts in self._behind.take():
                self.write(*parts)
            self._set_congested()

    def _write_fragments(self, message: bytes) -> None:
        step = self._limits.fragment_bytes
        for at in range(0, len(message), step):
            part = message[at : at + step]
            final = at + step >= len(message)
            self._write_frame(header(CONTINUATION if at else TEXT, len(part), final=final), part)

    def _write_frame(self, *parts: bytes) -> None:
        if not self._batch:
            self._poller.defer(self.flush)
        self._batch += parts
        self._batch_size += sum(map(len, parts))

    def flush(self) -> None:
        """Send everything of this batch of events at once."""
        batch = self._batch
        if batch and self._phase is not Phase.CLOSED:
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
        return self._transport.get_write_buffer_size() + self._batch_size + self._behind.size

    def hold(self) -> None:
        self._transport.pause_reading()

    def go_on(self) -> None:
        if self._phase is not Phase.CLOSED:
            self._transport.resume_reading()

    # Life signs.

    def _set_timer(self, seconds: float, callback: Callable[..., None], *facts: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(seconds, callback, *facts)

    def _on_ping_due(self) -> None:
        self._heard = False
        self._write_frame(header(PING, 0))
        self.flush()
        self._set_timer(self._limits.pong_seconds, self._on_pong_due, self.unsent)

    def _on_pong_due(self, waiting: int) -> None:
        # A peer that is slow to read what we sent before the ping is alive, too.
        if self._heard or self.unsent < waiting:
            self._set_timer(self._limits.ping_seconds - self._limits.pong_seconds, self._on_ping_due)
        else:
            self._transport.abort()
            self._close()

    async def is_alive(self, within: float) -> bool:
        if not self._is_open:
            return False
        if self._probe is None:
            self._probe = self._loop.create_future()
            self._loop.call_later(within, self._on_probe_over, self._probe)
            self._write_frame(header(PING, 0))
        return await asyncio.shield(self._probe)

    def _on_probe_over(self, probe: asyncio.Future[bool]) -> None:
        if self._probe is probe:
            self._prove(alive=False)

    def _prove(self, *, alive: bool) -> None:
        probe, self._probe = self._probe, None
        if probe is not None and not probe.done():
            probe.set_result(alive)

    # The end.

    def end(self, reason: str, *, stopping: bool = False) -> None:
        self._end(CloseCode.GOING_AWAY if stopping else CloseCode.POLICY_VIOLATION, reason)

    def hang_up(self) -> None:
        """Let go of the socket once what was written is sent; there is no time for the peer's answer."""
        self._transport.close()

    def _end(self, code: CloseCode, reason: str) -> None:
        if self._is_open:
            self._phase = Phase.CLOSING
            self._write_frame(close_frame(code, reason))
            self.flush()
            self._set_timer(self._limits.close_seconds, self._transport.abort)

    def _close(self) -> None:
        """The socket is gone, or nothing more is wanted of it."""
        self._phase = Phase.CLOSED
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._prove(alive=False)
        connection, self._connection = self._connection, None
        self._reader = None
        if connection is not None:
            connection.lost()


def _address(address: object) -> str:
    """``IP:PORT``; a Unix socket's peer has no address."""
    if isinstance(address, tuple):
        host, port = address[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return "unix"
