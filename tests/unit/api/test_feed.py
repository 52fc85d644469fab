"""Between a process and whoever reads it."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable

import pytest

from holdfast.allowance import Allowance
from holdfast.api.feed import _QUEUE, OutputFeed, Reading
from holdfast.api.reader import LIMIT
from holdfast.backend import Backend, Process
from holdfast.engine.output import READ_SIZE
from holdfast.errors import LinkLost, OutOfTurn, OutputGap, ProcessLost
from holdfast.model import Chunk, Stream
from tests.fakes.gate import Gate
from tests.fakes.process import PATIENCE, eventually, sh

BOTH: dict[Stream, Stream | None] = {Stream.STDOUT: Stream.STDOUT, Stream.STDERR: Stream.STDERR}
MOST = 2 * LIMIT + 4 * READ_SIZE
"""What may wait for a reader: the mark, and what was on its way when it was reached."""


async def read_all(feed: OutputFeed) -> list[Chunk]:
    chunks = []
    async with asyncio.timeout(PATIENCE):
        while (chunk := await feed.chunk()) is not None:
            chunks.append(chunk)
    return chunks


def shut(feed: OutputFeed) -> Callable[[], bool]:
    return lambda: not feed._valve.is_open


async def test_chunks_come_with_their_numbers(backend: Backend) -> None:
    feed = OutputFeed(await backend.start(sh("echo out")), BOTH)

    assert await read_all(feed) == [Chunk(1, Stream.STDOUT, b"out\n")]
    assert feed.complete


async def test_what_waits_for_nobody_is_bounded(backend: Backend) -> None:
    process = await backend.start(sh("head -c 5000000 /dev/zero; exit 3"))
    feed = OutputFeed(process, BOTH)

    await eventually(shut(feed))
    assert 2 * _QUEUE < feed._queued <= 2 * _QUEUE + 4 * READ_SIZE
    assert process.exit is None

    assert sum(len(chunk.data) for chunk in await read_all(feed)) == 5_000_000
    assert process.exit_code == 3


async def test_a_stream_that_nobody_reads_is_bounded(backend: Backend) -> None:
    process = await backend.start(sh("echo; head -c 5000000 /dev/zero >&2; echo end"))
    feed = OutputFeed(process, BOTH)
    await feed.readers[Stream.STDOUT].readline()

    await eventually(shut(feed))
    assert 2 * LIMIT < feed.readers[Stream.STDERR].unread <= MOST

    async with asyncio.timeout(PATIENCE):
        assert len(await feed.readers[Stream.STDERR].readexactly(4_000_000)) == 4_000_000
        assert len(await feed.readers[Stream.STDERR].read()) == 1_000_000
        assert await feed.readers[Stream.STDOUT].read() == b"end\n"


async def test_the_way_of_reading_is_decided_once(backend: Backend) -> None:
    feed = OutputFeed(await backend.start(sh("echo a; echo b >&2")), BOTH)
    await feed.collect()

    feed.read_as(Reading.STREAMS)
    with pytest.raises(OutOfTurn):
        feed.read_as(Reading.CHUNKS)
    assert [await reader.read() for reader in feed.readers.values()] == [b"a\n", b"b\n"]


async def test_a_stream_ends_before_the_process_does(backend: Backend, gate: Gate) -> None:
    """Who reads one output to its end need not wait for the other."""
    feed = OutputFeed(await backend.start(sh(f"echo a; exec >&-; {gate.shell}")), BOTH)
    await gate.reached()

    async with asyncio.timeout(PATIENCE):
        assert await feed.readers[Stream.STDOUT].read() == b"a\n"
    assert not feed.complete
    assert not feed.readers[Stream.STDERR].at_eof()


async def test_a_stream_that_has_ended_before_anybody_reads_is_at_its_end(
    backend: Backend, gate: Gate
) -> None:
    feed = OutputFeed(await backend.start(sh(f"exec >&-; echo b >&2; {gate.shell}")), BOTH)
    await gate.reached()

    async with asyncio.timeout(PATIENCE):
        assert await feed.readers[Stream.STDERR].readline() == b"b\n"
        assert await feed.readers[Stream.STDOUT].read() == b""


# What was said before.


async def started(backend: Backend, script: str) -> Process:
    """A process that has said everything."""
    process = await backend.start(sh(script))
    assert await process.wait(PATIENCE) is not None
    await eventually(lambda: process.closed)
    return process


async def test_what_was_said_before_is_asked_for(backend: Backend) -> None:
    process = await started(backend, "echo a; echo b >&2")

    assert [chunk.data for chunk in await read_all(OutputFeed(process, BOTH, after=0))] == [b"a\n", b"b\n"]
    assert [chunk.seq for chunk in await read_all(OutputFeed(process, BOTH, after=1))] == [2]
    assert await read_all(OutputFeed(process, BOTH, after=100)) == []


async def test_two_who_read_both_streams_of_the_past_get_everything_once(backend: Backend) -> None:
    process = await started(backend, "for i in 1 2 3 4 5; do head -c 30000 /dev/zero; echo $i >&2; done")
    feed = OutputFeed(process, BOTH, after=0)

    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        reading = [group.create_task(reader.read()) for reader in feed.readers.values()]

    assert [task.result() for task in reading] == [bytes(150_000), b"1\n2\n3\n4\n5\n"]


async def test_new_output_waits_until_the_old_is_read(backend: Backend, gate: Gate) -> None:
    process = await backend.start(sh(f"head -c 200000 /dev/zero; {gate.shell}; head -c 900000 /dev/zero"))
    await gate.reached()
    feed = OutputFeed(process, BOTH, after=0)
    first = await feed.chunk()
    gate.open()
    await eventually(shut(feed))

    rest = await read_all(feed)

    assert first is not None
    assert [chunk.seq for chunk in [first, *rest]] == list(range(1, len(rest) + 2))
    assert len(first.data) + sum(len(chunk.data) for chunk in rest) == 1_100_000


# What is lost.


async def test_a_gap_is_told_between_what_is_before_and_behind_it(backend: Backend, gate: Gate) -> None:
    feed = OutputFeed(await backend.start(sh(gate.shell)), BOTH)
    feed.output(Chunk(1, Stream.STDOUT, b"before"))
    feed.lost(OutputGap(2, 4, 10))
    feed.output(Chunk(4, Stream.STDOUT, b"late"))
    feed.output(Chunk(5, Stream.STDOUT, b"behind"))

    assert await feed.chunk() == Chunk(1, Stream.STDOUT, b"before")
    with pytest.raises(OutputGap):
        await feed.chunk()
    assert await feed.chunk() == Chunk(5, Stream.STDOUT, b"behind")


async def test_a_gap_is_told_on_both_streams(backend: Backend, gate: Gate) -> None:
    """Nobody knows whose bytes are missing."""
    feed = OutputFeed(await backend.start(sh(gate.shell)), BOTH)
    feed.lost(OutputGap(1, 4, 10))
    feed.output(Chunk(5, Stream.STDERR, b"behind"))

    for reader in feed.readers.values():
        with pytest.raises(OutputGap):
            await reader.read(1)

    assert await feed.readers[Stream.STDERR].read(6) == b"behind"


@pytest.mark.parametrize("error", [LinkLost("cut"), ProcessLost("p", "expired")])
async def test_a_loss_is_told_behind_the_rest(backend: Backend, gate: Gate, error: LinkLost) -> None:
    chunked = OutputFeed(await backend.start(sh(gate.shell)), BOTH)
    streamed = OutputFeed(await backend.start(sh(gate.shell)), BOTH)
    for feed in (chunked, streamed):
        feed.output(Chunk(1, Stream.STDOUT, b"last"))
        feed.lost(error)

    assert await chunked.chunk() == Chunk(1, Stream.STDOUT, b"last")
    assert await streamed.readers[Stream.STDOUT].read(10) == b"last"
    for _ in range(2):
        with pytest.raises(type(error)):
            await chunked.chunk()
        with pytest.raises(type(error)):
            await streamed.readers[Stream.STDERR].read()
        with pytest.raises(type(error)):
            await streamed.collect()


# All feeds of a host together.


FLOOD = f"head -c {8 * _QUEUE} /dev/zero"


async def test_feeds_that_nobody_reads_hold_no_more_than_they_may_together(backend: Backend) -> None:
    """Each of them holds as much as a pipe would, and its process waits; nothing of it is lost."""
    unread = Allowance(2 * _QUEUE)
    feeds = [OutputFeed(await backend.start(sh(FLOOD)), BOTH, unread=unread) for _ in range(8)]
    for feed in feeds:
        await eventually(shut(feed))

    assert unread.is_used_up
    assert sum(feed._queued for feed in feeds) <= 2 * _QUEUE + len(feeds) * (LIMIT + 4 * READ_SIZE)
    for feed in feeds:
        assert sum(len(chunk.data) for chunk in await read_all(feed)) == 8 * _QUEUE
    assert not unread.is_used_up


async def test_streams_that_nobody_reads_hold_no_more_than_they_may_together(backend: Backend) -> None:
    unread = Allowance(1)
    feeds = [OutputFeed(await backend.start(sh(FLOOD)), BOTH, unread=unread) for _ in range(4)]
    for feed in feeds:
        assert len(await feed.readers[Stream.STDOUT].read(1)) == 1
        await eventually(shut(feed))

    assert sum(feed.readers[Stream.STDOUT].unread for feed in feeds) <= len(feeds) * (LIMIT + 4 * READ_SIZE)
    for feed in feeds:
        assert len(await feed.readers[Stream.STDOUT].read()) == 8 * _QUEUE - 1


async def test_what_is_collected_was_asked_for(backend: Backend) -> None:
    """Whoever wants everything gets it, and others are not held up by that."""
    unread = Allowance(1)
    feed = OutputFeed(await backend.start(sh(FLOOD)), BOTH, unread=unread)
    collecting = asyncio.ensure_future(feed.collect())
    await eventually(lambda: len(feed.readers[Stream.STDOUT]._data) > 2 * LIMIT)

    assert not unread.is_used_up
    async with asyncio.timeout(PATIENCE):
        await collecting
    assert feed.readers[Stream.STDOUT].unread == 8 * _QUEUE


async def test_a_process_that_says_little_ends_whether_or_not_it_is_read(backend: Backend) -> None:
    """As with a pipe: who only waits for it must not wait for what is unread of others."""
    unread = Allowance(0)
    feed = OutputFeed(process := await backend.start(sh("head -c 60000 /dev/zero")), BOTH, unread=unread)

    async with asyncio.timeout(PATIENCE):
        assert await process.wait(PATIENCE) is not None
    assert sum(len(chunk.data) for chunk in await read_all(feed)) == 60_000


async def test_a_feed_that_is_forgotten_holds_nothing(backend: Backend) -> None:
    unread = Allowance(1)
    feed = OutputFeed(process := await backend.start(sh("echo said")), BOTH, unread=unread)
    await eventually(lambda: process.closed)
    assert unread.is_used_up
    del feed
    gc.collect()

    assert not unread.is_used_up


# The end.


async def test_output_that_others_hold_open_is_given_up_after_a_while(backend: Backend, gate: Gate) -> None:
    early = OutputFeed(process := await backend.start(sh(f"({gate.shell}) & echo a")), BOTH)
    late = OutputFeed(process, BOTH)
    early.expect_end(0.01)
    await gate.reached()
    assert await process.wait(PATIENCE) is not None
    late.expect_end(0.01)

    for feed in (early, late):
        assert [chunk.data for chunk in await read_all(feed)] == [b"a\n"]


async def test_a_feed_that_was_stopped_is_at_its_end(backend: Backend, gate: Gate) -> None:
    process = await backend.start(sh(gate.shell))
    listening, sleeping = OutputFeed(process, BOTH), OutputFeed(process, BOTH, after=0)

    for feed in (listening, sleeping):
        feed.stop()
        assert await feed.chunk() is None
