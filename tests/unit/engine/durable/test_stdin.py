"""Input with a journal, as far as it differs from that without: how it is found again.

That it behaves as a stdin is tested in ``tests/unit/engine/test_stdin.py``, on both forms.
"""

from __future__ import annotations

import asyncio
import errno
import os
import tty
from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.config import EngineLimits
from holdfast.engine.durable import layout, stdin
from holdfast.engine.durable.record import Records
from holdfast.engine.durable.stdin import DurableStdin
from holdfast.errors import LimitReached
from holdfast.host.arena import BLOCK, BLOCK_SIZE, LENT_CELL, PAGE
from holdfast.host.pty import open_terminal
from holdfast.model import Size, WriteStatus
from holdfast.poller import Poller
from tests.fakes.durable import Killed, Memory, MortalMemory, memory
from tests.fakes.process import eventually

ACCEPTED, CLOSED = WriteStatus.ACCEPTED, WriteStatus.STDIN_CLOSED


class World:
    """A child that reads, what a shim holds of it, and its stdin."""

    def __init__(self, shelf: Memory, limits: EngineLimits | None = None) -> None:
        self.shelf = shelf
        self.limits = limits or EngineLimits()
        self.out, self.into = shelf.pipe()
        self.poller = Poller()
        self.poller.attach(asyncio.get_running_loop())
        self.arena = shelf.arena()
        self.record = Records(self.arena).open(b"facts")
        self.record.started(1, 1.0)
        self.stdin = DurableStdin(self.record, os.dup(self.into), **self._means())

    def _means(self) -> dict[str, Any]:
        loop, shelf = asyncio.get_running_loop(), self.shelf
        return {
            "loop": loop,
            "poller": self.poller,
            "limits": self.limits,
            "hold": shelf.hold,
            "drop": shelf.drop,
        }

    def restart(self) -> DurableStdin:
        """The next server's stdin; the one before is gone with its descriptors."""
        fd = self.stdin.let_go()
        if fd is not None:
            os.close(fd)
        self.arena = self.shelf.arena()
        (self.record,) = Records(self.arena).scan()
        assert not self.record.damaged
        cursor = os.dup(self.shelf.held[-1]) if self.shelf.held else -1
        self.stdin = DurableStdin.recover(self.record, os.dup(self.into), cursor, **self._means())
        return self.stdin

    def read(self) -> bytes:
        """What the child reads until there is nothing more to be read."""
        data = b""
        while True:
            try:
                piece = os.read(self.out, 1 << 20)
            except BlockingIOError:
                return data
            if not piece:
                return data
            data += piece
            self.stdin.on_ready()

    def close(self) -> None:
        self.stdin.close()
        self.poller.close()


@pytest.fixture
def shelf() -> Iterator[Memory]:
    with memory(400 * BLOCK_SIZE) as shelf:
        yield shelf


@pytest.fixture
async def world(shelf: Memory) -> World:
    return World(shelf)


@pytest.mark.parametrize("size", [1, 80, PAGE, PAGE + 1, BLOCK_SIZE, BLOCK_SIZE + 1, 1 << 20])
async def test_what_was_accepted_is_given_once_whoever_gives_it(world: World, size: int) -> None:
    data = os.urandom(size)
    assert world.stdin.try_write(data, "a") is ACCEPTED
    begun = os.read(world.out, 1000)

    world.restart()
    assert world.stdin.try_write(b"again", "a") is ACCEPTED
    assert world.stdin.try_write(b"more", "b") is ACCEPTED

    assert begun + world.read() == data + b"more"
    world.close()


async def test_what_was_accepted_and_not_given_at_all_is_given_by_the_next(world: World) -> None:
    world.stdin.try_write(b"one", "1")
    assert world.stdin._accept(b"two", "2")

    world.restart()

    assert world.read() == b"onetwo"
    assert world.stdin.try_write(b"two", "2") is ACCEPTED
    assert world.read() == b""
    world.close()


