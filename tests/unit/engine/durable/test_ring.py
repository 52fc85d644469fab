"""Output in the arena, as far as it differs from that in memory: how it is taken, and found again.

That it behaves as a ring is tested in ``tests/unit/engine/test_ring.py``, on both forms.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import select
import tty
from collections.abc import Iterator

import pytest

from holdfast.engine.durable import intake, layout
from holdfast.engine.durable.record import Record, Records
from holdfast.engine.durable.ring import DurableRing
from holdfast.engine.ring import Budget
from holdfast.errors import LimitReached
from holdfast.host.arena import BLOCK, BLOCK_SIZE, CELL, STAGE, Arena
from holdfast.host.pty import open_terminal
from holdfast.model import Chunk, Gap, Size, Stream
from tests.fakes.durable import MUCH, Memory, memory

OUT, ERR, PTY = Stream.STDOUT, Stream.STDERR, Stream.PTY


class World:
    """A process that says something into two pipes, and its ring."""

    def __init__(self, shelf: Memory, limit: int = MUCH, arena_limit: int | None = None) -> None:
        self.shelf = shelf
        self.arena = shelf.arena(arena_limit)
        self.record = Record(self.arena, 0)
        self.budget = Budget(MUCH, 10)
        self.pipes = {OUT: shelf.pipe(), ERR: shelf.pipe()}
        self.limit = limit

    def begin(self) -> DurableRing:
        self.record = Records(self.arena).open(b"facts")
        self.record.started(1, 1.0)
        self.ring = DurableRing(
            self.record, self.shelf.cursor, limit=self.limit, chunks=100_000, budget=self.budget
        )
        return self.ring

    def restart(self) -> DurableRing:
        """The next server's ring."""
        self.arena = self.shelf.arena()
        (self.record,) = Records(self.arena).scan()
        assert not self.record.damaged
        self.budget = Budget(MUCH, 10)
        self.ring = DurableRing.recover(
            self.record, self.shelf.cursor, limit=self.limit, chunks=100_000, budget=self.budget
        )
        return self.ring

    def say(self, stream: Stream, data: bytes) -> None:
        assert os.write(self.pipes[stream][1], data) == len(data)

    def take(self, stream: Stream) -> bytes | None:
        """As a process does it."""
        data = self.ring.take(self.pipes[stream][0], stream)
        if data:
            self.ring.append(Chunk(self.ring.next_seq - 1, stream, data))
        return data


@pytest.fixture
def world() -> Iterator[World]:
    with memory(400 * BLOCK_SIZE) as shelf:
        made = World(shelf)
        made.begin()
        yield made


def fill(arena: Arena) -> list[int]:
    """All blocks that can be had."""
    made: list[int] = []
    with contextlib.suppress(LimitReached):
        while True:
            made.append(arena.allocate(BLOCK))
            arena.back(made[-1], BLOCK_SIZE)
    return made


def said(ring: DurableRing) -> list[tuple[int, Stream, bytes]]:
    return [(chunk.seq, chunk.stream, chunk.data) for chunk in ring.after(0)]


# Taking.


def test_there_is_nothing_then_something_then_the_end(world: World) -> None:
    first = world.take(OUT)
    world.say(OUT, b"hello")
    second, third = world.take(OUT), world.take(OUT)
    os.dup2(world.shelf.own(os.open("/dev/null", os.O_RDONLY)), world.pipes[OUT][1])

    assert (first, second, third, world.take(OUT)) == (None, b"hello", None, b"")
    assert not world.ring.starved


def test_streams_are_told_apart_and_share_one_series(world: World) -> None:
    for number in range(10):
        world.say((OUT, ERR)[number % 2], b"%d" % number)
        world.take((OUT, ERR)[number % 2])

    assert said(world.ring) == [(n + 1, (OUT, ERR)[n % 2], b"%d" % n) for n in range(10)]
    assert said(world.restart()) == [(n + 1, (OUT, ERR)[n % 2], b"%d" % n) for n in range(10)]


