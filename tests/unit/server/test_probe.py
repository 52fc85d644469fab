"""Whether a peer is alive; the clock is moved by hand."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.server.probe import Probe
from tests.fakes.server import ServerLoop


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
