"""What becomes of records whose shims are gone; with shims it is tried by servers that are killed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from typing import Any, cast

import pytest

from holdfast.config import EngineLimits
from holdfast.engine.durable import layout
from holdfast.engine.durable.facts import ProcessFacts, pack_end, pack_facts
from holdfast.engine.durable.record import Record
from holdfast.engine.durable.recovery import DurableStore
from holdfast.engine.durable.ring import DurableRing
from holdfast.engine.recorder import EngineParts
from holdfast.engine.ring import Budget
from holdfast.host.arena import STAGE
from holdfast.model import Exit, Kind, Outcome, ProcessTerms
from holdfast.poller import Poller
from holdfast.principal import ANYBODY
from tests.fakes.durable import MUCH, Memory, memory

FACTS = pack_facts(ProcessFacts(b"note", ANYBODY.identity, terminal=False, stdin=True))
END = Exit(3, Outcome(Kind.EXIT, 3))


class Owner:
    """Implements ``life.Owner``: remembers whom it was given."""

    def __init__(self) -> None:
        self.all: list[tuple[Any, ...]] = []

    def adopted(self, process: Any, audit: str | None) -> None:
        self.all.append((process, audit))

    def exited(self, process: Any) -> None: ...

    def closed(self, process: Any) -> None: ...

    def gone(self, process: Any) -> None: ...


@pytest.fixture
def shelf() -> Iterator[Memory]:
    with memory() as made:
        yield made


async def recovered(shelf: Memory) -> list[Any]:
    """The processes of the next server, to which no shim answers."""
    owner, poller = Owner(), Poller()
    parts = EngineParts(asyncio.get_running_loop(), poller, cast("Any", None), EngineLimits())
    store = DurableStore(shelf.arena())
    found = store.recover([], cast("Any", None), parts, lambda identity: (owner, Budget(1 << 30)))
    assert [process for process, _ in owner.all] == [each.process for each in found]
    poller.close()
    return found


def begun(shelf: Memory, *all_facts: bytes) -> list[Record]:
    """Processes that the server before has started."""
    records = shelf.records()
    found = [records.open(facts) for facts in all_facts or (FACTS,)]
    for record in found:
        record.started(77, 1.0)
    return found


async def test_a_start_that_was_never_ordered_leaves_nothing(shelf: Memory) -> None:
    """Whoever asked for it was not answered, and asks again."""
    shelf.records().open(FACTS)

    assert await recovered(shelf) == []
    assert shelf.records().scan() == []


async def test_of_a_process_whose_shim_was_killed_nobody_knows_the_end(shelf: Memory) -> None:
    begun(shelf)

    (found,) = await recovered(shelf)

    assert found.note == b"note"
    assert found.process.exit.outcome.kind is Kind.LOST
    assert found.process.closed
    assert found.process.next_seq == 3, "an exit and a close have a number each"


async def test_an_exit_that_was_told_stays_as_it_was(shelf: Memory) -> None:
    begun(shelf)[0].exited(1, pack_end(END, None), 2.0)

    (found,) = await recovered(shelf)

    assert (found.process.exit, found.process.closed, found.process.pid) == (END, True, 77)


async def test_a_closed_process_is_found_with_the_time_of_its_close(shelf: Memory) -> None:
    (record,) = begun(shelf)
    record.exited(1, pack_end(END, None), 2.0)
    record.closed(2, 3.0)
    record.acked(1)

    (found,) = await recovered(shelf)

    assert (found.closed_at, found.acknowledged, found.is_forgotten) == (3.0, 1, False)
    assert found.process.exit == END


async def test_a_record_that_cannot_be_believed_harms_no_other(
    shelf: Memory, caplog: pytest.LogCaptureFixture
) -> None:
    damaged, _, whole = begun(shelf, FACTS, b"no facts", FACTS)
    arena = damaged.arena
    arena.view[arena.words[damaged.slot + layout.FACTS] + 20] ^= 1
    whole.exited(1, pack_end(END, None), 2.0)

    found = await recovered(shelf)

    assert [each.process.exit for each in found] == [END]
    assert len([line for line in caplog.messages if "cannot be believed" in line]) == 2


async def test_a_process_of_which_only_the_facts_can_be_believed_is_told_as_lost(shelf: Memory) -> None:
    """Its client learns that it is gone, and does not wait for it."""
    damaged, whole = begun(shelf, FACTS, FACTS)
    damaged.arena.words[damaged.slot + layout.TAIL] = 5
    whole.exited(1, pack_end(END, None), 2.0)

    lost, found = await recovered(shelf)

    assert (lost.note, lost.process.closed) == (b"note", True)
    assert lost.process.exit.outcome.kind is Kind.LOST
    assert found.process.exit == END
    assert [record.key for record in shelf.records().scan()] == [whole.key]


async def test_terms_of_a_lost_process_end_with_it(shelf: Memory) -> None:
    """No timer may be left for a process that is gone."""
    facts = ProcessFacts(b"", ANYBODY.identity, terminal=True, stdin=True, terms=ProcessTerms(timeout=0.0))
    begun(shelf, pack_facts(facts))

    (found,) = await recovered(shelf)
    await asyncio.sleep(0)

    assert found.process.exit.outcome.kind is Kind.LOST


async def test_what_a_dropped_process_had_in_the_stage_is_given_to_nobody(shelf: Memory) -> None:
    first, _ = begun(shelf, FACTS, FACTS)
    first.arena.words[STAGE] = first.slot << 3
    os.write(shelf.stage[1], b"SECRET")

    await recovered(shelf)

    with pytest.raises(BlockingIOError):
        os.read(shelf.stage[0], 100)


async def test_a_damaged_fact_of_others_is_forgotten_once(shelf: Memory) -> None:
    """Twice would give its place to two at the same time."""
    records = shelf.records()
    keep, number = records.ledger.put(b"keep"), records.ledger.put(b"a fact")
    arena = records.ledger.arena
    arena.view[arena.words[records.ledger._slots[number] + layout.FACTS] + 20] ^= 1
    poller = Poller()
    parts = EngineParts(asyncio.get_running_loop(), poller, cast("Any", None), EngineLimits())
    store = DurableStore(shelf.arena())

    found = store.recover([], cast("Any", None), parts, lambda identity: (cast("Any", Owner()), Budget(1)))
    one, two = store.ledger.put(b"one"), store.ledger.put(b"two")

    assert found == []
    assert dict(store.ledger.items()) == {keep: b"keep", one: b"one", two: b"two"}
    poller.close()


async def test_one_whose_output_was_forgotten_is_forgotten(shelf: Memory) -> None:
    """The server died in the middle of forgetting it."""
    (record,) = begun(shelf)
    DurableRing(record, shelf.cursor, limit=MUCH, chunks=1000, budget=Budget(MUCH)).close()

    (found,) = await recovered(shelf)

    assert found.is_forgotten
    assert shelf.records().scan() == []


async def test_a_damaged_process_is_told_as_lost_also_if_it_is_the_only_one(shelf: Memory) -> None:
    """What it was is read before its memory is given back, which nobody else's keeps in use."""
    (damaged,) = begun(shelf)
    damaged.arena.words[damaged.slot + layout.TAIL] = 5

    (lost,) = await recovered(shelf)

    assert (lost.note, lost.process.exit.outcome.kind) == (b"note", Kind.LOST)
