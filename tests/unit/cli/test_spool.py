"""What is written faster than it is read: in order, all of it, and bounded."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator

import pytest

from holdfast.cli.report import Failure
from holdfast.cli.spool import _MOST_IN_MEMORY, SpooledOutput
from holdfast.config import MIB
from tests.fakes.server import PATIENCE

BLOCK = bytes(range(256)) * 4096


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):
            os.close(end)


async def write_on(out: SpooledOutput) -> None:
    for _ in range(1000):
        await out.write(BLOCK)
        await asyncio.sleep(0)


def numbered(number: int) -> bytes:
    return b"%8d" % number + BLOCK[8:]


async def read_all(end: int) -> bytes:
    def read() -> bytes:
        with os.fdopen(end, "rb", closefd=False) as file:
            return file.read()

    return await asyncio.to_thread(read)


async def test_a_reader_that_lags_behind_gets_everything_in_order(pipe: tuple[int, int]) -> None:
    """More than memory takes is written before the first byte is read, and more after it."""
    reading, writing = pipe
    out = SpooledOutput(writing)
    blocks = 4 * _MOST_IN_MEMORY // len(BLOCK)
    for number in range(blocks):
        await out.write(numbered(number))

    async with asyncio.timeout(4 * PATIENCE):
        found = asyncio.create_task(read_all(reading))
        for number in range(blocks, 2 * blocks):
            await out.write(numbered(number))
        await out.complete()
        os.close(writing)

        assert await found == b"".join(map(numbered, range(2 * blocks)))


async def test_no_more_than_a_bound_is_kept(pipe: tuple[int, int]) -> None:
    out = SpooledOutput(pipe[1], most=2 * MIB)

    with pytest.raises(Failure, match="2097152 bytes behind"):
        await write_on(out)
    await out.discard()
    await out.discard()


async def test_a_reader_that_has_gone_is_told_to_whoever_writes(pipe: tuple[int, int]) -> None:
    out = SpooledOutput(pipe[1])
    os.close(pipe[0])

    with pytest.raises(BrokenPipeError):
        await write_on(out)
    await out.discard()


async def test_nothing_is_written_after_all_was_dropped(pipe: tuple[int, int]) -> None:
    out = SpooledOutput(pipe[1])
    await out.write(BLOCK)

    await out.discard()
    os.close(pipe[1])

    assert len(await read_all(pipe[0])) < len(BLOCK)
