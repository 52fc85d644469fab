"""The backend on this host: its limits, and that it ends everything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.backend import Backend
from holdfast.config import EngineLimits
from holdfast.engine.local import LocalBackend
from holdfast.errors import HoldfastError, LimitReached
from holdfast.host.info import host_info
from holdfast.sandbox import Guarantees
from holdfast.telemetry import Tally
from holdfast.value import replace
from tests.fakes.gate import Gate, SlowProgram, gone
from tests.fakes.process import (
    PATIENCE,
    command,
    eventually,
    has_commands,
    is_alive,
    open_files,
    running_backend,
    sh,
)
from tests.fakes.recorder import finished, record
from tests.fakes.tracing import traced


@pytest.fixture
async def slow(tmp_path: Path) -> AsyncIterator[SlowProgram]:
    program = SlowProgram("/bin/sleep", tmp_path)
    yield program
    program.close()


async def test_it_is_a_backend(backend: LocalBackend) -> None:
    """For the type checker; the contract says the rest."""
    seen: Backend = backend

    assert seen.info == replace(host_info(), sandboxes=OFF)


OFF = Guarantees(None, reason="sandboxes are switched off")


# Limits.


def limited(count: int) -> EngineLimits:
    return EngineLimits(processes=count)


async def test_no_more_processes_run_than_the_limit_says(gate: Gate) -> None:
    async with running_backend(limited(2)) as backend:
        first = await backend.start(sh(gate.shell))
        await backend.start(sh(gate.shell))

        with pytest.raises(LimitReached) as caught:
            await backend.start(command("true"))
        assert (caught.value.limit, caught.value.value) == ("processes", 2)

        gate.open()
        gate.open()
        await finished(first)
        await (await backend.start(command("true"))).end()


async def test_a_process_counts_until_it_is_closed(gate: Gate) -> None:
    """One that has exited still costs its descriptors as long as somebody holds its output."""
    async with running_backend(limited(1)) as backend:
        process = await backend.start(sh(f"({gate.shell}) & exit 0"))
        recorder = record(process)
        await recorder.until("exited", 0)
        with pytest.raises(LimitReached):
            await backend.start(command("true"))

        await gate.reached()
        gate.open()
        await recorder.until("closed")

        await finished(await backend.start(command("true")))


async def test_a_start_under_way_counts_and_one_that_failed_does_not(slow: SlowProgram) -> None:
    async with running_backend(limited(1)) as backend:
        starting = asyncio.get_running_loop().create_task(backend.start(command(slow.path, "0")))
        await slow.reached()
        with pytest.raises(LimitReached):
            await backend.start(command("true"))
        slow.release()
        process = await starting
        await eventually(lambda: process.closed)

        for _ in range(3):
            with pytest.raises(HoldfastError):
                await backend.start(command("no-such-program"))
        await finished(await backend.start(command("true")))


async def test_all_processes_share_one_budget_of_output() -> None:
    """Whoever adds drops its own: a quiet process keeps what it said."""
    async with running_backend(EngineLimits(retained_bytes=300_000)) as backend:
        quiet = await backend.start(sh("head -c 100000 /dev/zero"))
        await finished(quiet)
        busy = await backend.start(sh("head -c 1000000 /dev/zero"))
        await finished(busy)

        assert quiet.retained() == 100_000
        assert 0 < busy.retained() <= 200_000

        quiet.forget()
        # A bit less: what it says may come in more pieces, which count, too.
        other = await backend.start(sh("head -c 90000 /dev/zero"))
        await finished(other)
        assert other.retained() == 90_000


async def test_the_budget_is_given_back_by_a_process_that_was_forgotten_in_mid_speech(gate: Gate) -> None:
    """What it said between the last look and its death must not be counted for ever."""
    async with running_backend(EngineLimits(retained_bytes=50_000)) as backend:
        process = await backend.start(sh(f"head -c 60000 /dev/zero; {gate.shell}"))
        await gate.reached()

        process.forget()
        await eventually(lambda: not has_commands())
        after = await backend.start(sh("head -c 20000 /dev/zero; head -c 20000 /dev/zero >&2"))
        await finished(after)

        assert process.retained() == 0
        assert after.retained() == 40_000


async def test_no_more_chunks_are_kept_than_the_limit_says(gate: Gate) -> None:
    async with running_backend(EngineLimits(retained_chunks=3)) as backend:
        process = await backend.start(sh(f"for i in 1 2 3 4 5 6; do {gate.shell}; echo $i; done"))
        recorder = record(process)
        for number in range(1, 7):
            await gate.reached()
            gate.open()
            await recorder.until("stdout", b"%d\n" % number)
        await recorder.until("closed")

        page = await process.read()

        assert [chunk.data for chunk in page.chunks] == [b"4\n", b"5\n", b"6\n"]


# The end.


async def test_closing_ends_every_process_and_gives_everything_back(gate: Gate) -> None:
    """Those that run, those that ignore, those whose leader has gone, and those in a terminal."""
    before = open_files()
    async with running_backend() as backend:
        deaf = await backend.start(sh(f"trap '' TERM HUP INT; {gate.shell}"))
        recorder = record(await backend.start(sh(f"({gate.shell}) & echo $!")))
        talks = await backend.start(sh("yes", stdin=True))
        await gate.reached(2)
        await recorder.until("exited", 0)
        leftover = int(recorder.said())
        assert is_alive(leftover)

        await backend.aclose()

        assert not is_alive(deaf.pid)
        assert not is_alive(talks.pid)
        assert not has_commands()
        assert open_files().items() <= before.items()
        await gone(leftover)


async def test_closing_twice_is_closing_once(backend: LocalBackend) -> None:
    await backend.start(command("sleep", "1000"))

    await backend.aclose()
    await backend.aclose()


async def test_nothing_can_be_started_after_the_close(backend: LocalBackend) -> None:
    await backend.aclose()

    with pytest.raises(HoldfastError):
        await asyncio.wait_for(backend.start(command("true")), PATIENCE)


async def test_a_start_under_way_during_the_close_leaves_no_process(
    backend: LocalBackend, slow: SlowProgram
) -> None:
    """The server stops while a program on a stalled disk is about to run."""
    starting = asyncio.get_running_loop().create_task(backend.start(command(slow.path, "1000")))
    await slow.reached()

    await asyncio.wait_for(backend.aclose(), PATIENCE)
    slow.release()

    with pytest.raises(HoldfastError):
        await asyncio.wait_for(starting, PATIENCE)
    await eventually(lambda: not has_commands())


# Spans.


async def test_a_traced_start_shows_where_its_time_goes() -> None:
    """Also if it fails."""
    async with running_backend() as backend:
        with traced() as request:
            process = await backend.start(command("true"))
            running = backend.usage()["engine.processes"]
            await finished(process)
            with pytest.raises(HoldfastError):
                await backend.start(command("/no/such/program"))

    names = ["codex.exec_server.process_prepare_sandbox", "codex.process.spawn"]
    found = [child.told for child in request.children]
    assert found.pop(2) == ("codex.exec_server.process", {"result": "success"}, 1)
    assert found == [(name, {}, 1) for name in names * 2]
    assert running == 1


# Figures and traces.


@pytest.mark.parametrize(
    ("script", "result"), [("exit 0", "success"), ("exit 3", "error"), ("kill -9 $$", "error")]
)
async def test_a_process_is_counted_and_timed_until_its_end(script: str, result: str) -> None:
    """Whichever dialect has started it: a gauge that only grows says nothing."""
    tally = Tally()
    async with running_backend(telemetry=tally) as backend:
        process = await backend.start(sh(f"read _; {script}"))
        running = tally.counts[ACTIVE]
        process.close_stdin_now()
        await finished(process)

        assert (running, tally.counts[ACTIVE]) == (1, 0)
        assert tally.counts["exec_server_processes_finished_total", result] == 1
        assert sum(tally.durations["exec_server_process_duration_seconds", result]) > 0


ACTIVE = ("exec_server_processes_active",)


@pytest.mark.parametrize("how", ["terminate", "forget", "end", "close"])
async def test_a_process_that_was_ended_is_counted_as_that(how: str) -> None:
    tally = Tally()
    async with running_backend(telemetry=tally) as backend:
        process = await backend.start(command("sleep", "1000"))
        if how == "terminate":
            await process.end()
        elif how == "forget":
            process.forget()
        elif how == "end":
            process.end_now()
        else:
            await backend.aclose()
        await eventually(lambda: tally.counts[ACTIVE] == 0)

    assert tally.counts["exec_server_processes_finished_total", "terminated"] == 1


async def test_the_span_of_a_process_lasts_until_its_exit() -> None:
    async with running_backend() as backend:
        with traced() as request:
            request.share("process.id", "p")
            process = await backend.start(sh("read _; exit 3"))
        found = request.children[-1]
        before = found.told
        process.close_stdin_now()
        await finished(process)

    assert before == ("codex.exec_server.process", {"process.id": "p"}, 0)
    assert found.told == ("codex.exec_server.process", {"process.id": "p", "result": "error"}, 1)
