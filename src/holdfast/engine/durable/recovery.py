"""From the records of a server that has died, and from its shims, to the processes of the next one.

What must hold:

1. What nobody can know is told as ``lost``, never made up.
2. A record that cannot be believed ends its own process, and harms no other.
3. Whoever runs and belongs to no record is ended.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping

from holdfast.backend import RecoveredProcess
from holdfast.config import MIB
from holdfast.engine.children import NO_CHILD, Child
from holdfast.engine.life import ProcessSnapshot, State, StdinSnapshot, WatchdogSnapshot
from holdfast.engine.process import LocalProcess
from holdfast.engine.recorder import AccountOf, EngineParts, Recorder, Regainer
from holdfast.engine.ring import Ring, RingSnapshot
from holdfast.errors import LimitReached
from holdfast.host.arena import STAGE, Arena, Damaged
from holdfast.host.keeper import ask_all
from holdfast.host.orders import HeldPlace, StateReport
from holdfast.host.shim import Shim
from holdfast.model import Cause, Exit, Spec
from holdfast.principal import Identity
from holdfast.reports import LOST
from holdfast.value import value

from .facts import ProcessFacts, UnknownForm, unpack_cause, unpack_end, unpack_facts
from .layout import Flag, SlotState
from .record import ArenaLedger, Record, Records
from .recorder import DurableRecorder, RecoveringRecorder
from .ring import DurableRing

_log = logging.getLogger(__name__)


class DurableStore:
    """Writes processes down in an arena, and finds them again.  Implements ``engine.recorder.Store``."""

    def __init__(self, arena: Arena) -> None:
        self.arena = arena
        self._records = Records(arena)

    @property
    def ledger(self) -> ArenaLedger:
        return self._records.ledger

    @property
    def used_bytes(self) -> int:
        return self.arena.used

    @property
    def used_cells(self) -> int:
        return self.arena.cells

    def recorder(self, spec: Spec, identity: Identity, audit: str | None) -> Recorder:
        terminal = spec.terminal is not None
        facts = ProcessFacts(spec.note, identity, terminal, spec.stdin or terminal, spec.terms, audit=audit)
        return DurableRecorder(self._records, facts)

    def recover(
        self, shims: Iterable[Shim], regainer: Regainer, parts: EngineParts, account_of: AccountOf
    ) -> list[RecoveredProcess]:
        """Return the processes of the server before, which go on here.  Waits for their shims."""
        claims = _Claims(shims, regainer)
        recovery = _Recovery(self._records, claims, parts, account_of)
        found = [recovery.process(record) for record in self._records.scan()]
        claims.end()
        processes = [process for process in found if process is not None]
        if processes:
            _log.info(
                "%d processes go on; output without a number was adopted of %d",
                len(processes),
                recovery.adoptions,
            )
        return processes


@value
class _Claim:
    """A command that a shim has, and whose key it knows."""

    shim: Shim
    state: StateReport
    files: dict[int, int]


class _Claims:
    """What the shims say and hold."""

    def __init__(self, shims: Iterable[Shim], regainer: Regainer) -> None:
        self._regainer = regainer
        self._by_key: dict[int, _Claim] = {}
        for shim, state, files in ask_all(list(shims)):
            if state.key and state.pid:
                self._by_key[state.key] = _Claim(shim, state, files)
            elif state.pid or state.killed:
                _give_up(shim, files)  # Of a command that was to end with its server.
            else:
                regainer.regain(shim, busy=False)

    def take(self, key: int) -> _Claim | None:
        return self._by_key.pop(key, None)

    def child(self, claim: _Claim, facts: ProcessFacts) -> Child:
        """The child of a claim; the cursor of its input is left to the caller."""
        self._regainer.regain(claim.shim, busy=True)
        return self._regainer.resume(claim.shim, claim.state, claim.files, facts.host, facts.terms.limits)

    def end(self) -> None:
        """End the commands that nobody has taken."""
        for claim in self._by_key.values():
            _give_up(claim.shim, claim.files)
        self._by_key = {}


def _give_up(shim: Shim, files: Mapping[int, int]) -> None:
    for fd in files.values():
        os.close(fd)
    shim.close()


class _Recovery:
    """Makes processes of records."""

    def __init__(self, records: Records, claims: _Claims, parts: EngineParts, account_of: AccountOf) -> None:
        self._records = records
        self._claims = claims
        self._parts = parts
        self._account_of = account_of
        self.adoptions = 0
        """Processes of which the server before had taken output that it could not number any more."""

    def process(self, record: Record) -> RecoveredProcess | None:
        """The process of a record; None if there is none."""
        claim = self._claims.take(record.key) if not record.damaged else None
        facts = None
        try:
            facts = unpack_facts(record.facts)
            if record.damaged:
                raise Damaged(record.damaged)
            if record.state is SlotState.STARTING and (claim is None or not claim.state.started):
                # It was never ordered, or whoever asked for it does not know whether it runs, and asks again.
                self._drop(record, claim)
                return None
            return self._resume(record, facts, claim)
        except (Damaged, UnknownForm, LimitReached, ValueError, TypeError, EOFError) as error:
            _log.error("the record of process %d cannot be believed, and it is ended: %s", record.key, error)
            self._drop(record, claim)
            return None if facts is None else self._lost(facts)

    def _lost(self, facts: ProcessFacts) -> RecoveredProcess:
        """The process of a record of which no more can be believed than what it was."""
        owner, budget = self._account_of(facts.identity)
        ring = Ring(limit=MIB, chunks=self._parts.limits.retained_chunks, budget=budget)
        process = LocalProcess(_PidAlone(0), ring, self._parts, owner=owner)
        process.exited(LOST)
        owner.adopted(process, facts.audit)
        return RecoveredProcess(facts.note, process, self._parts.loop.time(), 0, is_forgotten=False)

    @staticmethod
    def _drop(record: Record, claim: _Claim | None) -> None:
        if claim is not None:
            _give_up(claim.shim, claim.files)
        if record.arena.words[STAGE] == record.slot << 3:
            record.arena.drop_stage()
        record.forget()

    def _resume(self, record: Record, facts: ProcessFacts, claim: _Claim | None) -> RecoveredProcess:
        owner, budget = self._account_of(facts.identity)
        limits = self._parts.limits
        ring_at = -1 if claim is None or claim.shim.cursor is None else claim.shim.cursor
        numbered = record.entries
        ring = DurableRing.recover(record, ring_at, limit=MIB, chunks=limits.retained_chunks, budget=budget)
        self.adoptions += record.entries > numbered
        end, drain_at = (None, None) if record.end is None else unpack_end(record.end)
        cause = None if record.cause is None else unpack_cause(record.cause)
        if claim is not None and record.closed_seq:
            # Somebody may still hold them open: nothing follows a close.
            for place in (HeldPlace.STDOUT, HeldPlace.STDERR):
                if (output := claim.files.pop(place, -1)) >= 0:
                    os.close(output)
            claim.shim.drop((HeldPlace.STDOUT, HeldPlace.STDERR))
        input_at = -1 if claim is None else claim.files.pop(HeldPlace.STDIN_CURSOR, -1)
        recorder = RecoveringRecorder(self._records, facts, record, input_at)
        child = _PidAlone(record.pid) if claim is None else self._claims.child(claim, facts)
        recorder.resume(child, ring, drain_at)
        if claim is not None and record.state is SlotState.STARTING:
            record.started(child.pid, self._parts.loop.time())
        if child.fileno() >= 0:
            self._parts.poller.add(child.fileno(), _Deaf())
        snapshot = self._snapshot(record, claim, facts, ring, end, cause, drain_at)
        process = LocalProcess(
            child, ring, self._parts, owner=owner, terms=facts.terms, recorder=recorder, snapshot=snapshot
        )
        recorder.close_cursor()
        if claim is None:
            recorder.gone()
        if claim is None and process.exit is None:
            process.exited(LOST)  # Nobody is left who could say how it ended.
        elif claim is None and not process.closed:
            process.end_now()  # Nor more of what was said.
        owner.adopted(process, None if record.flags & Flag.AUDITED else facts.audit)
        return RecoveredProcess(
            facts.note, process, record.closed_at, record.acked_seq, bool(record.flags & Flag.NOBODYS)
        )

    def _snapshot(
        self,
        record: Record,
        claim: _Claim | None,
        facts: ProcessFacts,
        ring: DurableRing,
        end: Exit | None,
        cause: Cause | None,
        drain_at: float | None,
    ) -> ProcessSnapshot:
        now = self._parts.loop.time()
        kill_at = record.kill_at
        state = State.RUNNING
        if record.closed_seq:
            state = State.CLOSED
        elif end is not None:
            state = State.EXITED
        elif kill_at is not None:
            state = State.KILLED if kill_at <= now else State.STOPPING
        started = record.started_at or now
        return ProcessSnapshot(
            record.pid,
            facts.terminal,
            state,
            ring.next_seq - 1,
            end,
            cause,
            # After its end the rest of its tree is still to be killed.
            None if claim is None or state is State.KILLED else kill_at,
            drain_at,
            facts.terms,
            RingSnapshot(MIB, (), None),
            # Also of one that has exited: its client may not know yet what was accepted, and ask again.
            StdinSnapshot((), (), is_finished=False)
            if facts.stdin and (end is None or record.was_given)
            else None,
            WatchdogSnapshot(
                started,
                record.active_at or started,
                was_given=False,
                said=ring.said_bytes,
                dropped=record.dropped,
            ),
            was_asked=bool(record.flags & Flag.ASKED),
        )


class _Deaf:
    """Watches a child until its process does."""

    def on_ready(self, events: int) -> None:
        pass


class _PidAlone(type(NO_CHILD)):  # type: ignore[misc]  # A child of which nothing is left but its pid.
    def __init__(self, pid: int) -> None:
        self.pid = pid
