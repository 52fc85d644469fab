"""Bytes for a process."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable
from typing import NamedTuple, cast

import pytest

from holdfast.api.stdin import StdinWriter
from holdfast.backend import Backend, Process
from holdfast.config import EngineLimits
from holdfast.errors import Forbidden, LimitReached, LinkLost, OutOfTurn
from holdfast.model import WriteStatus
from tests.fakes.gate import Gate
from tests.fakes.process import PATIENCE, command, running_backend, sh
from tests.fakes.recorder import record


async def test_writes_arrive_whole_and_in_order(backend: Backend) -> None:
    recorder = record(process := await backend.start(command("cat", stdin=True)))
    stdin = StdinWriter(process)
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
    first, second = StdinWriter(process), StdinWriter(process)

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
        stdin = StdinWriter(process)
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
    stdin = StdinWriter(process)
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
    stdin = StdinWriter(process)
    await gate.reached()
    await process.end()

    stdin.write(b"too late")

    with pytest.raises(BrokenPipeError):
        await stdin.wait_closed()


async def test_nothing_is_written_behind_the_end(backend: Backend) -> None:
    process = await backend.start(command("cat", stdin=True))
    stdin = StdinWriter(process)
    assert stdin.can_write_eof()
    stdin.close()

    with pytest.raises(OutOfTurn, match="closed"):
        stdin.write(b"more")
    await stdin.wait_closed()


# Trouble.


class Refusing:
    """A process whose host refuses some writes.  It notes what it was given."""

    def __init__(self, *answers: WriteStatus | Exception) -> None:
        """``answers`` are those to the first writes; then all are accepted."""
        self.got: list[bytes] = []
        self.ends = 0
        self._answers = list(answers)
        self.open = asyncio.Event()
        self.open.set()
        self.asked = asyncio.Event()

    async def write(self, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        self.asked.set()
        await self.open.wait()
        answer = self._answers.pop(0) if self._answers else WriteStatus.ACCEPTED
        if isinstance(answer, Exception):
            raise answer
        self.got.append(data)
        return answer

    async def close_stdin(self, *, write_id: str | None = None) -> WriteStatus:
        self.ends += 1
        return await self.write(b"", write_id=write_id)


def refused(*answers: WriteStatus | Exception, wake: Callable[[], object] = lambda: None) -> Scene:
    process = Refusing(*answers)
    return Scene(process, StdinWriter(cast("Process", process), wake=wake))


class Scene(NamedTuple):
    process: Refusing
    stdin: StdinWriter


ERRORS = [
    Forbidden("method", "process/write"),
    LimitReached("requests waiting for an answer", 2),
    LinkLost("gone"),
    RuntimeError("a mistake of ours"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
async def test_whatever_keeps_bytes_from_the_process_is_raised_by_everything(error: Exception) -> None:
    """An error that only the task knew of left ``drain`` waiting for ever."""
    process, stdin = refused(error)
    stdin.write(bytes(100_000))

    for _ in range(2):
        with pytest.raises(type(error)):
            await stdin.drain()
    with pytest.raises(type(error)):
        await stdin.wait_closed()
    with pytest.raises(type(error)):
        stdin.write(b"more")
    with pytest.raises(type(error)):
        stdin.writelines([b"more"])
    with pytest.raises(type(error)):
        stdin.write_eof()
    with pytest.raises(type(error)):
        stdin.close()
    assert stdin.is_closing()
    assert (process.got, process.ends) == ([], 0)


async def test_nothing_follows_what_was_not_handed_over() -> None:
    """What the process gets is a beginning of what was written, and never looks complete."""
    process, stdin = refused(WriteStatus.ACCEPTED, LimitReached("requests", 2))
    process.open.clear()
    stdin.write(b"first")
    await process.asked.wait()  # The rest makes another piece.
    stdin.write(b"second")
    stdin.write(b"third")
    stdin.write_eof()
    process.open.set()

    with pytest.raises(LimitReached):
        await stdin.wait_closed()
    with pytest.raises(LimitReached):
        stdin.write(b"fourth")
    assert (process.got, process.ends) == ([b"first"], 0)


async def test_an_end_that_is_refused_is_told() -> None:
    process, stdin = refused(WriteStatus.ACCEPTED, Forbidden("method", "process/closeStdin"))
    stdin.write(b"all")
    stdin.close()

    with pytest.raises(Forbidden):
        await stdin.wait_closed()
    assert (process.got, process.ends) == ([b"all"], 1)


async def test_an_error_does_not_grow_with_those_who_are_told() -> None:
    _, stdin = refused(Forbidden("method", "process/write"))
    stdin.write(b"x")
    depths = []

    for _ in range(3):
        with pytest.raises(Forbidden) as caught:
            await stdin.wait_closed()
        depths.append(len(traceback.extract_tb(caught.value.__traceback__)))

    assert len(set(depths)) == 1


async def test_a_loop_that_ends_is_trouble_too() -> None:
    """Whoever is told by another loop must not wait for a task that is gone."""
    process, stdin = refused()
    process.open.clear()
    stdin.write(b"x")
    await process.asked.wait()
    assert stdin._task is not None
    stdin._task.cancel()

    with pytest.raises(OutOfTurn, match="event loop"):
        await stdin.wait_closed()


async def test_what_is_written_as_the_task_ends_is_handed_over() -> None:
    """Between the end of the task and the news of it others run."""
    process, stdin = refused()
    stdin.write(b"one")
    while process.got != [b"one"]:  # noqa: ASYNC110  (a turn of the loop at a time, to hit that moment)
        await asyncio.sleep(0)
    stdin.write(b"two")
    stdin.write_eof()
    await stdin.wait_closed()

    assert (process.got, process.ends) == ([b"one", b"two", b""], 1)


# Trouble, and those who wait for the process.


async def test_who_waits_is_told_unless_a_writer_is() -> None:
    woken: list[None] = []
    process, stdin = refused(Forbidden("method", "process/write"), wake=lambda: woken.append(None))
    process.open.clear()
    stdin.write(bytes(100_000))
    draining = asyncio.ensure_future(stdin.drain())
    await process.asked.wait()
    process.open.set()

    with pytest.raises(Forbidden):
        await draining
    assert woken == []
    stdin.raise_trouble()  # It is known.
    with stdin.raising_trouble():
        await asyncio.sleep(0)


async def test_who_waits_is_told_once_if_nobody_else_is() -> None:
    woken = asyncio.Event()
    _, stdin = refused(Forbidden("method", "process/write"), wake=woken.set)
    stdin.write(b"x")
    await woken.wait()

    with pytest.raises(Forbidden):
        stdin.raise_trouble()
    stdin.raise_trouble()


async def test_a_block_that_waits_ends_with_the_trouble() -> None:
    process, stdin = refused(Forbidden("method", "process/write"))
    process.open.clear()
    stdin.write(b"x")

    async def wait() -> None:
        with stdin.raising_trouble():
            process.open.set()
            await asyncio.Event().wait()

    waiting = [asyncio.ensure_future(wait()) for _ in range(2)]
    for each in waiting:
        with pytest.raises(Forbidden):
            await each
        assert each.cancelling() == 0


async def test_a_block_that_is_cancelled_in_the_same_moment_is_cancelled() -> None:
    """Whoever cancels has the last word, as with a timeout."""
    process, stdin = refused(Forbidden("method", "process/write"))
    process.open.clear()
    stdin.write(b"x")

    async def wait() -> None:
        with stdin.raising_trouble():
            await asyncio.Event().wait()

    waiting = asyncio.ensure_future(wait())
    await process.asked.wait()
    fail = stdin._fail

    def failed(error: BaseException) -> None:
        fail(error)
        waiting.cancel()

    stdin._fail = failed  # type: ignore[method-assign]
    process.open.set()

    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(Forbidden):
        stdin.raise_trouble()  # It was told to nobody.


async def test_a_process_that_takes_no_more_is_no_trouble() -> None:
    woken: list[None] = []
    _, stdin = refused(WriteStatus.STDIN_CLOSED, wake=lambda: woken.append(None))
    stdin.write(b"x")
    with pytest.raises(BrokenPipeError):
        await stdin.wait_closed()

    stdin.raise_trouble()
    stdin.write(b"dropped")
    stdin.write_eof()
    stdin.finish(b"dropped, too")
    assert woken == []
