"""A WebSocket to a server: bytes in and out, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.client.address import TcpAddress, UnixAddress, parse
from holdfast.client.channel import NoConnection
from holdfast.client.websocket import WebSocket, connect
from tests.fakes.frames import CLOSE, PING, PONG, TEXT, frame_bytes
from tests.fakes.peer import Peer, Talk, peer
from tests.fakes.process import open_files
from tests.fakes.remote import background
from tests.fakes.server import PATIENCE, eventually

PATIENT = 5.0


class Ear:
    """Implements ``channel.Listener``."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []
        self.broken: list[str] = []
        self._news = asyncio.Event()

    def received(self, message: bytes | memoryview) -> None:
        self.heard.append(bytes(message))
        self._news.set()

    def broke(self, reason: str) -> None:
        self.broken.append(reason)
        self._news.set()

    async def until(self, count: int = 0, *, broken: bool = False) -> None:
        async with asyncio.timeout(PATIENCE):
            while len(self.heard) < count or (broken and not self.broken):
                self._news.clear()
                await self._news.wait()


def address_of(server: Peer) -> TcpAddress | UnixAddress:
    address = parse(server.url)
    assert isinstance(address, TcpAddress | UnixAddress)
    return address


@asynccontextmanager
async def connected(path: str | None = None) -> AsyncIterator[tuple[WebSocket, Ear, Talk]]:
    before = open_files()
    async with peer(path) as server:
        connecting = background(connect(address_of(server), token=None, patience=PATIENT))
        talk = await server.accept()
        channel = await connecting
        ear = Ear()
        channel.listen(ear)
        yield channel, ear, talk
        channel.cut("the test is over")
    await eventually(lambda: open_files().items() <= before.items())


async def test_messages_go_both_ways_over_tcp() -> None:
    async with connected() as (channel, ear, talk):
        channel.send(b'{"a":1}')
        assert await talk.hear() == {"a": 1}
        talk.say(b"one")
        talk.say("t\u2603")
        await ear.until(2)

        assert ear.heard == [b"one", "t\u2603".encode()]


async def test_messages_go_both_ways_over_a_unix_socket(tmp_path: Path) -> None:
    async with connected(str(tmp_path / "s")) as (channel, ear, talk):
        channel.send(b'{"a":1}')
        assert await talk.hear() == {"a": 1}
        assert b"Host: localhost\r\n" in talk.head
        talk.say(b"one")
        await ear.until(1)


async def test_what_came_with_the_answer_to_the_upgrade_is_heard() -> None:
    """A server may speak at once, and break at once."""
    async with peer() as server:
        connecting = background(connect(address_of(server), token="t", patience=PATIENT))
        talk = await server.accept()
        talk.say(b"early")
        talk.say(b"bird")
        talk.close()
        channel = await connecting
        assert b"Authorization: Bearer t\r\n" in talk.head
        await eventually(lambda: channel.broken)
        ear = Ear()
        channel.listen(ear)

        assert ear.heard == [b"early", b"bird"]
        assert len(ear.broken) == 1


async def test_a_message_comes_in_any_pieces() -> None:
    async with connected() as (_, ear, talk):
        for byte in frame_bytes(TEXT, b"slow", masked=False):
            talk.write(bytes((byte,)))
            await asyncio.sleep(0)
        talk.say(b"x" * 1_000_000)
        await ear.until(2)

        assert ear.heard == [b"slow", b"x" * 1_000_000]


async def test_a_ping_is_answered_and_ours_is_a_sign_of_life() -> None:
    async with connected() as (channel, _, talk):
        before = channel.received_at
        talk.write(frame_bytes(PING, b"?", masked=False))
        channel.ping()
        await talk.pinged()
        await eventually(lambda: channel.received_at > before)
        assert frame_bytes(PONG, b"?") is not None


async def test_a_server_that_closes_says_why() -> None:
    async with connected() as (channel, ear, talk):
        talk.write(frame_bytes(CLOSE, b"\x03\xe9bye", masked=False))
        await ear.until(broken=True)
        channel.send(b"too late")
        channel.cut("again")

        assert ear.broken == ["the server closed the connection: bye"]


