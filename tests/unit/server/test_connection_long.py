"""Long messages of one client: piece by piece, one after the other, and never half of one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from holdfast.config import ConnectionLimits
from holdfast.dialects.dialect import LongResult
from holdfast.errors import FileFailed
from holdfast.server.connection import Connection
from holdfast.telemetry import Tally
from tests.fakes.endpoint import MemoryChannel, ToyConversation, ToyEndpoint, deliver, introduce, request


class Talk:
    """A connection in memory, of which something long is asked."""

    def __init__(self) -> None:
        self.channel = MemoryChannel()
        self.tally = Tally()
        endpoint = ToyEndpoint()
        self.connection = Connection(
            self.channel,
            endpoint,
            telemetry=self.tally,
            limits=ConnectionLimits(),
            on_end=lambda connection: None,
        )
        self.toy: ToyConversation = introduce(self.connection, endpoint)

    async def ask(self, number: int, name: str) -> None:
        deliver(self.connection, request(number, "long", name))
        await turn()
        await self.give(name, "begin")

    async def give(self, name: str, piece: str | Exception) -> None:
        """Let the next piece come; nothing is the end."""
        self.toy.open(name, piece)
        await turn()

    async def end(self) -> None:
        self.connection.lost()
        await self.connection.finished()


async def turn() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_an_answer_is_sent_piece_by_piece() -> None:
    talk = Talk()
    await talk.ask(1, "a")

    await talk.give("a", "x")
    before = list(talk.channel.pieces)
    await talk.give("a", "y")
    await talk.give("a", "")

    assert before == [b'{"id":1,"result":["', b"x"]
    assert talk.channel.sent == [{"id": 1, "result": ["xy"]}]
    assert talk.toy.told[-1] == "closed a"
    assert talk.tally.counts["exec_server_requests_total", "long", "success"] == 1
    await talk.end()


async def test_a_piece_waits_until_the_peer_has_room() -> None:
    talk = Talk()
    await talk.ask(1, "a")
    talk.channel.full = True

    await talk.give("a", "x")
    waiting = len(talk.channel.pieces)
    talk.channel.full = False
    talk.connection.on_room()
    talk.connection.on_room()
    await turn()

    assert (waiting, len(talk.channel.pieces)) == (1, 2)
    await talk.give("a", "")
    talk.connection.on_room()
    await talk.end()


async def test_two_long_answers_follow_one_another() -> None:
    talk = Talk()
    await talk.ask(1, "a")
    await talk.ask(2, "b")

    assert talk.toy.told.count("wait b") == 1  # No piece of it is made before its time.
    await talk.give("a", "x")
    await talk.give("a", "")
    await talk.give("b", "y")
    await talk.give("b", "")

    assert talk.channel.results == [["x"], ["y"]]
    await talk.end()


@pytest.mark.parametrize(
    ("failure", "reason"),
    [
        (FileFailed(5), "an answer broke off: Input/output error (os error 5)"),
        (RuntimeError("a mistake of ours"), "an answer broke off"),
    ],
)
async def test_a_piece_that_cannot_be_had_cuts_the_connection(
    failure: Exception, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Half an answer must not look like a whole one."""
    talk = Talk()
    await talk.ask(1, "a")
    await talk.give("a", "x")

    await talk.give("a", failure)

    assert talk.channel.ends == [(reason, False)]
    assert talk.channel.sent == []
    assert "closed a" in talk.toy.told
    await talk.connection.finished()
    assert isinstance(failure, FileFailed) or "a request's task failed" in caplog.text


@pytest.mark.parametrize("waiting", ["piece", "room", "line"])
async def test_when_the_connection_is_lost_everything_is_let_go_of(waiting: str) -> None:
    talk = Talk()
    await talk.ask(1, "a")
    await talk.ask(2, "b")
    if waiting == "room":
        talk.channel.full = True
        await talk.give("a", "x")

    await talk.end()

    assert {"closed a", "closed b"} <= set(talk.toy.told)
    assert talk.channel.sent == []


# Those that nobody asked for.


def long_message(talk: Talk, name: str) -> LongResult:
    async def pieces() -> AsyncGenerator[bytes, None]:
        while piece := await talk.toy.passed(name):
            yield piece.encode()

    return LongResult(b'{"method":"', pieces(), b'"}', lambda: talk.toy.told.append(f"closed {name}"))


async def test_a_long_message_begins_when_it_is_sent() -> None:
    """So that what is sent next comes behind it."""
    talk = Talk()

    talk.connection.send_long(long_message(talk, "a"))
    begun = list(talk.channel.pieces)
    await talk.give("a", "x")
    await talk.give("a", "")

    assert begun == [b'{"method":"']
    assert talk.channel.sent == [{"method": "x"}]
    assert talk.toy.told[-1] == "closed a"
    await talk.end()


@pytest.mark.parametrize("ended", [False, True])
async def test_a_long_message_is_let_go_of_with_the_connection(*, ended: bool) -> None:
    talk = Talk()
    if ended:
        await talk.end()

    talk.connection.send_long(long_message(talk, "a"))
    await talk.end()

    assert (talk.toy.told[-1], talk.channel.sent) == ("closed a", [])


@pytest.mark.parametrize("waiting", ["piece", "room"])
async def test_a_long_answer_to_a_start_is_let_go_of_with_the_connection(waiting: str) -> None:
    """Its task goes on without the connection, and must not wait for it."""
    talk = Talk()
    deliver(talk.connection, request(1, "long start", "a"))
    await turn()
    await talk.give("a", "begin")
    if waiting == "room":
        talk.channel.full = True
        await talk.give("a", "x")

    talk.connection.lost()
    if waiting == "piece":
        await talk.give("a", "y")
    async with asyncio.timeout(10):
        await talk.connection.finished()

    assert (talk.toy.told[-1], talk.channel.sent) == ("closed a", [])