@pytest.mark.parametrize("count", [63, 64, 65, 200, 5000])
async def test_as_many_identifiers_are_remembered_as_there_are_entries(world: World, count: int) -> None:
    for number in range(count):
        assert world.stdin.try_write(b"x", f"{number} {'long' * (number % 30)}") is ACCEPTED
        os.read(world.out, 9)

    world.restart()

    first = max(0, count - 4096)
    for number in (first, (first + count) // 2, count - 1):
        assert world.stdin.has_accepted(f"{number} {'long' * (number % 30)}")
    assert not world.stdin.has_accepted("another")
    assert world.stdin.has_accepted("0 ") == (first == 0)
    world.close()


async def test_the_oldest_identifiers_are_forgotten_as_if_nobody_had_died(shelf: Memory) -> None:
    world = World(shelf, EngineLimits(write_ids=3))
    for write_id in ("a", "b" * 100, "c", "d"):
        world.stdin.try_write(b"x", write_id)

    world.restart()
    world.stdin.try_write(b"x", "e")

    assert [world.stdin.has_accepted(each) for each in ("a", "b" * 100, "c", "d", "e")] == [
        False,
        False,
        True,
        True,
        True,
    ]
    assert world.stdin.remembers
    world.close()


async def test_a_stdin_that_was_never_written_to_needs_nothing(world: World) -> None:
    used = world.arena.used

    world.restart()
    assert (world.arena.used, world.shelf.held) == (used, [])
    assert world.stdin.finish() is ACCEPTED

    assert world.stdin.closed
    assert world.shelf.dropped == 1
    assert world.arena.used == used
    world.close()


async def test_the_cursor_is_held_by_somebody_else_before_anything_is_accepted(world: World) -> None:
    world.stdin.try_write(b"x", "a")

    assert len(world.shelf.held) == 1
    assert os.lseek(world.shelf.held[0], 0, os.SEEK_CUR) == world.stdin._at
    world.close()


@pytest.mark.parametrize("last", [b"", b"\n\x04"])
async def test_the_end_of_input_outlives_the_server(world: World, last: bytes) -> None:
    world.stdin.try_write(b"x" * (1 << 20), "a")
    assert (world.stdin.finish(last, "end"), world.stdin.closed) == (ACCEPTED, False)

    world.restart()

    assert world.stdin.try_write(b"late", "late") is CLOSED
    assert world.stdin.finish(last, "end") is ACCEPTED
    assert world.stdin.finish(last, "another") is CLOSED
    assert world.read() == b"x" * (1 << 20) + last
    assert world.stdin.closed
    assert world.shelf.dropped == 1
    world.close()


async def test_the_last_bytes_come_once_also_if_somebody_stood_in_line_before_them(shelf: Memory) -> None:
    """Those in line were not accepted, and are told so by the next server."""
    world = World(shelf, EngineLimits(stdin_chunks=1))
    world.stdin.try_write(b"x" * (1 << 20), "a")
    waiting = asyncio.get_running_loop().create_task(world.stdin.write(b"waits", "b"))
    await asyncio.sleep(0)
    world.stdin.finish(b"\n\x04", "end")

    world.restart()
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)

    assert world.stdin.try_write(b"waits", "b") is CLOSED
    assert world.read() == b"x" * (1 << 20) + b"\n\x04"
    world.restart()
    assert world.read() == b""
    world.close()


async def test_a_closed_stdin_stays_closed_and_remembers(world: World) -> None:
    world.stdin.try_write(b"x" * (1 << 20), "a")
    world.stdin.close()

    world.restart()

    assert world.stdin.closed
    assert world.shelf.dropped == 2  # The server may have died before it said so.
    assert world.stdin.try_write(b"", "a") is ACCEPTED
    assert world.stdin.try_write(b"", "b") is CLOSED
    world.close()


async def test_without_the_cursor_nobody_knows_what_was_given_and_stdin_is_closed(world: World) -> None:
    world.stdin.try_write(b"x", "a")
    world.shelf.held.clear()

    world.restart()

    assert world.stdin.closed
    assert world.stdin.has_accepted("a")
    world.close()


async def test_a_child_that_reads_no_more_is_not_told_that_its_input_was_accepted(world: World) -> None:
    world.stdin.try_write(b"x", "a")
    os.dup2(world.shelf.own(os.open("/dev/null", os.O_RDONLY)), world.out)

    assert world.stdin.try_write(b"y", "b") is CLOSED
    assert world.stdin.closed

    world.restart()
    assert [world.stdin.has_accepted(each) for each in "ab"] == [True, False]
    world.close()


async def test_bytes_in_the_pipe_stay_as_they_are_however_much_follows(world: World) -> None:
    """The pipe has the very pages of the journal: they must not be used again."""
    expected = b""
    read = b""
    for number in range(600):
        data = os.urandom(3000)
        assert world.stdin.try_write(data, str(number)) is ACCEPTED
        expected += data
        if number % 9 == 8:
            read += world.read()
            if number % 27 == 8:
                world.restart()

    assert read + world.read() == expected
    world.close()


async def test_a_child_that_is_given_little_for_hours_takes_little_memory(world: World) -> None:
    before = world.arena.used
    for number in range(3000):
        world.stdin.try_write(b"x" * 300, str(number))
        os.read(world.out, 1000)

    assert world.arena.used - before < 4 * 65_536 + BLOCK_SIZE
    world.close()


# Terminals.


async def test_a_terminal_is_given_its_input_by_the_cursor_too(world: World) -> None:
    master, peer = open_terminal(Size())
    world.shelf.own(peer)
    tty.setraw(peer)
    os.set_blocking(peer, False)
    world.into, world.out = world.shelf.own(master), peer
    world.restart()
    data = os.urandom(30_000)
    assert world.stdin.try_write(data, "a") is ACCEPTED
    read = bytearray()
    has_restarted = False

    def more() -> bool:
        try:
            read.extend(os.read(peer, 1 << 20))
        except BlockingIOError:
            return False
        nonlocal has_restarted
        if len(read) > 10_000 and not has_restarted:
            has_restarted = True
            world.restart()
        world.stdin.on_ready()
        return len(read) >= len(data)

    await eventually(more)

    assert bytes(read) == data
    assert has_restarted
    world.close()


