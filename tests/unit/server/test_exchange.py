"""Requests whose route takes its time, over real sockets: bodies, streams, limits and leavers."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from http import HTTPStatus

import pytest

from holdfast.config import ConnectionLimits
from holdfast.errors import BadRequest, Forbidden, LimitReached, SpawnFailed, UnknownProcess
from holdfast.server.routes import HttpAnswer, HttpCall, HttpRefused, Route
from holdfast.server.websocket import WebSocketChannel
from holdfast.telemetry import Tally, Telemetry
from tests.fakes import server
from tests.fakes.server import Inside, eventually

MIB = 1024 * 1024


class Site:
    """Routes, and what they saw."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.cancelled: list[str] = []
        self.closed: list[str] = []
        self.sent = 0

    @property
    def table(self) -> tuple[Route, ...]:
        return (
            Route("/echo", self.echo, methods=("POST",), body_bytes=4 * MIB),
            Route("/slow/*", self.slow),
            Route("/stream", self.stream),
            Route("/fails/*", self.fails),
            Route("/unread", self.unread, methods=("POST",), body_bytes=64 * MIB),
        )

    async def echo(self, call: HttpCall) -> HttpAnswer:
        digest = hashlib.sha256()
        async for piece in call.body:
            digest.update(piece)
        return HttpAnswer(digest.hexdigest().encode(), fields={"x-peer": call.peer})

    async def slow(self, call: HttpCall) -> HttpAnswer:
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled.append(call.head.path)
            raise
        return HttpAnswer(call.head.path.encode(), HTTPStatus.ACCEPTED)

    async def stream(self, call: HttpCall) -> HttpAnswer:
        return HttpAnswer(self.pieces())

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        try:
            for number in range(64):
                yield bytes([number]) * (MIB // 4)
                self.sent += 1
        finally:
            self.closed.append("stream")

    async def fails(self, call: HttpCall) -> HttpAnswer:
        errors = {
            "bad": BadRequest("no such thing"),
            "forbidden": Forbidden("path", "/x"),
            "limit": LimitReached("things", 3),
            "unknown": UnknownProcess("x"),
            "teapot": HttpRefused(HTTPStatus.IM_A_TEAPOT, "short and stout"),
            "mistake": RuntimeError("a mistake of ours"),
        }
        raise errors[call.head.path.rpartition("/")[2]]

    async def unread(self, call: HttpCall) -> HttpAnswer:
        await self.gate.wait()
        return HttpAnswer(b"not read")


@contextlib.asynccontextmanager
async def site(
    limits: ConnectionLimits | None = None, telemetry: Telemetry | None = None
) -> AsyncIterator[tuple[Site, Inside]]:
    pages = Site()
    async with server.inside(connections=limits, table=pages.table, telemetry=telemetry) as inside:
        yield pages, inside


class Peer:
    """A client of plain HTTP, byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, inside: Inside) -> Peer:
        host, port = inside.url.removeprefix("ws://").split(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    def ask(self, line: str, body: bytes = b"", **fields: str) -> None:
        if body:
            fields["content-length"] = str(len(body))
        rows = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in fields.items())
        self.writer.write(f"{line} HTTP/1.1\r\nhost: x\r\n{rows}\r\n".encode() + body)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """The next answer: status, fields and body."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        if fields.get("transfer-encoding") == "chunked":
            body = b""
            while size := int((await self.reader.readuntil(b"\r\n")).strip(), 16):
                body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readexactly(2)
        else:
            body = await self.reader.readexactly(int(fields.get("content-length", "0")))
        return int(head[0].split()[1]), fields, body

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


async def test_a_body_is_read_to_its_end_and_the_connection_is_used_again() -> None:
    data = bytes(range(256)) * 8192
    async with site() as (_, inside):
        peer = await Peer.connect(inside)
        peer.ask("POST /echo", data)
        peer.ask("GET /readyz")
        peer.ask("POST /echo", b"x")
        status, fields, body = await peer.answer()
        after = [(await peer.answer())[0], (await peer.answer())[2]]
        await peer.close()

    assert (status, body.decode()) == (200, hashlib.sha256(data).hexdigest())
    assert fields["x-peer"].startswith("127.0.0.1:")
    assert after == [200, hashlib.sha256(b"x").hexdigest().encode()]


async def test_a_body_may_come_in_chunks_and_after_a_go_ahead() -> None:
    async with site() as (_, inside):
        peer = await Peer.connect(inside)
        peer.ask("POST /echo", transfer_encoding="chunked", expect="100-continue")
        ahead = await peer.reader.readuntil(b"\r\n\r\n")
        for piece in (b"3\r\nabc\r\n", b"1\r\nd\r", b"\n0\r\n\r\n"):
            peer.writer.write(piece)
            await peer.writer.drain()
        answer = await peer.answer()
        await peer.close()

    assert ahead.startswith(b"HTTP/1.1 100 ")
    assert (answer[0], answer[2]) == (200, hashlib.sha256(b"abcd").hexdigest().encode())


async def test_a_body_that_is_too_long_is_refused_and_the_connection_closed() -> None:
    async with site() as (_, inside):
        peer = await Peer.connect(inside)
        peer.ask("POST /echo", content_length=str(64 * MIB))
        peer.writer.write(bytes(6 * MIB))
        status, fields, body = await peer.answer()
        peer.writer.write(bytes(MIB))
        rest = await peer.reader.read()
        await peer.close()

    assert (status, body) == (413, b"the body is longer than 4194304 bytes")
    assert (fields["connection"], rest) == ("close", b"")


async def test_a_body_that_is_no_body_is_refused() -> None:
    async with site() as (_, inside):
        peer = await Peer.connect(inside)
        peer.ask("POST /echo", transfer_encoding="chunked")
        peer.writer.write(b"nonsense\r\n")
        status, _, _ = await peer.answer()
        await peer.close()

    assert status == 400


async def test_a_body_that_nobody_reads_is_not_gathered_in_memory() -> None:
    """The peer is held up instead."""
    async with site() as (pages, inside):
        peer = await Peer.connect(inside)
        peer.ask("POST /unread", content_length=str(32 * MIB))
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 32 * MIB:
                peer.writer.write(bytes(MIB))
                await asyncio.wait_for(peer.writer.drain(), 1.0)
                sent += MIB
        stuck = sent
        pages.gate.set()
        status, fields, body = await peer.answer()
        await peer.close()

    assert stuck < 24 * MIB
    assert (status, fields["connection"], body) == (200, "close", b"not read")


async def test_a_stream_is_sent_at_the_pace_of_its_reader() -> None:
    async with site() as (pages, inside):
        peer = await Peer.connect(inside)
        peer.ask("GET /stream")
        await peer.reader.readuntil(b"\r\n\r\n")
        # Nothing more is read: the stream stops when the buffers of the system are full.
        (channel,) = inside.server._channels
        assert isinstance(channel, WebSocketChannel)
        await eventually(lambda: channel.full)
        before = pages.sent
        await peer.close()
        await eventually(lambda: pages.closed == ["stream"])

        peer = await Peer.connect(inside)
        peer.ask("GET /stream")
        peer.ask("GET /readyz")
        _, _, body = await peer.answer()
        again = await peer.answer()
        await peer.close()

    assert before < 64
    assert body == b"".join(bytes([number]) * (MIB // 4) for number in range(64))
    assert again[0] == 200


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("bad", 400, "no such thing"),
        ("forbidden", 403, "not allowed by the token: path '/x'"),
        ("limit", 503, "limit reached: things (3)"),
        ("unknown", 409, "no process named 'x'"),
        ("teapot", 418, "short and stout"),
        ("mistake", 500, "internal error"),
    ],
)
async def test_what_a_route_raises_is_answered_with_a_fitting_status(
    path: str, status: int, words: str
) -> None:
    async with site() as (_, inside):
        peer = await Peer.connect(inside)
        peer.ask(f"GET /fails/{path}")
        answer = await peer.answer()
        await peer.close()

    assert (answer[0], answer[2].decode()) == (status, words)


async def test_a_request_whose_peer_leaves_is_cancelled() -> None:
    async with site() as (pages, inside):
        peer = await Peer.connect(inside)
        peer.ask("GET /slow/a")
        await eventually(lambda: inside.server.usage()["connection.exchanges"] == 1)
        await peer.close()
        await eventually(lambda: pages.cancelled == ["/slow/a"])
        await eventually(lambda: inside.server.usage()["connection.exchanges"] == 0)


async def test_a_server_that_stops_cancels_what_its_routes_do() -> None:
    async with site() as (pages, inside):
        peer = await Peer.connect(inside)
        peer.ask("GET /slow/a")
        await eventually(lambda: inside.server.usage()["connection.exchanges"] == 1)

    assert pages.cancelled == ["/slow/a"]
    await peer.close()


async def test_only_so_many_requests_of_routes_are_answered_at_once() -> None:
    tally = Tally()
    async with site(ConnectionLimits(exchanges=1), telemetry=tally) as (pages, inside):
        first, second = await Peer.connect(inside), await Peer.connect(inside)
        first.ask("GET /slow/a")
        await eventually(lambda: inside.server.usage()["connection.exchanges"] == 1)
        second.ask("GET /slow/b")
        refused = await second.answer()
        second.ask("GET /readyz")
        pages.gate.set()
        answered = await first.answer()
        await first.close()
        await second.close()

    assert (refused[0], refused[2]) == (503, b"limit reached: HTTP requests at once (1)")
    assert (answered[0], answered[2]) == (202, b"/slow/a")
    assert [key for key in tally.counts if "connection.exchanges" in key] != []


async def test_a_peer_that_neither_sends_nor_takes_is_given_up() -> None:
    async with site(ConnectionLimits(handshake_seconds=0.2)) as (pages, inside):
        silent, greedy = await Peer.connect(inside), await Peer.connect(inside)
        silent.ask("POST /echo", content_length="5")
        greedy.ask("GET /stream")
        late = await silent.answer()
        await eventually(lambda: pages.closed == ["stream"])
        await silent.close()
        await greedy.close()

    assert (late[0], late[2]) == (408, b"the body takes too long")


async def test_a_slow_route_outlives_the_time_for_a_handshake() -> None:
    """Only peers are given up, never a handler that takes its time."""
    async with site(ConnectionLimits(handshake_seconds=0.05)) as (pages, inside):
        peer = await Peer.connect(inside)
        peer.ask("GET /slow/a")
        for _ in range(3):  # Others, who say nothing, are given up meanwhile.
            silent = await Peer.connect(inside)
            assert await silent.reader.read() == b""
            await silent.close()
        pages.gate.set()
        answer = await peer.answer()
        await peer.close()

    assert answer[2] == b"/slow/a"


def test_an_error_of_the_system_is_the_servers_own() -> None:
    from holdfast.server.exchange import _status_of

    assert _status_of(SpawnFailed.__new__(SpawnFailed)) is HTTPStatus.INTERNAL_SERVER_ERROR
