"""The end that a client asks for: terminate, forget, and the end of the backend."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.backend import Backend, HostedBackend
from holdfast.model import Ended, Leftovers, Size
from tests.fakes.gate import Gate, end, gone
from tests.fakes.process import TERMINAL, command, is_alive, sh
from tests.fakes.recorder import finished, record

BOTH = pytest.mark.parametrize("terminal", [None, TERMINAL], ids=["pipe", "pty"])


@BOTH
async def test_terminate_kills_whoever_refuses_to_go(
    backend: Backend, gate: Gate, terminal: Size | None
) -> None:
    spec = sh(f"trap '' TERM INT HUP; {gate.shell}", terminal=terminal)
    recorder = record(process := await backend.start(spec))
    await gate.reached()

    assert (await process.end()).running

    await recorder.until("closed")
    assert recorder.told == [("exited", 137), ("closed",)]
    assert not is_alive(process.pid)


@pytest.mark.parametrize("size", [5, 60_000])
async def test_output_written_before_terminate_is_kept(backend: Backend, gate: Gate, size: int) -> None:
    """Its last words often say why it hung."""
    recorder = record(process := await backend.start(sh(f"head -c {size} /dev/zero; {gate.shell}")))
    await gate.reached()

    await process.end()

    await recorder.until("closed")
    assert recorder.outline == [("stdout", bytes(size)), ("exited", 137), ("closed",)]


async def test_terminate_takes_the_whole_group(backend: Backend, gate: Gate) -> None:
    recorder = record(process := await backend.start(sh(f"({gate.shell}) & echo $!; wait")))
    await gate.reached()
    await recorder.when(lambda: recorder.said().endswith(b"\n"))
    grandchild = int(recorder.said())

    await process.end()

    await recorder.until("closed")
    await gone(grandchild)


async def test_a_fugitive_does_not_escape(backend: Backend, gate: Gate) -> None:
    """It left the session, but it is one of those that the client's process has started."""
    script = f"setsid sh -c 'echo $$; {gate.shell}' & wait"
    recorder = record(process := await backend.start(sh(script)))
    await gate.reached()
    await recorder.when(lambda: recorder.said().endswith(b"\n"))
    fugitive = int(recorder.said())

    assert await process.end() == Ended(running=True)

    assert recorder.told[-2:] == [("exited", 137), ("closed",)]
    assert not is_alive(fugitive)


async def test_terminating_twice_or_after_the_end(backend: Backend, gate: Gate) -> None:
    recorder = record(process := await backend.start(sh(gate.shell)))
    await gate.reached()

    first, second = await asyncio.gather(process.end(), process.end())
    assert first.running
    assert second.survivors == ()  # Whether it still ran depends on how far apart two requests arrive.

    await recorder.until("closed")
    assert not (await process.end()).running
    assert recorder.told == [("exited", 137), ("closed",)]


async def test_terminating_what_has_exited_ends_those_it_left_behind(kept: HostedBackend, gate: Gate) -> None:
    recorder = record(process := await kept.start(sh(f"({gate.shell}) & echo $!")))
    await gate.reached()
    await recorder.until("exited", 0)
    leftover = int(recorder.said())

    assert await process.end() == Ended(running=False)

    assert not is_alive(leftover)
    assert not process.has_leftovers
    assert recorder.told[-2:] == [("exited", 0), ("closed",)]


# Forget.


async def test_forgetting_a_running_process_kills_it_and_drops_its_output(
    kept: HostedBackend, gate: Gate
) -> None:
    recorder = record(process := await kept.start(sh(f"echo said; ({gate.shell}) & {gate.shell}")))
    await gate.reached(2)
    await recorder.until("stdout", b"said\n")

    process.forget()

    await gone(process.pid)
    page = await process.read(wait=5)
    assert (page.chunks, process.retained()) == ([], 0)
    assert recorder.told == [("stdout", b"said\n")]


@pytest.mark.parametrize("leftovers", [Leftovers.END_GROUP, Leftovers.END])
async def test_forgetting_an_exited_process_can_end_those_it_left_behind(
    kept: HostedBackend, gate: Gate, leftovers: Leftovers
) -> None:
    recorder = record(process := await kept.start(sh(f"({gate.shell}) & echo $!")))
    await gate.reached()
    await recorder.until("exited", 0)
    leftover = int(recorder.said())

    process.forget(leftovers)

    await gone(leftover)
    page = await process.read()
    assert (page.chunks, page.exit_code, page.closed, process.retained()) == ([], 0, True, 0)


async def test_forgetting_a_closed_process_drops_its_output(kept: HostedBackend) -> None:
    process = await kept.start(sh("echo said"))
    await finished(process)
    assert process.retained() == 5

    process.forget()
    process.forget()

    page = await process.read()
    assert (page.chunks, page.closed, process.retained()) == ([], True, 0)


async def test_forgetting_a_closed_process_with_its_leftovers_kills_those_it_left_behind(
    kept: HostedBackend, gate: Gate
) -> None:
    """A daemon that closed its output and stayed in the group is still of the process's making."""
    recorder = record(process := await kept.start(sh(f"(exec >&- 2>&-; {gate.shell}) & echo $!")))
    await gate.reached()
    await recorder.until("closed")
    leftover = int(recorder.said())
    assert is_alive(leftover)

    try:
        process.forget(Leftovers.END)

        await gone(leftover)
    finally:
        end(leftover)


async def test_whoever_waits_for_a_forgotten_process_is_told_of_its_end(
    kept: HostedBackend, gate: Gate
) -> None:
    process = await kept.start(sh(gate.shell))
    await gate.reached()
    reading = asyncio.get_running_loop().create_task(process.read(after=5, wait=60))
    await asyncio.sleep(0)

    process.forget()

    page = await asyncio.wait_for(reading, 10)
    assert page.exit_code == 137


# The end of the backend.


async def test_closing_the_backend_ends_everything(backend: Backend, gate: Gate) -> None:
    running = [await backend.start(sh(f"trap '' TERM HUP; {gate.shell}")) for _ in range(3)]
    terminal = await backend.start(sh(f"trap '' TERM HUP; {gate.shell}", terminal=TERMINAL))
    recorder = record(await backend.start(sh(f"({gate.shell}) & echo $!")))
    await gate.reached(5)
    await recorder.until("exited", 0)
    leftover = int(recorder.said())

    await backend.aclose()

    for process in (*running, terminal):
        assert not is_alive(process.pid)
    await gone(leftover)


async def test_closing_an_idle_backend(backend: Backend) -> None:
    await finished(await backend.start(command("true")))

    await backend.aclose()
