"""A WebSocket to a server, over TCP, TLS or a Unix socket."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import socket

from holdfast.config import MIB
from holdfast.wire.websocket import (
    CLOSE,
    PING,
    PONG,
    TEXT,
    CloseCode,
    FrameReader,
    NotUpgraded,
    Violation,
    client_header,
    close_payload,
    read_upgrade,
    upgrade_request,
)

from .address import TcpAddress, UnixAddress
from .channel import ChannelBase, NoConnection
from .reaching import from_answer, from_system, tls_context

_BUFFER = 512 << 10
"""What is read of the socket at once: several frames of a process that speaks fast."""

_READ_LEAST = 128 << 10
"""Room for a read, behind what waits for the rest of its frame."""

_ALERT = b"\x15"
"""How a server of TLS complains of what is no TLS, if it says anything."""

_SIGN_OF_LIFE = 1024
"""Bytes of an unfinished frame: more than the answers to all pings before we give up."""

_MOST_UNSENT = MIB
"""Bytes that may wait to be sent before whoever sends more has to wait."""

_MESSAGE_MOST = 128 * MIB
"""A message of a server: twice of what it may send as one."""

_GOODBYE_SECONDS = 1.0
"""How long the server has to answer our close."""


class WebSocket(ChannelBase, asyncio.BufferedProtocol):
    """One connection.  Implements ``channel.Channel``."""

    def __init__(self, request: bytes, key: str, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._request = request
        self._key = key
        self._transport: asyncio.Transport | None = None
        self._buffer = memoryview(bytearray(_BUFFER))
        self._filled = 0  # Bytes of it that wait for the rest of their frame.
        self._unheard = 0
        self._head: bytearray | None = bytearray()
        self._frames = FrameReader(_MESSAGE_MOST, masked=False)
        self.upgraded: asyncio.Future[None] = loop.create_future()

    # Implements ``asyncio.BufferedProtocol``.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=_MOST_UNSENT)
        raw = transport.get_extra_info("socket")
        if raw is not None and raw.family != socket.AF_UNIX:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport.write(self._request)

    def get_buffer(self, sizehint: int) -> memoryview:
        if len(self._buffer) - self._filled < _READ_LEAST:
            larger = memoryview(bytearray(2 * len(self._buffer)))
            larger[: self._filled] = self._buffer[: self._filled]
            self._buffer = larger
        return self._buffer[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        filled = self._filled + nbytes
        if self._head is not None:
            filled = self._shake_hands(self._buffer[:nbytes])
            if self._head is not None:
                return
        frames, parsed = self._frames, 0
        try:
            for op, payload in frames.feed(self._buffer[:filled]):
                if op < CLOSE:
                    self.tell(payload)
                else:
                    self._control(op, payload)
            parsed = frames.parsed
        except Violation as violation:
            self.cut(f"the server broke the protocol: {violation.reason}")
        # A frame is a sign of life, and so is a part of a long one.  A few bytes are not: if the length
        # of a frame came out wrong, they are the answers to our own pings, which it swallows.
        self._unheard += nbytes
        if parsed or self._unheard >= _SIGN_OF_LIFE:
            self._unheard = 0
            self.received_at = self.loop.time()
        # What is not complete goes to the front: less than one frame, however much came.
        self._filled = filled - parsed
        if parsed and self._filled:
            self._buffer[: self._filled] = self._buffer[parsed:filled]
        elif not self._filled and len(self._buffer) > _BUFFER:
            self._buffer = memoryview(bytearray(_BUFFER))

    def eof_received(self) -> bool:
        return False  # Half a connection is none.

    def connection_lost(self, exc: Exception | None) -> None:
        self.end(str(exc) if exc else "the server closed the connection")
        self.leave()

    # In.

    def _shake_hands(self, data: memoryview) -> int:
        """Read the answer to our request; return how much follows it, which is at the front then."""
        assert self._head is not None
        self._head += data
        try:
            size = read_upgrade(self._head, self._key)
        except NotUpgraded as refusal:
            if not self.upgraded.done():
                self.upgraded.set_exception(from_answer(refusal))
            self.cut(str(refusal))
            return 0
        if size is None:
            return 0
        rest, self._head = self._head[size:], None
        self._buffer[: len(rest)] = rest
        if not self.upgraded.done():
            self.upgraded.set_result(None)
        return len(rest)

    def _control(self, op: int, payload: bytes) -> None:
        if op == PING:
            self._write(client_header(PONG, len(payload)) + payload)
        elif op == CLOSE:
            reason = payload[2:].decode(errors="replace")
            self.cut(f"the server closed the connection{f': {reason}' if reason else ''}")

    # Implements ``channel.Channel``.

    def send(self, message: bytes) -> None:
        self._write(client_header(TEXT, len(message)) + message)

    def _write(self, data: bytes) -> None:
        # One that is closing has failed, and we are about to hear of it; asyncio complains of every write.
        if not self.broken and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def ping(self) -> None:
        self._write(client_header(PING, 0))

    def cut(self, reason: str) -> None:
        self.end(reason)
        if self._transport is not None:
            self._transport.abort()

    def end(self, reason: str) -> None:
        if not self.upgraded.done():
            mute = self._head is not None and self._head[:1] in (b"", _ALERT)
            self.upgraded.set_exception(NoConnection(reason, reached=True, mute=mute))
            self.upgraded.exception()  # Whoever waits for it hears of it; there may be nobody.
        super().end(reason)

    async def aclose(self) -> None:
        payload = close_payload(CloseCode.NORMAL, "")
        self._write(client_header(CLOSE, len(payload)) + payload)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(self.gone), _GOODBYE_SECONDS)
        finally:
            self.cut("closed")
        await self.gone


async def connect(address: TcpAddress | UnixAddress, *, token: str | None, patience: float) -> WebSocket:
    """A connection to the server at ``address``, within ``patience`` seconds; cancelling leaves none.

    Raises:
        NoConnection: There is no server, or none of ours.
    """
    loop = asyncio.get_running_loop()
    key = base64.b64encode(os.urandom(16)).decode()
    authority, path = (
        (address.authority, address.path) if isinstance(address, TcpAddress) else ("localhost", "/")
    )
    request = upgrade_request(authority, path, key, token=token)

    def protocol() -> WebSocket:
        return WebSocket(request, key, loop)

    made: WebSocket | None = None
    handed_over = False
    try:
        async with asyncio.timeout(patience):
            if isinstance(address, UnixAddress):
                _, made = await loop.create_unix_connection(protocol, address.path)
            else:
                tls = tls_context() if address.secure else None
                _, made = await loop.create_connection(protocol, address.host, address.port, ssl=tls)
            await made.upgraded
        handed_over = True
    except TimeoutError:
        raise NoConnection("no answer in time", reached=made is not None) from None
    except OSError as error:
        raise from_system(error, address) from None
    finally:
        # Not whether it is upgraded: a cancellation, or the timeout, may come between the answer and us.
        if made is not None and not handed_over:
            made.upgraded.cancel()
            made.cut("given up")
    return made
