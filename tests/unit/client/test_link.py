"""A link: calls are answered once, in order, over any number of connections."""

from __future__ import annotations

import asyncio
import socket

import pytest

from holdfast.client.link import LinkState
from holdfast.errors import (
    BadRequest,
    LimitReached,
    LinkLost,
    UnknownProcess,
    Unsupported,
)
from tests.fakes.peer import Peer, Talk, info, peer
from tests.fakes.process import open_files
from tests.fakes.remote import Notes, background, linked, make_link, raw
from tests.fakes.server import eventually

TAKE_OVER = ("sessionTakeOver",)


# Opening.


async def test_a_link_opens_a_session_and_says_that_it_is_ready() -> None:
    async with peer() as server:
        notes = Notes()
        link = make_link(server.url, notes, token="secret")
        opening = background(link.open())
        talk = await server.accept()
        asked = await talk.shake_hands("s1", "list")
        await opening

        assert asked["method"] == "initialize"
        assert asked["params"] == {"clientName": "test", "holdfast": 1}
        assert b"Authorization: Bearer secret\r\n" in talk.head
        assert link.features == frozenset(("list",))
        assert (link.connections, notes.told) == (1, [])
        closing = background(link.aclose())
        await talk.left()
        await closing


async def test_no_server_is_said_to_be_none() -> None:
    notes = Notes()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        link = make_link(f"ws://127.0.0.1:{unused.getsockname()[1]}", notes)

        with pytest.raises(LinkLost, match="cannot reach ws://127"):
            await link.open()

    assert notes.told == [("over", str(link._lost.reason))]
    with pytest.raises(LinkLost):
        await link.call(raw("x"), None, bytes)
    await link.aclose()


async def test_cancelling_an_opening_leaves_nothing() -> None:
    before = open_files()
    async with peer() as server:
        link = make_link(server.url, Notes())
        opening = background(link.open())
        talk = await server.accept()
        await talk.hear("initialize")
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

        await talk.left()
        await link.aclose()
    await eventually(lambda: open_files().items() <= before.items())


# Calls.


async def test_a_call_has_its_answer_whatever_the_order_of_answers() -> None:
    async with peer() as server, linked(server) as (link, talk, _):
        first, second = (background(link.call(raw(name), {"a": 1}, bytes)) for name in ("one", "two"))
        one, two = await talk.hear("one"), await talk.hear("two")
        talk.answer(two, 2)
        talk.answer(one, 1)

        assert (await first, await second) == (b"1", b"2")
        assert one["params"] == {"a": 1}


async def test_an_error_is_raised_as_what_it_is() -> None:
    async with peer() as server, linked(server) as (link, talk, _):
        calling = background(link.call(raw("process/read"), None, bytes))
        talk.refuse(await talk.hear(), -32600, "unknown process id p")

        with pytest.raises(UnknownProcess) as caught:
            await calling
        assert caught.value.name == "p"


async def test_an_answer_that_is_none_is_an_error_of_ours() -> None:
    """Programs catch what the library documents, not what its JSON parser raises."""
    async with peer() as server, linked(server) as (link, talk, _):
        calling = background(link.call(raw("x"), None, _fails))
        talk.answer(await talk.hear(), {})

        with pytest.raises(LinkLost, match="makes no sense"):
            await calling


def _fails(raw: object) -> None:
    raise BadRequest("no base64")


async def test_a_text_that_is_no_unicode_is_refused_before_it_is_sent() -> None:
    async with peer() as server, linked(server) as (link, talk, _):
        with pytest.raises(BadRequest):
            await link.call(raw("x"), {"path": "\udcff"}, bytes)

        calling = background(link.call(raw("y"), None, bytes))
        talk.answer(await talk.hear("y"), 1)
        await calling


async def test_a_cancelled_call_is_forgotten() -> None:
    async with peer() as server, linked(server) as (link, talk, _):
        calling = background(link.call(raw("x"), None, bytes))
        asked = await talk.hear("x")
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling

        talk.answer(asked, 1)  # Nobody misses it, and nothing breaks.
        other = background(link.call(raw("y"), None, bytes))
        talk.answer(await talk.hear("y"), 2)
        assert await other == b"2"
        assert len(link._calls) == 0


