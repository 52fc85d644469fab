"""Facts of a process, written down in an arena."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from holdfast.engine.children import NO_CHILD
from holdfast.engine.durable.facts import (
    ProcessFacts,
    pack_end,
    unpack_cause,
    unpack_end,
    unpack_facts,
)
from holdfast.engine.durable.layout import Flag, SlotState
from holdfast.engine.durable.record import Record
from holdfast.engine.durable.recorder import DurableRecorder
from holdfast.engine.ring import Budget
from holdfast.errors import LimitReached
from holdfast.host.outliving import HostFacts
from holdfast.model import Cause, Exit, Kind, Outcome
from tests.fakes.durable import Memory, memory

FACTS = ProcessFacts(b"note", ("", "ann", True), terminal=False, stdin=False)
END = Exit(3, Outcome(Kind.EXIT, 3))


class Child(type(NO_CHILD)):  # type: ignore[misc]  # What a recorder needs of a child.
    pid = 77

    def __init__(self, cursor: int) -> None:
        self.cursor = cursor


@pytest.fixture
def shelf() -> Iterator[Memory]:
    with memory() as made:
        yield made


def running(shelf: Memory) -> tuple[DurableRecorder, Any]:
    recorder = DurableRecorder(shelf.records(), FACTS)
    recorder.begin(HostFacts(("/group",)))
    ring = recorder.open(Child(shelf.cursor), chunks=10, budget=Budget(1 << 20), now=5.0)
    return recorder, ring


def found(shelf: Memory) -> list[Record]:
    """What the next server finds."""
    return shelf.records().scan()


def test_a_process_is_found_from_the_moment_before_its_order(shelf: Memory) -> None:
    recorder = DurableRecorder(shelf.records(), FACTS)
    key = recorder.begin(HostFacts(("/group",)))

    (record,) = found(shelf)
    assert (record.key, record.state) == (key, SlotState.STARTING)
    assert unpack_facts(record.facts).host == HostFacts(("/group",))

    recorder.discard()
    recorder.discard()
    assert found(shelf) == []


def test_what_was_dropped_is_found_by_the_next_server(shelf: Memory) -> None:
    """It shares a word with the flags, and neither is lost by the other."""
    recorder, _ = running(shelf)
    recorder.audited()
    recorder.dropped(5)
    recorder.dropped(1 << 40)

    (record,) = found(shelf)
    assert (record.dropped, record.flags) == (1 << 40, Flag.AUDITED)
    recorder.dropped(1 << 70)
    record.flag(Flag.ASKED)
    assert (record.dropped, record.flags) == ((1 << 47) - 1, Flag.AUDITED | Flag.ASKED)


def test_what_happens_is_found_by_the_next_server(shelf: Memory) -> None:
    recorder, _ = running(shelf)
    recorder.ending(Cause(Kind.TIMEOUT, "limit"), 9.0)
    recorder.ending(Cause(Kind.TERMINATED, "client"), 8.0)  # The first cause counts, and the last time.
    assert not found(shelf)[0].flags & Flag.ASKED
    recorder.ending(None, 8.0, asked=True)
    recorder.active(6.0)
    recorder.acknowledged(4)

    (record,) = found(shelf)
    assert (record.pid, record.state, record.started_at) == (77, SlotState.RUNNING, 5.0)
    assert unpack_cause(record.cause or b"") == Cause(Kind.TIMEOUT, "limit")
    assert (record.kill_at, record.active_at, record.acked_seq) == (8.0, 6.0, 4)
    assert record.flags & Flag.ASKED


def test_an_end_may_be_amended_and_says_whether_it_was_audited(shelf: Memory) -> None:
    recorder, _ = running(shelf)
    recorder.exited(1, END, None)
    amended = Exit(3, Outcome(Kind.EXIT, 3), held_by=(5,))
    recorder.amended(amended)
    recorder.audited()
    recorder.closed(2)

    (record,) = found(shelf)
    assert (record.state, record.exit_seq, record.closed_seq) == (SlotState.CLOSED, 1, 2)
    assert unpack_end(record.end or b"") == (amended, None)
    assert record.end == pack_end(amended, None)
    assert record.flags & Flag.AUDITED


@pytest.mark.parametrize("first", ["gone", "forgotten"])
def test_the_record_stays_until_nobody_asks_for_the_process_and_nobody_is_left(
    shelf: Memory, first: str
) -> None:
    """Whoever is left ends with its session, so the next server must know of it."""
    recorder, ring = running(shelf)
    recorder.exited(1, END, None)
    recorder.closed(2)
    if first == "gone":
        recorder.gone()
        assert len(found(shelf)) == 1
        ring.close()
        recorder.forgotten()
    else:
        ring.close()
        recorder.forgotten()
        (record,) = found(shelf)
        assert record.flags & Flag.FORGOTTEN
        recorder.gone()

    assert found(shelf) == []


def test_an_end_that_could_not_be_written_down_does_no_damage(
    shelf: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A close without an exit is something that cannot be."""
    recorder, _ = running(shelf)
    assert recorder.record is not None

    def refuse(data: bytes, *, beyond_limit: bool = False) -> int:
        raise LimitReached("memory of the arena", 0)

    with monkeypatch.context() as patched:
        patched.setattr(recorder.record.arena, "write_blob", refuse)
        recorder.exited(1, END, None)
    recorder.closed(2)

    (record,) = found(shelf)
    assert (record.damaged, record.closed_seq) == ("", 0)
