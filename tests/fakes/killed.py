"""A server that is killed before any one of its bytecodes, those after it, and the ledger of what was said.

The parent holds what a shim would hold: the pipes, the terminal, the cursors.  A child is the server: it
takes output, gives input, records the end, and tells its parent what it would tell a client.  A trace
function kills it before a given bytecode of the modules that record.  The next child recovers and goes on.

``python -m tests.fakes.killed SCRIPT START STEP [AGAIN]`` kills before every STEP-th bytecode from START on;
with AGAIN, a seed, each time once more in the recovery.  It prints what came of it as JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import marshal
import os
import random
import select
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from types import FrameType
from typing import Any

from holdfast.config import EngineLimits
from holdfast.engine import durable
from holdfast.engine.durable.layout import HEAD, INLINE, POSITION_SHIFT, SlotState
from holdfast.engine.durable.record import Record, Records
from holdfast.engine.durable.ring import DurableRing
from holdfast.engine.durable.stdin import DurableStdin
from holdfast.engine.ring import PIECE, Budget
from holdfast.host import arena as arenas
from holdfast.host.arena import Arena
from holdfast.model import Chunk, Stream, WriteStatus
from holdfast.poller import Poller
from tests.fakes.killed_ledger import BOTH, END, SCRIPTS, Ledger, Script, content
from tests.fakes.killed_shim import FIRST_CELL, FRAME, Image, Shim

_FILES = (arenas.__file__, os.path.dirname(durable.__file__) + os.sep)

AFTER_PROLOGUE = -1
"""In place of the number of a bytecode: end behind the prologue, and leave everything as it is."""

LONG_PROLOGUE = 1000
"""Chunks above which a prologue is gone through once, and what it leaves is what all servers find."""

LOOP = asyncio.new_event_loop()


def kill_before(number: int) -> list[int]:
    """Kill this process before the bytecode of that number; return a list whose last item counts them."""
    count = [0]

    def each(frame: FrameType, event: str, _: Any) -> Callable[..., Any]:
        if event == "opcode":
            count[0] += 1
            if count[0] == number:
                os.kill(os.getpid(), signal.SIGKILL)
        return each

    def begin(frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        if not frame.f_code.co_filename.startswith(_FILES):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return each

    sys.settrace(begin)
    return count


class Server:
    """What a server does with one process, from wherever an earlier one was killed."""

    def __init__(self, shim: Shim, told: int) -> None:
        self._shim = shim
        self._told = told
        self.budget = Budget(1 << 40, PIECE)
        self.arena = Arena(shim.arena, shim.stage, limit=1 << 30)
        self.records = Records(self.arena)

    def tell(self, *facts: Any) -> None:
        data = marshal.dumps(facts)
        data = FRAME.pack(len(data)) + data
        while data:
            data = data[os.write(self._told, data) :]

    def tell_chunks(self, chunks: list[Chunk]) -> None:
        for chunk in chunks:
            self.tell("chunk", chunk.seq, chunk.stream.value, chunk.data)

    def open(self) -> bool:
        """Find the record, or open one; whether there was one."""
        found = self.records.scan()
        assert not any(record.damaged for record in found), [record.damaged for record in found]
        assert len(found) <= 1
        if not found:
            self.record = self.records.open(b"facts" * 100)
            self._begin(self.record)
            self.record.started(4711, 2.5)
            return False
        (self.record,) = found
        if self.record.state is SlotState.STARTING:
            self.record.started(4711, 2.5)
        shim, limit = self._shim, self._shim.script.limit
        before = self.arena.words[self.record.slot + HEAD]
        self.ring = DurableRing.recover(
            self.record, os.dup(shim.cursor), limit=limit, chunks=50_000, budget=self.budget
        )
        self.tell("adopted", self.arena.words[self.record.slot + HEAD] - before)
        self.tell_chunks(self.ring.after(0))
        cursor = os.dup(shim.cursors[0]) if shim.cursors else -1
        self.stdin = DurableStdin.recover(self.record, self._stdin(), cursor, **self._means())
        return True

    def _begin(self, record: Record) -> None:
        shim = self._shim
        self.ring = DurableRing(
            record, os.dup(shim.cursor), limit=shim.script.limit, chunks=50_000, budget=self.budget
        )
        self.stdin = DurableStdin(record, self._stdin(), **self._means())

    def _stdin(self) -> int:
        return os.dup(self._shim.stdin_in)

    def _means(self) -> dict[str, Any]:
        orders = self._shim.server_end
        return {
            "loop": LOOP,
            "poller": Poller(),
            "limits": EngineLimits(),
            "hold": lambda fd: socket.send_fds(orders, [b"H"], [fd]),
            "drop": lambda: orders.send(b"D"),
        }

    def take(self, fd: int, stream: Stream) -> bool:
        data = self.ring.take(fd, stream)
        if not data:
            return False
        chunk = Chunk(self.ring.next_seq - 1, stream, data)
        self.ring.append(chunk)
        self.tell_chunks([chunk])
        return True

    def write(self, number: int, size: int) -> None:
        status = self.stdin.try_write(content(f"write {number}", size), f"id {number}")
        assert status is WriteStatus.ACCEPTED, status
        while self.stdin._ends and not self.stdin.closed:
            select.select([], [self._shim.stdin_in], [])
            self.stdin.on_ready()

    def prologue(self) -> None:
        shim, script = self._shim, self._shim.script
        for _ in range(script.before):
            os.write(shim.into, b".")
            assert self.take(shim.prologue, Stream.STDOUT)
        for number in range(script.writes_before):
            self.write(-number, 1)

    def live(self) -> None:
        """Everything, in one order; what was done before is found to be done."""
        shim, script = self._shim, self._shim.script
        count = len(script.pipes)
        writes = list(enumerate(script.writes, 1))
        for number, fd in enumerate(shim.pipes[:count]):
            while self.take(fd, BOTH[number % 2]):
                pass
            assert not script.is_stale or self.ring.after(0)[0].seq != 1 or self._is_in_first_cell()
            if writes and not self.record.exit_seq:
                self.write(*writes.pop(0))
        for number, size in writes:
            self.write(number, size)
        if script.terminal:
            while self.take(shim.terminal, Stream.PTY):
                pass
        if script.writes:
            assert self.stdin.finish(write_id="end") is WriteStatus.ACCEPTED
        self.end()
        for number, fd in enumerate(shim.pipes[count:]):
            while self.take(fd, BOTH[number % 2]):
                pass
        if not self.record.closed_seq:
            self.record.closed(self.ring.next_seq, 9.5)

    def _is_in_first_cell(self) -> bool:
        position = self.arena.words[self.record.slot + INLINE] >> POSITION_SHIFT
        return position == FIRST_CELL

    def end(self) -> None:
        record = self.record
        if record.cause is None:
            record.ending(b"because", 3.0)
        if not record.exit_seq:
            record.exited(self.ring.next_seq, b"?", 9.0)
        if record.end != END:
            record.amend(END)
        self.stdin.close()

    def report(self) -> None:
        record, ring = self.record, self.ring
        facts = record.facts, record.cause, record.end, record.pid, record.started_at, record.kill_at
        self.tell(
            "end", facts, record.exit_seq, record.closed_seq, ring.next_seq, self.budget.used == ring.cost
        )

    def forget(self) -> None:
        number = self.records.ledger.put(b"small")
        self.records.ledger.change(number, b"large" * 100)
        self.stdin.close()
        self.ring.close()
        assert self.budget.used == 0
        self.record.stray()
        self.record.forget()
        self.remove_facts()

    def remove_facts(self) -> None:
        for number, data in list(self.records.ledger.items()):
            assert data in (b"small", b"large" * 100)
            self.records.ledger.remove(number)

    def clean_up(self) -> None:
        """Forget what an earlier server has not forgotten in the middle of that."""
        for record in self.records.scan():
            assert not record.damaged, record.damaged
            if record.state is not SlotState.STRAY:
                cursor = os.dup(self._shim.cursor)
                DurableRing.recover(record, cursor, limit=1, chunks=9, budget=self.budget).close()
            record.forget()
        self.remove_facts()


def serve(shim: Shim, kill_at: int, told: int) -> None:
    """Be a server until the end, until killed, or as long as its prologue takes if that is to be kept."""
    server = Server(shim, told)
    script = shim.script
    has_prologue = bool(script.before or script.writes_before) and not shim.servers
    if has_prologue and not server.open():
        server.prologue()
    if kill_at == AFTER_PROLOGUE:
        return
    count = kill_before(kill_at) if kill_at else [0]
    if shim.has_ended:
        server.clean_up()
    else:
        if not has_prologue:
            server.open()
        server.live()
        server.report()
        server.forget()
    sys.settrace(None)
    left = Records(Arena(shim.arena, shim.stage, limit=1 << 30))
    records = left.scan()
    server.tell("left", len(records), len(list(left.ledger.items())), server.arena.used, count[0])


# All of them.


def prologue(script: Script) -> Image | None:
    """Go through a long prologue; None if the script has none, and each first server has its own."""
    if script.before < LONG_PROLOGUE:
        return None
    with ExitStack() as stack:
        shim = Shim(script, stack)
        _, told = shim.run(partial(serve, shim, AFTER_PROLOGUE))
        image = shim.image()
    image.told = told
    return image


def play(script: Script, *kills: int, image: Image | None) -> tuple[int, Ledger]:
    """Kill servers before these bytecodes, one after the other; how many were killed, and the ledger."""
    killed = 0
    with ExitStack() as stack:
        shim, ledger = Shim(script, stack), Ledger(script)
        if image is not None:
            shim.restore(image)
            ledger.hear(image.told)
        for kill_at in (*kills, 0):
            was_killed, told = shim.run(partial(serve, shim, kill_at))
            shim.servers += 1
            ledger.hear(told)
            shim.has_ended = bool(ledger.end)
            killed += was_killed
            if not was_killed:
                break
        ledger.check(shim.read)
    return killed, ledger


def main(name: str, start: int, step: int, again: int | None = None) -> None:
    """Kill before one bytecode after the other until a server is through before its turn comes."""
    gc.freeze()
    # The same wherever the bytecodes of the first server end, so that a failure can be repeated.
    dice = random.Random(again)  # noqa: S311
    script, number = SCRIPTS[name], start
    image = prologue(script)
    # A little more than a recovery has: that of a long index has a step for each chunk there ever was.
    reach = 4000 if image is None else 90_000
    kills = adopted = 0
    wrong: list[str] = []
    while True:
        second = [] if again is None else [dice.randrange(1, reach)]
        killed, ledger = play(script, number, *second, image=image)
        kills += killed
        adopted += bool(ledger.adopted)
        wrong += [f"{number} {second}: {each}" for each in ledger.wrong]
        if not killed:
            break
        number += step
    result = {"script": name, "bytecodes": ledger.left[3], "kills": kills, "adopted": adopted, "wrong": wrong}
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
