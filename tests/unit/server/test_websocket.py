"""A WebSocket connection on a real socket: life signs, fragments, the ways it ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator

import pytest

from holdfast.config import ConnectionLimits
from holdfast.server.stream import SocketStream
from holdfast.server.websocket import WebSocketChannel
from holdfast.telemetry import Tally
from tests.fakes.client import Client, client, page_bytes, sha256
from tests.fakes.frames import CLOSE, CONTINUATION, PING, PONG, TEXT, Frame, Wire, frame_bytes, frame_head
from tests.fakes.server import PATIENCE, ServerLoop, eventually, inside


async def test_nodelay_is_set_on_accepted_sockets() -> None:
    """Or every short answer would wait for the acknowledgement of the one before."""
    async with inside() as server:
        wire = await Wire.open(server.url)
        options = _nodelay_of_peers(wire.socket.getsockname())
        await wire.close()

    assert options == [1]


def _nodelay_of_peers(address: object) -> list[int]:
    """The option on each socket of this process, the server's among them, whose peer has that address."""
    options = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if not os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                continue
            with socket.socket(fileno=os.dup(int(name))) as copy:
                if copy.family == socket.AF_INET and copy.getpeername() == address:
                    options.append(copy.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
    return options


# Life signs.

LIFE = ConnectionLimits(ping_seconds=3.0, pong_seconds=2.0)
"""Wholes, so that sums are exact: a ping is due after 3 s, and again 1 s after each time for a pong."""


@contextlib.asynccontextmanager
async def mute(url: str) -> AsyncIterator[Client]:
    """A client that answers no ping and goes without a goodbye."""
    opened = await Client.open(url, answers_pings=False)
    try:
        yield opened
    finally:
        await opened.abort()


async def test_a_peer_that_answers_pings_stays() -> None:
    """Silence is not death: an idle client is asked and answers."""
    times = ServerLoop()
    async with inside(connections=LIFE, times=times) as server:
        wire = await Wire.open(server.url)
        (channel,) = server.server._channels
        assert isinstance(channel, WebSocketChannel)
        times.move(2)
        for _ in range(5):
            times.move(1)
            async with asyncio.timeout(PATIENCE):
                frame = await wire.receive()
            assert frame == Frame(PING, b"")
            wire.send(PONG, frame.payload)
            await eventually(lambda: channel._received)
            times.move(2)
        connections = server.server.connections
        await wire.close()

    assert connections == 1


async def test_the_pong_deadline_detaches_a_dead_peer() -> None:
    """A peer behind a broken network sends no goodbye; its session must not wait for the kernel."""
    times = ServerLoop()
    async with inside(connections=LIFE, times=times) as server, mute(server.url) as dead:
        await dead.start("p", "sleep", "1000")
        times.move(4)
        before = server.server.connections
        times.move(1)
        after = server.server.connections
        async with client(server.url, resume=dead.session) as heir:
            running = await heir.terminate("p")

    assert (before, after) == (1, 0)
    assert running


async def test_a_peer_that_talks_needs_no_pong() -> None:
    """Any byte is a sign of life."""
    times = ServerLoop()
    async with inside(connections=LIFE, times=times) as server, mute(server.url) as talking:
        times.move(2)
        for _ in range(5):
            times.move(1)
            await talking.call("environment/status")
            times.move(2)
        connections = server.server.connections

    assert connections == 1


async def test_a_live_holder_proves_itself_with_its_pong() -> None:
    """The probe of a contested session is an ordinary ping."""
    async with inside() as server, client(server.url) as holder:
        contender = await Client.connect(server.url)
        answer = await contender.post("initialize", {"clientName": "x", "resumeSessionId": holder.session})
        await contender.close()
        status = await holder.call("environment/status")

    assert answer["error"]["code"] == -32010
    assert status == {"status": "ready"}


# The handshake.


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost: x\r\n", b"GET /readyz HTTP/1.1\r\n\r\n"])
async def test_a_slow_handshake_is_cut(said: bytes) -> None:
    """Whoever opens sockets and says nothing must not keep them."""
    times = ServerLoop()
    async with inside(times=times) as server:
        wire = await Wire.dial(server.url)
        wire.writer.write(said)
        await eventually(lambda: server.server._channels)
        times.move(ConnectionLimits().handshake_seconds)
        async with asyncio.timeout(PATIENCE):
            try:
                answer = await wire.reader.read()
            except ConnectionResetError:
                answer = b""
        await wire.close()

    assert answer == b"" or answer.startswith(b"HTTP/1.1 200 ")


async def test_only_a_handshake_that_never_came_counts_as_a_refusal() -> None:
    """Who asks for health or metrics, and keeps the socket for the next time, is not refused anything."""
    times, tally = ServerLoop(), Tally()
    async with inside(times=times, telemetry=tally) as server:
        asking, idle = await Wire.dial(server.url), await Wire.dial(server.url)
        asking.writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
        await asking.reader.readuntil(b"\r\n\r\n")
        await eventually(lambda: len(server.server._channels) == 2)
        times.move(10)
        for wire in (asking, idle):
            await wire.ended()
            await wire.close()

    assert tally.counts["holdfast_limit_refusals_total", "connection.handshake_seconds"] == 1


def stop_reading(wire: Wire, channel: WebSocketChannel) -> None:
    """Leave what the server sends in buffers, of which ours is small."""
    stream = channel._transport
    assert isinstance(stream, SocketStream)
    stream._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    wire.writer.transport.pause_reading()  # type: ignore[attr-defined]  # It is one that can.


async def test_a_client_of_http_that_does_not_read_is_cut_off() -> None:
    """Its questions are shorter than our answers."""
    tally = Tally()
    async with inside(connections=ConnectionLimits(output_bytes=1000), telemetry=tally) as server:
        wire = await Wire.dial(server.url)
        await eventually(lambda: server.server._channels)
        (channel,) = server.server._channels
        assert isinstance(channel, WebSocketChannel)
        stop_reading(wire, channel)
        async with asyncio.timeout(PATIENCE):
            while server.server._channels:
                wire.writer.write(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
                await asyncio.sleep(0)
        await wire.close()

    assert tally.counts["holdfast_limit_refusals_total", "connection.output_bytes"] == 1


async def test_pings_of_a_peer_that_does_not_read_are_not_answered_without_end() -> None:
    """Of those that come while it does not, the last one is answered when it reads again."""
    async with inside(connections=ConnectionLimits(output_bytes=50_000)) as server:
        wire = await Wire.open(server.url)
        (channel,) = server.server._channels
        assert isinstance(channel, WebSocketChannel)
        stop_reading(wire, channel)
        async with asyncio.timeout(PATIENCE):
            while not channel.full:
                wire.writer.write(frame_bytes(PING, bytes(125)) * 100)
                await asyncio.sleep(0)
        wire.send(PING, b"full")
        await eventually(lambda: channel._ping == b"full")
        before = channel.unsent
        wire.writer.write(frame_bytes(PING, bytes(125)) * 5000 + frame_bytes(PING, b"last"))
        await wire.writer.drain()
        await eventually(lambda: channel._ping == b"last")
        after = channel.unsent
        wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
        async with asyncio.timeout(PATIENCE):
            while await wire.receive() != Frame(PONG, b"last"):
                pass
        await wire.close()

    assert after <= before


async def test_an_open_connection_is_not_cut_by_the_handshakes_time() -> None:
    """The deadline is for the upgrade only."""
    times = ServerLoop()
    async with inside(times=times) as server, client(server.url) as talking:
        times.move(ConnectionLimits().handshake_seconds)
        status = await talking.call("environment/status")

    assert status == {"status": "ready"}


# Frames out.


async def test_long_answers_go_out_in_fragments_no_larger_than_the_limit() -> None:
    """Pings may come between fragments; the message is whole all the same."""
    limits = ConnectionLimits(fragment_bytes=1000)
    async with inside(connections=limits) as server, client(server.url) as talking:
        await talking.start("p", "head", "-c", "100000", "/dev/zero")
        await talking.closed("p")
        page = await talking.read("p")
        largest = talking.largest_frame

    assert sha256(page_bytes(page)) == sha256(bytes(100_000))
    assert largest == 1000


async def test_a_message_at_the_limit_is_one_frame() -> None:
    """Fragments are for what is over the limit, not for what reaches it."""
    request = b'{"id":1,"method":"nope"}'
    async with inside() as server:
        wire = await Wire.open(server.url)
        wire.send_text(request)
        whole = await wire.receive()
        await wire.close()
    assert whole is not None
    async with inside(connections=ConnectionLimits(fragment_bytes=len(whole.payload))) as server:
        wire = await Wire.open(server.url)
        wire.send_text(request)
        at_limit = await wire.receive()
        await wire.close()
    async with inside(connections=ConnectionLimits(fragment_bytes=len(whole.payload) - 1)) as server:
        wire = await Wire.open(server.url)
        wire.send_text(request)
        first, second = await wire.receive(), await wire.receive()
        await wire.close()

    assert at_limit == whole
    assert first == Frame(TEXT, whole.payload[:-1], final=False)
    assert second == Frame(CONTINUATION, whole.payload[-1:])


# Frames in.


async def test_an_injected_limit_of_messages_is_honoured_whatever_their_frames() -> None:
    """The figures in the close frame are those of this server."""
    async with inside(connections=ConnectionLimits(message_bytes=250_000)) as server:
        wire = await Wire.open(server.url)
        wire.writer.write(frame_head(TEXT, 250_001))
        frame = await wire.farewell()
        await wire.close()
        other = await Wire.open(server.url)
        other.writer.write(
            frame_bytes(TEXT, bytes(100_000), final=False)
            + frame_bytes(CONTINUATION, bytes(100_000), final=False)
            + frame_head(CONTINUATION, 50_001)
        )
        message = await other.farewell()
        await other.close()

    assert frame is not None
    assert message is not None
    assert (frame.close_code, frame.close_reason) == (1009, "message is over the limit of 250000 bytes")
    assert (message.close_code, message.close_reason) == (1009, "message is over the limit of 250000 bytes")


async def test_frames_cut_anywhere_are_put_together() -> None:
    """TCP knows nothing of frames."""
    message = frame_bytes(TEXT, b'{"id":1,"method":"nope"}') + frame_bytes(TEXT, b"x" * 200)
    async with inside() as server:
        wire = await Wire.open(server.url)
        for at in range(len(message)):
            wire.writer.write(message[at : at + 1])
            await wire.writer.drain()
        first, second = await wire.receive(), await wire.receive()
        await wire.close()

    assert first is not None
    assert second is not None
    assert b'"id":1' in first.payload
    assert b'"id":-1' in second.payload


# The end.


async def test_a_peer_that_does_not_answer_our_close_frame_is_cut() -> None:
    """A violation ends the connection, whether or not the peer agrees."""
    async with inside(connections=ConnectionLimits(close_seconds=0.05)) as server:
        wire = await Wire.open(server.url)
        wire.send(3)
        frame = await wire.receive()
        await wire.ended()
        await wire.close()

    assert frame is not None
    assert frame.op == CLOSE


@pytest.mark.parametrize("how", ["close frame", "end of stream", "reset"])
async def test_however_a_connection_ends_its_session_is_detached(how: str) -> None:
    """The client may come back in every case."""
    async with inside() as server:
        talking = await Client.open(server.url)
        await talking.start("p", "sleep", "1000")
        if how == "close frame":
            await talking.close()
        elif how == "end of stream":
            talking.wire.writer.write_eof()
            await talking.ended()
            await talking.close()
        else:
            await talking.abort()
        await eventually(lambda: server.server.connections == 0)
        async with client(server.url, resume=talking.session) as again:
            running = await again.terminate("p")

    assert running


async def test_a_long_poll_of_a_lost_connection_leaves_no_task() -> None:
    """When a connection ends, every task it owned has ended too."""
    async with inside() as server:
        before = asyncio.all_tasks()
        talking = await Client.open(server.url)
        await talking.start("p", "sleep", "1000", pipeStdin=True)
        for _ in range(20):
            talking.post("process/read", {"processId": "p", "waitMs": 1_000_000})
        await talking.call("environment/status")
        await talking.abort()
        await eventually(lambda: asyncio.all_tasks() <= before)
