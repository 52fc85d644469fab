"""What cancelling does to a process, and to those of others, wherever it runs."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from holdfast import Host, NameTaken
from tests.fakes.gate import Gate
from tests.fakes.process import PATIENCE, is_alive


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


async def test_cancelling_a_read_or_a_communicate_loses_nothing(host: Host, gate: Gate) -> None:
    handle = await host.start(sh(f"echo one; {gate.shell}; echo two"))
    assert handle.stdout is not None
    await gate.reached()

    for waiting in (handle.stdout.readexactly(100), handle.communicate(), handle.stdout.read(-1)):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await waiting
    gate.open()

    assert await handle.communicate() == (b"one\ntwo\n", b"")


async def test_cancelling_a_run_ends_the_whole_tree_first(host: Host, gate: Gate) -> None:
    name = f"run-{uuid.uuid4()}"
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        running = group.create_task(host.run(sh(gate.shell), capture_output=True, name=name))
        await gate.reached()
        pids: list[int] = []
        while not pids:
            await asyncio.sleep(0)
            pids = [each.pid for each in await host.processes() if each.name == name and each.pid]
        (started,) = pids

        running.cancel()

    assert running.cancelled()
    assert not is_alive(started)


@pytest.mark.parametrize("turns", range(8))
async def test_cancelling_a_start_leaves_no_process(host: Host, gate: Gate, turns: int) -> None:
    """At whatever moment it comes."""
    name = f"start-{uuid.uuid4()}"
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        starting = group.create_task(host.start(sh(gate.shell), name=name))
        for _ in range(turns):
            await asyncio.sleep(0)
        starting.cancel()

    if starting.cancelled():
        live = ("starting", "running")
        while any(each.name == name and each.state in live for each in await host.processes()):  # noqa: ASYNC110
            await asyncio.sleep(0)
    else:
        await starting.result().end()


@pytest.mark.parametrize("turns", range(8))
async def test_cancelling_a_start_leaves_whoever_has_the_name_alone(
    host: Host, gate: Gate, turns: int
) -> None:
    """It would have been refused: the process of that name is somebody else's."""
    name = f"start-{uuid.uuid4()}"
    theirs = await host.start(sh(gate.shell), name=name, keep=True)
    async with asyncio.timeout(PATIENCE):
        await gate.reached()
        starting = asyncio.ensure_future(host.start(["true"], name=name))
        for _ in range(turns):
            await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises((asyncio.CancelledError, NameTaken)):
            await starting
        # Whatever the cancelled start makes its host do comes before this answer.
        await host.processes()

        gate.open()
        assert (await theirs.wait()).exit_code == 0