# Want of memory.


def fill(world: World) -> list[int]:
    """Leave no memory."""
    made: list[int] = []
    try:
        while True:
            made.append(world.arena.allocate(BLOCK))
            world.arena.back(made[-1], BLOCK_SIZE)
    except LimitReached:
        return made


async def test_a_write_for_which_there_is_no_memory_waits(shelf: Memory) -> None:
    world = World(shelf)
    world.arena.limit = 6 * BLOCK_SIZE
    made = fill(world)

    assert world.stdin.try_write(b"x" * 10_000, "a") is None
    writing = asyncio.get_running_loop().create_task(world.stdin.write(b"x" * 10_000, "a"))
    await asyncio.sleep(0)
    assert not writing.done()
    world.arena.release(made.pop())

    assert await writing is ACCEPTED
    assert world.read() == b"x" * 10_000
    world.close()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.ENOMEM])
async def test_one_that_the_system_refuses_waits_and_leaves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", refuse)
        for _ in range(5):
            assert world.stdin.try_write(b"x" * 10_000, "a") is None
        assert world.stdin._journal.cells == []

    assert world.stdin.try_write(b"x" * 10_000, "a") is ACCEPTED
    assert world.read() == b"x" * 10_000
    world.close()


async def test_a_child_whose_pipe_is_full_for_now_is_given_the_rest_later(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOMEM, "no memory")

    world.stdin.try_write(b"one", "1")
    with monkeypatch.context() as patch:
        patch.setattr(stdin, "sendfile", refuse)
        assert world.stdin.try_write(b"two", "2") is ACCEPTED
    world.stdin.on_ready()

    assert world.read() == b"onetwo"
    world.close()


async def test_a_cursor_that_nobody_can_hold_makes_the_write_wait(world: World) -> None:
    refusals = [OSError(errno.EAGAIN, "busy")]
    hold = world.stdin._hold

    def refuse(cursor: int) -> None:
        if refusals:
            raise refusals.pop()
        hold(cursor)

    world.stdin._hold = refuse

    assert world.stdin.try_write(b"x", "a") is None
    assert await world.stdin.write(b"x", "a") is ACCEPTED
    assert world.read() == b"x"
    world.close()


@pytest.mark.parametrize("held", [True, False], ids=["with the cursor", "without it"])
@pytest.mark.parametrize("size", [1, BLOCK_SIZE + 1])
async def test_a_server_that_died_before_it_said_what_was_given_leaves_nothing(
    world: World, size: int, *, held: bool
) -> None:
    """Found by killing servers under load: where such bytes were stayed in use until the next restart."""
    world.stdin.try_write(b"x" * size, "a")
    world.read()
    world.record.arena.words[world.record.slot + layout.IN_TAIL] = 0
    if not held:
        world.shelf.held.clear()

    world.restart()
    world.stdin.close()
    world.record.forget()

    assert world.arena.cells == 0
    world.close()


async def test_everything_is_given_back_in_the_end(world: World) -> None:
    for number in range(100):
        world.stdin.try_write(b"x" * 5000, str(number))
        world.read()
    world.stdin.try_write(b"x" * (1 << 20), "large")
    world.stdin.close()
    world.record.forget()

    assert not any(world.arena._open[LENT_CELL].values()) or world.arena.used < 9 << 20
    world.arena.rebuild(set())
    assert Records(world.shelf.arena()).scan() == []
    assert layout.WRITE_SIZE * 4096 == BLOCK_SIZE
    world.close()


@pytest.mark.parametrize("stores", range(5))
@pytest.mark.parametrize(("old", "new"), [("w%06d", "w004100"), ("\u00e9\u00e9\u00e9%d", "abc")])
async def test_a_write_that_was_not_committed_is_not_taken_for_the_oldest_one(
    world: World, stores: int, old: str, new: str
) -> None:
    """Its entry goes where the oldest one is that is remembered, and there it is in part."""
    for number in range(4100):
        assert world.stdin.try_write(b"x", old % number) is ACCEPTED
        os.read(world.out, 9)
    words, bytes_of_it = world.stdin._words, world.stdin._map
    mortal: Any = world.stdin
    mortal._words, mortal._map = MortalMemory(words), MortalMemory(bytes_of_it)
    MortalMemory.left = stores
    with pytest.raises(Killed):
        world.stdin.try_write(b"once", new)
    mortal._words, mortal._map = words, bytes_of_it

    world.restart()

    assert world.stdin.try_write(b"once", new) is ACCEPTED
    assert world.read() == b"once"
    assert world.stdin.has_accepted(old % 5)
    world.close()