def test_a_process_that_says_little_has_a_cell_and_one_that_says_more_blocks(world: World) -> None:
    """Most say little: a block each would be a gibibyte for four thousand of them."""
    word = world.record.slot + layout.BLOCK
    world.say(OUT, b"x" * 3000)
    world.take(OUT)
    first = world.arena.kind_of(layout.block_at(world.arena.words[word]))

    world.say(OUT, b"x" * 3000)
    while world.take(OUT):
        pass

    assert (first, world.arena.kind_of(layout.block_at(world.arena.words[word]))) == (CELL, BLOCK)
    assert sum(len(data) for _, _, data in said(world.ring)) == 6000


@pytest.mark.parametrize("count", [4, 5, 32, 33, 256, 257, 3000])
def test_the_index_grows_and_everything_is_found(world: World, count: int) -> None:
    for number in range(count):
        world.say(OUT, b"%d" % number)
        world.take(OUT)
    expected = [(n + 1, OUT, b"%d" % n) for n in range(count)]

    assert said(world.ring) == expected
    assert said(world.restart()) == expected
    assert world.ring.next_seq == count + 1
    world.say(ERR, b"more")
    world.take(ERR)
    assert said(world.ring) == [*expected, (count + 1, ERR, b"more")]


def test_blocks_of_entries_are_given_back_when_theirs_are_dropped(world: World) -> None:
    world.ring.limit = 500
    for _ in range(2 * layout.SEGMENT + 600):
        world.say(OUT, b".")
        world.take(OUT)

    assert list(world.ring._entries.segments or ()) == [2]
    assert said(world.restart()) == [(2 * layout.SEGMENT + n, OUT, b".") for n in range(101, 601)]


def test_output_beyond_the_limit_is_given_back_block_by_block(world: World) -> None:
    world.ring.limit = 300_000
    for _ in range(200):
        world.say(OUT, b"x" * 40_000)
        while world.take(OUT):
            pass

    assert world.arena.used < 5 * BLOCK_SIZE


# After a restart.


def test_what_was_taken_and_not_numbered_gets_the_next_number(world: World) -> None:
    world.say(OUT, b"one")
    world.take(OUT)
    world.ring._set_stream(ERR)
    world.say(ERR, b"two")
    os.splice(world.pipes[ERR][0], world.shelf.cursor, 100)

    ring = world.restart()

    assert said(ring) == [(1, OUT, b"one"), (2, ERR, b"two")]
    assert (ring.next_seq, ring.said_bytes, world.budget.used) == (3, 6, ring.cost)
    assert said(world.restart()) == said(ring)


def test_behind_the_exit_it_gets_the_one_behind_that(world: World) -> None:
    world.say(OUT, b"one")
    world.take(OUT)
    world.record.exited(2, b"end", 1.0)
    world.say(OUT, b"two")
    os.splice(world.pipes[OUT][0], world.shelf.cursor, 100)

    ring = world.restart()

    assert said(ring) == [(1, OUT, b"one"), (3, OUT, b"two")]
    world.record.closed(ring.next_seq, 2.0)
    assert world.restart().next_seq == 5


@pytest.mark.parametrize("moved", [0, 5 << 18, (3 << 18) + 7, 1])
def test_a_cursor_that_an_earlier_command_left_somewhere_does_no_harm(moved: int) -> None:
    """It is the shim's, and the first cell may be the very one in which it stands."""
    with memory() as shelf:
        os.lseek(shelf.cursor, moved, os.SEEK_SET)
        world = World(shelf)
        world.begin()
        assert said(world.restart()) == []

        world.say(OUT, b"one")
        world.take(OUT)

        assert said(world.restart()) == [(1, OUT, b"one")]


def test_a_block_that_was_left_for_itself_is_begun_at_its_begin(world: World) -> None:
    """A ring that keeps nothing may get the block back that it has just used up."""
    world.ring.limit = world.limit = 0
    for _ in range(30):
        world.say(OUT, b"x" * 60_000)
        while world.take(OUT):
            pass
    world.ring._turn(512)
    world.say(OUT, b"y" * 100)
    os.splice(world.pipes[OUT][0], world.shelf.cursor, 100)

    world.limit = MUCH
    ring = world.restart()

    assert [data for _, _, data in said(ring)] == [b"y" * 100]


