"""What happens to all processes of a host: near and far alike."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from holdfast import PIPE, EventKind, Host, Kind, OutOfTurn, ProcessEvent, Size
from holdfast.api.events import ProcessEvents


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


def unique() -> str:
    return f"e-{uuid.uuid4()}"


async def until(events: ProcessEvents, name: str, *kinds: EventKind) -> list[ProcessEvent]:
    """The events of one process, up to and including the last of ``kinds``, one after the other."""
    wanted, found = list(kinds), []
    async for event in events:  # pragma: no branch
        if event.name == name:
            found.append(event)
            if event.kind is wanted[0]:
                wanted.pop(0)
            if not wanted:
                break
    return found


async def until_nothing(events: ProcessEvents) -> None:
    """Read what others do, if anybody does; there is nothing to wait for in the end."""
    while True:
        await events.next(timeout=0)


async def test_a_process_is_told_from_its_start_to_its_end(host: Host) -> None:
    """A dashboard need not ask again and again."""
    name = unique()
    async with host.events() as events:
        handle = await host.start(sh("exit 3"), name=name)
        started, exited = await until(events, name, EventKind.EXITED)

    assert started == ProcessEvent(
        started.seq,
        EventKind.STARTED,
        started.time,
        handle.identifier,
        name,
        handle.pid,
        argv=sh("exit 3"),
        terminal=False,
        kept=False,
    )
    assert (exited.kind, exited.exit_code) == (EventKind.EXITED, 3)
    assert exited.outcome == await handle.wait()
    assert exited.usage == handle.usage
    assert (exited.identifier, exited.pid) == (handle.identifier, handle.pid)
    assert exited.seq > started.seq
    assert exited.time >= started.time


async def test_how_a_process_was_ended_is_told(host: Host) -> None:
    name = unique()
    async with host.events() as events:
        await host.start(["sleep", "1000"], name=name, timeout=0.01, terminal=Size(), keep=True)
        started, *_, exited = await until(events, name, EventKind.EXITED)

    assert (started.terminal, started.kept) == (True, True)
    assert exited.outcome is not None
    assert exited.outcome.kind is Kind.TIMEOUT


async def test_whoever_waits_for_input_is_told_each_time_that_it_asks(host: Host) -> None:
    """An agent that answers questions is told of the second one, too."""
    name = unique()
    async with host.events() as events:
        handle = await host.start(
            sh("printf 1?; read a; printf 2?; read b; sleep 1000"), name=name, stdin=PIPE
        )
        assert handle.stdin is not None
        await until(events, name, EventKind.WAITING)
        handle.stdin.write(b"first\n")
        await until(events, name, EventKind.WAITING)
        handle.stdin.write(b"second\n")
        *_, last = await until(events, name, EventKind.RESUMED)
        await handle.kill()

    assert last.kind is EventKind.RESUMED


async def test_a_process_that_was_there_before_is_told_to_wait(host: Host) -> None:
    """Whoever listens late has not missed the question."""
    name = unique()
    handle = await host.start(["cat"], name=name, stdin=PIPE)
    async with host.events() as events:
        first, *_ = await until(events, name, EventKind.WAITING)
        async with host.events() as others:
            again, *_ = await until(others, name, EventKind.WAITING)
    await handle.kill()

    assert (first.kind, again.kind) == (EventKind.WAITING, EventKind.WAITING)


async def test_each_listener_is_told_everything(host: Host) -> None:
    name = unique()
    async with host.events() as first, host.events() as second:
        await host.run(["true"], name=name)
        both = [await until(events, name, EventKind.EXITED) for events in (first, second)]

    assert both[0] == both[1]
    assert [event.kind for event in both[0]] == [EventKind.STARTED, EventKind.EXITED]


async def test_a_loop_over_events_begins_to_listen_by_itself(host: Host) -> None:
    name = unique()
    events = host.events()
    following = asyncio.ensure_future(until(events, name, EventKind.EXITED))
    while not following.done():
        await host.run(["true"], name=name)
    await events.aclose()

    assert (await following)[-1].kind is EventKind.EXITED


async def test_nothing_is_told_of_what_happens_after_the_end(host: Host) -> None:
    async with host.events() as events:
        pass
    await events.aclose()
    await host.run(["true"])

    with pytest.raises(StopAsyncIteration):
        await anext(events)
    with pytest.raises(OutOfTurn):
        await events.open()


async def test_a_host_that_is_closed_ends_the_iteration(host: Host) -> None:
    name = unique()
    async with host.events() as events:
        await host.start(["sleep", "1000"], name=name)
        await host.aclose()
        seen = [event.kind async for event in events if event.name == name]

    assert seen[:1] == [EventKind.STARTED]
    with pytest.raises(StopAsyncIteration):
        await events.next()


async def test_a_wait_with_a_timeout_loses_nothing(host: Host) -> None:
    name = unique()
    async with host.events() as events:
        with pytest.raises(TimeoutError):
            await until_nothing(events)
        await host.run(["true"], name=name)

        assert [each.kind for each in await until(events, name, EventKind.EXITED)] == [
            EventKind.STARTED,
            EventKind.EXITED,
        ]
