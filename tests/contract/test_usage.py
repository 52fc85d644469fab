"""What processes use while they run, here and far away."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Sequence

import pytest

from holdfast import CurrentUsage, Host
from holdfast.backend import HostedBackend
from tests.fakes.gate import Gate
from tests.fakes.process import PATIENCE, sh
from tests.fakes.recorder import record

MIB = 1 << 20


@pytest.fixture
def job() -> str:
    """A name that nobody has: a server may have had other clients."""
    return f"job-{uuid.uuid4()}"


async def one(host: Host, name: str) -> CurrentUsage:
    (found,) = await host.usage(name)
    return found


async def test_the_whole_tree_is_counted(host: Host, job: str, gate: Gate) -> None:
    """What a command has started uses the machine as the command does, whoever its parent is by now."""
    size, burn = 64 * MIB, "import time\nwhile time.process_time() < 0.2: pass\n"
    waits = f"import os\ndata = b'x' * {size}\n{burn}os.system({gate.shell!r})\n"
    script = 'printf hello; (setsid "$0" -I -S -c "$1" &) ; wait; read line'
    await host.start(["sh", "-c", script, sys.executable, waits], name=job, stdin=-1, keep=True)
    await gate.reached()

    used = await one(host, job)

    assert (used.name, used.output_bytes) == (job, 5)
    assert used.processes >= 3
    assert used.resident_bytes > size
    assert used.cpu_us >= 150_000
    gate.open()


async def test_processor_time_grows_with_work_and_is_kept_of_those_who_have_ended(
    host: Host, job: str, gate: Gate
) -> None:
    """A build is thousands of short commands: the time of each must not be lost with it."""
    burn = "import time\nwhile time.process_time() < 0.15: pass\n"
    script = f'for i in 1 2; do "$0" -I -S -c "$1"; done; {gate.shell}'
    await host.start(["sh", "-c", script, sys.executable, burn], name=job, keep=True)
    await gate.reached()

    used = await one(host, job)

    assert used.cpu_us >= 250_000
    gate.open()


async def test_all_processes_are_told_if_none_is_named(host: Host, job: str, gate: Gate) -> None:
    for name in (f"{job}-a", f"{job}-b"):
        await host.start(["sh", "-c", "sleep 1000"], name=name, keep=True)

    everybody = {each.name for each in await host.usage()}
    named = [each.name for each in await host.usage(f"{job}-b", "nobody", f"{job}-a")]

    assert everybody >= {f"{job}-a", f"{job}-b"}
    assert named == [f"{job}-b", f"{job}-a"]
    for name in named:
        await (await host.attach(name)).kill()


async def test_a_process_that_has_ended_uses_nothing(host: Host, job: str) -> None:
    handle = await host.start(["true"], name=job, keep=True)
    await handle.wait()

    async def used() -> Sequence[CurrentUsage]:
        return await host.usage(job)

    # The shim says that nobody is left a moment after the command has ended.
    while await used():
        pass
    assert await used() == []


async def test_what_many_ask_for_at_once_is_looked_at_once(host: Host, job: str, gate: Gate) -> None:
    """Figures of one moment: all clients that look at a server see the same."""
    await host.start(["sh", "-c", gate.shell], name=job, keep=True)
    await gate.reached()

    found = await asyncio.gather(*(one(host, job) for _ in range(20)))

    assert {each.processes for each in found} == {1}
    gate.open()


async def test_output_that_was_dropped_still_counts(kept: HostedBackend, gate: Gate) -> None:
    """A rate of output must not end where the server keeps no more of it."""
    process = await kept.start(sh(f"head -c 3000000 /dev/zero; {gate.shell}"))
    record(process)
    await gate.reached()
    gate.open()
    await process.wait(PATIENCE)

    assert process.output_bytes() == 3_000_000
    assert process.retained() < 3_000_000
