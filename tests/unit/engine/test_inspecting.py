"""What is told of processes whose trees need no look; ``host/test_input.py`` has the looks themselves."""

from __future__ import annotations

import asyncio

from holdfast.engine import inspecting
from holdfast.engine.ended import EndedProcess
from holdfast.engine.local import LocalBackend
from holdfast.host.input import InputEnd
from holdfast.inspecting import inspect
from holdfast.inspection import Inspection
from holdfast.model import WriteStatus
from tests.fakes.process import TERMINAL, command
from tests.fakes.recorder import record


async def test_whoever_has_not_taken_what_it_was_given_does_not_wait(backend: LocalBackend) -> None:
    """More input is under way already."""
    process = await backend.start(command("sleep", "1000", stdin=True))

    status = await process.write(b"x" * (1 << 20))

    assert status is WriteStatus.ACCEPTED
    assert await inspect(process) == Inspection(waiting_for_input=False)


async def test_an_ended_process_is_known_not_to_wait(backend: LocalBackend) -> None:
    """Also one of which nothing is left but its output."""
    process = await backend.start(command("true", terminal=TERMINAL))
    await record(process).until("closed")

    packed = process.pack()

    assert await inspect(process) == inspecting.NOT_WAITING
    assert packed is None or await inspect(backend.unpack(packed)) == inspecting.NOT_WAITING


async def test_whoever_is_not_told_in_time_does_not_know() -> None:
    """A look may hang on a disk; whoever asked is not kept for ever."""

    class Silent(EndedProcess):
        def __init__(self) -> None:
            pass

        def look_at_input(self, tell: object) -> None:
            pass

    assert await inspect(Silent(), seconds=0.0) == Inspection(waiting_for_input=None)


async def test_a_terminal_that_changes_during_the_look_is_looked_at_again(backend: LocalBackend) -> None:
    """That it waits and that it does not echo are facts of one time, or a password would be shown."""
    process = await backend.start(command("cat", terminal=TERMINAL))
    ends = iter([InputEnd((0, 0), echo=True), *[InputEnd((0, 0), echo=False)] * 3])
    told: asyncio.Future[Inspection] = asyncio.get_running_loop().create_future()

    before, inspecting._end = inspecting._end, lambda process: next(ends)
    try:
        process.look_at_input(told.set_result)
        found = await told
    finally:
        inspecting._end = before

    assert found == Inspection(waiting_for_input=False, echo=False)
    assert next(ends, None) is None
