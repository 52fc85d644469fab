"""One client: messages in, back pressure, and an end after which nothing is left."""

from __future__ import annotations

import asyncio
import logging

import pytest

from holdfast.config import ConnectionLimits
from holdfast.dialects.dialect import Client as DialectClient
from holdfast.server.connection import Connection
from holdfast.telemetry import Tally
from tests.fakes.client import Client
from tests.fakes.endpoint import MemoryChannel, ToyConversation, ToyEndpoint, deliver, introduce, request
from tests.fakes.server import eventually, inside

LIMITS = ConnectionLimits(unsent_bytes=100)


class Talk:
    """A connection in memory."""

    def __init__(self) -> None:
        self.channel = MemoryChannel()
        self.tally = Tally()
        self.ended: list[Connection] = []
        endpoint = ToyEndpoint()
        self.connection = Connection(
            self.channel, endpoint, telemetry=self.tally, limits=LIMITS, on_end=self.ended.append
        )
        self.toy: ToyConversation = introduce(self.connection, endpoint)

    @property
    def active(self) -> int:
        return self.tally.counts["exec_server_connections_active", "websocket"]


async def turn() -> None:
    """Let everything run that is ready to run, and what becomes ready by it."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_dialect_learns_who_its_client_is() -> None:
    """The words of errors and the rules of sessions depend on it."""
    talk = Talk()

    assert (talk.connection.transport, talk.connection.peer) == ("websocket", "127.0.0.1:5")
    assert talk.connection.comes_back
    assert await talk.connection.is_alive(1)
    assert talk.active == 1


async def test_what_is_no_message_is_answered_and_the_connection_stays() -> None:
    """The dialect chooses the words, the identifier is nobody's."""
    talk = Talk()

    deliver(talk.connection, b"{")
    deliver(talk.connection, request(1, "plain", "a"))

    assert talk.channel.sent[0]["id"] == -1
    assert talk.channel.sent[0]["error"]["message"].startswith("malformed: ")
    assert talk.channel.sent[1] == {"id": 1, "result": "plain a"}


async def test_a_notification_reaches_the_dialect() -> None:
    """It is not answered."""
    talk = Talk()

    deliver(talk.connection, b'{"method":"hello"}')

    assert (talk.toy.told, talk.channel.sent) == (["hello"], [])


@pytest.mark.parametrize(
    ("message", "reason"),
    [(b'{"method":"breach"}', "that was wrong"), (b'{"id":1,"result":1}', "nobody asked")],
)
async def test_a_breach_ends_the_connection_and_says_why(message: bytes, reason: str) -> None:
    """What comes behind it is not heard any more."""
    talk = Talk()

    deliver(talk.connection, message)
    deliver(talk.connection, request(1, "plain", "a"))

    assert talk.channel.ends == [(reason, False)]
    assert talk.toy.told == ["ended"]
    assert talk.ended == [talk.connection]
    assert talk.channel.sent == []


# The first message.


class ChoosyEndpoint(ToyEndpoint):
    """Remembers the first message of each client, and sends some to another endpoint."""

    def __init__(self, other: ToyEndpoint) -> None:
        super().__init__()
        self.first: list[bytes] = []
        self._other = other

    def pick(self, text: bytes) -> ToyEndpoint:
        self.first.append(text)
        return self._other if b"other" in text else self


async def test_the_first_message_decides_whom_a_client_talks_to() -> None:
    """And only the first: a conversation does not change its dialect."""
    other = ToyEndpoint()
    choosy = ChoosyEndpoint(other)
    channel = MemoryChannel()
    connection = Connection(channel, choosy, telemetry=Tally(), limits=LIMITS, on_end=lambda ended: None)
    before = len(choosy.conversations) + len(other.conversations)

    deliver(connection, request(1, "plain", "other"))
    deliver(connection, request(2, "plain", "any"))

    assert before == 0
    assert choosy.first == [request(1, "plain", "other")]
    assert (len(choosy.conversations), len(other.conversations)) == (0, 1)
    assert channel.results == ["plain other", "plain any"]


