"""Waiting for the next event."""

from __future__ import annotations

import asyncio

from holdfast.engine.watches import Waiting

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

    assert waiting._events == {}


async def test_who_is_cancelled_waits_no_longer() -> None:
    loop = asyncio.get_running_loop()
    waiting = Waiting(loop)
    task = loop.create_task(waiting.next_event(loop.time() + FAR))
    await asyncio.sleep(0)

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    waiting.wake()

    assert task.cancelled()
    assert waiting._events == {}


async def test_output_does_not_wake_those_who_wait_for_an_end() -> None:
    """Thousands may wait for the end of a process that talks without end."""
    loop = asyncio.get_running_loop()
    waiting = Waiting(loop)
    looks: list[bool] = []

    def is_so() -> bool:
        looks.append(len(looks) == 1)
        return looks[-1]

    task = loop.create_task(waiting.until(is_so, loop.time() + FAR))
    await asyncio.sleep(0)
    for _ in range(3):
        other = loop.create_task(waiting.next_event(loop.time() + FAR))
        await asyncio.sleep(0)
        waiting.wake(by_output=True)
        await other
    assert looks == [False]

    waiting.wake()
    await task

    assert looks == [False, True]


async def test_what_is_so_already_is_not_waited_for_and_a_deadline_ends_the_wait() -> None:
    loop = asyncio.get_running_loop()
    waiting = Waiting(loop)

    await waiting.until(lambda: True, loop.time() + FAR)
    await waiting.until(lambda: False, loop.time() - 1)
