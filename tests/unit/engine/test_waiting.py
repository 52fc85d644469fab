"""Waiting for the next event."""

from __future__ import annotations

import asyncio

from holdfast.engine.waiting import Waiting

FAR = 3600.0


async def test_everybody_who_waits_is_woken_once() -> None:
    loop = asyncio.get_running_loop()
    waiting = Waiting(loop)
    tasks = [loop.create_task(waiting.next_event(loop.time() + FAR)) for _ in range(3)]
    await asyncio.sleep(0)

    waiting.wake()
    waiting.wake()

    await asyncio.gather(*tasks)


async def test_a_deadline_ends_the_wait_and_leaves_nothing() -> None:
    loop = asyncio.get_running_loop()
    waiting = Waiting(loop)

    await waiting.next_event(loop.time() - 1)

    assert waiting._events == []


async def test_who_is_cancelled_waits_no_longer() -> None:
    loop = asyncio.get_running_loop()
    waiting = Waiting(loop)
    task = loop.create_task(waiting.next_event(loop.time() + FAR))
    await asyncio.sleep(0)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    waiting.wake()

    assert task.cancelled()
    assert waiting._events == []
