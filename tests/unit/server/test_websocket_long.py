"""Long messages on a real socket: fragments, what may come between them, and the ways they end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.config import ConnectionLimits
from holdfast.errors import FileFailed
from holdfast.files import OpenFile
from holdfast.server.websocket import WebSocketChannel
from tests.fakes.client import Client, client
from tests.fakes.file_talk import uri
from tests.fakes.frames import CLOSE, CONTINUATION, PING, PONG, TEXT, Frame, Wire
from tests.fakes.server import PATIENCE, Inside, ServerLoop, eventually, inside

MIB = 1 << 20
SMALL = ConnectionLimits(fragment_bytes=MIB, output_bytes=MIB // 4)


@asynccontextmanager
async def asked(
    tmp_path: Path, size: int, limits: ConnectionLimits = SMALL, times: ServerLoop | None = None
) -> AsyncIterator[tuple[Inside, Wire]]:
    """A client that has asked for a long file, and reads frames itself."""
    (tmp_path / "long").write_bytes(b"x" * size)
    async with inside(connections=limits, times=times) as server:
        talking = await Client.open(server.url)
        try:
            talking._reading.cancel()
            await asyncio.wait([talking._reading])
            params = {"path": uri(tmp_path / "long")}
            talking.wire.send_text(json.dumps({"id": 7, "method": "fs/readFile", "params": params}))
            yield server, talking.wire
        finally:
            talking.wire.abort()


async def receive(wire: Wire) -> Frame:
    async with asyncio.timeout(PATIENCE):
        frame = await wire.receive()
    assert frame is not None
    return frame


async def test_pieces_larger_than_a_fragment_are_cut(tmp_path: Path) -> None:
    async with asked(tmp_path, 10 * MIB) as (_, wire):
        frames = [await receive(wire)]
        while not frames[-1].final:
            frames.append(await receive(wire))

    assert [frame.op for frame in frames] == [TEXT] + [CONTINUATION] * (len(frames) - 1)
    assert max(len(frame.payload) for frame in frames) == MIB
    text = b"".join(frame.payload for frame in frames)
    assert len(json.loads(text)["result"]["dataBase64"]) == 4 * ((10 * MIB + 2) // 3)


async def test_pings_and_requests_are_answered_in_the_middle(tmp_path: Path) -> None:
    """A ping between fragments, a request behind the last of them."""
    async with asked(tmp_path, 20 * MIB) as (server, wire):
        await receive(wire)
        wire.send(PING, b"p")
        wire.send_text(b'{"id":8,"method":"environment/status"}')
        alive = asyncio.create_task(_is_alive(server))
        seen: list[Frame] = []
        while not seen or seen[-1].op in (PING, PONG) or not seen[-1].final:
            seen.append(await receive(wire))
            if seen[-1].op == PING:
                wire.send(PONG, seen[-1].payload)
        behind = await receive(wire)

        assert Frame(PONG, b"p") in seen
        assert await alive
        assert json.loads(behind.payload)["id"] == 8


async def _is_alive(server: Inside) -> bool:
    """Ask the only client for a sign of life, as somebody who wants its session would."""
    session = next(iter(server.endpoint.sessions._sessions.values()))
    assert session.client is not None
    return await session.client.is_alive(PATIENCE)


LIFE = ConnectionLimits(fragment_bytes=MIB // 8, output_bytes=MIB // 4, ping_seconds=3.0, pong_seconds=2.0)


@pytest.mark.slow
async def test_a_peer_that_takes_what_it_is_sent_is_alive(tmp_path: Path) -> None:
    """It may have far to go to our ping, and so to its pong."""
    times = ServerLoop()
    async with asked(tmp_path, 32 * MIB, LIFE, times) as (server, wire):
        (channel,) = server.server._channels
        assert isinstance(channel, WebSocketChannel)
        frames: list[Frame] = []
        times.move(2)
        for _ in range(2):
            await eventually(lambda: channel.full)
            times.move(1)
            while not channel._received:
                frames.append(await receive(wire))
            times.move(2)
        while not frames[-1].final or frames[-1].op == PING:
            frames.append(await receive(wire))

    assert [frame.op for frame in frames].count(PING) == 2
    assert frames[-1].op == CONTINUATION


async def test_a_peer_that_takes_nothing_is_not(tmp_path: Path) -> None:
    """Or it would keep its session, and what we have for it, until the kernel gives up."""
    times = ServerLoop()
    async with asked(tmp_path, 32 * MIB, LIFE, times) as (server, _):
        (channel,) = server.server._channels
        assert isinstance(channel, WebSocketChannel)
        await eventually(lambda: channel.full)
        times.move(4)
        before = server.server.connections
        times.move(1)
        after = server.server.connections

    assert (before, after) == (1, 0)


async def test_a_stop_in_the_middle_is_said(tmp_path: Path) -> None:
    async with asked(tmp_path, 20 * MIB, times=ServerLoop()) as (server, wire):
        await receive(wire)
        stopping = asyncio.create_task(server.server.stop())
        frame = await receive(wire)
        while frame.op != CLOSE:
            frame = await receive(wire)
        wire.send(CLOSE, frame.payload)
        await stopping

    assert frame.close_code == 1001


async def test_a_peer_that_says_goodbye_in_the_middle_is_answered(tmp_path: Path) -> None:
    async with asked(tmp_path, 20 * MIB) as (server, wire):
        await receive(wire)
        wire.send(CLOSE, b"\x03\xe8")
        frame = await receive(wire)
        while frame.op != CLOSE:
            frame = await receive(wire)
        await eventually(lambda: server.server.connections == 0)

    assert frame.close_code == 1000


class BadDisk:
    """Files of a disk that fails after the first piece.  Implements what is needed of ``files.Files``."""

    async def read(self, path: str, **wishes: Any) -> OpenFile:
        return _Failing()


class _Failing:
    async def read(self, offset: int, length: int) -> bytes:
        if offset:
            raise FileFailed(5)
        return bytes(length)

    async def write(self, offset: int, data: bytes) -> None:
        """Nobody asks for it."""

    def close(self) -> None:
        """Nothing is open."""


async def test_a_disk_that_fails_in_the_middle_ends_the_connection() -> None:
    async with inside(connections=SMALL) as server:
        good, server.backend._files = server.backend.files, BadDisk()  # type: ignore[assignment]
        async with client(server.url) as talking:
            talking.post("fs/readFile", {"path": "file:///x"})
            await eventually(lambda: talking.close_frame is not None)
        server.backend._files = good

    assert talking.close_frame is not None
    assert talking.close_frame.close_code == 1008
    assert talking.close_frame.close_reason == "an answer broke off: Input/output error (os error 5)"
    assert not any("result" in message and message.get("id") == 2 for message in talking.messages)


async def test_nothing_long_is_begun_after_the_end() -> None:
    async with inside() as server:
        wire = await Wire.open(server.url)
        await eventually(lambda: server.server.connections == 1)
        (channel,) = server.server._channels
        assert isinstance(channel, WebSocketChannel)
        await wire.close()
        await eventually(lambda: server.server.connections == 0)

        channel.begin()
        channel.piece(b"x", last=True)

        assert channel.unsent == 0
        assert not channel.congested


@pytest.mark.parametrize("size", [0, 1])
async def test_a_small_answer_after_a_long_one_is_an_ordinary_one(tmp_path: Path, size: int) -> None:
    async with asked(tmp_path, 6 * MIB) as (_, wire):
        while not (await receive(wire)).final:
            pass
        (tmp_path / "long").write_bytes(b"x" * size)
        params = {"path": uri(tmp_path / "long")}
        wire.send_text(json.dumps({"id": 9, "method": "fs/readFile", "params": params}))
        frame = await receive(wire)

    assert (frame.op, frame.final) == (TEXT, True)
    assert json.loads(frame.payload) == {"id": 9, "result": {"dataBase64": "eA==" if size else ""}}
