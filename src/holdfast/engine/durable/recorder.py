"""Writes the facts of one process down in the arena, before anybody is told of them."""

from __future__ import annotations

import logging
import os
import time

from holdfast.config import MIB
from holdfast.engine.children import NO_CHILD, Child
from holdfast.engine.recorder import EngineParts
from holdfast.engine.ring import Budget
from holdfast.engine.stdin import Stdin
from holdfast.errors import LimitReached
from holdfast.host.outliving import HostFacts
from holdfast.model import Cause, Exit
from holdfast.value import replace

from .facts import ProcessFacts, pack_cause, pack_end, pack_facts
from .layout import Flag
from .record import Record, Records
from .ring import DurableRing
from .stdin import DurableStdin

_log = logging.getLogger(__name__)


class DurableRecorder:
    """Implements ``engine.recorder.Recorder`` and ``host.outliving.Holding``."""

    __slots__ = ("_drain_at", "_facts", "_is_forgotten", "_is_gone", "_records", "_ring", "child", "record")

    def __init__(self, records: Records, facts: ProcessFacts, record: Record | None = None) -> None:
        """``record`` is that of a process that another server has started."""
        self._records = records
        self._facts: ProcessFacts | None = facts
        self.record = record
        self.child: Child | None = None
        self._ring: DurableRing | None = None
        self._drain_at: float | None = None
        self._is_forgotten = self._is_gone = False

    # The start.

    @property
    def holding(self) -> DurableRecorder:
        return self

    def begin(self, facts: HostFacts) -> int:
        assert self._facts is not None
        self.record = self._records.open(pack_facts(replace(self._facts, host=facts)))
        return self.record.key

    def open_cursor(self) -> int:
        return self._records.arena.open_cursor()

    def open(self, child: Child, *, chunks: int, budget: Budget, now: float) -> DurableRing:
        assert self.record is not None
        self.child, self._facts = child, None
        self._ring = DurableRing(self.record, child.cursor, limit=MIB, chunks=chunks, budget=budget)
        self.record.started(child.pid, now)
        return self._ring

    def resume(self, child: Child, ring: DurableRing, drain_at: float | None) -> None:
        """Go on with a process that another server has started."""
        assert self.record is not None
        self.child, self._facts = child, None
        self._ring, self._drain_at = ring, drain_at
        self._is_forgotten = bool(self.record.flags & Flag.NOBODYS)

    def discard(self) -> None:
        record, self.record = self.record, None
        if record is not None:
            record.forget()

    # Output and input.

    @property
    def taker(self) -> DurableRing:
        assert self._ring is not None
        return self._ring

    def open_stdin(self, fd: int | None, parts: EngineParts) -> Stdin:
        assert self.record is not None
        child = self.child
        assert child is not None
        return DurableStdin(
            self.record,
            fd,
            loop=parts.loop,
            poller=parts.poller,
            limits=parts.limits,
            hold=child.hold_input,
            drop=child.drop_input,
        )

    # What happens.

    def ending(self, cause: Cause | None, kill_at: float, *, asked: bool = False) -> None:
        if self.record is None or self._is_forgotten:
            return
        try:
            self.record.ending(pack_cause(cause), kill_at)
        except LimitReached:
            _log.error("there is no memory to write down why a process is ended")
        self.record.kills_at(kill_at)
        if asked:
            self.record.asked()

    def exited(self, seq: int, end: Exit, drain: float | None) -> None:
        if self.record is None or self._is_forgotten:
            return
        now = time.monotonic()
        self._drain_at = None if drain is None else now + drain
        try:
            self.record.exited(seq, pack_end(end, self._drain_at), now)
        except LimitReached:
            # Its shim says it again to the next server, which then may number it otherwise.
            _log.error("there is no memory to write down how a process ended")

    def amended(self, end: Exit) -> None:
        if self.record is not None and not self._is_forgotten and self.record.exit_seq:
            try:
                self.record.amend(pack_end(end, self._drain_at))
            except LimitReached:
                _log.warning("there is no memory to write down what else is known of an end")

    def closed(self, seq: int) -> None:
        if self.record is not None and not self._is_forgotten and self.record.exit_seq:
            self.record.closed(seq, time.monotonic())

    def audited(self) -> None:
        if self.record is not None:
            self.record.flag(Flag.AUDITED)

    def active(self, now: float) -> None:
        if self.record is not None:
            self.record.active(now)

    def dropped(self, total: int) -> None:
        if self.record is not None:
            self.record.drop(total)

    def acknowledged(self, seq: int) -> None:
        if self.record is not None:
            self.record.acked(seq)

    # The end.

    def forgotten(self) -> None:
        self._is_forgotten = True
        self._end()

    def gone(self) -> None:
        self._is_gone = True
        self.child = None
        self._end()

    def _end(self) -> None:
        """Forget the record once nobody asks for the process and nobody is left of it."""
        if self.record is None or not self._is_forgotten:
            return
        if self._is_gone:
            self.discard()
        else:
            # Whoever is left ends with its session, which the facts name.
            self.record.flag(Flag.FORGOTTEN)


class RecoveringRecorder(DurableRecorder):
    """The recorder of a process that another server has started, until that has its stdin."""

    __slots__ = ("_cursor",)

    def __init__(self, records: Records, facts: ProcessFacts, record: Record, cursor: int) -> None:
        """``cursor`` is that of the input, as the shim held it; -1 if there is none."""
        super().__init__(records, facts, record)
        self._cursor = cursor

    def open_stdin(self, fd: int | None, parts: EngineParts) -> Stdin:
        assert self.record is not None
        child = NO_CHILD if self.child is None else self.child  # The shim may be gone.
        cursor, self._cursor = self._cursor, -1
        return DurableStdin.recover(
            self.record,
            fd,
            cursor,
            loop=parts.loop,
            poller=parts.poller,
            limits=parts.limits,
            hold=child.hold_input,
            drop=child.drop_input,
        )

    def close_cursor(self) -> None:
        """Close the cursor if nobody has taken it."""
        if self._cursor >= 0:
            os.close(self._cursor)
            self._cursor = -1
