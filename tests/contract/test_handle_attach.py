"""Processes that are found again by their names."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from holdfast import PIPE, Chunk, Host, Kind, NameTaken, Outcome, OutputGap, UnknownProcess
from tests.fakes.gate import Gate

SUCCESS = Outcome(Kind.EXIT, 0)


@pytest.fixture
def job() -> str:
    """A name that nobody has: a server may have had other clients."""
    return f"job-{uuid.uuid4()}"


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


async def test_a_name_belongs_to_one_process(host: Host, job: str, gate: Gate) -> None:
    handle = await host.start(sh(gate.shell), name=job)

    assert handle.name == job
    with pytest.raises(NameTaken):
        await host.start(sh("true"), name=job)
    with pytest.raises(UnknownProcess):
        await host.attach(f"not {job}")


async def test_processes_are_listed(host: Host, job: str, gate: Gate) -> None:
    handle = await host.start(sh(gate.shell), name=job, cwd="/", keep=True)
    await gate.reached()

    (listed,) = [each for each in await host.processes() if each.name == job]

    assert (listed.name, listed.pid, listed.cwd, listed.terminal) == (job, handle.pid, "/", False)
    assert (listed.state, listed.exit_code, listed.outcome, listed.kept) == ("running", None, None, True)
    assert list(listed.argv) == sh(gate.shell)


async def test_a_kept_process_is_found_after_its_end(host: Host, job: str) -> None:
    started = await host.start(sh("echo said; exit 5"), name=job, keep=True)
    await started.communicate()

    found = await host.attach(job)

    assert await found.communicate() == (b"said\n", b"")
    assert await found.wait() == Outcome(Kind.EXIT, 5)
    assert (found.returncode, found.args) == (5, [])


async def test_a_kept_process_outlives_its_handles(host: Host, job: str, gate: Gate) -> None:
    async with await host.start(sh(f"{gate.shell}; echo on"), name=job, keep=True):
        await gate.reached()
    async with await host.attach(job):
        pass
    gate.open()

    assert await (await host.attach(job)).communicate() == (b"on\n", b"")


async def test_what_was_said_before_and_after_is_read_without_a_seam(
    host: Host, job: str, gate: Gate
) -> None:
    started = await host.start(sh(f"echo before; {gate.shell}; echo after"), name=job, keep=True)
    await gate.reached()
    found = await host.attach(job)
    assert found.stdout is not None

    assert await found.stdout.readline() == b"before\n"
    gate.open()

    assert await found.stdout.read() == b"after\n"
    assert await started.communicate() == (b"before\nafter\n", b"")


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 3])
async def test_a_reader_that_comes_in_the_middle_misses_nothing_and_reads_nothing_twice(
    host: Host, job: str, after: int
) -> None:
    """Old output is asked for while new output comes: between both is where a hole would be."""
    script = "i=0; while [ $i -lt 300 ]; do echo $i; i=$((i+1)); done"
    started = await host.start(sh(script), name=job, keep=True)
    said: list[Chunk] = []
    async with asyncio.TaskGroup() as group:
        whole = group.create_task(started.communicate())
        for _ in range(3):
            await asyncio.sleep(0)
        found = await host.attach(job, after=after)
        async for chunk in found.chunks():
            said.append(chunk)
            await asyncio.sleep(0)

    out, _ = whole.result()
    assert out == b"".join(b"%d\n" % number for number in range(300))
    assert out.endswith(b"".join(chunk.data for chunk in said))
    assert [chunk.seq for chunk in said] == list(range(after + 1, after + 1 + len(said)))


async def test_a_handle_that_only_waits_holds_nobody_up(host: Host, job: str) -> None:
    """Unread output of a process that was found is left where it is kept."""
    started = await host.start(sh("head -c 3000000 /dev/zero"), name=job, keep=True)
    found = await host.attach(job)
    async with asyncio.TaskGroup() as group:
        group.create_task(started.communicate())
        waiting = group.create_task(found.wait())

    assert waiting.result() == SUCCESS


async def test_output_that_is_no_longer_kept_is_missed_once_and_with_its_size(
    host: Host, job: str, gate: Gate
) -> None:
    size = 500_000
    script = f"{gate.shell}; head -c {size} /dev/zero; echo end"
    started = await host.start(sh(script), name=job, keep=True, retain=10_000)
    started.detach()
    await host.processes()  # Now the host knows that nobody waits for it.
    await gate.reached()
    gate.open()
    await started.wait()
    chunked, streamed, collected = [await host.attach(job) for _ in range(3)]
    assert streamed.stdout is not None

    chunks = chunked.chunks()
    with pytest.raises(OutputGap) as gap:
        await anext(chunks)
    rest = b"".join([chunk.data async for chunk in chunks])
    with pytest.raises(OutputGap):
        await streamed.stdout.read()
    with pytest.raises(OutputGap):
        await collected.communicate()

    assert rest.endswith(b"end\n")
    assert (gap.value.first, gap.value.size) == (1, size + 4 - len(rest))
    assert await streamed.stdout.read() == rest
    assert await collected.communicate() == (rest, b"")


async def test_a_process_that_was_found_is_written_to(host: Host, job: str) -> None:
    await host.start(["cat"], name=job, keep=True, stdin=PIPE)
    first, second = await host.attach(job), await host.attach(job)
    assert first.stdin is not None

    first.stdin.write(b"one\n")
    assert first.stdout is not None
    assert await first.stdout.readline() == b"one\n"

    assert await second.communicate(b"two\n") == (b"one\ntwo\n", b"")


async def test_who_detaches_lets_the_process_go_on(host: Host, job: str) -> None:
    handle = await host.start(sh("head -c 3000000 /dev/zero; exit 6"))
    await anext(handle.chunks())

    handle.detach()

    assert await handle.wait() == Outcome(Kind.EXIT, 6)
    assert [data async for data in handle if not data] == []
