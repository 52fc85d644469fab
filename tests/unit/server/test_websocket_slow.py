"""Peers that are slow to read, and those that read nothing: which of them is given up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.config import ConnectionLimits
from holdfast.server.routes import Routes
from holdfast.server.stream import Delivery
from holdfast.server.websocket import Phase, WebSocketChannel
from holdfast.value import replace
from tests.fakes.frames import Wire
from tests.fakes.server import ServerLoop, eventually, inside
from tests.unit.server.test_websocket import LIFE, stop_reading

MIB = 1 << 20


class Sending:
    """As much of a transport as a ping needs, which says what it is told to say."""

    def __init__(self, delivery: Delivery) -> None:
        self.delivery = delivery
        self.aborted = False

    def get_extra_info(self, name: str) -> Delivery:
        assert name == "delivery"
        return self.delivery

    def write(self, data: bytes) -> None:
        self.delivery = replace(self.delivery, waiting=self.delivery.waiting + len(data))

    def abort(self) -> None:
        self.aborted = True


class Deferring:
    """A poller that defers for ever: what is gathered is sent when the channel says so."""

    def defer(self, work: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("before", "after", "given_up"),
    [
        (Delivery(100, 0), Delivery(102, 0), True),
        (Delivery(100, 50), Delivery(100, 52), True),
        (Delivery(100, 50), Delivery(101, 51), False),
        (Delivery(100, 50), Delivery(120, 5000), False),
        (Delivery(-100, 50), Delivery(-20, 50), False),
    ],
    ids=["only the ping", "nothing", "one byte", "and more came", "what a unix socket counts"],
)
async def test_a_peer_that_takes_what_it_was_sent_is_alive(
    before: Delivery, after: Delivery, *, given_up: bool
) -> None:
    """Its pong comes when it has read as far as the ping.  Its system answers for it only before that."""
    times, sending = ServerLoop(), Sending(before)
    channel = WebSocketChannel(
        lambda channel: pytest.fail("it is connected already"),
        routes=Routes(healthz=True),
        limits=LIFE,
        loop=times.loop,
        poller=Deferring(),  # type: ignore[arg-type]
        on_lost=lambda channel: None,
        run=lambda coroutine: pytest.fail("there are no routes"),
    )
    channel._transport = sending  # type: ignore[assignment]
    channel._phase = Phase.OPEN

    channel._on_ping_due()
    sending.delivery = after
    times.move(LIFE.pong_seconds)

    assert sending.aborted is given_up
    channel._close()


async def test_a_peer_that_reads_slowly_stays_though_more_is_written_than_it_reads() -> None:
    """How much waits for it says nothing: a process may write as fast as it reads."""
    times = ServerLoop()
    async with inside(connections=LIFE, times=times) as server:
        wire = await Wire.open(server.url)
        (channel,) = server.server._channels
        assert isinstance(channel, WebSocketChannel)
        stop_reading(wire, channel)
        channel.write(b"x" * 8 * MIB)
        channel.flush()

        times.move(3)
        before = delivery(channel)
        channel.write(b"x" * 8 * MIB)
        channel.flush()
        wire.writer.transport.resume_reading()  # type: ignore[attr-defined]  # It is one that can.
        await eventually(lambda: delivery(channel).taken > before.taken)
        more = delivery(channel).waiting > before.waiting
        times.move(2)
        connections = server.server.connections
        wire.abort()

    assert (more, connections) == (True, 1)


def delivery(channel: WebSocketChannel) -> Delivery:
    found = channel._transport.get_extra_info("delivery")
    assert isinstance(found, Delivery)
    return found


async def test_over_a_socket_what_the_peer_has_taken_is_known() -> None:
    async with inside(connections=ConnectionLimits()) as server:
        wire = await Wire.open(server.url)
        (channel,) = server.server._channels
        assert isinstance(channel, WebSocketChannel)
        await eventually(lambda: not delivery(channel).waiting)
        before = delivery(channel).taken

        channel.write(b"x" * 100)
        channel.flush()
        async with asyncio.timeout(10):
            await wire.receive()
        await eventually(lambda: not delivery(channel).waiting)
        after = delivery(channel).taken
        await wire.close()

    assert after - before == 102
