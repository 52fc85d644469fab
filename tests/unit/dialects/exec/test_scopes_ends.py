"""Processes that belong to no client: how much is kept of them, and how long.  The clock is moved by hand."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.config import KIB, MIB, SessionLimits
from holdfast.dialects.exec.entries import ArchivedEntry, Entry
from holdfast.errors import LimitReached, UnknownProcess
from holdfast.model import Leftovers, Page
from tests.fakes.dialects import FakeProcess, exited
from tests.fakes.exec_talk import START, ExecTalk, ready
from tests.fakes.watched import Watched

KEPT = {**START, "keep": True}
P = {"processId": "p"}


class FewKept(ExecTalk):
    """A client of an endpoint that keeps less."""

    limits = SessionLimits(
        closed_seconds=30.0, kept_names=3, kept_ended=2, kept_seconds=100.0, attached_bytes=10
    )


async def kept(process: FakeProcess | None = None, **params: Any) -> tuple[ExecTalk, ExecTalk, FakeProcess]:
    """A client that has started a kept process, another client, and the process."""
    process = process or FakeProcess()
    scene = await ready(process, FakeProcess(), FakeProcess())
    await scene.call("process/start", {**KEPT, **params})
    return scene, await beside(scene), process


async def beside(scene: ExecTalk) -> ExecTalk:
    """Another client."""
    other = ExecTalk(beside=scene)
    await other.shake_hands()
    return other


def common(scene: ExecTalk, name: str = "p") -> object:
    return scene.talk.session.tenant.shared.find(name)


# How much is kept, and how long.


@pytest.mark.parametrize(("retain", "size"), [(None, 10), (77, 77), (0, 1)])
async def test_output_is_kept_as_for_a_client_that_is_there(retain: int | None, size: int) -> None:
    """For an absent one it would be so much that a few of them fill the server."""
    scene, other, process = await kept(retainBytes=retain)

    scene.talk.ended()
    other.talk.ended()
    scene.loop.move(100.0)

    assert process.calls == [("retain", size)]


async def test_an_ended_process_can_be_read_for_an_hour() -> None:
    scene, other, process = await kept()
    past = FakeProcess()
    process.packed, scene.backend.unpacked[("block",)] = ("block",), past
    past.exit, past.closed = exited(3), True
    past.page = Page([], 3, past.exit, closed=True)
    process.exit_with(3)
    process.close()

    scene.loop.move(3599.0)
    block = common(scene)
    read = await other.call("process/read", P)
    listed = await other.call("process/list")
    scene.loop.move(1.1)

    assert isinstance(block, ArchivedEntry)
    assert (read["exitCode"], read["closed"]) == (3, True)
    assert [(one["state"], one["kept"]) for one in listed["processes"]] == [("closed", True)]
    assert isinstance(await other.refusal("process/read", P), UnknownProcess)
    assert past.calls[-1] == ("forget", Leftovers.SPARE)
    assert scene.loop.timers == []


async def test_one_that_cannot_be_packed_is_kept_as_long() -> None:
    scene, _, process = await kept()
    process.exit_with(3)
    process.close()

    scene.loop.move(3599.0)
    before = common(scene)
    scene.loop.move(1.1)

    assert isinstance(before, Entry)
    assert common(scene) is None
    assert process.calls[-1] == ("forget", Leftovers.SPARE)


async def few(count: int) -> tuple[FewKept, list[FakeProcess]]:
    """A client with so many kept processes."""
    processes = [FakeProcess() for _ in range(count)]
    scene = FewKept(*processes, FakeProcess())
    await scene.shake_hands()
    for number in range(count):
        await scene.call("process/start", {**KEPT, "processId": f"p{number}"})
    return scene, processes


async def test_the_oldest_ended_one_is_forgotten_when_there_are_too_many() -> None:
    """In the order of their ends; those that run are not touched."""
    scene, processes = await few(3)

    for number in (2, 0, 1):
        processes[number].exit_with()
        processes[number].close()
        scene.loop.move(10.0 if number == 2 else 0.1)
    names = [one["processId"] for one in (await scene.call("process/list"))["processes"]]
    await scene.call("process/start", {**KEPT, "processId": "p2"})
    scene.loop.move(50.0)
    later = [one["processId"] for one in (await scene.call("process/list"))["processes"]]
    scene.loop.move(100.0)

    assert names == ["p0", "p1"]
    assert later == ["p0", "p1", "p2"]
    assert [one["processId"] for one in (await scene.call("process/list"))["processes"]] == ["p2"]


async def test_the_number_of_kept_processes_is_bounded() -> None:
    scene, processes = await few(3)

    error = await scene.refusal("process/start", {**KEPT, "processId": "p3"})
    processes[0].exit_with()
    processes[0].close()
    still = await scene.refusal("process/start", {**KEPT, "processId": "p3"})
    scene.loop.move(100.0)
    await scene.call("process/start", {**KEPT, "processId": "p3"})

    assert isinstance(error, LimitReached)
    assert (error.limit, error.value) == ("kept processes", 3)
    assert isinstance(still, LimitReached)


async def test_what_a_forgotten_one_left_behind_ends_with_the_server() -> None:
    scene, processes = await few(3)
    processes[0].has_leftovers = True
    for process in processes:
        process.exit_with()
        process.close()

    spared = processes[0].calls[-1]
    await scene.call("session/close")
    after = processes[0].calls[-1]
    scene.endpoint.close()

    assert spared == after == ("forget", Leftovers.SPARE)
    assert processes[0].calls[-1] == ("forget", Leftovers.END)


# With a window.


async def test_a_window_holds_a_kept_process_for_whoever_reads() -> None:
    scene, other, process = await kept(Watched(), window=4 * KIB)
    assert isinstance(process, Watched)
    process.say(b"x" * 4 * KIB)
    held = not process.is_read

    await other.call("process/read", {**P, "afterSeq": 1})

    assert held
    assert process.is_read
    assert process.calls[0] == ("retain", 4 * KIB + MIB)
    assert scene.client.sent == []


async def test_a_window_that_nobody_uses_is_given_up() -> None:
    """A client that has gone for good must not hold the process for ever."""
    scene, other, process = await kept(Watched(), window=1)
    assert isinstance(process, Watched)
    process.say(b"x")

    scene.talk.ended()
    scene.loop.move(20.0)
    await other.call("process/read", P)
    scene.loop.move(29.0)
    held = not process.is_read
    scene.loop.move(1.1)
    process.say(b"more")

    assert held
    assert process.is_read
    assert len(process.watches) == 1


async def test_a_read_that_waits_holds_the_window() -> None:
    scene, other, process = await kept(Watched(), window=1)
    assert isinstance(process, Watched)
    process.reads_wait, process.gate = True, asyncio.Event()
    reading = asyncio.create_task(other.call("process/read", {**P, "waitMs": 10**6}))
    await process.asked.wait()
    process.say(b"x")

    scene.loop.move(500.0)
    held = not process.is_read
    process.gate.set()
    await reading
    scene.loop.move(60.0)

    assert held
    assert process.is_read
