"""A process in an arena whose servers die now and then, and what one that never dies would know of it."""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from holdfast.config import EngineLimits
from holdfast.engine.durable.record import Records
from holdfast.engine.durable.ring import DurableRing
from holdfast.engine.durable.stdin import DurableStdin
from holdfast.engine.ring import PIECE, Budget, Ring
from holdfast.host import arena as arenas
from holdfast.model import Chunk, Gap, Stream, WriteStatus
from holdfast.poller import Poller
from tests.fakes.durable import MUCH, Memory

CHUNKS = 60
LIMITS = EngineLimits(stdin_chunks=3, write_ids=20)
BOTH = (Stream.STDOUT, Stream.STDERR)


@dataclass(frozen=True)
class Step:
    """One thing that happens; what ``size`` and ``number`` are is up to it."""

    what: str
    size: int = 0
    number: int = 0


class Durable:
    """One process, its servers, and the model."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._shelf = shelf = Memory(stack)
        self._loop = asyncio.new_event_loop()
        stack.callback(self._loop.close)
        self._pipes = [shelf.pipe(), shelf.pipe()]
        self._reader, self._stdin_end = shelf.pipe()
        self._dice = random.Random(0)  # noqa: S311 (bytes that are nowhere the same)
        # The model.
        self._model_budget = Budget(MUCH, PIECE)
        self._model = Ring(limit=MUCH, chunks=CHUNKS, budget=self._model_budget)
        self._unread = [b"", b""]
        self._next = 1
        self._is_dropped_known = True
        self._offered: dict[str, bytes] = {}
        self._accepted: list[str] = []
        self._unread_input = b""
        self._is_finished = False
        self._facts: dict[int, bytes] = {}
        self._end: bytes | None = None
        self._servers = 0
        self._begin()

    # Servers.

    def _begin(self) -> None:
        self._budget = Budget(MUCH, PIECE)
        self._records = records = Records(self._shelf.arena())
        self._poller = Poller()
        self._stack.callback(self._poller.epoll.close)
        found = records.scan()
        assert [record.damaged for record in found] == [""] * len(found)
        if not found:
            self._record = records.open(b"facts")
            self._record.started(7, 1.0)
            self._ring = DurableRing(
                self._record, self._shelf.cursor, limit=MUCH, chunks=CHUNKS, budget=self._budget
            )
            self._stdin = DurableStdin(self._record, os.dup(self._stdin_end), **self._means())
            return
        (self._record,) = found
        self._ring = DurableRing.recover(
            self._record, self._shelf.cursor, limit=self._model.limit, chunks=CHUNKS, budget=self._budget
        )
        self._ring.trim()
        cursor = os.dup(self._shelf.held[-1]) if self._shelf.held else -1
        fd = os.dup(self._stdin_end)
        self._stdin = DurableStdin.recover(self._record, fd, cursor, **self._means())

    def _means(self) -> dict[str, Any]:
        shelf = self._shelf
        return {
            "loop": self._loop,
            "poller": self._poller,
            "limits": LIMITS,
            "hold": shelf.hold,
            "drop": shelf.drop,
        }

    def _kill(self) -> None:
        """The server is gone, with all it knew.  Descriptors go with it."""
        self._is_dropped_known = False
        for fd in (self._stdin._fd, self._stdin._cursor):
            if fd is not None and fd >= 0:
                os.close(fd)
        self._begin()

    # Steps.

    def do(self, step: Step) -> None:
        getattr(self, f"_do_{step.what}")(step)
        self.check()

    def _do_say(self, step: Step) -> None:
        """Somebody writes to a pipe, and it is taken, or not yet."""
        number = step.number % 2
        data = self._dice.randbytes(step.size)
        if len(self._unread[number]) + step.size <= 60_000:
            os.write(self._pipes[number][1], data)
            self._unread[number] += data

    def _do_take(self, step: Step) -> None:
        number = step.number % 2
        data = self._ring.take(self._pipes[number][0], BOTH[number])
        assert (data is None) == (not self._unread[number])
        if data:
            self._ring.append(Chunk(self._next, BOTH[number], data))
            self._said(number, bytes(data))  # A view is not to be kept.

    def _said(self, number: int, data: bytes) -> None:
        assert self._unread[number].startswith(data)
        self._unread[number] = self._unread[number][len(data) :]
        self._model.append(Chunk(self._next, BOTH[number], data))
        self._next += 1

    def _do_kill(self, step: Step) -> None:
        self._kill()

    def _do_kill_taking(self, step: Step) -> None:
        """It dies after it has taken something, and before it has numbered that."""
        number = step.number % 2
        if self._unread[number]:
            ring = self._ring
            ring._set_stream(BOTH[number])
            assert ring._make_room(512)
            size = os.splice(self._pipes[number][0], self._shelf.cursor, ring._end - ring._pos)
            self._said(number, self._unread[number][:size])
        self._kill()

    def _do_kill_turning(self, step: Step) -> None:
        """It dies after it has gone to another block, and before it has taken something."""
        assert self._ring._turn(step.size)
        self._kill()

    def _do_kill_staging(self, step: Step) -> None:
        """It dies after it has taken something from a terminal, and before that is in the arena."""
        data = self._dice.randbytes(step.size)
        arena = self._record.arena
        arena.words[arenas.STAGE] = self._record.slot << 3
        os.write(self._shelf.stage[1], data)
        self._model.append(Chunk(self._next, Stream.PTY, data))
        self._next += 1
        self._kill()

    def _do_limit(self, step: Step) -> None:
        for ring in (self._ring, self._model):
            ring.limit = step.size
            ring.trim()

    def _do_write(self, step: Step) -> None:
        """A client writes, perhaps again."""
        write_id = f"{step.number} " * (1 + step.number % 20)
        data = self._offered.setdefault(write_id, self._dice.randbytes(step.size))
        status = self._stdin.try_write(data, write_id)
        if write_id in self._accepted[-LIMITS.write_ids :]:
            assert status is WriteStatus.ACCEPTED
        elif self._is_finished:
            assert status is WriteStatus.STDIN_CLOSED
        elif status is not None:
            assert status is WriteStatus.ACCEPTED
            self._accepted.append(write_id)
            self._unread_input += data

    def _do_kill_writing(self, step: Step) -> None:
        """It dies after it has accepted a write, and before it has given any of it to the child."""
        write_id, data = f"{step.number} of {len(self._accepted)}", self._dice.randbytes(step.size)
        if not self._is_finished and self._stdin._accept(data, write_id):
            self._accepted.append(write_id)
            self._offered[write_id] = data
            self._unread_input += data
        self._kill()

    def _do_read(self, step: Step) -> None:
        """The child reads."""
        try:
            data = os.read(self._reader, step.size)
        except BlockingIOError:
            data = b""
        assert self._unread_input.startswith(data)
        self._unread_input = self._unread_input[len(data) :]
        self._stdin.on_ready()

    def _do_finish(self, step: Step) -> None:
        expected = WriteStatus.STDIN_CLOSED if self._is_finished else WriteStatus.ACCEPTED
        assert self._stdin.finish(b"\n\4"[: step.size % 3]) is expected
        if not self._is_finished:
            self._unread_input += b"\n\4"[: step.size % 3]
        self._is_finished = True

    def _do_exit(self, step: Step) -> None:
        if self._end is None:
            self._end = b"end"
            self._record.exited(self._next, self._end, 2.0)
            self._next += 1
        else:
            self._end = self._dice.randbytes(step.size)
            self._record.amend(self._end)

    def _do_fact(self, step: Step) -> None:
        ledger, data = self._records.ledger, self._dice.randbytes(step.size)
        number = sorted(self._facts)[step.number % len(self._facts)] if self._facts else 0
        if not number or step.number % 3 == 0:
            self._facts[ledger.put(data)] = data
        elif step.number % 3 == 1:
            ledger.change(number, data)
            self._facts[number] = data
        else:
            ledger.remove(number)
            del self._facts[number]

    # What must hold.

    def check(self) -> None:
        ring, model = self._ring, self._model
        assert ring.after(0) == model.after(0)
        assert (ring.total, ring.cost, self._budget.used) == (
            model.total,
            model.cost,
            self._model_budget.used,
        )
        assert ring.next_seq == self._next
        for after in (0, 1, self._next // 2, self._next - 1):
            assert ring.after(after, limit=3000) == model.after(after, limit=3000)
            assert _alike(ring.gap(after), model.gap(after), exactly=after == 0 or self._is_dropped_known)
        assert (self._record.end, self._record.facts, self._record.pid) == (self._end, b"facts", 7)
        assert dict(self._records.ledger.items()) == self._facts

    def finish(self) -> None:
        """Everything that was accepted is read, and all memory is given back."""
        while unread := len(self._unread_input):
            self._do_read(Step("read", 1 << 20))
            assert len(self._unread_input) < unread
        assert self._stdin.closed == self._is_finished
        self._stdin.close()
        self._ring.close()
        self._record.forget()
        for number in list(self._facts):
            self._records.ledger.remove(number)
        left = Records(self._shelf.arena())
        assert (left.scan(), dict(left.ledger.items())) == ([], {})
        assert self._record.arena.used < 9 << 20
        assert self._budget.used == 0


def _alike(gap: Gap | None, model: Gap | None, *, exactly: bool) -> bool:
    if gap is None or model is None or exactly:
        return gap == model
    return (gap.first, gap.last) == (model.first, model.last) and gap.size in (None, model.size)
