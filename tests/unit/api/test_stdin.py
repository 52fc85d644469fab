"""Bytes for a process."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.api.stdin import Stdin
from holdfast.backend import Backend
from holdfast.config import EngineLimits
from holdfast.errors import OutOfTurn
from tests.fakes.gate import Gate
from tests.fakes.process import PATIENCE, command, running_backend, sh
from tests.fakes.recorder import record


async def test_writes_arrive_whole_and_in_order(backend: Backend) -> None:
    recorder = record(process := await backend.start(command("cat", stdin=True)))
    stdin = Stdin(process)
    pieces = [b"%d," % number * (number % 7) for number in range(5000)] + [b"x" * 1_000_000, b"y"]

    for piece in pieces:
        stdin.write(piece)
        await stdin.drain()
    stdin.write_eof()
    stdin.write_eof()
    await stdin.wait_closed()
    await recorder.until("closed")

    assert recorder.said() == b"".join(pieces)


async def test_two_writers_of_one_process_do_not_pass_for_each_other(backend: Backend) -> None:
    """A write that looks like one that was made before is not made."""
    recorder = record(process := await backend.start(command("cat", stdin=True)))
    first, second = Stdin(process), Stdin(process)

    first.write(b"one\n")
    await recorder.until_said(b"one\n")
    second.write(b"two\n")
    second.close()
    await recorder.until("closed")

    assert recorder.said() == b"one\ntwo\n"


async def test_drain_waits_for_a_process_that_does_not_read(gate: Gate) -> None:
    limits = EngineLimits(stdin_bytes=1, stdin_chunks=1)
    async with running_backend(limits) as backend:
        recorder = record(process := await backend.start(sh(f"{gate.shell}; cat | wc -c", stdin=True)))
        stdin = Stdin(process)
        await gate.reached()
        stdin.write(bytes(2_000_000))

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):
                await stdin.drain()
        gate.open()
        async with asyncio.timeout(PATIENCE):
            await stdin.drain()
        stdin.close()
        await recorder.until("closed")

        assert recorder.said().strip() == b"2000000"


async def test_a_process_that_closes_its_stdin_breaks_the_pipe(backend: Backend, gate: Gate) -> None:
    process = await backend.start(sh(f"exec <&-; {gate.shell}", stdin=True))
    stdin = Stdin(process)
    await gate.reached()
    assert not stdin.is_closing()

    stdin.write(b"unwanted")
    with pytest.raises(BrokenPipeError):
        async with asyncio.timeout(PATIENCE):
            await stdin.wait_closed()

    assert stdin.is_closing()
    with pytest.raises(BrokenPipeError):
        await stdin.drain()
    stdin.write(b"dropped")
    stdin.close()


async def test_a_process_that_is_ended_breaks_the_pipe(backend: Backend, gate: Gate) -> None:
    process = await backend.start(sh(gate.shell, stdin=True))
    stdin = Stdin(process)
    await gate.reached()
    await process.terminate()

    stdin.write(b"too late")

    with pytest.raises(BrokenPipeError):
        await stdin.wait_closed()


async def test_nothing_is_written_behind_the_end(backend: Backend) -> None:
    process = await backend.start(command("cat", stdin=True))
    stdin = Stdin(process)
    assert stdin.can_write_eof()
    stdin.close()

    with pytest.raises(OutOfTurn, match="closed"):
        stdin.write(b"more")
    await stdin.wait_closed()
