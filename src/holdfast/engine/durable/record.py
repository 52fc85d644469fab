"""What the arena knows of a process beside its output and input, and of everything that is small.

What must hold:

1. A record is found again from the moment it is opened until it is forgotten, whenever the server dies.
2. What a number or a state says to have happened is complete: it is the last word that is stored.
3. Nothing that is read after a restart is believed before it was checked; one damaged record harms no other.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from holdfast.errors import LimitReached
from holdfast.host.arena import BLOCK, CELL, SIZES, SLOT, STAGE, Arena, Damaged

from . import layout
from .index import Index, Stretch, stretches_of
from .journal import cells_of_journal
from .layout import Flag, SlotState

_ZEROS = bytes(SIZES[SLOT])
_STORED = (SlotState.STARTING, SlotState.RUNNING, SlotState.STRAY, SlotState.LEDGER)


class Record:
    """What is known of one process.  Times are of the clock that never goes back."""

    __slots__ = ("_saved", "arena", "damaged", "slot", "stretches")

    def __init__(self, arena: Arena, slot: int) -> None:
        """``slot`` is its first word."""
        self.arena = arena
        self.slot = slot
        self.damaged = ""
        """Why it cannot be believed, in words, if it cannot."""
        self._saved = b""  # The facts of a damaged one: where they were is free after the scan.
        self.stretches: tuple[Stretch, ...] = ()
        """Where its output was when the arena was scanned."""

    # What is known.

    @property
    def key(self) -> int:
        """A number that no other record has, or had."""
        return self.arena.words[self.slot + layout.KEY]

    @property
    def state(self) -> SlotState:
        words, slot = self.arena.words, self.slot
        state = words[slot + layout.STATE]
        if state not in (SlotState.STARTING, SlotState.RUNNING):
            return SlotState(state) if state in _STORED else SlotState.FREE
        if words[slot + layout.CLOSED_SEQ]:
            return SlotState.CLOSED
        return SlotState.EXITED if words[slot + layout.EXIT_SEQ] else SlotState(state)

    @property
    def entries(self) -> int:
        """Pieces of output that have got a number, from the first on."""
        return self.arena.words[self.slot + layout.HEAD]

    @property
    def was_given(self) -> bool:
        """Whether input was accepted for it."""
        return bool(self.arena.words[self.slot + layout.IN_COUNT])

    @property
    def is_read(self) -> bool:
        """Whether what it says is kept."""
        words, slot = self.arena.words, self.slot
        is_process = words[slot + layout.STATE] in (SlotState.STARTING, SlotState.RUNNING)
        return is_process and not self.damaged and not words[slot + layout.FLAGS] & Flag.SILENT

    @property
    def facts(self) -> bytes:
        return self._saved if self.damaged else self._blob(layout.FACTS) or b""

    @property
    def end(self) -> bytes | None:
        """How it ended, if it has."""
        return self._blob(layout.EXIT) if self.exit_seq else None

    @property
    def cause(self) -> bytes | None:
        """Why we end it, if we do."""
        return self._blob(layout.CAUSE)

    def _blob(self, word: int) -> bytes | None:
        at = self.arena.words[self.slot + word]
        return self.arena.read_blob(at) if at else None

    @property
    def pid(self) -> int:
        return self.arena.words[self.slot + layout.PID]

    @property
    def exit_seq(self) -> int:
        """The number of its exit, 0 if it has not exited."""
        return self.arena.words[self.slot + layout.EXIT_SEQ]

    @property
    def closed_seq(self) -> int:
        return self.arena.words[self.slot + layout.CLOSED_SEQ]

    @property
    def started_at(self) -> float | None:
        return self._time(layout.STARTED)

    @property
    def exited_at(self) -> float | None:
        return self._time(layout.EXITED_AT)

    @property
    def closed_at(self) -> float | None:
        return self._time(layout.CLOSED_AT) if self.closed_seq else None

    @property
    def kill_at(self) -> float | None:
        """When the grace of its tree is over."""
        return self._time(layout.KILL_AT) if self.arena.words[self.slot + layout.CAUSE] else None

    @property
    def active_at(self) -> float | None:
        return self._time(layout.ACTIVE)

    @property
    def acked_seq(self) -> int:
        """Up to which number its client has acknowledged what it was told."""
        return self.arena.words[self.slot + layout.ACKED]

    @property
    def flags(self) -> int:
        """Bits of ``layout.Flag``."""
        return self.arena.words[self.slot + layout.FLAGS] & layout.FLAG_MASK

    @property
    def dropped(self) -> int:
        """Bytes of its output beyond the limit, which were not kept."""
        return self.arena.words[self.slot + layout.FLAGS] >> layout.DROPPED_SHIFT

    def _time(self, word: int) -> float | None:
        return layout.word_time(self.arena.words[self.slot + word])

    # What happens.

    def started(self, pid: int, at: float) -> None:
        """Its program runs."""
        words, slot = self.arena.words, self.slot
        words[slot + layout.PID] = pid
        words[slot + layout.STARTED] = layout.time_word(at)
        words[slot + layout.STATE] = SlotState.RUNNING

    def ending(self, cause: bytes, kill_at: float | None) -> None:
        """We end it: why, and when its grace is over.  Once; the time may be changed by ``kills_at``."""
        words, slot = self.arena.words, self.slot
        if not words[slot + layout.CAUSE]:
            blob = self.arena.write_blob(cause, beyond_limit=True)
            words[slot + layout.KILL_AT] = layout.time_word(kill_at)
            words[slot + layout.CAUSE] = blob

    def asked(self) -> None:
        """Everybody of its tree was asked to end."""
        self.arena.words[self.slot + layout.FLAGS] |= layout.Flag.ASKED

    def kills_at(self, at: float | None) -> None:
        self.arena.words[self.slot + layout.KILL_AT] = layout.time_word(at)

    def exited(self, seq: int, end: bytes, at: float) -> None:
        """It has ended, and all it said before is numbered.

        Raises:
            LimitReached: There is no memory at all.
        """
        words, slot = self.arena.words, self.slot
        blob = self.arena.write_blob(end, beyond_limit=True)
        before = words[slot + layout.EXIT]  # Of a server that died before it had said the number.
        words[slot + layout.EXIT] = blob
        words[slot + layout.EXITED_AT] = layout.time_word(at)
        words[slot + layout.EXIT_SEQ] = seq
        self.arena.free_blob(before)

    def amend(self, end: bytes) -> None:
        """More is known of how it ended."""
        words, slot = self.arena.words, self.slot
        blob = self.arena.write_blob(end, beyond_limit=True)
        before = words[slot + layout.EXIT]
        words[slot + layout.EXIT] = blob
        self.arena.free_blob(before)

    def closed(self, seq: int, at: float) -> None:
        """No event of it follows."""
        words, slot = self.arena.words, self.slot
        words[slot + layout.CLOSED_AT] = layout.time_word(at)
        words[slot + layout.CLOSED_SEQ] = seq

    def active(self, at: float) -> None:
        """It has said something, or was given something."""
        self.arena.words[self.slot + layout.ACTIVE] = layout.time_word(at)

    def acked(self, seq: int) -> None:
        self.arena.words[self.slot + layout.ACKED] = seq

    def flag(self, flag: int) -> None:
        """Set a bit of ``layout.Flag``."""
        self.arena.words[self.slot + layout.FLAGS] |= flag

    def drop(self, total: int) -> None:
        """So many bytes of its output were not kept."""
        words, word = self.arena.words, self.slot + layout.FLAGS
        total = min(total, layout.MOST_DROPPED)
        words[word] = words[word] & layout.FLAG_MASK | total << layout.DROPPED_SHIFT

    # The end.

    def stray(self) -> None:
        """Forget all but its key, because somebody of its tree is left; ``forget`` then forgets that, too."""
        self._leave(SlotState.STRAY)

    def forget(self) -> None:
        """Forget it, and give everything back."""
        self._leave(SlotState.FREE)
        self.arena.release(self.slot << 3)

    def _leave(self, state: SlotState) -> None:
        """Its ring and stdin should be closed before: then there is little to look for."""
        words, slot = self.arena.words, self.slot
        named: list[int] = []
        if not self.damaged and words[slot + layout.STATE] != SlotState.STRAY:
            with contextlib.suppress(Damaged):
                named = self._cells()
        words[slot + layout.STATE] = state  # The commit.
        # Of a damaged one nobody knows what else is its own: the next restart does.
        for at in named:
            self.arena.release(at)

    def _cells(self) -> list[int]:
        """Everything in the arena that is its own, but the slot.

        Raises:
            Damaged: It does not say.
        """
        arena, words, slot = self.arena, self.arena.words, self.slot
        found: dict[int, None] = {}
        for word in (layout.FACTS, layout.EXIT, layout.CAUSE):
            if words[slot + word]:
                found |= dict.fromkeys(arena.cells_of_blob(words[slot + word]))
        if not words[slot + layout.FLAGS] & Flag.SILENT:
            index = Index(arena, slot)
            self.stretches = tuple(
                stretches_of(arena, index, words[slot + layout.TAIL], words[slot + layout.HEAD])
            )
            found |= dict.fromkeys(index.cells())
            found |= dict.fromkeys(stretch.at for stretch in self.stretches)
            if words[slot + layout.BLOCK]:
                found[layout.block_at(words[slot + layout.BLOCK])] = None
        found |= dict.fromkeys(cells_of_journal(arena, slot))
        return list(found)

    def check(self) -> list[int]:
        """Everything in the arena that is its own, the slot included.

        Raises:
            Damaged: Something about it cannot be.
        """
        words, slot, at = self.arena.words, self.slot, self.slot << 3
        state = words[slot + layout.STATE]
        if state not in _STORED:
            raise Damaged(f"slot {at} has no state {state}")
        if not words[slot + layout.KEY]:
            raise Damaged(f"slot {at} has no key")
        if state == SlotState.STRAY:
            return [at]
        if state == SlotState.LEDGER:
            return [at, *self.arena.cells_of_blob(words[slot + layout.FACTS])]
        self._check_numbers()
        return [at, *self._cells()]

    def _check_numbers(self) -> None:
        words, slot = self.arena.words, self.slot
        head, tail = words[slot + layout.HEAD], words[slot + layout.TAIL]
        exit_seq, closed_seq = words[slot + layout.EXIT_SEQ], words[slot + layout.CLOSED_SEQ]
        if tail > head or exit_seq > head + 1 or (closed_seq and (not exit_seq or closed_seq != head + 2)):
            raise Damaged(f"the numbers of slot {slot << 3} do not fit together")
        if exit_seq and not words[slot + layout.EXIT]:
            raise Damaged(f"slot {slot << 3} does not say how it ended")
        if words[slot + layout.STREAM] >= len(layout.STREAMS):
            raise Damaged(f"slot {slot << 3} has no such stream")
        block = 0 if words[slot + layout.FLAGS] & Flag.SILENT else words[slot + layout.BLOCK]
        if block and self.arena.kind_of(layout.block_at(block)) not in (CELL, BLOCK):
            raise Damaged(f"slot {slot << 3} has its output in a strange place")


class ArenaLedger:
    """Small facts of others, found again after a restart.  Implements ``backend.Ledger``."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self._slots: dict[int, int] = {}
        self.damaged: list[int] = []
        """The numbers of facts that cannot be believed any more; they are gone."""

    def put(self, data: bytes) -> int:
        """Keep these bytes; return their number, which is not 0 and was never used before.

        Raises:
            LimitReached: There is no room for them.
        """
        slot = _open_slot(self.arena, data, SlotState.LEDGER)
        key = self.arena.words[slot + layout.KEY]
        self._slots[key] = slot
        return key

    def change(self, number: int, data: bytes) -> None:
        """Keep these bytes under a number instead of the earlier ones.

        Raises:
            LimitReached: There is no room for them; the earlier ones stay.
        """
        word = self._slots[number] + layout.FACTS
        blob = self.arena.write_blob(data)
        before = self.arena.words[word]
        self.arena.words[word] = blob
        self.arena.free_blob(before)

    def remove(self, number: int) -> None:
        """Keep nothing any more under a number; may be called twice."""
        slot = self._slots.pop(number, None)
        if slot is not None:
            words = self.arena.words
            words[slot + layout.STATE] = SlotState.FREE
            self.arena.free_blob(words[slot + layout.FACTS])
            self.arena.release(slot << 3)

    def items(self) -> Iterator[tuple[int, bytes]]:
        """All numbers and their bytes, in the order in which they were put."""
        for number, slot in sorted(self._slots.items()):
            yield number, self.arena.read_blob(self.arena.words[slot + layout.FACTS])

    def found(self, slot: int) -> None:
        """There is one, after a restart."""
        self._slots[self.arena.words[slot + layout.KEY]] = slot