async def test_a_first_message_that_is_none_begins_a_conversation_too() -> None:
    """Somebody has to answer it."""
    endpoint, channel = ToyEndpoint(), MemoryChannel()
    connection = Connection(channel, endpoint, telemetry=Tally(), limits=LIMITS, on_end=lambda ended: None)

    deliver(connection, b"{")

    assert len(endpoint.conversations) == 1
    assert channel.sent[0]["id"] == -1


async def test_a_client_that_is_behind_before_it_said_anything_is_known_to_be() -> None:
    """Its conversation begins with the valve shut."""
    endpoint, channel = ToyEndpoint(), MemoryChannel()
    connection = Connection(channel, endpoint, telemetry=Tally(), limits=LIMITS, on_end=lambda ended: None)
    channel.congested = True

    connection.congested()
    deliver(connection, b'{"method":"hello"}')

    assert endpoint.conversations[0].told == ["congested", "hello"]


async def test_a_connection_without_a_message_ends_quietly() -> None:
    endpoint, ended = ToyEndpoint(), list[Connection]()
    connection = Connection(MemoryChannel(), endpoint, telemetry=Tally(), limits=LIMITS, on_end=ended.append)

    connection.congested()
    connection.drained()
    connection.lost()
    await connection.finished()
    deliver(connection, request(1, "plain", "a"))

    assert (endpoint.conversations, ended) == ([], [connection])


# Dialects that take less.


class TextOnly(ToyConversation):
    """A dialect without binary messages, which passes over what is no message."""

    binary = False

    def malformed(self, detail: str) -> bytes | None:
        return None


class TextEndpoint(ToyEndpoint):
    def greet(self, client: DialectClient) -> ToyConversation:
        self.conversations.append(TextOnly(client))
        return self.conversations[-1]


def text_only() -> tuple[Connection, MemoryChannel]:
    channel = MemoryChannel()
    connection = Connection(
        channel, TextEndpoint(), telemetry=Tally(), limits=LIMITS, on_end=lambda ended: None
    )
    return connection, channel


async def test_binary_messages_are_passed_over_where_the_dialect_has_none() -> None:
    connection, channel = text_only()

    deliver(connection, request(1, "plain", "text"))
    deliver(connection, request(2, "plain", "binary"), binary=True)
    deliver(connection, request(3, "plain", "text"))

    assert channel.results == ["plain text"] * 2
    assert [message["id"] for message in channel.sent] == [1, 3]


async def test_the_first_message_is_passed_over_too_if_it_is_binary() -> None:
    """A dialect that takes no binary messages takes none from the beginning."""
    connection, channel = text_only()

    deliver(connection, request(1, "plain", "binary"), binary=True)
    deliver(connection, request(2, "plain", "text"))

    assert [message["id"] for message in channel.sent] == [2]


async def test_binary_messages_are_messages_where_the_dialect_takes_them() -> None:
    talk = Talk()

    deliver(talk.connection, request(1, "plain", "a"), binary=True)

    assert talk.channel.results == ["plain a"]


