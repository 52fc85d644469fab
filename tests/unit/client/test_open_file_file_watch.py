"""Waiting for something to appear on another host, over any number of connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.client.remote import RemoteBackend
from holdfast.errors import LinkLost, Unsupported
from holdfast.files import FileWatch
from tests.fakes.peer import Peer, Talk, peer
from tests.fakes.remote import background, far
from tests.fakes.server import PATIENCE, eventually, inside


class Told:
    """How often it was."""

    def __init__(self) -> None:
        self.times = 0
        self._news = asyncio.Event()

    def __call__(self) -> None:
        self.times += 1
        self._news.set()

    async def wait(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self._news.wait()


@asynccontextmanager
async def watching(**options: Any) -> AsyncIterator[tuple[RemoteBackend, FileWatch, Told, Talk, Peer]]:
    async with peer() as server, far(server, **options) as (backend, talk):
        told = Told()
        asking = background(backend.files.watch_missing(["/x"], "/", told))
        talk.answer(await talk.hear("fs/watchMissing"), {"watching": True})
        watch = await asking
        assert watch is not None
        yield backend, watch, told, talk, server


async def test_what_appears_is_told_once() -> None:
    async with watching() as (_, watch, told, talk, _):
        talk.tell("fs/missingChanged", watchId=1)
        talk.tell("fs/missingChanged", watchId=1)
        await told.wait()
        watch.stop()

        assert told.times == 1


async def test_what_is_told_together_with_the_answer_is_not_missed() -> None:
    async with peer() as server, far(server) as (backend, talk):
        told = Told()
        asking = background(backend.files.watch_missing(["/x"], None, told))
        asked = await talk.hear("fs/watchMissing")
        talk.answer(asked, {"watching": True})
        talk.tell("fs/missingChanged", watchId=asked["params"]["watchId"])

        assert await asking is not None
        await told.wait()
        assert asked["params"] == {"watchId": 1, "missing": ["file:///x"]}


async def test_there_is_one_watch_at_a_time() -> None:
    """A second one would end the first on the server, without a word."""
    async with watching() as (backend, watch, told, talk, _):
        assert await backend.files.watch_missing(["/y"], None, told) is None
        watch.stop()
        assert (await talk.hear("fs/watchMissing"))["params"] == {"watchId": 2, "missing": []}
        asking = background(backend.files.watch_missing(["/y"], None, told))
        asked = await talk.hear("fs/watchMissing")
        talk.answer(asked, {"watching": True})

        assert await asking is not None
        assert asked["params"]["watchId"] == 3
        talk.tell("fs/missingChanged", watchId=1)  # Late news of the first.
        talk.tell("fs/missingChanged", watchId=3)
        await told.wait()
        assert told.times == 1


async def test_after_a_break_it_is_asked_for_again() -> None:
    async with watching() as (_, _, told, talk, server):
        talk.abort()
        again = await server.welcome()
        asked = await again.hear("fs/watchMissing")
        again.answer(asked, {"watching": True})
        again.tell("fs/missingChanged", watchId=asked["params"]["watchId"])
        await told.wait()

        assert asked["params"]["missing"] == ["file:///x"]
        assert told.times == 1


async def test_what_appeared_while_there_was_no_connection_is_told() -> None:
    async with watching() as (_, _, told, talk, server):
        talk.abort()
        again = await server.welcome()
        again.answer(await again.hear("fs/watchMissing"), {"watching": False})
        await told.wait()


async def test_two_breaks_in_a_row_are_one() -> None:
    async with watching() as (_, _, told, talk, server):
        talk.abort()
        between = await server.welcome()
        await between.hear("fs/watchMissing")
        between.abort()
        again = await server.welcome()
        asked = await again.hear("fs/watchMissing")
        again.answer(asked, {"watching": True})
        again.tell("fs/missingChanged", watchId=asked["params"]["watchId"])
        await told.wait()

        assert told.times == 1


async def test_the_end_of_the_link_is_told() -> None:
    """Nobody would hear of anything any more."""
    async with watching(reconnect_timeout=0.05) as (backend, _, told, talk, _):
        talk.abort()
        await told.wait()

        with pytest.raises(LinkLost):
            await backend.files.watch_missing(["/x"], None, told)


@pytest.mark.parametrize("answer", [{"watching": False}, {"watching": 7}])
async def test_nothing_to_wait_for_is_none(answer: dict[str, object]) -> None:
    async with peer() as server, far(server) as (backend, talk):
        for _ in range(2):
            asking = background(backend.files.watch_missing(["/x"], None, Told()))
            talk.answer(await talk.hear("fs/watchMissing"), answer)

            assert await asking is None


async def test_a_server_that_cannot_says_so() -> None:
    async with peer() as server, far(server) as (backend, talk):
        asking = background(backend.files.watch_missing(["/x"], None, Told()))
        talk.refuse(await talk.hear("fs/watchMissing"), -32601, "no")

        with pytest.raises(Unsupported):
            await asking


async def test_a_cancelled_question_is_taken_back() -> None:
    async with peer() as server, far(server) as (backend, talk):
        asking = background(backend.files.watch_missing(["/x"], None, Told()))
        await talk.hear("fs/watchMissing")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

        assert (await talk.hear("fs/watchMissing"))["params"]["missing"] == []


async def test_a_real_server_whose_connection_is_cut_tells_it_all_the_same(tmp_path: Path) -> None:
    async with inside() as server:
        backend = RemoteBackend(server.url)
        await backend.open()
        told = Told()
        assert await backend.files.watch_missing([f"{tmp_path}/x"], None, told) is not None
        backend._link._cut("the test wants it")
        await eventually(lambda: backend._link.connections == 2)
        (tmp_path / "x").write_bytes(b"")

        await told.wait()
        await backend.aclose()
