"""A link whose connections break, fall silent or talk nonsense."""

from __future__ import annotations

import pytest

from holdfast.errors import (
    LinkLost,
    OutcomeUnknown,
)
from tests.fakes.peer import Peer, info, peer
from tests.fakes.process import open_files
from tests.fakes.remote import Notes, background, linked, make_link, raw
from tests.fakes.server import eventually

TAKE_OVER = ("sessionTakeOver",)


# In the handshake.


MOMENTS = pytest.mark.parametrize(
    "moment", ["connected", "head", "upgraded", "asked", "half", "answered", "nonsense"]
)


@MOMENTS
async def test_a_break_at_any_moment_of_the_first_handshake_is_followed_by_another_attempt(
    moment: str,
) -> None:
    """There was somebody: a server that is being restarted, say."""
    before = open_files()
    async with peer() as server:
        link = make_link(server.url, Notes())
        opening = background(link.open())
        await _break_at(moment, server)
        talk = await server.welcome()
        await opening

        closing = background(link.aclose())
        talk.answer(await talk.hear("session/close"), {})
        await talk.left()
        await closing
    await eventually(lambda: open_files().items() <= before.items())


@MOMENTS
async def test_a_break_at_any_moment_of_a_later_handshake_is_followed_by_another_attempt(moment: str) -> None:
    async with peer() as server, linked(server) as (link, talk, notes):
        calling = background(link.call(raw("x"), None, bytes))
        await talk.hear("x")
        talk.abort()
        await _break_at(moment, server)
        again = await server.accept()
        asked = await again.shake_hands()

        assert asked["params"]["resumeSessionId"] == "s1"
        again.answer(await again.hear("x"), 1)
        assert await calling == b"1"
        assert {event[0] for event in notes.told} == {"resumed"}


async def _break_at(moment: str, server: Peer) -> None:
    talk = await server.connected()
    if moment != "connected":
        if moment == "head":
            await talk.read_head()
        else:
            await talk.upgrade()
    if moment in ("asked", "half", "answered", "nonsense"):
        asked = await talk.hear()
        if moment == "half":
            talk.write(b"\x81\x7e\x01\x00{")
        elif moment == "answered":
            # The client may take the answer and the end of the connection in one go, or not.
            talk.answer(asked, {"sessionId": "s1", "environmentInfo": info()})
        elif moment == "nonsense":
            talk.answer(asked, {"nothing": 1})
            await talk.left()
    talk.abort()


@pytest.mark.parametrize("status", [b"401 Unauthorized", b"403 Forbidden"])
async def test_a_server_that_will_not_have_us_is_not_asked_again(status: bytes) -> None:
    """A wrong token stays wrong; asking again would only fill its log."""
    async with peer() as server, linked(server) as (link, talk, notes):
        talk.abort()
        refusing = await server.connected()
        await refusing.read_head()
        refusing.write(b"HTTP/1.1 %b\r\n\r\n" % status)

        await notes.until("over")
        assert server.count == 2
        with pytest.raises(LinkLost):
            await link.call(raw("x"), None, bytes)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 503 Busy\r\n\r\nlater", b"SSH-2.0\r\n\r\n"])
async def test_a_server_that_is_not_there_yet_is_asked_again(answer: bytes) -> None:
    """What is in front of it may answer while it starts."""
    async with peer() as server, linked(server) as (_, talk, notes):
        talk.abort()
        refusing = await server.connected()
        await refusing.read_head()
        refusing.write(answer)
        await server.welcome()

        await notes.until("resumed")


# After a break.


async def test_calls_go_out_again_in_their_order() -> None:
    """What was sent and not answered, and what was asked for meanwhile."""
    async with peer() as server, linked(server) as (link, talk, notes):
        calls = [background(link.call(raw(name), None, bytes)) for name in ("one", "two")]
        await talk.hear("one")
        await talk.hear("two")
        talk.abort()
        again = await server.accept()
        calls += [background(link.call(raw(name), None, bytes)) for name in ("three", "four")]
        await again.shake_hands()

        for name in ("one", "two", "three", "four"):
            again.answer(await again.hear(name), name)
        assert [await call for call in calls] == [b'"one"', b'"two"', b'"three"', b'"four"']
        assert notes.told == [("resumed",)]
        assert notes.breaks == 1


async def test_what_must_not_be_repeated_is_not() -> None:
    async with peer() as server, linked(server) as (link, talk, _):
        calling = background(link.call(raw("process/signal"), None, bytes, repeat=False))
        await talk.hear("process/signal")
        talk.abort()

        with pytest.raises(OutcomeUnknown) as caught:
            await calling
        assert caught.value.what == "process/signal"
        again = await server.welcome()
        other = background(link.call(raw("y"), None, bytes))
        again.answer(await again.hear("y"), 1)
        await other


async def test_what_must_not_be_repeated_is_sent_if_it_was_not() -> None:
    async with peer() as server, linked(server) as (link, talk, _):
        talk.abort()
        again = await server.accept()
        calling = background(link.call(raw("x"), None, bytes, repeat=False))
        await again.shake_hands()
        again.answer(await again.hear("x"), 1)

        assert await calling == b"1"


async def test_an_answer_that_came_before_the_break_counts() -> None:
    """Both are read at once: the answer first."""
    async with peer() as server, linked(server) as (link, talk, _):
        calling = background(link.call(raw("x"), None, bytes, repeat=False))
        talk.answer(await talk.hear("x"), 7)
        talk.close()

        assert await calling == b"7"
        await server.welcome()


