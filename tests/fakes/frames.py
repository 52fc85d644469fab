"""One WebSocket from the client's side, frame by frame, so that a test can break every rule."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from tests.fakes.server import PATIENCE

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10

NO_MASK = bytes(4)
"""A masking key that changes nothing: large payloads cost nothing to mask."""


class Frame(NamedTuple):
    """One WebSocket frame."""

    op: int
    payload: bytes
    final: bool = True

    @property
    def close_code(self) -> int:
        return int.from_bytes(self.payload[:2], "big")

    @property
    def close_reason(self) -> str:
        return self.payload[2:].decode()


def frame_bytes(op: int, payload: bytes, *, final: bool = True, masked: bool = True) -> bytes:
    """A frame as a client sends it; ``masked=False`` is against the rules."""
    return frame_head(op, len(payload), final=final, masked=masked) + payload


def frame_head(op: int, length: int, *, final: bool = True, masked: bool = True) -> bytes:
    """What stands before a payload of that length."""
    first, mark = op | (0x80 if final else 0), 0x80 if masked else 0
    if length < 126:
        head = bytes((first, mark | length))
    elif length < 1 << 16:
        head = struct.pack("!BBH", first, mark | 126, length)
    else:
        head = struct.pack("!BBQ", first, mark | 127, length)
    return head + (NO_MASK if masked else b"")


class Wire:
    """One WebSocket connection, frame by frame."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def dial(cls, url: str, tls: ssl.SSLContext | None = None) -> Wire:
        """A plain connection to the listener at ``url``; no word is said yet."""
        if url.startswith("unix://"):
            return cls(*await asyncio.open_unix_connection(url.removeprefix("unix://")))
        parts = urlsplit(url)
        return cls(*await asyncio.open_connection(parts.hostname, parts.port, ssl=tls))

    @classmethod
    async def open(cls, url: str, *, headers: Iterable[str] = (), tls: ssl.SSLContext | None = None) -> Wire:
        """A connection that has become a WebSocket."""
        wire = await cls.dial(url, tls)
        extra = "".join(f"{line}\r\n" for line in headers)
        wire.writer.write(
            b"GET / HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
            + extra.encode()
            + b"\r\n"
        )
        try:
            head = await wire.reader.readuntil(b"\r\n\r\n")
        except BaseException:
            await wire.close()
            raise
        assert head.startswith(b"HTTP/1.1 101 "), head
        return wire

    @property
    def socket(self) -> socket.socket:
        """The socket, for its options."""
        found: socket.socket = self.writer.get_extra_info("socket")
        return found

    def send(self, op: int, payload: bytes = b"", *, final: bool = True, masked: bool = True) -> None:
        """Send one frame.  Never waits."""
        self.writer.write(frame_bytes(op, payload, final=final, masked=masked))

    def send_text(self, text: str | bytes) -> None:
        self.send(TEXT, text.encode() if isinstance(text, str) else text)

    async def receive(self) -> Frame | None:
        """The next frame; None when the server has ended the connection."""
        try:
            first, second = await self.reader.readexactly(2)
            length = second & 0x7F
            if length == 126:
                length = int.from_bytes(await self.reader.readexactly(2), "big")
            elif length == 127:
                length = int.from_bytes(await self.reader.readexactly(8), "big")
            payload = await self.reader.readexactly(length)
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        return Frame(first & 0x0F, payload, bool(first & 0x80))

    async def farewell(self) -> Frame | None:
        """Everything up to the server's close frame; None if the end came without one."""
        async with asyncio.timeout(PATIENCE):
            while (frame := await self.receive()) is not None:
                if frame.op == CLOSE:
                    return frame
        return None

    async def ended(self) -> None:
        """Wait until the server has ended the connection."""
        async with asyncio.timeout(PATIENCE):
            while await self.receive() is not None:
                pass

    def abort(self) -> None:
        """Vanish, as after a crash: the server gets a reset."""
        if self.socket.family != socket.AF_UNIX and self.socket.fileno() >= 0:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()

    async def close(self) -> None:
        """Close the socket without a WebSocket goodbye."""
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()
