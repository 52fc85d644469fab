"""Reading: what was said since a number, at once or when there is something."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from holdfast.backend import Backend, Process
from holdfast.model import Page
from tests.fakes.gate import Gate
from tests.fakes.process import PATIENCE, sh
from tests.fakes.recorder import Recorder, finished, record

LONG = 3600.0
"""Seconds nobody waits for: a test that gets here has failed."""


async def speak(backend: Backend, gate: Gate, *words: str, end: str = "exit 3") -> tuple[Process, Recorder]:
    """A process that said each of these words as a chunk of its own."""
    script = "; ".join(f"{gate.shell}; printf {word}" for word in words)
    process = await backend.start(sh(f"{script}; {end}"))
    recorder = record(process)
    for word in words:
        await gate.reached()
        gate.open()
        await recorder.until("stdout", word.encode())
    return process, recorder


async def spoken(backend: Backend, gate: Gate) -> Process:
    """Chunks 1 to 3 of 4, 5 and 6 bytes, exit 4, close 5."""
    process, recorder = await speak(backend, gate, "aaaa", "bbbbb", "cccccc")
    await recorder.until("closed")
    return process


def begin(reading: Awaitable[Page]) -> asyncio.Future[Page]:
    """Start reading, and let it come to where it waits."""
    return asyncio.ensure_future(reading)


def numbers(page: Page) -> list[int]:
    return [chunk.seq for chunk in page.chunks]


# What is there.


async def test_everything_is_given_with_what_comes_after_it(backend: Backend, gate: Gate) -> None:
    process = await spoken(backend, gate)

    page = await process.read()

    assert [(chunk.seq, chunk.stream.value, chunk.data) for chunk in page.chunks] == [
        (1, "stdout", b"aaaa"),
        (2, "stdout", b"bbbbb"),
        (3, "stdout", b"cccccc"),
    ]
    assert (page.next_seq, page.exit_code, page.exited, page.closed) == (6, 3, True, True)


@pytest.mark.parametrize(
    ("after", "limit", "chunks", "next_seq"),
    [
        (0, None, [1, 2, 3], 6),
        (1, None, [2, 3], 6),
        (3, None, [], 6),
        (4, None, [], 6),
        (99, None, [], 6),
        (0, 0, [1], 2),  # At least one chunk, so that a small limit cannot stall a reader.
        (0, 1, [1], 2),
        (0, 3, [1], 2),
        (0, 4, [1], 2),  # Exactly.
        (0, 8, [1], 2),  # The next would go over.
        (0, 9, [1, 2], 3),
        (0, 14, [1, 2], 3),
        (0, 15, [1, 2, 3], 4),  # Full: the next answer tells of the exit.
        (0, 16, [1, 2, 3], 4),  # Not full, but with a limit the last chunk counts.
        (1, 5, [2], 3),
        (2, 0, [3], 4),
        (3, 5, [], 6),
        (5, 5, [], 6),
    ],
)
async def test_the_next_number_is_that_of_the_last_chunk_given_or_of_the_next_event(
    backend: Backend, gate: Gate, after: int, limit: int | None, chunks: list[int], next_seq: int
) -> None:
    process = await spoken(backend, gate)

    page = await process.read(after=after, limit=limit)

    assert (numbers(page), page.next_seq, page.exit_code, page.closed) == (chunks, next_seq, 3, True)


async def test_a_reader_with_a_limit_gets_everything_in_the_end(backend: Backend) -> None:
    process = await backend.start(sh("seq 1 50000; seq 1 50000 >&2"))
    recorder = await finished(process)

    after, got, page = 0, list[int](), await process.read(limit=10_000)
    while page.chunks:
        got += numbers(page)
        after = page.next_seq - 1
        page = await process.read(after=after, limit=10_000)

    assert got == [chunk.seq for chunk in recorder.chunks]
    assert page.next_seq == process.next_seq


async def test_reading_takes_nothing_away(backend: Backend, gate: Gate) -> None:
    process = await spoken(backend, gate)

    assert await process.read() == await process.read()
    assert await process.read(after=1, limit=1) == await process.read(after=1, limit=1)


async def test_nothing_yet_is_an_empty_answer(backend: Backend, gate: Gate) -> None:
    process = await backend.start(sh(gate.shell))
    await gate.reached()

    assert await process.read() == Page([], 1, None, False)


# Waiting.


async def test_what_is_there_is_given_at_once_however_long_one_would_wait(
    backend: Backend, gate: Gate
) -> None:
    process, _ = await speak(backend, gate, "word", end=gate.shell)

    page = await asyncio.wait_for(process.read(wait=LONG), PATIENCE)

    assert (numbers(page), page.exited) == ([1], False)


async def test_a_waiting_reader_is_woken_by_output(backend: Backend, gate: Gate) -> None:
    process = await backend.start(sh(f"{gate.shell}; printf word; {gate.shell}"))
    await gate.reached()
    reading = begin(process.read(wait=LONG))
    await asyncio.sleep(0)
    assert not reading.done()

    gate.open()

    page = await asyncio.wait_for(reading, PATIENCE)
    assert (numbers(page), page.next_seq, page.exited) == ([1], 2, False)


async def test_a_waiting_reader_is_woken_by_the_exit(backend: Backend, gate: Gate) -> None:
    """Though the output is still held open by somebody else."""
    process = await backend.start(sh(f"({gate.shell}) & {gate.shell}; exit 3"))
    await gate.reached(2)
    reading = begin(process.read(wait=LONG))
    await asyncio.sleep(0)

    gate.open(2)

    page = await asyncio.wait_for(reading, PATIENCE)
    assert (numbers(page), page.exit_code) == ([], 3)
    assert page.next_seq >= 2


async def test_a_reader_beyond_the_exit_keeps_waiting_until_the_close(backend: Backend, gate: Gate) -> None:
    process = await backend.start(sh(f"({gate.shell}) & exit 3"))
    recorder = record(process)
    await gate.reached()
    await recorder.until("exited", 3)
    reading = begin(process.read(after=1, wait=LONG))
    await asyncio.sleep(0)
    assert not reading.done()

    gate.open()

    page = await asyncio.wait_for(reading, PATIENCE)
    assert (page.chunks, page.next_seq, page.exit_code, page.closed) == ([], 3, 3, True)


async def test_a_reader_beyond_the_exit_is_woken_by_late_output(backend: Backend, gate: Gate) -> None:
    process = await backend.start(sh(f"({gate.shell}; printf late; {gate.shell}) & exit 3"))
    recorder = record(process)
    await gate.reached()
    await recorder.until("exited", 3)
    reading = begin(process.read(after=1, wait=LONG))
    await asyncio.sleep(0)

    gate.open()

    page = await asyncio.wait_for(reading, PATIENCE)
    assert [(chunk.seq, chunk.data) for chunk in page.chunks] == [(2, b"late")]
    assert (page.next_seq, page.exit_code, page.closed) == (3, 3, False)


async def test_a_reader_that_has_not_seen_the_exit_is_told_at_once(backend: Backend, gate: Gate) -> None:
    process = await backend.start(sh(f"({gate.shell}) & exit 3"))
    await record(process).until("exited", 3)

    page = await asyncio.wait_for(process.read(wait=LONG), PATIENCE)
    assert (page.chunks, page.next_seq, page.exit_code, page.closed) == ([], 2, 3, False)


async def test_a_closed_process_answers_at_once_wherever_the_reader_is(backend: Backend, gate: Gate) -> None:
    process = await spoken(backend, gate)

    page = await asyncio.wait_for(process.read(after=10**9, wait=LONG), PATIENCE)
    assert (page.chunks, page.next_seq, page.exit_code, page.closed) == ([], 6, 3, True)


async def test_a_reader_that_is_ahead_waits_for_what_it_does_not_know(backend: Backend, gate: Gate) -> None:
    """Output that it has, by its own count, is no news."""
    process = await backend.start(sh(f"{gate.shell}; printf one; {gate.shell}; printf two; {gate.shell}"))
    recorder = record(process)
    await gate.reached()
    reading = begin(process.read(after=1, wait=LONG))
    await asyncio.sleep(0)

    gate.open()
    await recorder.until("stdout", b"one")
    await gate.reached()
    assert not reading.done()
    gate.open()

    page = await asyncio.wait_for(reading, PATIENCE)
    assert [(chunk.seq, chunk.data) for chunk in page.chunks] == [(2, b"two")]


async def test_a_wait_comes_to_its_end(backend: Backend, gate: Gate) -> None:
    process = await backend.start(sh(gate.shell))
    loop = asyncio.get_running_loop()
    begun = loop.time()

    page = await asyncio.wait_for(process.read(wait=0.02), PATIENCE)

    assert page == Page([], 1, None, False)
    assert loop.time() - begun >= 0.02


async def test_many_readers_are_woken_by_one_event(backend: Backend, gate: Gate) -> None:
    process = await backend.start(sh(f"{gate.shell}; printf word; {gate.shell}"))
    await gate.reached()
    readings = [begin(process.read(wait=LONG)) for _ in range(20)]
    await asyncio.sleep(0)

    gate.open()

    pages = await asyncio.wait_for(asyncio.gather(*readings), PATIENCE)
    assert [numbers(page) for page in pages] == [[1]] * 20


async def test_a_cancelled_reader_loses_nothing_for_the_others(backend: Backend, gate: Gate) -> None:
    process = await backend.start(sh(f"{gate.shell}; printf word; {gate.shell}"))
    await gate.reached()
    cancelled, other = begin(process.read(wait=LONG)), begin(process.read(wait=LONG))
    await asyncio.sleep(0)

    cancelled.cancel()
    gate.open()

    assert numbers(await asyncio.wait_for(other, PATIENCE)) == [1]
    assert cancelled.cancelled()
    assert numbers(await process.read()) == [1]
