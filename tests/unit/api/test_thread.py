"""Calls from threads into a loop."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from holdfast.api.thread import LoopThread
from holdfast.errors import OutOfTurn


async def value(result: int) -> int:
    await asyncio.sleep(0)
    return result


async def fail() -> None:
    raise KeyError("inside")


def test_a_call_gives_the_result_or_the_error() -> None:
    thread = LoopThread()

    assert thread.call(value(3)) == 3
    with pytest.raises(KeyError, match="inside"):
        thread.call(fail())
    thread.stop()


def test_many_threads_call_at_once() -> None:
    thread = LoopThread()
    results: list[int] = []
    callers = [
        threading.Thread(target=lambda number=number: results.append(thread.call(value(number))))
        for number in range(20)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()

    assert sorted(results) == list(range(20))
    thread.stop()


async def test_a_call_is_made_where_a_loop_runs_already() -> None:
    """As in a notebook."""
    thread = LoopThread()

    assert thread.call(value(4)) == 4
    thread.stop()


def test_an_interrupt_cancels_the_call_and_waits_for_it() -> None:
    thread = LoopThread()
    seen: list[str] = []

    async def forever() -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            seen.append("cleaned up")

    with pytest.raises(KeyboardInterrupt):
        thread.call(forever())

    assert seen == ["cleaned up"]
    thread.stop()


def test_who_waits_when_it_is_stopped_is_told() -> None:
    thread = LoopThread()
    waits = threading.Event()
    errors: list[Exception] = []

    async def forever() -> None:
        waits.set()
        await asyncio.Event().wait()

    def call() -> None:
        try:
            thread.call(forever())
        except OutOfTurn as error:
            errors.append(error)

    caller = threading.Thread(target=call)
    caller.start()
    waits.wait()
    thread.stop()
    thread.stop()
    caller.join()

    assert [str(error) for error in errors] == ["the host was closed"]
    with pytest.raises(OutOfTurn, match="closed"):
        thread.call(value(1))


def test_the_thread_does_not_wait_for_itself() -> None:
    thread = LoopThread()

    async def inside() -> None:
        thread.call(value(1))

    with pytest.raises(OutOfTurn, match="blocking call"):
        thread.call(inside())
    thread.stop()
