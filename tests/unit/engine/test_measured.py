"""What can be measured of a process of this host."""

from __future__ import annotations

import asyncio

from holdfast.backend import HostedBackend, HostedProcess
from holdfast.model import Limits, ProcessTerms
from holdfast.reports import Load
from tests.fakes.gate import Gate
from tests.fakes.process import PATIENCE, eventually, running_backend, sh
from tests.fakes.recorder import finished, record


async def looked(process: HostedProcess) -> tuple[Load | None, float]:
    found: asyncio.Future[tuple[Load | None, float]] = asyncio.get_running_loop().create_future()
    process.look_at_load(lambda load, age: found.set_result((load, age)))
    return await asyncio.wait_for(found, PATIENCE)


async def running(backend: HostedBackend, gate: Gate, terms: ProcessTerms) -> HostedProcess:
    process = await backend.start(sh(f"echo said; {gate.shell}", terms=terms))
    record(process)
    await gate.reached()
    await eventually(lambda: process.output_bytes() == 5)
    return process


async def test_a_process_that_runs_has_a_load_and_its_output(gate: Gate) -> None:
    async with running_backend() as backend:
        process = await running(backend, gate, ProcessTerms())

        load, age = await looked(process)

        assert load is not None
        assert (load.processes, age, process.retained()) == (1, 0.0, 5)
        assert load.memory > 0
        assert process.limits_enforced() == {}


async def test_a_limit_says_who_keeps_it(gate: Gate) -> None:
    async with running_backend() as backend:
        process = await running(backend, gate, ProcessTerms(limits=Limits(files=100)))

        assert process.limits_enforced() == {"files": "rlimit"}


async def test_nobody_is_left_of_one_that_has_ended() -> None:
    """Its shim watches over another command by then, whose load this would be."""
    async with running_backend() as backend:
        process = await backend.start(sh("echo said"))
        await finished(process)
        await process.end()

        assert await looked(process) == (None, 0.0)
        assert process.output_bytes() == 5
        packed = process.pack()
        assert packed is not None
        ended = backend.unpack(packed)
        assert (await looked(ended), ended.output_bytes()) == ((None, 0.0), 5)
        ended.forget()