async def test_a_call_that_was_cancelled_while_there_was_no_connection_is_never_sent() -> None:
    async with peer() as server, linked(server) as (link, talk, _):
        talk.abort()
        again = await server.accept()
        calling = background(link.call(raw("x"), None, bytes))
        asked = await again.hear()
        calling.cancel()
        again.answer(asked, {"sessionId": "s1", "environmentInfo": info()})
        assert (await again.hear())["method"] == "initialized"

        other = background(link.call(raw("y"), None, bytes))
        again.answer(await again.hear("y"), 2)
        await other


async def test_too_many_calls_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.client.link._MOST_CALLS", 2)
    async with peer() as server, linked(server) as (link, talk, _):
        calls = [background(link.call(raw("x"), None, bytes)) for _ in range(2)]
        asked = [await talk.hear("x") for _ in calls]

        with pytest.raises(LimitReached):
            await link.call(raw("x"), None, bytes)
        for one in asked:
            talk.answer(one, 1)
        await asyncio.gather(*calls)


# The end.


async def test_a_link_closes_its_session_and_says_goodbye() -> None:
    async with peer() as server, linked(server) as (link, talk, notes):
        closing = background(link.aclose())
        talk.answer(await talk.hear("session/close"), {})
        await talk.left()
        await closing

        assert notes.told == [("over", "closed by this program")]
        await link.aclose()
        assert len(notes.told) == 1


@pytest.mark.parametrize(
    "moment", ["new", "opening", "initialize", "up", "goodbye", "down", "handshake", "over"]
)
async def test_a_link_can_be_closed_at_any_moment(moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No task, no descriptor and no call is left."""
    monkeypatch.setattr("holdfast.client.websocket._GOODBYE_SECONDS", 0.05)
    before = open_files()
    async with peer() as server:
        notes = Notes()
        link = make_link(server.url, notes, reconnect_timeout=0.2 if moment == "over" else 10.0)
        opening = calling = talk = None
        if moment != "new":
            opening = background(link.open())
            talk = await server.accept()
            if moment == "initialize":
                await talk.hear("initialize")
            elif moment != "opening":
                await talk.shake_hands()
                await opening
                calling = background(link.call(raw("x"), None, bytes))
                await talk.hear("x")
        if talk is not None and moment in ("down", "handshake", "over"):
            await _lose(moment, server, talk, notes)
        closing = background(link.aclose())
        if talk is not None and moment in ("up", "goodbye"):
            asked = await talk.hear("session/close")
            if moment == "up":
                talk.answer(asked, {})
                await talk.left()
            else:
                talk.abort()
        async with asyncio.timeout(5):
            await closing

        assert link._state is LinkState.OVER
        assert not link._tasks
        if opening is not None and moment in ("opening", "initialize"):
            with pytest.raises(LinkLost):
                await opening
        if calling is not None:
            with pytest.raises(LinkLost):
                await calling
    await eventually(lambda: open_files().items() <= before.items())


async def _lose(moment: str, server: Peer, talk: Talk, notes: Notes) -> None:
    talk.abort()
    waiting = await server.connected()
    if moment == "handshake":
        await waiting.upgrade()
        await waiting.hear()
    if moment == "over":
        await notes.until("over")


async def test_a_server_that_does_not_answer_a_goodbye_is_left_anyway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.client.link._GOODBYE_SECONDS", 0.05)
    monkeypatch.setattr("holdfast.client.websocket._GOODBYE_SECONDS", 0.05)
    async with peer() as server, linked(server) as (link, talk, _):
        async with asyncio.timeout(5):
            await link.aclose()

        assert (await talk.hear())["method"] == "session/close"


async def test_what_is_owned_ends_with_the_link() -> None:
    async with peer() as server, linked(server) as (link, talk, _):
        work = link.own(asyncio.Event().wait())
        closing = background(link.aclose())
        talk.answer(await talk.hear("session/close"), {})
        await talk.left()
        await closing

        assert work.cancelled()


async def test_a_feature_that_is_not_there_is_no_method() -> None:
    async with peer() as server, linked(server) as (link, talk, _):
        calling = background(link.call(raw("fs/later"), None, bytes))
        talk.refuse(await talk.hear(), -32601, "exec-server stub does not implement `fs/later` yet")

        with pytest.raises(Unsupported) as caught:
            await calling
        assert caught.value.feature == "`fs/later`"
