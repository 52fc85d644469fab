"""Records: found again from the moment they are opened, checked before they are believed."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from holdfast.engine.durable import layout
from holdfast.engine.durable.layout import Flag, SlotState
from holdfast.engine.durable.record import Record, Records
from holdfast.engine.durable.ring import DurableRing
from holdfast.engine.ring import Budget
from holdfast.errors import LimitReached
from holdfast.host.arena import BLOCK_SIZE, STAGE
from holdfast.model import Stream
from tests.fakes.durable import MUCH, Memory, memory


@pytest.fixture
def shelf() -> Iterator[Memory]:
    with memory() as shelf:
        yield shelf


def again(shelf: Memory) -> Records:
    """The records, as the next server finds them."""
    return shelf.records()


def one(shelf: Memory) -> Record:
    (found,) = again(shelf).scan()
    return found


def said(shelf: Memory, record: Record, *pieces: bytes) -> DurableRing:
    """The ring of a process that has said this."""
    ring = DurableRing(record, shelf.cursor, limit=MUCH, chunks=1000, budget=Budget(MUCH))
    out, into = shelf.pipe()
    for piece in pieces:
        os.write(into, piece)
        assert ring.take(out, Stream.STDOUT)
    return ring


# A life.


def test_a_record_is_found_again_as_it_was_left(shelf: Memory) -> None:
    record = shelf.records().open(b"facts")
    states = [one(shelf).state]

    record.started(4711, 1.5)
    record.active(2.0)
    record.acked(3)
    record.ending(b"because", 9.0)
    record.ending(b"another cause", 1.0)
    states.append(one(shelf).state)
    record.exited(1, b"end", 3.0)
    states.append(one(shelf).state)
    record.amend(b"end, and who held it")
    record.closed(2, 4.0)
    record.flag(Flag.AUDITED)
    record.flag(Flag.MUTED)

    found = one(shelf)
    assert states == [SlotState.STARTING, SlotState.RUNNING, SlotState.EXITED]
    assert (found.key, found.state, found.damaged) == (record.key, SlotState.CLOSED, "")
    assert (found.facts, found.cause, found.end) == (b"facts", b"because", b"end, and who held it")
    assert (found.pid, found.exit_seq, found.closed_seq, found.acked_seq) == (4711, 1, 2, 3)
    assert (found.started_at, found.active_at, found.exited_at) == (1.5, 2.0, 3.0)
    assert (found.closed_at, found.kill_at, found.flags) == (4.0, 9.0, Flag.AUDITED | Flag.MUTED)


def test_a_new_record_knows_nothing_of_who_had_its_slot_before(shelf: Memory) -> None:
    records = shelf.records()
    old = records.open(b"old")
    old.started(1, 1.0)
    old.ending(b"cause", 2.0)
    old.exited(1, b"end", 1.0)
    key, slot = old.key, old.slot
    old.forget()

    new = records.open(b"new")

    assert (new.slot, new.state) == (slot, SlotState.STARTING)
    assert new.key > key
    assert (new.facts, new.cause, new.end, new.pid, new.kill_at) == (b"new", None, None, 0, None)


def test_the_time_of_a_kill_may_be_changed(shelf: Memory) -> None:
    record = shelf.records().open(b"")
    record.ending(b"cause", 5.0)

    record.kills_at(None)

    assert (record.cause, record.kill_at) == (b"cause", None)


def test_records_are_found_in_the_order_in_which_they_were_opened(shelf: Memory) -> None:
    records = shelf.records()
    made = [records.open(bytes([number])) for number in range(30)]
    for record in made[::2]:
        record.forget()
    made = made[1::2] + [records.open(bytes([number])) for number in range(100, 120)]

    assert [each.facts for each in again(shelf).scan()] == [each.facts for each in made]


def test_a_stray_has_a_key_and_nothing_else(shelf: Memory) -> None:
    """Its shim still says the key, and must not be taken for that of somebody else."""
    records = shelf.records()
    record = records.open(b"facts")
    record.started(1, 1.0)
    said(shelf, record, b"output").close()

    record.stray()

    found = one(shelf)
    assert (found.state, found.key) == (SlotState.STRAY, record.key)
    found.forget()
    assert again(shelf).scan() == []


def test_a_start_for_which_there_is_no_room_is_refused_and_leaves_nothing(shelf: Memory) -> None:
    arena = shelf.arena(limit=3 * BLOCK_SIZE)
    records = Records(arena)

    with pytest.raises(LimitReached) as caught:
        records.open(b"x" * (4 * BLOCK_SIZE))

    assert caught.value.name == "engine.arena_bytes"
    assert records.open(b"small").facts == b"small"


@pytest.mark.parametrize("is_closed", [True, False])
def test_everything_is_given_back_in_the_end(shelf: Memory, *, is_closed: bool) -> None:
    records = shelf.records()
    record = records.open(b"f" * 5000)
    record.started(1, 1.0)
    ring = said(shelf, record, *[b"x" * 3000] * 100)
    record.ending(b"cause", None)
    record.exited(101, b"end", 2.0)
    if is_closed:
        ring.close()

    record.forget()

    arena = record.arena
    before = {kind: sorted(map(sorted, blocks.values())) for kind, blocks in enumerate(arena._open)}
    arena.rebuild(set())
    after = {kind: sorted(map(sorted, blocks.values())) for kind, blocks in enumerate(arena._open)}
    assert again(shelf).scan() == []
    assert all(blocks in (before[kind], []) for kind, blocks in after.items())


def test_an_end_of_which_a_server_had_written_down_a_part_leaves_nothing(shelf: Memory) -> None:
    """It died before the number was there; the next one is told of the exit again, and writes it anew."""
    record = shelf.records().open(b"facts")
    record.started(1, 1.0)
    record.arena.words[record.slot + layout.EXIT] = record.arena.write_blob(b"the end")

    found = one(shelf)
    found.exited(1, b"the end, again", 2.0)
    end = found.end
    found.forget()

    assert (end, found.arena.cells) == (b"the end, again", 0)


# Damage.


@pytest.mark.parametrize(
    ("word", "value"),
    [
        (layout.STATE, 77),
        (layout.KEY, 0),
        (layout.FACTS, 4711),
        (layout.FACTS, 1 << 60),
        (layout.EXIT, 5 << 18),
        (layout.INDEX, 1 << 40 | 1),
        (layout.INDEX, 3),
        (layout.TAIL, 1 << 40),
        (layout.HEAD, 1 << 50),
        (layout.BLOCK, 1 << 63),
        (layout.BLOCK, 1),
        (layout.STREAM, 9),
        (layout.EXIT_SEQ, 99),
        (layout.CLOSED_SEQ, 1),
        (layout.IN_TABLE, 99),
        (layout.INLINE, 0),
        (layout.INLINE, 1 << 63),
        (layout.INLINE + 1, 3),
    ],
)
def test_a_damaged_record_is_returned_as_such_and_harms_no_other(
    shelf: Memory, word: int, value: int
) -> None:
    records = shelf.records()
    made = [records.open(b"facts %d" % number) for number in range(3)]
    for record in made:
        record.started(1, 1.0)
        said(shelf, record, b"one", b"two")

    made[1].arena.words[made[1].slot + word] = value

    after = again(shelf)
    found = after.scan()
    assert [bool(each.damaged) for each in sorted(found, key=lambda each: each.slot)] == [False, True, False]
    next(each for each in found if each.damaged).forget()
    assert [each.facts for each in again(shelf).scan()] == [b"facts 0", b"facts 2"]


def test_two_records_that_name_the_same_memory_are_not_both_believed(shelf: Memory) -> None:
    records = shelf.records()
    first, second = records.open(b"first"), records.open(b"second")
    second.arena.words[second.slot + layout.FACTS] = first.arena.words[first.slot + layout.FACTS]

    assert [bool(each.damaged) for each in again(shelf).scan()] == [False, True]


@pytest.mark.parametrize("seed", range(40))
def test_nothing_in_an_arena_can_raise_in_a_scan(shelf: Memory, seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311
    records = shelf.records()
    for number in range(5):
        record = records.open(dice.randbytes(dice.choice((3, 900, 9000))))
        record.started(1, 1.0)
        said(shelf, record, *[b"x" * 700] * dice.choice((1, 6, 40)))
        records.ledger.put(b"fact %d" % number)
    arena = record.arena
    for _ in range(30):
        at = dice.choice([dice.randrange(8 << 18), record.slot * 8 + dice.randrange(256)])
        if at > 4096:
            arena.view[at] = dice.randrange(256)

    after = again(shelf)
    for found in after.scan():
        assert found.state is not None
        found.forget()
    for number, _ in list(after.ledger.items()):
        after.ledger.remove(number)

    assert again(shelf).scan() == []


# The stage.


def test_bytes_in_the_stage_of_a_process_that_is_gone_are_nobodys(shelf: Memory) -> None:
    record = shelf.records().open(b"")
    record.arena.words[STAGE] = record.slot << 3
    os.write(shelf.stage[1], b"left")
    record.forget()

    again(shelf).scan()

    with pytest.raises(BlockingIOError):
        os.read(shelf.stage[0], 1)


# The ledger.


def test_facts_are_found_again_under_their_numbers(shelf: Memory) -> None:
    ledger = shelf.records().ledger
    numbers = [ledger.put(b"fact %d" % each) for each in range(5)]
    ledger.change(numbers[1], b"another" * 1000)
    ledger.remove(numbers[2])
    ledger.remove(numbers[2])

    after = again(shelf)
    assert after.scan() == []

    expected = {numbers[0]: b"fact 0", numbers[1]: b"another" * 1000}
    expected |= {numbers[3]: b"fact 3", numbers[4]: b"fact 4"}
    assert dict(after.ledger.items()) == expected
    assert list(dict(after.ledger.items())) == sorted(expected)
    assert after.ledger.put(b"") not in numbers


def test_a_damaged_fact_is_gone_and_said_to_be(shelf: Memory) -> None:
    records = shelf.records()
    numbers = [records.ledger.put(b"fact %d" % each) for each in range(3)]
    arena = records.ledger.arena
    at = arena.words[records.ledger._slots[numbers[1]] + layout.FACTS]
    arena.view[at + 20] ^= 1

    after = again(shelf)
    after.scan()

    assert after.ledger.damaged == [numbers[1]]
    assert [number for number, _ in after.ledger.items()] == [numbers[0], numbers[2]]


def test_a_time_counts_only_with_what_it_is_the_time_of(shelf: Memory) -> None:
    """A server may die between the two; then nothing is to be killed, and nothing has closed."""
    record = shelf.records().open(b"facts")
    record.started(1, 1.0)
    record.exited(1, b"end", 2.0)
    for word in (layout.KILL_AT, layout.CLOSED_AT):
        record.arena.words[record.slot + word] = layout.time_word(3.0)

    found = one(shelf)

    assert (found.kill_at, found.closed_at) == (None, None)
