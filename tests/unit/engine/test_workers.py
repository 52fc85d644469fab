"""Threads for calls that may take as long as a disk takes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from functools import partial

import pytest

from holdfast.engine.workers import Workers
from tests.fakes.process import calls_over, eventually


@pytest.fixture
async def workers() -> Iterator[Workers]:  # type: ignore[misc]  # A generator is what a fixture is.
    made = Workers(2, asyncio.get_running_loop(), "test")
    yield made
    made.close()
    await calls_over(made)


class Opening:
    """A call that goes on until the test lets it end.  One that has not begun is not made for nobody."""

    def __init__(self) -> None:
        self.begun, self.gate = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        self.gate.wait()
        return "opened"


async def test_a_call_runs_in_another_thread(workers: Workers) -> None:
    assert await workers.run(threading.get_ident) != threading.get_ident()


async def test_what_a_call_raises_is_raised(workers: Workers) -> None:
    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await workers.run(fail)


async def test_threads_are_made_when_needed_and_not_more_than_allowed(workers: Workers) -> None:
    gate = threading.Event()
    names = {await workers.run(lambda: threading.current_thread().name) for _ in range(5)}
    stuck = [asyncio.ensure_future(workers.run(gate.wait)) for _ in range(2)]
    queued = asyncio.ensure_future(workers.run(lambda: "after"))

    done, _ = await asyncio.wait([queued], timeout=0.02)
    gate.set()

    assert names == {"test-1"}
    assert not done
    assert await queued == "after"
    await asyncio.gather(*stuck)


async def test_one_that_hangs_does_not_stop_the_others(workers: Workers) -> None:
    gate = threading.Event()
    stuck = asyncio.ensure_future(workers.run(gate.wait))

    assert await workers.run(lambda: "done") == "done"
    gate.set()
    await stuck


async def test_the_result_of_a_cancelled_call_is_undone(workers: Workers) -> None:
    work, undone, over = Opening(), list[str](), list[bool]()
    task = asyncio.ensure_future(workers.run(work, undo=undone.append, over=lambda: over.append(True)))
    await eventually(work.begun.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert over == []
    work.gate.set()

    await eventually(lambda: bool(over))
    assert undone == ["opened"]


async def test_a_result_that_the_cancelled_caller_has_not_seen_is_undone(workers: Workers) -> None:
    """The call may be over when its caller is cancelled, and the caller not have had its turn since."""
    undone, over = list[str](), list[bool]()
    task = asyncio.ensure_future(
        workers.run(lambda: "opened", undo=undone.append, over=lambda: over.append(task.cancel()))
    )

    with pytest.raises(asyncio.CancelledError):
        await task

    assert (undone, over) == (["opened"], [True])


async def test_the_result_for_a_caller_that_was_closed_is_undone(workers: Workers) -> None:
    """Nobody cancels a coroutine that no task has taken yet."""
    work, undone = Opening(), list[str]()
    run = workers.run(work, undo=undone.append)
    run.send(None)
    await eventually(work.begun.is_set)
    run.close()
    work.gate.set()

    await eventually(lambda: undone == ["opened"])


async def test_a_call_that_nobody_waits_for_any_more_is_not_begun(workers: Workers) -> None:
    """What hangs must not collect the calls of everybody who has come and gone meanwhile."""
    gate, begun, over = threading.Event(), list[str](), list[str]()
    stuck = [asyncio.ensure_future(workers.run(gate.wait)) for _ in range(2)]
    await asyncio.sleep(0)
    queued = asyncio.ensure_future(
        workers.run(lambda: begun.append("queued"), over=lambda: over.append("over"))
    )
    await asyncio.sleep(0)

    queued.cancel()
    await asyncio.wait([queued])
    busy = workers.busy
    gate.set()
    await asyncio.gather(*stuck)
    await workers.run(lambda: begun.append("later"))

    assert (busy, over, begun) == (2, ["over"], ["later"])


async def test_what_nobody_waits_for_is_done(workers: Workers) -> None:
    done = threading.Event()

    workers.post(done.set)

    await eventually(done.is_set)


async def test_what_is_asked_for_after_the_end_is_done() -> None:
    """A file that is in use at the end is closed when the call is over, and that is after the end."""
    workers = Workers(1, asyncio.get_running_loop(), "test")
    gate, done = threading.Event(), threading.Event()
    stuck = asyncio.ensure_future(workers.run(gate.wait, over=lambda: workers.post(done.set)))
    await asyncio.sleep(0)

    workers.close()
    gate.set()
    await stuck

    await eventually(done.is_set)
    await eventually(lambda: not [each for each in threading.enumerate() if each.name.startswith("test-")])
    await calls_over(workers)


def test_a_call_may_end_after_the_loop() -> None:
    """At the end of the server nobody waits for a disk."""
    gate = threading.Event()

    async def leave() -> None:
        workers = Workers(1, asyncio.get_running_loop(), "late")
        workers.post(gate.wait)  # type: ignore[arg-type]
        workers.close()

    asyncio.run(leave())
    thread = next(each for each in threading.enumerate() if each.name == "late-1")
    assert thread.daemon
    gate.set()
    thread.join(10)
    assert not thread.is_alive()


def test_what_comes_after_the_loop_is_undone() -> None:
    """A program may go on without the loop: what was opened for it is closed."""
    work, undone, over = Opening(), threading.Event(), threading.Event()

    async def leave() -> None:
        workers = Workers(1, asyncio.get_running_loop(), "late")
        task = asyncio.ensure_future(workers.run(work, undo=lambda result: undone.set(), over=over.set))
        await eventually(work.begun.is_set)
        task.cancel()
        await asyncio.wait([task])
        workers.close()

    asyncio.run(leave())
    work.gate.set()

    assert undone.wait(10)
    assert over.wait(10)


async def test_without_another_thread_those_that_there_are_do_it(
    workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may have no more; a later call may find that it has."""

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    gate = threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        for _ in range(3):
            with pytest.raises(BlockingIOError):
                await workers.run(gate.set)
    stuck = asyncio.ensure_future(workers.run(gate.wait))
    await asyncio.sleep(0)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        queued = asyncio.ensure_future(workers.run(lambda: "after"))
        await asyncio.sleep(0)
    gate.set()

    assert await queued == "after"
    assert await stuck


async def test_calls_of_several_clients_take_turns() -> None:
    workers = Workers(1, asyncio.get_running_loop(), "test")
    gate, done = threading.Event(), list[str]()
    first = asyncio.ensure_future(workers.run(gate.wait))
    calls = [
        asyncio.ensure_future(workers.run(partial(done.append, who), client=who))
        for who in ("much", "much", "much", "little", "much")
    ]
    calls[1].cancel()
    await asyncio.sleep(0)

    gate.set()
    await asyncio.gather(first, *calls, return_exceptions=True)

    assert done == ["much", "little", "much", "much"]
    workers.close()
    await calls_over(workers)


async def test_whoever_does_not_wait_is_told(workers: Workers) -> None:
    told: list[tuple[object, object]] = []
    failure = KeyError("x")

    def fail() -> None:
        raise failure

    workers.begin(lambda: 5, lambda *what: told.append(what))
    await eventually(lambda: len(told) == 1)
    workers.begin(fail, lambda *what: told.append(what))
    await eventually(lambda: len(told) == 2)

    assert told == [(5, None), (None, failure)]