def test_of_what_was_dropped_the_numbers_and_the_sum_are_known(world: World) -> None:
    world.ring.limit = 25
    for _ in range(9):
        world.say(OUT, b"x" * 10)
        world.take(OUT)
    before = [world.ring.gap(after) for after in range(9)]

    ring = world.restart()
    ring.limit = 25

    assert before == [*(Gap(n + 1, 7, 70 - 10 * n) for n in range(7)), None, None]
    assert [ring.gap(after) for after in (0, 1, 7)] == [Gap(1, 7, 70), Gap(2, 7, None), None]
    world.say(OUT, b"x" * 10)
    world.take(OUT)
    assert [ring.gap(after) for after in (0, 1, 7)] == [Gap(1, 8, 80), Gap(2, 8, None), Gap(8, 8, 10)]


def test_a_ring_that_was_closed_stays_closed_and_what_is_said_is_read_and_lost(world: World) -> None:
    world.say(OUT, b"one")
    world.take(OUT)
    world.ring.close()
    world.ring.close()
    assert world.budget.used == 0
    world.say(OUT, b"two")
    assert world.take(OUT) == b"two"

    ring = world.restart()
    world.say(OUT, b"three")

    assert world.take(OUT) == b"three"
    assert (said(ring), world.budget.used, ring.total) == ([], 0, 0)


def test_without_a_cursor_what_was_said_can_be_read_and_given_back(world: World) -> None:
    """The shim of an ended process has another command by then."""
    world.say(OUT, b"one")
    world.take(OUT)
    world.record.exited(2, b"end", 1.0)
    world.arena = world.shelf.arena()
    (record,) = Records(world.arena).scan()
    ring = DurableRing.recover(record, -1, limit=MUCH, chunks=10, budget=world.budget)
    assert said(ring) == [(1, OUT, b"one")]
    ring.close()
    record.forget()

    assert Records(world.shelf.arena()).scan() == []


# Terminals.


class Terminal:
    """A raw terminal, and how to wait for what was written to it."""

    def __init__(self, shelf: Memory) -> None:
        self.master, self.peer = map(shelf.own, open_terminal(Size()))
        tty.setraw(self.peer)

    def take_all(self, world: World, size: int) -> list[bytes]:
        found: list[bytes] = []
        while sum(map(len, found)) < size:
            select.select([self.master], [], [], 10)
            data = world.ring.take(self.master, PTY)
            if data:
                world.ring.append(Chunk(world.ring.next_seq - 1, PTY, data))
                found.append(data)
        return found


def test_a_terminal_is_taken_by_the_stage(world: World) -> None:
    terminal = Terminal(world.shelf)
    assert world.ring.take(terminal.master, PTY) is None
    data = random.Random(1).randbytes(3000)  # noqa: S311
    os.write(terminal.peer, data[:1000])
    found = terminal.take_all(world, 1000)
    os.write(terminal.peer, data[1000:])

    found += terminal.take_all(world, 2000)

    assert b"".join(found) == data
    assert [chunk.data for chunk in world.ring.after(0)] == found
    assert said(world.restart()) == [(n, PTY, piece) for n, piece in enumerate(found, 1)]


def test_the_end_of_a_terminal_is_an_end(world: World) -> None:
    master, peer = open_terminal(Size())
    world.shelf.own(master)
    os.close(peer)

    assert world.ring.take(master, PTY) == b""


def test_what_is_in_the_stage_is_of_the_process_that_it_names(world: World) -> None:
    world.say(OUT, b"one")
    world.take(OUT)
    world.arena.words[STAGE] = world.record.slot << 3
    os.write(world.shelf.stage[1], b"x" * 50_000)

    ring = world.restart()

    assert said(ring) == [(1, OUT, b"one"), (2, PTY, b"x" * 50_000)]
    assert world.budget.used == ring.cost
    assert intake.waiting_in(world.shelf.stage[0]) == 0


