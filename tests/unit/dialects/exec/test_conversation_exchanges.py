"""The HTTP requests of one client: their number, their names, and whether they flow."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.config import HttpLimits
from holdfast.dialects.exec.conversation import Exchanges
from holdfast.dialects.scope import Room
from holdfast.errors import BadRequest, LimitReached

LIMITS = HttpLimits(connection_requests=2)


async def test_a_stream_has_its_name_to_itself_until_it_ends() -> None:
    exchanges = Exchanges(LIMITS, congested=False)
    exchanges.begin("r")

    with pytest.raises(BadRequest) as caught:
        exchanges.begin("r")
    exchanges.end("r")
    exchanges.begin("r")

    assert str(caught.value) == "http/request streamResponse requestId `r` is already active"
    assert len(exchanges) == 1


async def test_there_are_only_so_many() -> None:
    exchanges = Exchanges(LIMITS, congested=False)
    exchanges.begin(None)
    exchanges.begin("r")

    with pytest.raises(LimitReached):
        exchanges.begin("s")
    exchanges.end(None)
    exchanges.begin("s")

    assert len(exchanges) == 2


@pytest.mark.parametrize("congested", [False, True])
async def test_nothing_flows_while_the_client_is_behind(*, congested: bool) -> None:
    exchanges = Exchanges(LIMITS, congested=congested)
    exchanges.hold()
    waiting = asyncio.create_task(exchanges.flow())
    await asyncio.sleep(0)
    assert not waiting.done()

    exchanges.go_on()
    exchanges.hold()  # Somebody else was first, and the client is behind again.
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()

    exchanges.go_on()
    await waiting


async def test_a_client_that_is_not_behind_waits_for_nothing() -> None:
    await Exchanges(LIMITS, congested=False).flow()


def test_room_is_given_back() -> None:
    room = Room(10, "bytes", name="x.bytes")
    room.take(6)
    with pytest.raises(LimitReached) as caught:
        room.take(5)
    room.give(6)
    room.take(10)

    assert (caught.value.limit, caught.value.value) == ("bytes", 10)
    assert room.left == 0
