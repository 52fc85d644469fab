"""What processes use, found out for many of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast import usage
from holdfast.model import CurrentUsage
from holdfast.reports import Load
from holdfast.usage import current_usage
from tests.fakes.dialects import FakeProcess
from tests.fakes.process import eventually


async def used(*named: tuple[str, FakeProcess]) -> list[CurrentUsage]:
    return [found async for found in current_usage([(name, f"id-{name}", each) for name, each in named])]


def using(load: Load | None, output: int = 0) -> FakeProcess:
    process = FakeProcess()
    process.load, process.retained_bytes = load, output
    return process


async def test_what_each_process_uses_is_told_under_its_name() -> None:
    found = await used(("a", using(Load(2, 4096, 30), 5)), ("b", using(Load(1, 8192, 10))))

    assert found == [CurrentUsage("a", "id-a", 30, 4096, 2, 5), CurrentUsage("b", "id-b", 10, 8192, 1, 0)]


async def test_a_process_of_which_nobody_is_left_is_left_out() -> None:
    assert await used(("a", using(None)), ("b", using(Load(1, 0, 0)))) == [
        CurrentUsage("b", "id-b", 0, 0, 1, 0)
    ]
    assert await used(("a", using(None))) == await used() == []


class SlowProcess(FakeProcess):
    """A process that takes its time to look at; ``answers`` are those who wait."""

    def __init__(self) -> None:
        super().__init__()
        self.answers: list[Callable[[Load | None, float], None]] = []

    def look_at_load(self, tell: Callable[[Load | None, float], None]) -> None:
        self.answers.append(tell)

    def answer(self, load: Load | None) -> None:
        self.answers.pop()(load, 0.5)


async def test_no_more_than_a_few_are_looked_at_together() -> None:
    """Others wait for the same threads: whoever enforces the limits of a process, for example."""
    processes = [SlowProcess() for _ in range(usage.AT_ONCE + 3)]
    task = asyncio.create_task(used(*((str(number), each) for number, each in enumerate(processes))))
    await asyncio.sleep(0)
    first = [bool(each.answers) for each in processes]
    for each in processes[: usage.AT_ONCE]:
        each.answer(Load(1, 2, 3))
    await eventually(lambda: bool(processes[-1].answers))
    for each in processes[usage.AT_ONCE :]:
        each.answer(Load(1, 2, 3))

    found = await task

    assert first == [True] * usage.AT_ONCE + [False] * 3
    assert [each.name for each in found] == [str(number) for number in range(len(processes))]
    assert {each.age for each in found} == {0.5}


async def test_whoever_has_left_is_told_nothing() -> None:
    process = SlowProcess()
    task = asyncio.create_task(used(("a", process)))
    await asyncio.sleep(0)

    task.cancel()
    await asyncio.wait([task])
    process.answer(Load(1, 2, 3))

    assert task.cancelled()
