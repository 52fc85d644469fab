"""A client that does not read: what it holds of all processes together is bounded, and nothing is lost."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator

import pytest

import holdfast
from holdfast.api.handle import Handle
from holdfast.client.cursor import Cursor
from holdfast.client.process import RemoteProcess
from tests.fakes.server import eventually, program_at

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]

MIB = 1 << 20
PROCESSES = 40
SIZE = 2 * MIB
UNREAD = 8 * MIB
PIECE = 65_536
PIPES = 4 * PIECE
"""What is held of each process in any case: 64 KiB and a piece that nobody reads, a piece on its way."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with program_at() as (_, url):
        yield url


def held(handle: Handle) -> int:
    """Bytes of a process that are here and were not read."""
    return handle._feed._queued + cursor(handle)._waiting_bytes


def cursor(handle: Handle) -> Cursor:
    """How far the client is with a process, which is on a server."""
    assert isinstance(handle._process, RemoteProcess)
    return handle._process._cursor


def has_filled(handle: Handle) -> Callable[[], bool]:
    """Whether a process has ended, or cannot go on because as much of it is unread as may be."""
    return lambda: not handle._feed._valve.is_open or handle.returncode is not None


def script(number: int) -> list[str]:
    """A program that says its own text, of a known length, and ends."""
    return ["sh", "-c", f"yes 'process {number}' | head -c {SIZE}"]


def text(number: int) -> bytes:
    line = b"process %d\n" % number
    return (line * (SIZE // len(line) + 1))[:SIZE]


async def test_what_nobody_reads_is_bounded_in_sum_and_can_be_read_later(url: str) -> None:
    """With 4 MiB for each of them, and a thousand of them, a client would need gigabytes."""
    async with holdfast.connect(url, unread_bytes=UNREAD) as host:
        handles = [await host.start(script(number)) for number in range(PROCESSES)]
        most = 0
        for handle in handles:
            await eventually(has_filled(handle))
            most = max(most, sum(map(held, handles)))
        for _ in range(5):
            await host.processes()  # Whatever was on its way has come before the answer.
            most = max(most, sum(map(held, handles)))

        assert most <= UNREAD + PROCESSES * PIPES
        assert most < PROCESSES * SIZE // 2
        async with asyncio.timeout(50):
            for number, handle in enumerate(handles):
                said = b"".join([data async for data in handle])
                assert hashlib.sha256(said).digest() == hashlib.sha256(text(number)).digest()
                assert (await handle.wait()).exit_code == 0
        assert sum(map(held, handles)) == 0


async def test_who_reads_promptly_is_not_held_up(url: str) -> None:
    """Also with next to nothing: it only takes more messages."""
    async with holdfast.connect(url, unread_bytes=1) as host:

        async def read(number: int) -> bool:
            handle = await host.start(script(number))
            return b"".join([data async for data in handle]) == text(number)

        async with asyncio.timeout(50):
            assert all(await asyncio.gather(*(read(number) for number in range(PROCESSES))))


async def test_who_only_waits_for_those_that_say_little_is_not_held_up(url: str) -> None:
    """As with pipes: 64 KiB need no reader."""
    async with holdfast.connect(url, unread_bytes=1) as host:
        handles = [await host.start(["head", "-c", "60000", "/dev/zero"]) for _ in range(PROCESSES)]

        async with asyncio.timeout(50):
            assert [(await handle.wait()).exit_code for handle in handles] == [0] * PROCESSES
        for handle in handles:
            assert len(b"".join([data async for data in handle])) == 60_000


async def test_what_was_ended_unread_leaves_room_for_others(url: str) -> None:
    async with holdfast.connect(url, unread_bytes=UNREAD) as host:
        for _ in range(3):
            handles = [await host.start(["yes"]) for _ in range(20)]
            for handle in handles:
                await handle.end()
                handle.detach()
            handles.clear()
        handle = await host.start(["yes"])
        window = cursor(handle).window
        await handle.end()

        assert window == UNREAD // 16
