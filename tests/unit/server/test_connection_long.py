"""Long messages of one client: piece by piece, one after the other, and never half of one."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.config import ConnectionLimits
from holdfast.errors import FileFailed
from holdfast.server.connection import Connection
from holdfast.telemetry import Tally
from tests.fakes.endpoint import MemoryChannel, ToyConversation, ToyEndpoint, introduce, request


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
        self.connection.receive(request(number, "long", name))
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
