"""An HTTP server on loopback that answers byte for byte what a test wants, and a client of the engine."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from holdfast.config import HttpLimits
from holdfast.engine.http import HostHttp, HostResponse
from holdfast.errors import HttpFailed
from holdfast.model import HttpHeader, HttpRequest
from tests.fakes.server import PATIENCE, eventually

HI = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


def redirect(status: int, location: str) -> bytes:
    return b"HTTP/1.1 %d X\r\nlocation: %b\r\ncontent-length: 0\r\n\r\n" % (status, location.encode())


def response(body: bytes, *headers: str) -> bytes:
    head = "".join(f"{each}\r\n" for each in (*headers, f"content-length: {len(body)}"))
    return b"HTTP/1.1 200 OK\r\n%b\r\n%b" % (head.encode(), body)


@dataclass
class Visit:
    """One request, and the way back."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def left(self) -> None:
        """Wait until the peer has closed its end."""
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                while await self.reader.read(65_536):
                    pass

    @property
    def own_headers(self) -> list[tuple[str, str]]:
        """Without those that every request has."""
        return [each for each in self.headers if each[0] not in ("host", "accept")]


Answer = bytes | Callable[[Visit], Awaitable[None]]


@dataclass
class Web:
    """The server.  One request per connection."""

    port: int = 0
    routes: dict[str, Answer] = field(default_factory=dict)
    """By path; ``HI`` is the answer to all others."""
    visits: list[Visit] = field(default_factory=list)
    open: int = 0
    """Connections at this moment."""
    on_visit: Callable[[], None] = lambda: None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            visit = await _read(reader, writer)
            self.visits.append(visit)
            self.on_visit()
            answer = self.routes.get(visit.line.split()[1].partition("?")[0], HI)
            await (visit.send(answer) if isinstance(answer, bytes) else answer(visit))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            self.open -= 1


async def _read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Visit:
    line, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().removesuffix("\r\n\r\n").split("\r\n")
    pairs = [each.partition(": ") for each in lines]
    headers = [(name, value) for name, _, value in pairs]
    length = int(dict(headers).get("content-length", 0))
    return Visit(line, headers, await reader.readexactly(length), reader, writer)


@contextlib.asynccontextmanager
async def web(**routes: Answer) -> AsyncIterator[Web]:
    """A server with an answer for ``/NAME`` for each name."""
    served = Web(routes={f"/{name}": answer for name, answer in routes.items()})
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0)
    served.port = server.sockets[0].getsockname()[1]
    try:
        yield served
    finally:
        server.close()
        await server.wait_closed()


# A client.

SECRETS = {"TOKEN_X": "s3cret", "EMPTY": "", "LINES": "a\nb", "BYTES": "\udcff", "WORD": "é"}
"""The variables of the server."""


@contextlib.asynccontextmanager
async def host_http(limits: HttpLimits | None = None) -> AsyncIterator[HostHttp]:
    """The engine's client; it is checked that it gave everything back."""
    before = sockets()
    made = HostHttp(SECRETS, asyncio.get_running_loop(), limits or HttpLimits())
    yield made
    assert made.requests == 0
    await made.aclose()
    await eventually(lambda: sockets() <= before)


def sockets() -> int:
    """How many are open in this process."""
    count = 0
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            count += "socket:" in os.readlink(f"/proc/self/fd/{number}")
    return count


async def body_of(answer: HostResponse) -> bytes:
    pieces = []
    try:
        while piece := await answer.read():
            pieces.append(piece)
    finally:
        await answer.aclose()
    return b"".join(pieces)


async def fetch(http: HostHttp, url: str, method: str = "GET", **more: Any) -> tuple[int, bytes]:
    answer = await http.request(HttpRequest(method, url, **more))
    return answer.status, await body_of(answer)


async def failure(http: HostHttp, url: str, **more: Any) -> HttpFailed:
    with pytest.raises(HttpFailed) as caught:
        await fetch(http, url, **more)
    return caught.value


def headers(*pairs: tuple[str, str]) -> tuple[HttpHeader, ...]:
    return tuple(HttpHeader(name, value) for name, value in pairs)
