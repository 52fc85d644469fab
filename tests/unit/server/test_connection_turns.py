"""What one client sends at once is handled for a moment, and then others get their turn."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from holdfast.config import ConnectionLimits
from holdfast.server.connection import Connection
from holdfast.telemetry import Silent
from tests.fakes.endpoint import MemoryChannel, ToyConversation, ToyEndpoint, deliver, introduce, request
from tests.fakes.frames import CLOSE, TEXT, Frame, Wire, frame_bytes
from tests.fakes.server import PATIENCE, inside
from tests.unit.server.test_connection import turn

SHORT = ConnectionLimits(turn_seconds=-1.0)
"""Turns that are over when they begin: each message has one of its own."""


class NotingChannel(MemoryChannel):
    """Notes, for several of its kind, which of them was written to."""

    def __init__(self, order: list[MemoryChannel]) -> None:
        super().__init__()
        self._order = order

    def write(self, *parts: bytes) -> None:
        super().write(*parts)
        self._order.append(self)


class Talk:
    """A connection in memory."""

    def __init__(self, limits: ConnectionLimits = SHORT, channel: MemoryChannel | None = None) -> None:
        self.channel = channel or MemoryChannel()
        endpoint = ToyEndpoint()
        self.connection = Connection(
            self.channel, endpoint, telemetry=Silent(), limits=limits, on_end=lambda connection: None
        )
        self.toy: ToyConversation = introduce(self.connection, endpoint)

    def send(self, *requests: tuple[str, str]) -> None:
        """Send requests in one packet."""
        messages = [request(number, method, name) for number, (method, name) in enumerate(requests)]
        deliver(self.connection, *messages)


PLAIN = [("plain", name) for name in "abcd"]
ANSWERS = [f"plain {name}" for name in "abcd"]


async def test_clients_that_send_much_at_once_take_turns() -> None:
    """Otherwise a neighbour would wait until all of it is done."""
    order: list[MemoryChannel] = []
    talks = [Talk(channel=NotingChannel(order)) for _ in range(2)]

    for talk in talks:
        talk.send(*PLAIN)
    await turn()

    assert order == [talk.channel for talk in talks] * 4


async def test_what_waits_for_its_turn_is_handled_in_its_order() -> None:
    """Nothing more is received meanwhile."""
    talk = Talk()

    talk.send(*PLAIN)
    at_once, held = list(talk.channel.results), list(talk.channel.held)
    await turn()

    assert (at_once, held) == (ANSWERS[:1], [True])
    assert (talk.channel.results, talk.channel.held) == (ANSWERS, [True, False])


async def test_within_a_turn_everything_is_handled_at_once() -> None:
    talk = Talk(ConnectionLimits(turn_seconds=3600.0))

    talk.send(*PLAIN)

    assert (talk.channel.results, talk.channel.held) == (ANSWERS, [])


async def test_each_packet_has_a_turn_of_its_own() -> None:
    """However long ago the last one was."""
    talk = Talk()

    for one in PLAIN:
        talk.send(one)

    assert talk.channel.results == ANSWERS


async def test_the_end_that_a_peer_has_said_comes_behind_what_it_said_before() -> None:
    """A client may send its last requests and a goodbye in one packet."""
    talk = Talk()
    seen: list[list[str]] = []

    talk.send(*PLAIN)
    talk.connection.call_after_queued(lambda: seen.append(list(talk.channel.results)))
    talk.connection.receive(request(9, "plain", "after the end"))
    early = list(seen)
    await turn()

    assert (early, seen) == ([], [ANSWERS])
    assert talk.channel.results == ANSWERS


async def test_an_end_does_not_wait_for_what_waits_for_something_else() -> None:
    """The session of a client that has gone is free for the next one."""
    talk = Talk()
    seen: list[list[str]] = []

    talk.send(PLAIN[0], ("alone", "x"), PLAIN[1])
    talk.connection.call_after_queued(lambda: seen.append(list(talk.channel.results)))
    await turn()

    assert seen == [ANSWERS[:1]]


async def test_an_end_comes_at_once_if_nothing_waits_for_its_turn() -> None:
    talk, seen = Talk(), list[bool]()

    talk.connection.call_after_queued(lambda: seen.append(True))

    assert seen == [True]


async def test_what_waits_for_its_turn_ends_with_the_connection() -> None:
    talk = Talk()
    talk.send(*PLAIN)

    talk.connection.lost()
    await turn()

    assert talk.channel.results == ANSWERS[:1]


async def test_a_peer_that_has_caught_up_does_not_get_another_turn_for_that() -> None:
    talk = Talk()
    talk.send(*PLAIN)

    talk.connection.drained()

    assert talk.channel.results == ANSWERS[:1]


@pytest.mark.parametrize(
    ("last", "code"),
    [(frame_bytes(CLOSE, b"\x03\xe8"), 1000), (b"\x81\x00", 1002), (frame_bytes(CLOSE, b"\x00"), 1002)],
    ids=["goodbye", "violation", "wrong goodbye"],
)
async def test_on_a_socket_the_end_comes_behind_all_answers(last: bytes, code: int) -> None:
    """Whether the peer takes its leave in the same packet, or breaks the rules."""
    status = [request(number, "environment/status") for number in range(1, 5)]
    async with inside(connections=SHORT) as server:
        wire = await Wire.open(server.url)
        wire.send_text(request(0, "initialize", {"clientName": "test"}))
        await wire.receive()
        texts = [b'{"method":"initialized"}', *status]
        wire.writer.write(b"".join(frame_bytes(TEXT, text) for text in texts) + last)
        async with asyncio.timeout(PATIENCE):
            frames = [frame async for frame in _frames(wire)]
        await wire.close()

    *answers, goodbye = frames
    assert [json.loads(answer.payload)["id"] for answer in answers] == [1, 2, 3, 4]
    assert (goodbye.op, int.from_bytes(goodbye.payload[:2], "big")) == (CLOSE, code)


async def _frames(wire: Wire) -> AsyncIterator[Frame]:
    while (frame := await wire.receive()) is not None:
        yield frame
