"""What an attacker does to a server, below the level of a decent client."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import msgspec

from tests.fakes.frames import CONTINUATION, TEXT, Wire, frame_bytes, frame_head
from tests.fakes.server import PATIENCE

HEAD = (
    b"GET / HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)

INITIALIZE = b'{"id":0,"method":"initialize","params":{"clientName":"attacker"}}'
INITIALIZED = b'{"method":"initialized"}'

MOST_FRAME = 16 << 20


def address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def dial(url: str) -> socket.socket:
    """A plain socket to the server that nobody reads."""
    made = socket.create_connection(address(url), PATIENCE)
    made.setblocking(False)
    return made


def reset(made: socket.socket) -> None:
    """Close it so that the server gets a reset, and this host keeps nothing of it."""
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    made.close()


async def shaken(url: str) -> Wire:
    """A connection that has a session, and no more manners."""
    wire = await Wire.open(url)
    for text in (INITIALIZE, INITIALIZED):
        wire.send_text(text)
    frame = await wire.receive()
    assert frame is not None
    assert b"sessionId" in frame.payload
    return wire


@contextlib.asynccontextmanager
async def attacker(url: str) -> AsyncIterator[Wire]:
    """A connection with a session; what is sent back is read only by who asks for it."""
    wire = await shaken(url)
    try:
        yield wire
        # Its processes would live on for half a minute.
        wire.send_text(b'{"id":"bye","method":"session/close"}')
        async with asyncio.timeout(PATIENCE):
            while (frame := await wire.receive()) is not None and b'"bye"' not in frame.payload:
                pass
    finally:
        wire.abort()


def in_frames(text: bytes) -> bytes:
    """A message as a client may send it: in as few frames as are allowed."""
    if len(text) <= MOST_FRAME:
        return frame_bytes(TEXT, text)
    pieces = [text[at : at + MOST_FRAME] for at in range(0, len(text), MOST_FRAME)]
    whole = []
    for number, piece in enumerate(pieces):
        op = CONTINUATION if number else TEXT
        whole += [frame_head(op, len(piece), final=number == len(pieces) - 1), piece]
    return b"".join(whole)


async def answer(wire: Wire, key: object) -> dict[str, object]:
    """The answer to a request of an attacker; what else comes is passed over."""
    text = b""
    async with asyncio.timeout(6 * PATIENCE):
        while (frame := await wire.receive()) is not None:
            if frame.op not in (TEXT, CONTINUATION):
                continue
            text += frame.payload
            if frame.final:
                message: dict[str, object] = msgspec.json.decode(text)
                text = b""
                if message.get("id") == key and "method" not in message:
                    return message
    raise AssertionError("the connection ended")
