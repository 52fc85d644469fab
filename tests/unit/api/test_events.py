"""Events as an iterator: what is kept for whoever is behind, and what a gap says."""

from __future__ import annotations

import asyncio
import time

import pytest

from holdfast import LinkLost, Listing
from holdfast.api import events as module
from holdfast.api.events import ProcessEvents
from holdfast.errors import Forbidden, Unsupported
from holdfast.model import ProcessState
from holdfast.process_events import EventKind, ProcessEvent
from tests.fakes.listening import ToldPlace, started

LISTING = Listing("web", 1, ["x"], "/", False, time.time(), ProcessState.RUNNING, None, None, 1, 0)


def gap(seq: int, lost: int | None) -> ProcessEvent:
    return ProcessEvent(seq, EventKind.GAP, 1.0, lost=lost)


async def opened() -> tuple[ToldPlace, ProcessEvents]:
    told = ToldPlace()
    return told, await ProcessEvents(lambda: told.place).open()


async def test_events_come_in_their_order() -> None:
    told, events = await opened()

    told.tell(started(1), started(2))

    assert [await anext(events), await anext(events)] == [started(1), started(2)]


async def test_a_gap_says_what_there_is_now() -> None:
    """What was missed need not be guessed."""
    told, events = await opened()
    told.lists = [[LISTING]]

    told.tell(started(1), gap(4, None), started(5))
    found = [await anext(events) for _ in range(3)]

    assert [event.seq for event in found] == [1, 4, 5]
    assert (found[1].lost, found[1].processes) == (None, [LISTING])
    assert told.listed == 1


@pytest.mark.parametrize("error", [Forbidden("method", "process/list"), Unsupported("a list of processes")])
async def test_a_gap_is_told_though_nobody_may_ask_for_a_list(error: Exception) -> None:
    told, events = await opened()
    told.lists = [error]

    told.tell(gap(4, 2))

    assert (await anext(events)).processes is None


async def test_a_gap_stays_at_its_place_while_nobody_has_its_list() -> None:
    """Whoever waits for events with a timeout must not lose it."""
    told, events = await opened()
    told.lists = [asyncio.Event(), LinkLost("gone"), []]
    told.tell(gap(4, 2))

    with pytest.raises(TimeoutError):
        await events.next(timeout=0.001)
    with pytest.raises(LinkLost):
        await events.next()

    assert (await events.next()).processes == []


async def test_whoever_does_not_read_is_told_how_much_was_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded, however much happens."""
    monkeypatch.setattr(module, "_MOST", 2)
    told, events = await opened()
    told.lists = [[], []]

    told.tell(*map(started, range(1, 6)))
    found = [await anext(events) for _ in range(3)]
    told.tell(started(6))
    found.append(await anext(events))

    assert [(event.seq, event.kind, event.lost) for event in found] == [
        (1, EventKind.STARTED, None),
        (2, EventKind.STARTED, None),
        (5, EventKind.GAP, 3),
        (6, EventKind.STARTED, None),
    ]


@pytest.mark.parametrize(("lost", "expected"), [(4, 6), (None, None)])
async def test_a_gap_among_what_was_missed_makes_it_larger(
    monkeypatch: pytest.MonkeyPatch, lost: int | None, expected: int | None
) -> None:
    monkeypatch.setattr(module, "_MOST", 1)
    told, events = await opened()
    told.lists = [[]]

    told.tell(started(1), started(2), gap(6, lost), started(7))
    await anext(events)
    missed = await anext(events)

    assert (missed.seq, missed.lost) == (7, expected)


async def test_a_wait_that_is_cancelled_loses_nothing() -> None:
    told, events = await opened()
    waiting = asyncio.ensure_future(events.next())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])

    told.tell(started(1))

    assert await events.next(timeout=1) == started(1)


async def test_an_error_comes_behind_what_was_told_before_it() -> None:
    told, events = await opened()
    told.tell(started(1))

    events.over(LinkLost("gone"))
    events.over(None)

    assert await anext(events) == started(1)
    for _ in range(2):
        with pytest.raises(LinkLost):
            await anext(events)


async def test_closing_ends_the_subscription_and_a_wait_of_another_task() -> None:
    told, events = await opened()
    waiting = asyncio.ensure_future(anext(events, None))
    await asyncio.sleep(0)

    async with events:
        assert len(told.sinks) == 1

    assert await waiting is None
    assert told.sinks == []