async def test_a_session_is_taken_over_if_the_server_can() -> None:
    async with peer() as server, linked(server, *TAKE_OVER) as (_, talk, notes):
        talk.abort()
        again = await server.accept()
        asked = await again.shake_hands()

        assert asked["method"] == "session/takeOver"
        assert asked["params"] == {"sessionId": "s1", "clientName": "test", "holdfast": 1}
        await notes.until("resumed")


async def test_a_session_that_is_still_taken_is_asked_for_again() -> None:
    """The server has not noticed yet that the old connection is gone."""
    async with peer() as server, linked(server) as (_, talk, notes):
        talk.abort()
        for _ in range(2):
            busy = await server.accept()
            text = "session s1 is already attached to another connection"
            busy.refuse(await busy.hear("initialize"), -32010, text)
            await busy.left()
        await server.welcome()

        await notes.until("resumed")


async def test_a_session_that_is_gone_is_forgotten_and_another_one_opened() -> None:
    async with peer() as server, linked(server) as (link, talk, notes):
        calling = background(link.call(raw("x"), None, bytes))
        await talk.hear("x")
        talk.abort()
        again = await server.accept()
        again.refuse(await again.hear("initialize"), -32600, "unknown session id s1")
        asked = await again.shake_hands("s2")

        assert "resumeSessionId" not in asked["params"]
        again.answer(await again.hear("x"), 1)
        assert await calling == b"1"
        assert notes.told == [("forgotten", f"{link.address} no longer knows the session")]
        again.abort()
        assert (await (await server.accept()).shake_hands("s2"))["params"]["resumeSessionId"] == "s2"


async def test_a_server_that_refuses_for_another_reason_is_the_end() -> None:
    async with peer() as server, linked(server) as (link, talk, notes):
        calling = background(link.call(raw("x"), None, bytes))
        await talk.hear("x")
        talk.abort()
        again = await server.accept()
        again.refuse(await again.hear("initialize"), -32601, "what?")

        with pytest.raises(LinkLost, match="refuses us"):
            await calling
        await notes.until("over")


async def test_without_a_connection_for_long_a_link_gives_up() -> None:
    async with peer() as server, linked(server, reconnect_timeout=0.2) as (link, talk, notes):
        calling = background(link.call(raw("x"), None, bytes))
        await talk.hear("x")
        talk.abort()

        # Whoever connects is never spoken to.
        with pytest.raises(LinkLost, match="does not answer"):
            await calling
        await notes.until("over")
        with pytest.raises(LinkLost):
            await link.call(raw("y"), None, bytes)
        failed: list[object] = []
        assert link.ask(raw("y"), None, failed.append) == 0
        await eventually(lambda: failed)
        assert isinstance(failed[0], LinkLost)


async def test_a_server_that_is_gone_is_looked_for_until_the_time_is_over() -> None:
    async with peer() as server:
        notes = Notes()
        link = make_link(server.url, notes, reconnect_timeout=0.2)
        opening = background(link.open())
        talk = await server.welcome()
        await opening
    # The listener is gone, too.
    del talk
    assert "cannot reach" in str((await notes.until("over"))[1])
    await link.aclose()


# Silence and noise.


async def test_a_silent_server_is_asked_for_a_sign_of_life() -> None:
    async with peer() as server, linked(server, heartbeat=0.05) as (link, talk, _):
        await talk.pinged()
        talk.pings = 0
        await talk.pinged()

        assert link.connections == 1


async def test_a_server_that_gives_no_sign_of_life_is_taken_for_gone() -> None:
    async with peer() as server, linked(server, heartbeat=0.5) as (link, talk, notes):
        talk.answers_pings = False
        await talk.pinged()
        again = await server.accept()
        await again.shake_hands()

        await notes.until("resumed")
        assert link.connections >= 2


@pytest.mark.parametrize(
    "noise",
    [
        b"garbage",
        b"[]",
        b'{"id":1.5}',
        b'{"id":-1,"error":{"code":-32600,"message":"what?"}}',
        b'{"method":"x","params":[1]}',
    ],
)
async def test_noise_ends_a_connection_and_not_the_link(noise: bytes) -> None:
    """What was lost in the noise is found by resuming."""
    async with peer() as server, linked(server) as (link, talk, notes):
        calling = background(link.call(raw("x"), None, bytes))
        await talk.hear("x")
        talk.say(noise)
        again = await server.welcome()
        again.answer(await again.hear("x"), 1)

        assert await calling == b"1"
        await notes.until("resumed")


async def test_answers_that_nobody_waits_for_are_passed_over() -> None:
    async with peer() as server, linked(server) as (link, talk, _):
        talk.send({"id": 999, "result": 1})
        talk.send({"id": "text", "result": 1})
        talk.send({"id": None, "result": 1})
        talk.send({"id": 7, "method": "a/request", "params": {}})
        calling = background(link.call(raw("x"), None, bytes))
        asked = await talk.hear("x")
        talk.answer(asked, 1)
        talk.answer(asked, 2)

        assert await calling == b"1"
        assert link.connections == 1


async def test_notifications_and_output_are_passed_on_in_order() -> None:
    async with peer() as server, linked(server) as (_, talk, notes):
        talk.say(b"OUTPUT 1")
        talk.tell("one", a=1)
        talk.say(b"OUTPUT 2")
        talk.tell("last")
        await eventually(lambda: len(notes.told) == 4)

        assert notes.told == [
            ("output", b"OUTPUT 1"),
            ("notified", "one", {"a": 1}),
            ("output", b"OUTPUT 2"),
            ("notified", "last", {}),
        ]
