"""What arrives at one socket at once is handled for a moment, and then others get their turn."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.config import ConnectionLimits
from holdfast.server.connection import Connection
from holdfast.server.routes import Routes
from holdfast.server.websocket import WebSocketChannel
from holdfast.telemetry import Silent
from tests.fakes.endpoint import ToyConversation, ToyEndpoint
from tests.fakes.frames import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, frame_bytes
from tests.unit.server.test_connection import turn

SHORT = ConnectionLimits(turn_seconds=-1.0)
"""Turns that are over when they begin: each look at the time gives one away."""

READY = b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
FLOOD = 1000
"""Frames that arrive at once: more than are handled without a look at the time."""


class Line(asyncio.Transport):
    """A transport that notes what it is told, and who is told something when."""

    def __init__(self, order: list[Line]) -> None:
        super().__init__()
        self.sent = b""
        self.reads = True
        self._order = order

    def write(self, data: Any) -> None:
        self.sent += bytes(data)
        self._order.append(self)

    def writelines(self, parts: Any) -> None:
        self.write(b"".join(parts))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def abort(self) -> None:
        pass

    close = abort


class Deferring:
    """A poller that sends what is gathered at once."""

    def defer(self, work: Any) -> None:
        asyncio.get_running_loop().call_soon(work)


class Socket:
    """A channel on such a transport."""

    def __init__(self, order: list[Line] | None = None, limits: ConnectionLimits = SHORT) -> None:
        self.line = Line([] if order is None else order)
        self.channel = WebSocketChannel(
            lambda channel: Connection(
                channel, ToyEndpoint(), telemetry=Silent(), limits=limits, on_end=lambda connection: None
            ),
            routes=Routes(healthz=True),
            limits=limits,
            loop=asyncio.get_running_loop(),
            poller=Deferring(),  # type: ignore[arg-type]  # As much of one as a channel needs.
            on_lost=lambda channel: None,
            run=lambda coroutine: pytest.fail("there are no routes"),
        )
        self.channel.connection_made(self.line)

    def arrive(self, data: bytes) -> None:
        self.channel.get_buffer(-1)[: len(data)] = data
        self.channel.buffer_updated(len(data))

    async def upgrade(self) -> None:
        self.arrive(UPGRADE)
        await turn()
        self.line.sent = b""

    def lose(self) -> None:
        self.channel.connection_lost(None)

    @property
    def answered(self) -> int:
        """How many requests of HTTP were answered."""
        return self.line.sent.count(b"HTTP/1.1 200")

    @property
    def ponged(self) -> int:
        return self.line.sent.count(frame_bytes(PONG, b"", masked=False))


# HTTP.


async def test_requests_that_come_at_once_are_answered_in_turns() -> None:
    """Thousands fit into what is received at once, and every one of them may ask for all figures."""
    order: list[Line] = []
    one, other = Socket(order), Socket(order)

    for socket in (one, other):
        socket.arrive(READY * 3)
    first = (one.answered, other.answered, one.line.reads)
    await turn()

    assert first == (1, 1, False)
    assert order == [one.line, other.line] * 3
    assert (one.answered, other.answered, one.line.reads) == (3, 3, True)
    one.lose()
    other.lose()


async def test_a_request_whose_end_comes_later_is_answered_then() -> None:
    socket = Socket()

    socket.arrive(READY * 2 + READY[:20])
    await turn()
    before = socket.answered
    socket.arrive(READY[20:])
    await turn()

    assert (before, socket.answered) == (2, 3)
    socket.lose()


async def test_who_is_let_through_in_a_later_turn_is_heard() -> None:
    """Frames may follow the upgrade in the same packet."""
    socket = Socket()

    socket.arrive(READY + UPGRADE + frame_bytes(PING, b""))
    early = socket.line.sent.count(b"HTTP/1.1 101")
    await turn()

    assert (early, socket.line.sent.count(b"HTTP/1.1 101")) == (0, 1)
    assert (socket.ponged, socket.line.reads) == (1, True)
    socket.lose()


async def test_requests_of_a_socket_that_is_lost_are_not_answered() -> None:
    socket = Socket()

    socket.arrive(READY * 3)
    socket.lose()
    await turn()

    assert socket.answered == 1


# Frames.


@pytest.mark.parametrize(
    "frames",
    [
        frame_bytes(PING, b"") * FLOOD,
        frame_bytes(PONG, b"") * FLOOD,
        frame_bytes(BINARY, b"") * FLOOD,
        frame_bytes(TEXT, b"", final=False) + frame_bytes(CONTINUATION, b"", final=False) * FLOOD,
    ],
    ids=["pings", "pongs", "binary", "continuations"],
)
async def test_tiny_frames_are_handled_in_turns(frames: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty thousand of them are received at once, and they are no messages whose time is looked at."""
    monkeypatch.setattr(ToyConversation, "binary", False)
    socket = Socket()
    await socket.upgrade()

    socket.arrive(frames)
    held = not socket.line.reads
    socket.arrive(frame_bytes(PING, b"last"))
    early = socket.line.sent
    await turn()

    assert held
    assert b"last" not in early
    assert socket.line.sent.endswith(b"last")
    assert socket.line.reads
    socket.lose()


async def test_nothing_of_a_flood_is_lost() -> None:
    socket = Socket()
    await socket.upgrade()

    socket.arrive(frame_bytes(PING, b"") * FLOOD + frame_bytes(PING, b"half")[:3])
    await turn()
    socket.arrive(frame_bytes(PING, b"half")[3:])
    await turn()

    assert socket.ponged == FLOOD
    assert socket.line.sent.endswith(b"half")
    socket.lose()


async def test_two_sockets_take_turns() -> None:
    order: list[Line] = []
    one, other = Socket(order), Socket(order)
    for socket in (one, other):
        await socket.upgrade()
    order.clear()

    for socket in (one, other):
        socket.arrive(frame_bytes(PING, b"") * FLOOD)
    await turn()

    assert (one.ponged, other.ponged) == (FLOOD, FLOOD)
    assert order[:4] == [one.line, other.line] * 2
    one.lose()
    other.lose()


async def test_a_connection_that_holds_the_socket_is_not_overruled() -> None:
    """Requests wait for their turn as well, and end the pause for themselves only."""
    socket = Socket()
    await socket.upgrade()

    socket.arrive(frame_bytes(PING, b"") * 300)
    socket.channel.hold()
    await turn()
    reads = [socket.line.reads]
    socket.channel.go_on()
    reads.append(socket.line.reads)
    socket.arrive(frame_bytes(PING, b"") * 300)
    socket.channel.hold()
    socket.channel.go_on()
    reads.append(socket.line.reads)

    assert reads == [False, True, False]
    socket.lose()


async def test_a_goodbye_behind_a_flood_comes_after_it() -> None:
    socket = Socket()
    await socket.upgrade()

    socket.arrive(frame_bytes(PING, b"") * FLOOD + frame_bytes(CLOSE, b"\x03\xe8"))
    await turn()

    assert socket.ponged == FLOOD
    assert socket.line.sent.endswith(frame_bytes(CLOSE, b"\x03\xe8", masked=False))
    socket.lose()


async def test_frames_of_a_socket_that_is_lost_are_not_handled() -> None:
    socket = Socket()
    await socket.upgrade()

    socket.arrive(frame_bytes(PING, b"") * FLOOD)
    socket.lose()
    await turn()

    assert socket.ponged < FLOOD
