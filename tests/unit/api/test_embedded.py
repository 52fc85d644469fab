"""The engine in this program."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.api.embedded import Embedded
from holdfast.api.embedded_process import EmbeddedProcess
from holdfast.api.options import spec_of
from holdfast.errors import NameTaken, OutOfTurn, StillStarting, UnknownProcess
from holdfast.model import Limits, ProcessTerms, Spec
from holdfast.place import Naming
from holdfast.sandbox import Access, Sandbox, SandboxEntry
from tests.fakes.gate import Gate, SlowProgram
from tests.fakes.process import PATIENCE, eventually, nothing_left, open_files
from tests.fakes.recorder import finished, record


def sh(script: str, **options: ProcessTerms | Sandbox) -> Spec:
    spec = spec_of(["sh", "-c", script], {}, cwd="/")
    return Spec(spec.argv, spec.cwd, spec.env, spec.env_policy, **options)  # type: ignore[arg-type]


async def over(process: EmbeddedProcess) -> None:
    """Wait for the close of a process, whenever it was started."""
    await process.wait(PATIENCE)
    await eventually(lambda: process.closed)


@pytest.fixture
async def place() -> AsyncIterator[Embedded]:
    before = open_files()
    made = Embedded()
    try:
        yield made
    finally:
        async with asyncio.timeout(PATIENCE):
            await made.aclose()
        await nothing_left(before)


async def test_a_process_is_what_the_engine_has(place: Embedded, gate: Gate) -> None:
    process = await place.start(sh(f"{gate.shell}; echo a; exit 3"), Naming(name="p"))
    recorder = record(process)
    assert (process.name, process.exit, process.exit_code, process.closed) == ("p", None, None, False)
    assert await process.wait(0) is None
    gate.open()
    await recorder.until("closed")

    assert (process.exit_code, process.closed, process.next_seq) == (3, True, 4)
    assert [chunk.data for chunk in (await process.read()).chunks] == [b"a\n"]
    assert process.exit == await process.wait(1)


async def test_names_are_given_and_given_back(place: Embedded, gate: Gate) -> None:
    first = await place.start(sh(gate.shell))
    with pytest.raises(NameTaken):
        await place.start(sh("true"), Naming(name=first.name))
    gate.open()
    await finished(first)

    again = await place.start(sh("true"), Naming(name=first.name))
    other = await place.start(sh("true"))

    assert again.name == first.name
    assert other.name not in (first.name, again.name)
    for process in (again, other):
        await over(process)
    with pytest.raises(UnknownProcess):
        await place.find(first.name)


async def test_a_name_that_cannot_be_started_is_free(place: Embedded) -> None:
    for _ in range(2):
        with pytest.raises(Exception, match="nowhere"):
            await place.start(spec_of(["/nowhere"], {}, cwd="/"), Naming(name="p"))

    assert await place.list() == []


async def test_a_process_that_starts_is_not_found_yet(place: Embedded, tmp_path: Path) -> None:
    slow = SlowProgram("/bin/true", tmp_path)
    try:
        async with asyncio.TaskGroup() as group:
            starting = group.create_task(place.start(spec_of([slow.path], {}, cwd="/"), Naming(name="p")))
            await slow.reached()
            with pytest.raises(StillStarting):
                await place.find("p")
            with pytest.raises(NameTaken):
                await place.start(sh("true"), Naming(name="p"))
            (listed,) = await place.list()
            assert (listed.name, listed.state, listed.pid) == ("p", "starting", None)
            slow.release()
        await over(starting.result())
    finally:
        slow.close()


async def test_what_has_ended_and_nobody_holds_is_forgotten(place: Embedded) -> None:
    """A program may run for months: its past must not grow."""
    for _ in range(20):
        await finished(await place.start(sh("head -c 20000 /dev/zero")))
    gc.collect()
    await asyncio.sleep(0)

    assert await place.list() == []
    assert place._backend._budget.used == 0


async def test_output_stays_as_long_as_somebody_holds_the_process(place: Embedded) -> None:
    process = await place.start(sh("echo said"))
    await finished(process)

    assert [chunk.data for chunk in (await process.read()).chunks] == [b"said\n"]


async def test_a_kept_process_is_found_for_a_while(place: Embedded, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.api.embedded._CLOSED", 0.01)
    process = await place.start(sh("true"), Naming(name="p", keep=True))
    recorder = record(process)
    await recorder.until("closed")

    assert (await place.find("p")) is process
    (listed,) = await place.list()
    assert (listed.state, listed.exit_code, listed.kept) == ("closed", 0, True)
    await eventually(lambda: not place._processes)


async def test_a_long_command_is_listed_in_part(place: Embedded, gate: Gate) -> None:
    await place.start(spec_of(["sh", "-c", gate.shell, "x" * 2000, "y"], {}, cwd="/"))

    (listed,) = await place.list()

    assert list(listed.argv) == ["sh", "-c", gate.shell, "..."]


async def test_limits_and_sandboxes_are_kept_here_too(place: Embedded, tmp_path: Path) -> None:
    limited = await place.start(sh("ulimit -n", terms=ProcessTerms(limits=Limits(files=37))))
    assert (await finished(limited)).said() == b"37\n"
    if place.info.sandboxes.backend is None:
        pytest.skip(place.info.sandboxes.reason)
    reading = Sandbox((SandboxEntry("/", Access.READ),), network=True, cwd="/")

    confined = await place.start(sh(f"echo x > {tmp_path}/file", sandbox=reading))

    await finished(confined)
    assert confined.exit_code != 0
    assert not (tmp_path / "file").exists()


async def test_files_and_requests_are_those_of_this_host(place: Embedded) -> None:
    assert (await place.files.metadata("/")).directory
    assert place.http is place.http


@pytest.mark.parametrize("turns", range(6))
async def test_who_starts_something_as_it_is_closed_is_told(turns: int) -> None:
    """Not by whatever happens to be gone first."""
    before = open_files()
    place = Embedded()
    starting = [asyncio.ensure_future(place.start(sh("exec sleep 1000"))) for _ in range(3)]
    for _ in range(turns):
        await asyncio.sleep(0)

    async with asyncio.timeout(PATIENCE):
        await place.aclose()
        results = await asyncio.gather(*starting, return_exceptions=True)

    assert all(isinstance(each, EmbeddedProcess | OutOfTurn) for each in results), results
    with pytest.raises(OutOfTurn, match="closed"):
        await place.start(sh("true"))
    await nothing_left(before)


@pytest.mark.slow
async def test_a_start_that_does_not_end_does_not_keep_it_from_closing(tmp_path: Path) -> None:
    before = open_files()
    place = Embedded()
    slow = SlowProgram("/bin/true", tmp_path)
    try:
        starting = asyncio.ensure_future(place.start(spec_of([slow.path], {}, cwd="/")))
        await slow.reached()

        async with asyncio.timeout(PATIENCE):
            await place.aclose()
            with pytest.raises(OutOfTurn, match="closed"):
                await starting
    finally:
        slow.close()
    await nothing_left(before)