def test_a_stage_that_cannot_be_emptied_belongs_to_one_until_it_can(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal, other = Terminal(world.shelf), World(world.shelf)
    other.arena = world.arena
    other_ring = other.begin()
    splice = os.splice

    def fail(source: int, *rest: object) -> int:
        if source == world.shelf.stage[0]:
            raise OSError(errno.ENOMEM, "no memory")
        return splice(source, *rest)  # type: ignore[arg-type]

    os.write(terminal.peer, b"word")
    select.select([terminal.master], [], [], 10)
    with monkeypatch.context() as patch:
        patch.setattr(intake, "splice", fail)
        assert world.ring.take(terminal.master, PTY) is None
        assert world.ring.starved
    assert other_ring.take(terminal.master, PTY) is None
    assert other_ring.starved

    assert world.ring.take(terminal.master, PTY) == b"word"
    assert other_ring.take(terminal.master, PTY) is None
    assert not other_ring.starved


# Want of memory.


def test_without_memory_the_oldest_of_the_same_ring_is_dropped(world: World) -> None:
    with memory(400 * BLOCK_SIZE) as shelf:
        small = World(shelf, arena_limit=6 * BLOCK_SIZE)
        small.begin()
        for _ in range(60):
            small.say(OUT, b"x" * 50_000)
            while small.take(OUT):
                assert not small.ring.starved

        assert small.arena.used <= 7 * BLOCK_SIZE
        assert small.ring.gap(0) is not None
        assert small.ring.total >= 2 * BLOCK_SIZE


def test_without_any_memory_nothing_is_taken_and_nothing_lost(world: World) -> None:
    """Whoever is told ``starved`` pauses: the poller would tell without end."""
    with memory(400 * BLOCK_SIZE) as shelf:
        small = World(shelf, arena_limit=4 * BLOCK_SIZE)
        small.begin()
        others = fill(small.arena)
        small.say(OUT, b"hello")

        assert small.take(OUT) is None
        assert small.ring.starved
        small.arena.release(others.pop())

        assert small.take(OUT) == b"hello"
        assert not small.ring.starved


@pytest.mark.parametrize("number", [errno.ENOMEM, errno.ENOSPC, errno.EFBIG])
def test_a_system_that_refuses_for_now_is_asked_again(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    world.say(OUT, b"hello")
    with monkeypatch.context() as patch:
        patch.setattr(intake, "splice", fail)
        assert world.take(OUT) is None
        assert world.ring.starved

    assert world.take(OUT) == b"hello"
    assert world.take(OUT) is None
    assert not world.ring.starved


def test_a_snapshot_is_that_of_a_ring(world: World) -> None:
    world.say(OUT, b"one")
    world.take(OUT)

    snapshot = world.ring.snapshot()

    assert (snapshot.limit, snapshot.chunks, snapshot.dropped) == (MUCH, (Chunk(1, OUT, b"one"),), None)


def test_bytes_in_the_stage_of_a_process_without_a_shim_are_given_to_nobody() -> None:
    """The next terminal that is read uses the stage, and may be another principal's."""
    with memory() as shelf:
        records = shelf.records()
        for facts in (b"gone", b"goes on"):
            records.open(facts).started(1, 1.0)
        gone = records.scan()[0]
        gone.arena.words[STAGE] = gone.slot << 3
        os.write(shelf.stage[1], b"SECRET")

        one, two = shelf.records().scan()
        DurableRing.recover(one, -1, limit=MUCH, chunks=1000, budget=Budget(MUCH))
        ring = DurableRing.recover(two, shelf.cursor, limit=MUCH, chunks=1000, budget=Budget(MUCH))

        master, peer = map(shelf.own, open_terminal(Size()))
        tty.setraw(peer)
        os.set_blocking(master, False)
        os.write(peer, b"mine!!")
        assert ring.take(master, Stream.PTY) == b"mine!!"
