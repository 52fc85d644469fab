"""Memory that outlives the server: cells and blocks, what they hold, what is free after a restart."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator

import pytest

from holdfast.errors import LimitReached
from holdfast.host import arena as arenas
from holdfast.host.arena import (
    BLOCK,
    BLOCK_SIZE,
    CELL,
    CELL_2K,
    CELL_256,
    LENT_BLOCK,
    LENT_CELL,
    PAGE,
    SIZES,
    SLOT,
    Arena,
    Damaged,
)
from tests.fakes.durable import Memory, memory

KINDS = range(SLOT, LENT_BLOCK + 1)


@pytest.fixture
def shelf() -> Iterator[Memory]:
    with memory(128 * BLOCK_SIZE) as shelf:
        yield shelf


@pytest.fixture
def arena(shelf: Memory) -> Arena:
    return shelf.arena()


def fill(arena: Arena) -> tuple[list[int], LimitReached]:
    """All blocks that can be had, with memory, and why it was no more."""
    made: list[int] = []
    while True:
        try:
            made.append(arena.allocate(BLOCK))
        except LimitReached as error:
            return made, error
        arena.back(made[-1], BLOCK_SIZE)


# The file.


def test_an_arena_can_neither_grow_nor_shrink(shelf: Memory) -> None:
    """A map of what is cut off is the end of the server."""
    size = os.fstat(shelf.fd).st_size

    for other in (size - 1, size + 1):
        with pytest.raises(PermissionError):
            os.ftruncate(shelf.fd, other)


def test_an_arena_takes_little_memory_before_it_is_used() -> None:
    with memory(1 << 33) as shelf:
        assert shelf.arena().used <= 64 * 1024


def test_a_file_that_is_no_arena_is_refused(shelf: Memory) -> None:
    fd = shelf.own(os.memfd_create("x"))
    os.ftruncate(fd, BLOCK_SIZE)

    with pytest.raises(Damaged, match="layout none"):
        Arena(fd, shelf.stage, limit=0)


def test_an_arena_of_another_layout_is_refused(shelf: Memory, arena: Arena) -> None:
    """An upgrade must not guess what older words mean."""
    arena.words[1] = arenas.LAYOUT + 1

    with pytest.raises(Damaged, match=f"layout {arenas.LAYOUT + 1}"):
        Arena(shelf.fd, shelf.stage, limit=0)


def test_keys_are_never_given_twice_whichever_server_gives_them(shelf: Memory, arena: Arena) -> None:
    keys = [arena.new_key() for _ in range(3)]

    assert len({*keys, *(shelf.arena().new_key() for _ in range(3)), 0}) == 7


def test_cursors_move_by_themselves(arena: Arena, shelf: Memory) -> None:
    one, other = (shelf.own(arena.open_cursor()) for _ in range(2))

    os.lseek(one, 4711, os.SEEK_SET)

    assert os.lseek(other, 0, os.SEEK_CUR) == 0


# Cells and blocks.


@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_apart_and_aligned(arena: Arena, kind: int) -> None:
    made = [arena.allocate(kind) for _ in range(70)]

    assert len(set(made)) == 70
    assert all(at % SIZES[kind] == 0 and arena.kind_of(at) == kind for at in made)
    assert {arena.cell_of(at + SIZES[kind] - 1) for at in made} == {(at, SIZES[kind]) for at in made}


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_given_back_is_given_out_again(arena: Arena, kind: int) -> None:
    made = {arena.allocate(kind) for _ in range(40)}
    before = arena.used
    for at in made:
        arena.release(at)

    again = {arena.allocate(kind) for _ in range(40)}

    assert again == made
    assert arena.used <= before


def test_when_everything_is_given_back_little_memory_is_kept(arena: Arena) -> None:
    """Some blocks of output stay warm; of everything else next to nothing stays."""
    dice = random.Random(1)  # noqa: S311
    made = [arena.allocate(dice.choice([*KINDS[:-2], LENT_CELL])) for _ in range(2000)]
    made += [arena.allocate(BLOCK) for _ in range(40)]
    for at in made:
        arena.back(at, SIZES[arena.kind_of(at)])
    dice.shuffle(made)

    for at in made:
        arena.release(at)

    assert arena.used <= 32 * BLOCK_SIZE + (1 << 20)


def test_a_store_into_a_cell_finds_memory(arena: Arena) -> None:
    """A cell has it when it is given out."""
    for kind in range(SLOT, CELL + 1):
        at = arena.allocate(kind)
        before = arena.used
        arena.view[at : at + SIZES[kind]] = b"x" * SIZES[kind]
        assert arena.used == before


def test_a_page_that_a_pipe_has_stays_as_it_is_when_its_cell_is_used_anew(
    arena: Arena, shelf: Memory
) -> None:
    """Else a child would read what was written for somebody else."""
    out, into = shelf.pipe()
    cursor = shelf.own(arena.open_cursor())
    for kind in (LENT_CELL, LENT_BLOCK):
        at = arena.allocate(kind)
        os.pwrite(arena.fd, b"first", at)
        os.lseek(cursor, at, os.SEEK_SET)
        os.sendfile(into, cursor, None, 5)

        arena.release(at)
        assert arena.allocate(kind) == at
        os.pwrite(arena.fd, b"other", at)

        assert os.read(out, 9) == b"first"


def test_beyond_the_limit_nothing_is_given_out_but_what_must_be(shelf: Memory) -> None:
    arena = shelf.arena(limit=4 * BLOCK_SIZE)

    made, error = fill(arena)

    assert (error.name, error.value, len(made)) == ("engine.arena_bytes", 4 * BLOCK_SIZE, 4)
    assert arena.write_blob(b"an end", beyond_limit=True)
    arena.release(made.pop())
    assert arena.allocate(BLOCK)


def test_blocks_that_are_hardly_used_do_not_count_in_full(shelf: Memory) -> None:
    """A block that has a page of output is a page."""
    arena = shelf.arena(limit=4 * BLOCK_SIZE)

    assert len({arena.allocate(BLOCK) for _ in range(50)}) == 50


def test_an_arena_without_a_limit_ends_where_the_file_does_with_some_blocks_in_reserve(arena: Arena) -> None:
    made, _ = fill(arena)

    assert len(made) == 128 - 1 - 16
    assert arena.allocate(CELL, beyond_limit=True)


def test_want_of_memory_is_told_and_the_cell_stays_free(
    arena: Arena, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", refuse)
        with pytest.raises(LimitReached):
            arena.allocate(CELL)

    assert arena.allocate(CELL)


# Blobs.


@pytest.mark.parametrize("size", [0, 1, 240, 241, 496, 4080, 4081, BLOCK_SIZE - 16, BLOCK_SIZE, 1 << 20])
def test_a_blob_is_read_as_it_was_written(shelf: Memory, arena: Arena, size: int) -> None:
    data = random.Random(size).randbytes(size)  # noqa: S311

    at = arena.write_blob(data)

    assert arena.read_blob(at) == shelf.arena().read_blob(at) == data


def test_a_blob_is_given_back_with_all_its_pieces(arena: Arena) -> None:
    at = arena.write_blob(b"x" * (1 << 20))
    cells = arena.cells_of_blob(at)
    assert len(cells) == 5

    arena.free_blob(at)

    assert {arena.allocate(kind) for kind in [BLOCK] * 4 + [CELL_256]} == set(cells)


def test_a_blob_for_which_there_is_no_room_leaves_nothing_behind(shelf: Memory) -> None:
    arena = shelf.arena(limit=4 * BLOCK_SIZE)
    with pytest.raises(LimitReached):
        arena.write_blob(b"x" * (2 << 20))

    arena.rebuild(set())

    assert arena.write_blob(b"x" * (BLOCK_SIZE // 2))


@pytest.mark.parametrize("offset", [0, 8, 12, 16, 100])
def test_a_blob_of_which_one_bit_has_changed_is_damaged(arena: Arena, offset: int) -> None:
    at = arena.write_blob(b"x" * 85)
    arena.view[at + offset] ^= 1

    with pytest.raises(Damaged):
        arena.read_blob(at)


@pytest.mark.parametrize("at", [0 + 8, 3 * BLOCK_SIZE + 1, 1 << 50, 100 * BLOCK_SIZE])
def test_a_place_where_nothing_begins_is_damaged(arena: Arena, at: int) -> None:
    for kind in KINDS:
        arena.allocate(kind)

    with pytest.raises(Damaged):
        arena.kind_of(at)
    with pytest.raises(Damaged):
        arena.read_blob(at)


# After a restart.


def test_what_nobody_names_is_free(shelf: Memory, arena: Arena) -> None:
    dice = random.Random(3)  # noqa: S311
    made = [(dice.choice(KINDS), 0) for _ in range(60)]
    places = [arena.allocate(kind) for kind, _ in made]
    named = set(places[::3])

    after = shelf.arena()
    assert not after.rebuilt
    after.rebuild(named)

    again = [after.allocate(kind) for kind, _ in made]
    assert not named & set(again)
    assert len(set(again)) == len(again)
    assert len(named | set(again)) < 80 + len(named)


def test_free_blocks_with_memory_are_warm_and_those_above_that_are_given_back(
    shelf: Memory, arena: Arena
) -> None:
    for _ in range(50):
        arena.back(arena.allocate(BLOCK), BLOCK_SIZE)
    arena.back(arena.allocate(LENT_BLOCK), PAGE)

    after = shelf.arena()
    after.rebuild(set())

    assert after.used <= 32 * BLOCK_SIZE + (1 << 16)


def test_slots_are_found_by_their_first_word(shelf: Memory, arena: Arena) -> None:
    places = [arena.allocate(SLOT) for _ in range(1500)]
    for at in places[::7]:
        arena.words[at >> 3] = 1

    assert sorted(shelf.arena().slots()) == sorted(places[::7])


def test_nothing_is_given_out_before_it_is_known_what_is_free(shelf: Memory, arena: Arena) -> None:
    arena.allocate(CELL_2K)

    with pytest.raises(AssertionError):
        shelf.arena().allocate(CELL_2K)


def test_a_stage_with_bytes_of_nobody_is_emptied(shelf: Memory, arena: Arena) -> None:
    os.write(shelf.stage[1], b"x" * 10_000)

    arena.drop_stage()

    with pytest.raises(BlockingIOError):
        os.read(shelf.stage[0], 1)
