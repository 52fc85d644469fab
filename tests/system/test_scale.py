"""Many processes: at once, and one after the other."""

from __future__ import annotations

import asyncio
import gc
import os

import pytest

from holdfast.config import SessionLimits
from tests.fakes.backends import LONG
from tests.fakes.client import Client, client, start_params
from tests.fakes.server import (
    commands,
    eventually,
    inside,
    open_files,
    program_at,
    resident_bytes,
    zombies,
)

pytestmark = [pytest.mark.slow, pytest.mark.stress]

TERMINALS = 2000 if LONG else 600
"""More than a server has descriptors for unless it asks for more, and than those that `select` can watch."""


@pytest.mark.timeout(120)
async def test_hundreds_of_live_terminals_work() -> None:
    """All of them start, answer and end, and the server stays as responsive as with one."""
    names, script = [f"p{number}" for number in range(TERMINALS)], "read line; echo $line"
    with program_at() as (server, url):
        idle, files = commands(server.pid), open_files(server.pid)
        async with client(url) as talking:
            for batch in range(0, len(names), 200):
                answers = [
                    talking.post("process/start", start_params(name, "sh", "-c", script, tty=True))
                    for name in names[batch : batch + 200]
                ]
                for answer in answers:
                    await talking.result(answer, within=30)
            live, held = len(commands(server.pid) - idle), open_files(server.pid)

            status = await talking.call("environment/status")
            for name in names:
                talking.post("process/write", {"processId": name, "chunk": "aGkK", "writeId": "w"})
            tales = [await talking.closed(name, within=60) for name in names]

        await eventually(lambda: commands(server.pid) <= idle)
        await eventually(lambda: open_files(server.pid) <= files)

    assert live == TERMINALS
    assert held > 1024, "or no limit was passed"
    assert status == {"status": "ready"}
    assert {tale.data() for tale in tales} == {b"hi\r\nhi\r\n"}
    assert {tuple(tale.exit_codes) for tale in tales} == {(0,)}


async def churn(talking: Client, rounds: int, width: int, *, prefix: str = "") -> None:
    """Start so many short processes at a time, so many times, and wait for their end."""
    for turn in range(rounds):
        names = [f"{prefix}{turn}-{number}" for number in range(width)]
        for name in names:
            talking.post("process/start", start_params(name, "true"))
        for name in names:
            tale = await talking.closed(name, within=30)
            assert tale.exit_codes == [0]
            del talking.tales[name]
        talking.messages.clear()


@pytest.mark.timeout(120)
async def test_after_thousands_of_processes_nothing_is_left_of_them() -> None:
    """No zombie, no descriptor, and the memory is back within a tenth: a server runs for months.

    In this process, because only here the time that ended processes are retained can be made short.
    """
    own = os.getpid()
    async with inside(sessions=SessionLimits(closed_seconds=0.05)) as server, client(server.url) as talking:
        await churn(talking, 10, 100)
        await forgotten(talking)
        files, children, before = open_files(own), commands(own), memory()

        await churn(talking, 100 if LONG else 20, 100)
        await forgotten(talking)
        after = memory()

        assert zombies(own) == []
        assert open_files(own) <= files
        assert commands(own) <= children
        assert after <= before * 1.1


async def forgotten(talking: Client) -> None:
    """Wait until the last process is no longer retained: its name is free again."""
    await talking.start("last", "true")
    await talking.closed("last")

    async def is_free() -> bool:
        answer = await talking.post("process/read", {"processId": "last"})
        return "error" in answer

    async with asyncio.timeout(10):
        while not await is_free():
            pass
    del talking.tales["last"]


def memory() -> int:
    """What this process occupies, without what only waits for the collector."""
    gc.collect()
    return resident_bytes(os.getpid())


@pytest.mark.timeout(120)
async def test_the_program_leaves_neither_zombies_nor_descriptors_after_many_processes() -> None:
    """The same for the real program, as far as can be seen while it retains what ended."""
    with program_at() as (server, url):
        async with client(url) as talking:
            await churn(talking, 1, 100)
            files, idle = open_files(server.pid), commands(server.pid)
            await churn(talking, 30 if LONG else 8, 100, prefix="again-")
            await eventually(lambda: open_files(server.pid) <= files)

        assert zombies(server.pid) == []
        assert commands(server.pid) <= idle


@pytest.mark.timeout(60)
async def test_a_thousand_connections_are_served_and_leave_nothing() -> None:
    """Idle clients are many; each must get its answer, and be forgotten when it goes."""
    with program_at() as (server, url):
        async with client(url) as first:
            await first.call("environment/status")
            files = open_files(server.pid)
            others = [await Client.open(url) for _ in range(1000)]
            answers = await asyncio.gather(*(other.call("environment/status") for other in others))
            await asyncio.gather(*(other.abort() for other in others))
            await eventually(lambda: open_files(server.pid) <= files)

    assert answers == [{"status": "ready"}] * 1000
