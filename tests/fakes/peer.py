"""A server that says what a test wants, and breaks when it wants: real frames over a real socket."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from holdfast.wire.websocket import accept_key
from tests.fakes.frames import CLOSE, PING, PONG, TEXT, frame_bytes
from tests.fakes.server import PATIENCE

Message = dict[str, Any]

FEATURES = ("idempotentStart", "list", "sessionClose", "signals", "closeStdin", "resize", "grace", "gap")
"""What it says it can do, if the test does not say otherwise."""


def info(*features: str, **more: Any) -> Message:
    """What it says of its host."""
    return {
        "shell": {"name": "sh", "path": "/bin/sh"},
        "cwd": "file:///work",
        "capabilities": {"holdfast": {"version": 1, "features": list(features)}, **more},
    }


class Talk:
    """One connection, from the server's side."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.head = b""
        self.pings = 0
        self.answers_pings = True

    # The beginning.

    async def read_head(self) -> bytes:
        """The request for a WebSocket."""
        async with asyncio.timeout(PATIENCE):
            self.head = await self._reader.readuntil(b"\r\n\r\n")
        return self.head

    async def upgrade(self) -> None:
        """Read the request for a WebSocket and grant it."""
        head = await self.read_head()
        fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:] if line)
        proof = accept_key(fields[b"Sec-WebSocket-Key"].decode())
        self.write(b"HTTP/1.1 101 X\r\nSec-WebSocket-Accept: %b\r\n\r\n" % proof.encode())

    async def shake_hands(self, session: str = "s1", *features: str, about: Message | None = None) -> Message:
        """The whole handshake; gives what the client asked for."""
        asked = await self.hear()
        environment = about or info(*(features or FEATURES))
        self.answer(asked, {"sessionId": session, "environmentInfo": environment})
        assert (await self.hear())["method"] == "initialized"
        return asked

    # Out.

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def say(self, text: bytes | str) -> None:
        """One text frame."""
        self.write(frame_bytes(TEXT, text.encode() if isinstance(text, str) else text, masked=False))

    def send(self, message: object) -> None:
        self.say(msgspec.json.encode(message))

    def answer(self, asked: Message, result: object) -> None:
        self.send({"id": asked["id"], "result": result})

    def refuse(self, asked: Message, code: int, text: str, data: object = None) -> None:
        self.send({"id": asked["id"], "error": {"code": code, "message": text, "data": data}})

    def tell(self, method: str, **params: object) -> None:
        self.send({"method": method, "params": params})

    # In.

    async def hear(self, method: str | None = None) -> Message:
        """The next message of the client; fails if it is about something else than ``method``."""
        async with asyncio.timeout(PATIENCE):
            frame = await self._frame()
        assert frame is not None, "the client has left"
        message: Message = msgspec.json.decode(frame)
        assert method is None or message["method"] == method, message
        return message

    async def left(self) -> None:
        """Wait until the client has closed the connection; answers its goodbye."""
        async with asyncio.timeout(PATIENCE):
            while await self._frame() is not None:
                pass

    async def pinged(self) -> None:
        """Wait until the client has asked for a sign of life."""
        async with asyncio.timeout(PATIENCE):
            while not self.pings:
                frame = await self._frame(one=True)
                assert frame == b"" or self.pings, frame

    async def _frame(self, *, one: bool = False) -> bytes | None:
        """The next text; None at the end.  With ``one``, b"" for any other frame."""
        while True:
            try:
                first, second = await self._reader.readexactly(2)
                length = second & 0x7F
                if length >= 126:
                    length = int.from_bytes(await self._reader.readexactly(2 if length == 126 else 8), "big")
                assert second & 0x80, "clients mask"
                assert await self._reader.readexactly(4) == bytes(4)
                payload = await self._reader.readexactly(length)
            except (asyncio.IncompleteReadError, ConnectionError):
                return None
            op = first & 0x0F
            if op == TEXT:
                return payload
            if op == PING:
                self.pings += 1
                if self.answers_pings:
                    self.write(frame_bytes(PONG, payload, masked=False))
            elif op == CLOSE:
                self.write(frame_bytes(CLOSE, payload, masked=False))
                self._writer.close()
            if one:
                return b""

    # The end.

    def abort(self) -> None:
        """Vanish, as after a crash.  May be called twice."""
        if self._writer.is_closing():
            return
        raw = self._writer.get_extra_info("socket")
        if raw.family != socket.AF_UNIX:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def close(self) -> None:
        """End the connection without a goodbye, behind all that was sent."""
        self._writer.close()

    async def gone(self) -> None:
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


class Peer:
    """The server: whoever connects waits to be accepted."""

    def __init__(self) -> None:
        self.url = ""
        self._waiting: asyncio.Queue[Talk] = asyncio.Queue()
        self._talks: list[Talk] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = Talk(reader, writer)
        self._talks.append(talk)
        self._waiting.put_nowait(talk)

    async def connected(self) -> Talk:
        """The next connection; no word is said yet."""
        async with asyncio.timeout(PATIENCE):
            return await self._waiting.get()

    async def accept(self) -> Talk:
        """The next connection, as a WebSocket."""
        talk = await self.connected()
        await talk.upgrade()
        return talk

    async def welcome(self, session: str = "s1", *features: str, about: Message | None = None) -> Talk:
        """The next connection, with a session."""
        talk = await self.accept()
        await talk.shake_hands(session, *features, about=about)
        return talk

    @property
    def count(self) -> int:
        """How many connections there have been."""
        return len(self._talks)

    async def end(self) -> None:
        for talk in self._talks:
            talk.abort()
        for talk in self._talks:
            await talk.gone()


@contextlib.asynccontextmanager
async def peer(path: str | None = None) -> AsyncIterator[Peer]:
    """A server on loopback, or at the path of a Unix socket."""
    served = Peer()
    if path is None:
        server = await asyncio.start_server(served.serve, "127.0.0.1", 0, limit=1 << 26)
        served.url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    else:
        server = await asyncio.start_unix_server(served.serve, path, limit=1 << 26)
        served.url = f"unix://{path}"
    try:
        yield served
    finally:
        server.close()
        await served.end()
        await server.wait_closed()
