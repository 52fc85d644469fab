"""Events of all processes of a principal, from a server that breaks when a test wants it."""

from __future__ import annotations

import pytest

from holdfast.api.events import ProcessEvents
from holdfast.client.remote import RemoteBackend
from holdfast.errors import HoldfastError, LinkLost, Unsupported
from holdfast.process_events import EventKind
from tests.fakes.listening import Listener
from tests.fakes.peer import FEATURES, Message, Talk, peer
from tests.fakes.remote import background, far

EVENTS = (*FEATURES, "events")


def notice(seq: int, kind: str = "started", **more: object) -> Message:
    return {"seq": seq, "kind": kind, "atMs": 1500, "processId": f"p{seq}", "pid": 1, **more}


async def subscribed(backend: RemoteBackend, talk: Talk, next_seq: int = 1) -> Listener:
    listener = Listener()
    asking = background(backend.events.subscribe(listener))
    talk.answer(await talk.hear("events/subscribe"), {"nextSeq": next_seq})
    await asking
    return listener


async def test_a_server_that_tells_no_events_is_not_asked() -> None:
    async with peer() as server, far(server) as (backend, _):
        with pytest.raises(Unsupported, match="events of processes"):
            await backend.events.subscribe(Listener())


async def test_events_are_passed_on_and_those_of_a_newer_server_passed_over() -> None:
    async with peer() as server, far(server, *EVENTS) as (backend, talk):
        listener = await subscribed(backend, talk)

        talk.tell("events/event", **notice(1, argv=["x"], tty=True, kept=True))
        talk.tell("events/event", **notice(2, "frozen"))
        talk.tell("events/event", **notice(3, "waiting"))
        await listener.until(2)

    assert listener.kinds[:2] == [(1, EventKind.STARTED, "p1"), (3, EventKind.WAITING, "p3")]
    assert listener.events[0].time == 1.5


async def test_a_refusal_is_an_error_and_leaves_nothing() -> None:
    async with peer() as server, far(server, *EVENTS) as (backend, talk):
        listener = Listener()
        asking = background(backend.events.subscribe(listener))
        talk.refuse(await talk.hear("events/subscribe"), -32600, "no")
        with pytest.raises(HoldfastError):
            await asking
        talk.answer(await talk.hear("events/unsubscribe"), {})

        talk.abort()
        again = await server.welcome("s1", *EVENTS)

        again.answer(await _list(backend, again), {"processes": []})
    assert listener.events == []


async def _list(backend: RemoteBackend, talk: Talk) -> Message:
    """What the client asks next, if that is for a list."""
    background(backend.list())
    return await talk.hear("process/list")


async def test_the_last_one_to_leave_ends_the_subscription() -> None:
    async with peer() as server, far(server, *EVENTS) as (backend, talk):
        first, second = await subscribed(backend, talk), await subscribed(backend, talk)

        backend.events.unsubscribe(first)
        backend.events.unsubscribe(first)
        talk.tell("events/event", **notice(1))
        await second.until(1)
        backend.events.unsubscribe(second)
        await talk.hear("events/unsubscribe")

    assert (first.events, len(second.events)) == ([], 1)


@pytest.mark.parametrize("session", ["s1", "s2"])
async def test_a_lost_connection_is_a_gap_and_the_list_is_asked_for_behind_the_subscription(
    session: str,
) -> None:
    """What happens after the list was made is told, so nothing falls between the two."""
    async with peer() as server, far(server, *EVENTS) as (backend, talk):
        events = ProcessEvents(lambda: backend)
        opening = background(events.open())
        talk.answer(await talk.hear("events/subscribe"), {"nextSeq": 7})
        await opening
        talk.tell("events/event", **notice(7))
        assert (await events.next()).seq == 7
        waiting = background(events.next())

        talk.abort()
        again = await server.accept()
        if session == "s2":
            again.refuse(await again.hear("initialize"), -32600, "unknown session id s1")
        await again.shake_hands(session, *EVENTS)
        again.answer(await again.hear("events/subscribe"), {"nextSeq": 20})
        again.answer(await again.hear("process/list"), {"processes": []})
        again.tell("events/event", **notice(20))
        gap, later = await waiting, await events.next()

    assert (gap.kind, gap.seq, gap.lost, gap.processes) == (EventKind.GAP, 7, None, [])
    assert later.seq == 20


async def test_a_new_server_that_tells_no_events_ends_them() -> None:
    async with peer() as server, far(server, *EVENTS) as (backend, talk):
        listener = await subscribed(backend, talk)

        talk.abort()
        again = await server.welcome("s1", *FEATURES)
        again.refuse(await again.hear("events/subscribe"), -32601, "unknown method")
        await listener.until(2)

    assert [event.kind for event in listener.events] == [EventKind.GAP]
    assert isinstance(listener.ends[0], HoldfastError)


async def test_a_link_that_is_lost_for_good_ends_them_with_an_error() -> None:
    async with peer() as server, far(server, *EVENTS, reconnect_timeout=0.0) as (backend, talk):
        listener = await subscribed(backend, talk)

        await server.end()
        talk.abort()
        server.url = ""
        again = await server.connected()
        again.abort()
        await listener.until(99)

    assert isinstance(listener.ends[0], LinkLost)