@pytest.mark.parametrize("noise", [b"\x81\x80\0\0\0\0", b"\xff\xff"])
async def test_a_server_that_breaks_the_rules_is_left(noise: bytes) -> None:
    async with connected() as (_, ear, talk):
        talk.say(b"good")
        talk.write(noise)
        talk.say(b"never heard")
        await ear.until(broken=True)

        assert ear.heard == [b"good"]
        assert ear.broken[0].startswith("the server broke the protocol")
        await talk.left()


async def test_a_cut_is_told_at_once_and_once() -> None:
    async with connected() as (channel, ear, talk):
        talk.say(b"unheard")
        channel.cut("enough")

        assert ear.broken == ["enough"]
        await talk.left()
        assert (ear.heard, ear.broken) == ([], ["enough"])


async def test_whoever_sends_much_waits_for_room() -> None:
    async with connected() as (channel, _, talk):
        await channel.room()
        for _ in range(64):
            channel.send(b'"' + b"x" * (1 << 20) + b'"')
        waiting = background(channel.room())
        for _ in range(64):
            await talk.hear()

        await waiting


async def test_a_break_ends_the_wait_for_room() -> None:
    async with connected() as (channel, _, talk):
        for _ in range(64):
            channel.send(b"x" * (1 << 20))
        waiting = background(channel.room())
        talk.abort()

        async with asyncio.timeout(PATIENCE):
            await waiting


async def test_a_goodbye_is_answered() -> None:
    async with connected() as (channel, ear, talk):
        closing = background(channel.aclose())
        await talk.left()
        await closing

        assert len(ear.broken) == 1
        await channel.aclose()


async def test_a_goodbye_that_is_not_answered_ends_anyway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.client.websocket._GOODBYE_SECONDS", 0.02)
    async with connected() as (channel, ear, _):
        await channel.aclose()

        assert ear.broken == ["closed"]


# No connection.


async def test_nobody_there_is_no_connection(tmp_path: Path) -> None:
    with pytest.raises(NoConnection) as caught:
        await connect(UnixAddress(str(tmp_path / "none")), token=None, patience=PATIENT)

    assert (str(caught.value), caught.value.reached) == ("No such file or directory", False)


@pytest.mark.slow
async def test_a_server_that_says_nothing_is_given_up() -> None:
    async with peer() as server:
        with pytest.raises(NoConnection, match="no answer in time") as caught:
            await connect(address_of(server), token=None, patience=0.3)

        assert caught.value.reached


@pytest.mark.parametrize(
    ("answer", "final"),
    [(b"HTTP/1.1 401 No\r\n\r\n", True), (b"HTTP/1.1 500 Oh\r\n\r\n", False), (b"", False)],
)
async def test_a_server_that_refuses_is_no_connection(answer: bytes, final: bool) -> None:  # noqa: FBT001
    """One that answers was not reached by mistake; one that hangs up may have been."""
    before = open_files()
    async with peer() as server:
        connecting = background(connect(address_of(server), token=None, patience=PATIENT))
        talk = await server.connected()
        await talk.read_head()
        talk.write(answer)
        talk.close()

        with pytest.raises(NoConnection) as caught:
            await connecting
        assert (caught.value.final, caught.value.reached) == (final, not answer)
    await eventually(lambda: open_files().items() <= before.items())


async def test_cancelling_leaves_no_connection() -> None:
    before = open_files()
    async with peer() as server:
        connecting = background(connect(address_of(server), token=None, patience=PATIENT))
        talk = await server.connected()
        await talk.read_head()
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        await talk.left()
    await eventually(lambda: open_files().items() <= before.items())


async def test_cancelling_in_the_moment_of_the_answer_leaves_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The task was woken by the upgrade and is cancelled before it runs: nobody ever gets the connection."""
    before = open_files()
    async with peer() as server:
        connecting = background(connect(address_of(server), token=None, patience=PATIENT))
        take = WebSocket.buffer_updated

        def buffer_updated(made: WebSocket, nbytes: int) -> None:
            take(made, nbytes)
            assert made.upgraded.done()
            connecting.cancel()

        monkeypatch.setattr(WebSocket, "buffer_updated", buffer_updated)
        talk = await server.accept()
        with pytest.raises(asyncio.CancelledError):
            await connecting

        await talk.left()
    await eventually(lambda: open_files().items() <= before.items())
