"""What a connection must know of its transport, and what transports share: the queue and the probe."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from holdfast.server.channel import EMPTY_QUEUE, Channel, Probe, SendQueue
from holdfast.server.stdio import StdioChannel
from holdfast.server.websocket import WebSocketChannel
from tests.fakes.server import ServerLoop


@pytest.mark.parametrize("kind", [WebSocketChannel, StdioChannel])
def test_every_method_of_a_channel_is_there_and_is_called_the_same_way(kind: type) -> None:
    """Types say so too, where somebody has both at hand; a fake may stand in between."""
    methods = {
        name: inspect.signature(each) for name, each in vars(Channel).items() if _is_method(name, each)
    }

    assert {name: inspect.signature(getattr(kind, name)) for name in methods} == methods


def _is_method(name: str, member: object) -> bool:
    return not name.startswith("_") and inspect.isfunction(member)


# Messages behind a long one.


def test_what_waits_is_counted_and_taken_in_order() -> None:
    queue = SendQueue()
    for parts in ((b"a", b"bc"), (b"d",)):
        queue.put(parts)
    size = queue.size

    assert list(queue.take()) == [(b"a", b"bc"), (b"d",)]
    assert (size, queue.size) == (4, 0)
    assert list(queue.take()) == []


def test_nothing_waits_where_nothing_long_is_sent() -> None:
    assert EMPTY_QUEUE.size == 0


# Whether a peer is alive; the clock is moved by hand.


@pytest.fixture
def times() -> ServerLoop:
    return ServerLoop()


@pytest.mark.parametrize("alive", [True, False])
async def test_the_first_answer_counts(times: ServerLoop, *, alive: bool) -> None:
    probe = Probe(times.loop, 1.0)
    probe.settle(alive)
    probe.settle(not alive)
    times.move(2.0)

    assert probe.settled
    assert await probe.answer() is alive


async def test_silence_is_an_answer_when_the_time_is_over(times: ServerLoop) -> None:
    probe = Probe(times.loop, 1.0)
    times.move(0.9)
    assert not probe.settled
    times.move(0.2)

    assert await probe.answer() is False


async def test_whoever_gives_up_does_not_take_the_answer_from_others(times: ServerLoop) -> None:
    probe = Probe(times.loop, 1.0)
    first, second = asyncio.ensure_future(probe.answer()), asyncio.ensure_future(probe.answer())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    probe.settle(True)

    assert await second is True
    assert first.cancelled()
