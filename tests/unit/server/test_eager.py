"""Coroutines that run as far as they go without waiting."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.server.eager import Rest, run_ahead


async def at_once(value: int) -> int:
    return value


async def failing() -> int:
    raise KeyError("at once")


def test_what_does_not_wait_is_done_at_once() -> None:
    """Without a task, and so without a turn of the loop."""
    assert run_ahead(at_once(5)) == 5


def test_what_fails_without_waiting_raises_at_once() -> None:
    with pytest.raises(KeyError):
        run_ahead(failing())


async def test_what_waits_goes_on_where_it_stopped() -> None:
    gate: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    seen: list[str] = []

    async def work() -> int:
        seen.append("begun")
        value = await gate
        return value + await at_once(1)

    rest = run_ahead(work())
    assert isinstance(rest, Rest)
    seen.append("left")
    gate.set_result(41)

    assert await rest == 42
    assert seen == ["begun", "left"]


async def wait_twice(first: asyncio.Event, second: asyncio.Event, seen: list[str]) -> str:
    try:
        await first.wait()
        seen.append("first")
        await second.wait()
    finally:
        seen.append("cleaned up")
    return "done"


async def test_it_may_wait_any_number_of_times() -> None:
    first, second, seen = asyncio.Event(), asyncio.Event(), list[str]()
    rest = run_ahead(wait_twice(first, second, seen))
    assert isinstance(rest, Rest)

    async def finish() -> str:
        return await rest

    task = asyncio.create_task(finish())
    first.set()
    second.set()

    assert await task == "done"
    assert seen == ["first", "cleaned up"]


async def test_a_cancelled_rest_cleans_up() -> None:
    seen: list[str] = []
    rest = run_ahead(wait_twice(asyncio.Event(), asyncio.Event(), seen))
    assert isinstance(rest, Rest)

    async def finish() -> str:
        return await rest

    begun = asyncio.Event()

    async def run() -> str:
        begun.set()
        return await finish()

    task = asyncio.create_task(run())
    await begun.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cleaned up"]


async def test_a_failure_after_a_wait_reaches_who_awaits_the_rest() -> None:
    gate: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def work() -> int:
        await gate
        raise KeyError("later")

    rest = run_ahead(work())
    assert isinstance(rest, Rest)
    gate.set_result(1)

    with pytest.raises(KeyError):
        await rest


async def test_a_coroutine_may_answer_a_failure_and_go_on() -> None:
    gate: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def work() -> str:
        try:
            await gate
        except KeyError:
            return "caught"
        return "not raised"

    rest = run_ahead(work())
    assert isinstance(rest, Rest)
    gate.set_exception(KeyError())

    assert await rest == "caught"


async def test_a_rest_that_is_dropped_while_it_waits_cleans_up() -> None:
    """The loop may be gone before the answer came."""
    seen: list[str] = []
    rest = run_ahead(wait_twice(asyncio.Event(), asyncio.Event(), seen))
    assert isinstance(rest, Rest)
    steps = rest.__await__()
    next(steps)

    steps.close()

    assert seen == ["cleaned up"]


async def test_a_task_that_is_cancelled_before_its_first_step_cleans_up() -> None:
    """What was begun before there was a task is not left behind."""
    seen: list[str] = []
    rest = run_ahead(wait_twice(asyncio.Event(), asyncio.Event(), seen))
    assert isinstance(rest, Rest)

    task = asyncio.create_task(rest)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cleaned up"]


async def test_a_rest_can_be_the_coroutine_of_a_task() -> None:
    first, second, seen = asyncio.Event(), asyncio.Event(), list[str]()
    rest = run_ahead(wait_twice(first, second, seen))
    assert isinstance(rest, Rest)

    task = asyncio.create_task(rest)
    first.set()
    second.set()

    assert await task == "done"
    assert seen == ["first", "cleaned up"]


async def test_a_rest_that_no_task_has_taken_can_be_closed() -> None:
    seen: list[str] = []
    rest = run_ahead(wait_twice(asyncio.Event(), asyncio.Event(), seen))
    assert isinstance(rest, Rest)

    rest.close()

    assert seen == ["cleaned up"]
