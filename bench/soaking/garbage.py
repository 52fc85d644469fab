"""What no client should send, and what the server must make of it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from urllib.parse import urlsplit

from bench.soaking.peer import PATIENCE, Gone, check
from bench.soaking.user import User

_MALFORMED: tuple[str | bytes, ...] = (
    "",
    "{",
    "[]",
    "null",
    '"text"',
    "{}",
    '{"id":null,"method":"environment/status"}',
    '{"id":1.5,"method":"environment/status"}',
    '{"id":1,"id":2,"method":"environment/status"}',
    '{"id":1,"method":7}',
    "[" * 200,
    '{"id":1,"method":"environment/status","params":' + "[" * 200 + "]" * 200 + "}",
    "\ufeff{}",
    b"\x00\x01\x02",
)


async def malformed(user: User) -> None:
    """Messages that are none are answered with the identifier -1, and nothing else happens."""
    peer = user.peer
    for text in user.chance.sample(_MALFORMED, 3):
        await peer.send(text)
        await peer.until(lambda: peer.told, f"an answer to {text!r}")
        told = peer.told.pop()
        check(told.get("id") == -1 and told["error"]["code"] == -32600, f"{text!r} was answered {told}")
    await peer.refused(-32601, "does not implement", "no/such/method")
    await peer.refused(-32602, "missing field", "process/start", {"processId": "x"})
    await peer.refused(-32602, "", "process/write", {"processId": "x", "chunk": "?", "writeId": "1"})
    await peer.refused(-32600, "only be sent once", "initialize", {"clientName": "again"})
    check(await peer.call("environment/status") == {"status": "ready"}, "environment/status")


async def malformed_app(user: User) -> None:
    """In the app dialects they are passed over."""
    for text in user.chance.sample(_MALFORMED, 3):
        await user.peer.send(text)
    await user.peer.send('{"method":"no/such/notification"}')
    await user.peer.refused(-32600, "unknown variant", "no/such/method")
    check(not user.peer.told, f"garbage was answered: {user.peer.told}")


async def violation(user: User) -> None:
    """Breaches that end the connection, with a close frame that says so."""
    data, code = user.chance.choice(
        (
            (b'{"method":"no/such/notification"}', "1008"),
            (b'{"id":12345,"result":{}}', "1008"),
            (None, "1002"),
        )
    )
    with contextlib.suppress(Gone):
        if data is None:
            # A frame with a reserved bit, and not masked.
            user.peer.send_bytes(b"\xf1\x02{}")
        else:
            await user.peer.send(data.decode())
    said = await user.peer.over()
    check(said.startswith(code), f"{data!r} ended the connection with {said}, not {code}")
    user.forget()


async def half_open(user: User) -> None:
    """Connections that never get as far as a message."""
    heads = (
        b"",
        b"GET / HT",
        b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nOrigin: http://evil\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        bytes(300),
    )
    head = user.chance.choice(heads)
    reader, writer = await _connect(user.url)
    writer.write(head)
    with contextlib.suppress(OSError):
        await writer.drain()
        if head.startswith(b"GET") and head.endswith(b"\r\n\r\n"):
            async with asyncio.timeout(PATIENCE):
                answer = await reader.readline()
            check(answer.startswith(b"HTTP/1.1 "), f"{head!r} was answered {answer!r}")
    if user.chance.random() < 0.5:
        # Gone without a goodbye: the kernel says RST.
        linger = writer.get_extra_info("socket")
        with contextlib.suppress(OSError):
            linger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    writer.close()


async def _connect(url: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if url.startswith("unix://"):
        return await asyncio.open_unix_connection(url.removeprefix("unix://"))
    parts = urlsplit(url)
    return await asyncio.open_connection(parts.hostname, parts.port)


async def mid_message(user: User) -> None:
    """Vanish in the middle of a frame."""
    user.peer.send_bytes(b"\x81\xfe\x10\x00\0\0\0\0" + b'{"id":1,"method":"process/start",')
    await user.peer.drop()
    user.forget()
