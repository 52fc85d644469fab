"""Waiting for the next event."""

from __future__ import annotations

import asyncio

from holdfast.engine.watches import Waiting
from tests.unit.server.test_connection import turn

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
        waiting.wake_by_output(1)
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


async def test_output_wakes_only_those_who_did_not_know_it() -> None:
    """One client may have thousands of polls for output that is far away, and each look takes its time."""
    loop = asyncio.get_running_loop()
    waiting = Waiting(loop)
    woken: list[int] = []

    async def wait(after: int) -> None:
        await waiting.next_event(loop.time() + FAR, after)
        woken.append(after)

    tasks = [loop.create_task(wait(after)) for after in (1 << 40, 2, 0, 1, 0)]
    await asyncio.sleep(0)
    seen: list[list[int]] = []
    for seq in (1, 2, 3, 4):
        waiting.wake_by_output(seq)
        await turn()
        seen.append(sorted(woken))
        woken.clear()
    waiting.wake()
    await asyncio.gather(*tasks)

    assert seen == [[0, 0], [1], [2], []]
    assert woken == [1 << 40]


async def test_those_who_gave_up_leave_no_numbers_behind() -> None:
    """A client may poll for a number of its own each time."""
    loop = asyncio.get_running_loop()
    waiting = Waiting(loop)

    for after in range(10_000):
        await waiting.next_event(loop.time() - 1, after)

    assert waiting._events == {}
    assert len(waiting._next) < 100


async def test_who_waits_for_a_number_that_others_have_given_up_is_woken() -> None:
    """Whatever was tidied up meanwhile."""
    loop = asyncio.get_running_loop()
    waiting = Waiting(loop)
    first = loop.create_task(waiting.next_event(loop.time() + FAR, 5))
    await asyncio.sleep(0)
    for after in (5, *range(1000), 5):
        await waiting.next_event(loop.time() - 1, after)
    second = loop.create_task(waiting.next_event(loop.time() + FAR, 5))
    third = loop.create_task(waiting.next_event(loop.time() + FAR, 4))
    await asyncio.sleep(0)

    waiting.wake_by_output(5)
    await third
    early = first.done() or second.done()
    waiting.wake_by_output(6)
    await asyncio.gather(first, second)

    assert not early