async def test_what_is_no_message_is_logged_where_the_dialect_does_not_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Once: the peer must not decide how long our log gets."""
    connection, channel = text_only()

    with caplog.at_level(logging.WARNING):
        deliver(connection, b"{")
        deliver(connection, b"}")
        deliver(connection, request(1, "plain", "a"))

    assert channel.results == ["plain a"]
    (message,) = caplog.messages
    assert message.startswith("127.0.0.1:5 sent something that is no message: ")


# Back pressure.


async def test_a_peer_that_does_not_read_is_not_read_either() -> None:
    """Above the limit of unsent bytes, requests wait; they are taken in their order afterwards."""
    talk = Talk()
    talk.channel.congested, talk.channel.unsent = True, 101

    for number in range(3):
        deliver(talk.connection, request(number, "plain", str(number)))
    before = list(talk.channel.sent)
    talk.channel.congested, talk.channel.unsent = False, 0
    talk.connection.drained()

    assert before == []
    assert talk.channel.results == ["plain 0", "plain 1", "plain 2"]
    assert talk.channel.held == [True, False]
    assert talk.toy.told[-1] == "drained"


async def test_a_peer_a_little_behind_is_still_served() -> None:
    """Congestion alone stops output, not requests: a client must be able to end what floods it."""
    talk = Talk()
    talk.channel.congested, talk.channel.unsent = True, 100

    talk.connection.congested()
    deliver(talk.connection, request(1, "plain", "a"))

    assert talk.channel.results == ["plain a"]
    assert talk.toy.told == ["congested", "plain a"]
    assert talk.channel.held == []


async def test_answers_that_fill_the_channel_again_stop_the_taking_in() -> None:
    """Catching up must not undo the bound it catches up with."""
    talk = Talk()
    talk.channel.congested, talk.channel.unsent = True, 101
    for number in range(3):
        deliver(talk.connection, request(number, "plain", str(number)))

    talk.channel.unsent = 100
    write = talk.channel.write

    def fill(*parts: bytes) -> None:
        write(*parts)
        talk.channel.unsent = 101

    assert talk.connection._calls is not None
    talk.connection._calls.send = fill
    talk.connection.drained()

    assert talk.channel.results == ["plain 0"]
    assert talk.channel.held == [True]


# The end.


async def test_a_lost_connection_gives_up_what_waits_and_ends_once() -> None:
    """When a connection ends, every task it owned has ended too."""
    talk = Talk()
    deliver(talk.connection, request(1, "wait", "a"))
    deliver(talk.connection, request(2, "wait", "b"))
    await turn()

    talk.connection.lost()
    talk.connection.lost()
    talk.connection.cut("too late")
    async with asyncio.timeout(10):
        await talk.connection.finished()

    assert sorted(talk.toy.told[-2:]) == ["cancelled a", "cancelled b"]
    assert talk.toy.told.count("ended") == 1
    assert talk.ended == [talk.connection]
    assert talk.channel.ends == []
    assert talk.active == 0


async def test_what_has_begun_is_given_up_though_its_task_has_not() -> None:
    """A request and the end of its connection may come in one packet, and no task runs in between."""
    talk = Talk()

    deliver(talk.connection, request(1, "wait", "a"))
    deliver(talk.connection, b'{"method":"breach"}')
    async with asyncio.timeout(10):
        await talk.connection.finished()

    assert talk.toy.told == ["wait a", "ended", "cancelled a"]


async def test_a_start_goes_on_when_its_connection_is_lost() -> None:
    """The client asked for it, and may come back for it."""
    talk = Talk()
    deliver(talk.connection, request(1, "start", "p"))
    await turn()

    talk.connection.lost()
    await turn()
    cancelled = "cancelled p" in talk.toy.told
    talk.toy.open("p")
    async with asyncio.timeout(10):
        await talk.connection.finished()

    assert not cancelled


async def test_a_cut_ends_the_channel_with_the_reason() -> None:
    """Whether because of the peer or because the server stops, the channel is told which."""
    first, second = Talk(), Talk()

    first.connection.cut("for a reason")
    second.connection.cut("the server stops", stopping=True)

    assert first.channel.ends == [("for a reason", False)]
    assert second.channel.ends == [("the server stops", True)]


async def test_on_a_real_socket_a_choked_peer_is_served_again_once_it_reads() -> None:
    """The bound holds the peer up, and lets go of it, without losing a request."""
    limits = ConnectionLimits(output_bytes=10_000, unsent_bytes=100_000)
    async with inside(connections=limits) as server:
        talking = await Client.open(server.url)
        await talking.start("p", "head", "-c", "500000", "/dev/zero")
        await talking.closed("p")
        talking.stop_listening()
        answers = [talking.post("process/read", {"processId": "p"}) for _ in range(50)]
        await eventually(lambda: talking.wire.writer.transport.get_write_buffer_size() == 0)
        talking.listen_again()
        pages = [await talking.result(answer) for answer in answers]
        await talking.close()

    assert {page["nextSeq"] for page in pages} == {pages[0]["nextSeq"]}


# The log.


def test_who_comes_and_goes_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """With facts apart from the words, for whoever searches."""
    caplog.set_level(logging.INFO, logger="holdfast")

    talk = Talk()
    talk.connection.lost()

    came, went = caplog.records
    assert (came.getMessage(), vars(came)["peer"]) == ("client connected: 127.0.0.1:5", "127.0.0.1:5")
    assert went.getMessage().startswith("client gone after 0.")
    assert (vars(went)["transport"], vars(went)["peer"]) == ("websocket", "127.0.0.1:5")
    assert vars(went)["seconds"] >= 0
