"""Bounds that are reached by coming, and by waiting: connections, sessions, principals, times."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.client import Client, Refusal
from tests.fakes.frames import Wire
from tests.fakes.limits import (
    ADMISSION,
    BRIEF,
    figures,
    refusals,
    server,
    session,
    until_used,
)
from tests.fakes.tokens import bearer, signing_options, token


@pytest.fixture(scope="module")
def brief() -> Iterator[str]:
    with server(BRIEF) as (_, url):
        yield url


@pytest.fixture(scope="module")
def admission() -> Iterator[str]:
    with server(ADMISSION) as (_, url):
        yield url


# Times.


async def forgotten(talking: Client, name: str) -> None:
    """Wait until the server knows no process of that name."""
    while "error" not in (answer := await talking.post("process/read", {"processId": name, "waitMs": 10})):
        pass
    assert answer["error"]["message"] == f"unknown process id {name}"


async def test_ended_processes_and_sessions_are_forgotten(brief: str) -> None:
    async with session(brief) as talking:
        await talking.start("p", "true")
        await talking.start("k", "true", keep=True)
        await talking.closed("p")

        await forgotten(talking, "p")
        await forgotten(talking, "k")
        await talking.start("p", "true")
        leaver = await Client.open(brief)
        await leaver.abort()
        await until_used(brief, "session.sessions", 1)


async def test_peers_that_say_nothing(brief: str) -> None:
    """One that never asks for anything, and one that answers no ping; who does is served on."""
    async with session(brief) as other:
        async with refusals(brief, "connection.handshake_seconds"):
            idle = await Wire.dial(brief)
            assert await idle.reader.read() == b""
        async with refusals(brief, "connection.pong_seconds"):
            mute = await Client.connect(brief, answers_pings=False)
            assert await mute.ended() is None
        await mute.close()
        await idle.close()
        await other.call("environment/status")


# Admission.


async def test_sessions(admission: str) -> None:
    async with session(admission) as first, session(admission):
        third = await Client.connect(admission)
        async with refusals(admission, "session.sessions"):
            with pytest.raises(Refusal) as caught:
                await third.initialize()
            assert caught.value.data["name"] == "session.sessions"
        assert (await figures(admission)).used["session.sessions"] == 2

        await first.call("session/close")
        await third.initialize()
        await third.call("session/close")
        await third.close()
        await first.initialize()


async def test_connections_and_sockets(admission: str) -> None:
    """Beyond the connections there is room for a few who ask for something else."""
    async with session(admission) as talking:
        two = [await Client.connect(admission) for _ in range(2)]
        async with refusals(admission, "connection.connections"):
            late = await Wire.dial(admission)
            late.writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n")
            late.writer.write(b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n\r\n")
            answer = await late.reader.read()
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert answer.endswith(b"limit reached: connections (3)")
            await late.close()
        found = await figures(admission)
        assert (found.used["connection.connections"], found.used["connection.undecided"]) == (3, 1)

        before = found.refusals.get("connection.undecided", 0)
        idle = [await Wire.dial(admission) for _ in range(2)]
        late = await Wire.dial(admission)
        assert await late.reader.read() == b""
        await talking.call("environment/status")
        # Asked on one of those sockets: there is no room for another.
        assert (await figures(admission, wire=idle[0])).refusals["connection.undecided"] == before + 1
        for wire in (*idle, late):
            await wire.close()
        for each in two:
            await each.close()


async def test_a_client_of_http_that_asks_and_does_not_read(admission: str) -> None:
    """What it is owed must not grow with every question."""
    wire = await Wire.dial(admission)
    wire.writer.transport.pause_reading()  # type: ignore[attr-defined]  # It is one that can.
    async with refusals(admission, "connection.output_bytes"):
        wire.writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 2000)
        async with asyncio.timeout(20):
            while (await figures(admission)).refusals.get("connection.output_bytes", 0) == 0:
                pass
    await wire.close()


# With tokens.


async def test_principals(tmp_path: Path) -> None:
    """Whoever is here already may come again; another comes when the last of its clients has gone."""
    shown = bearer(token("watcher"))
    with server({"session.principals": "1"}, *signing_options(tmp_path)) as (_, url):
        alice = Client(await Wire.open(url, headers=[bearer(token("alice"))]))
        bob = Client(await Wire.open(url, headers=[bearer(token("bob"))]))
        await alice.initialize()

        with pytest.raises(Refusal) as caught:
            await bob.initialize()
        found = await figures(url, shown)

        assert caught.value.data == {
            "kind": "limitReached",
            "limit": "principals",
            "value": 1,
            "name": "session.principals",
        }
        assert (found.used["session.principals"], found.refusals["session.principals"]) == (1, 1)
        await alice.call("session/close")
        await alice.close()
        await bob.initialize()
        await bob.close()