class Records:
    """All records of an arena."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self.ledger = ArenaLedger(arena)

    def open(self, facts: bytes) -> Record:
        """A new record, of a process that is about to be started.

        Raises:
            LimitReached: There is no room for it.
        """
        return Record(self.arena, _open_slot(self.arena, facts, SlotState.STARTING))

    def scan(self) -> list[Record]:
        """All records that there are, after a restart, in the order in which they were opened.

        What none of them names is free from here on.  A damaged one says so, and can only be forgotten.
        """
        arena, named, found = self.arena, dict[int, int](), list[Record]()
        for at in arena.slots():
            record = Record(arena, at >> 3)
            try:
                own = record.check()
                if any(place in named for place in own):
                    raise Damaged(
                        f"slot {at} and slot {named[next(p for p in own if p in named)]} share memory"
                    )
            except Damaged as error:
                with contextlib.suppress(Damaged):
                    record._saved = record.facts
                record.damaged = str(error)
                own = [at]
            named |= dict.fromkeys(own, at)
            found.append(record)
        arena.rebuild(set(named))
        processes = [each for each in found if arena.words[each.slot] != SlotState.LEDGER]
        self._forget_damaged_facts(found)
        self._empty_stage(processes)
        return sorted(processes, key=lambda record: record.key)

    def _forget_damaged_facts(self, found: list[Record]) -> None:
        for record in found:
            if self.arena.words[record.slot] != SlotState.LEDGER:
                continue
            if record.damaged:
                self.ledger.damaged.append(record.key)
                record.forget()
            else:
                self.ledger.found(record.slot)

    def _empty_stage(self, processes: list[Record]) -> None:
        """What is in the stage belongs to a process that has a record, or to nobody."""
        arena = self.arena
        whose = arena.words[STAGE] >> 3
        if not any(each.slot == whose and each.is_read for each in processes):
            arena.drop_stage()


def _open_slot(arena: Arena, data: bytes, state: SlotState) -> int:
    blob = arena.write_blob(data)
    try:
        at = arena.allocate(SLOT)
    except LimitReached:
        arena.free_blob(blob)
        raise
    slot = at >> 3
    # Its state is 0 already, or nobody would have given it back.
    arena.view[at : at + len(_ZEROS)] = _ZEROS
    arena.words[slot + layout.FACTS] = blob
    arena.words[slot + layout.KEY] = arena.new_key()
    arena.words[slot + layout.STATE] = state  # The commit.
    return slot
