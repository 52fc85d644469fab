"""An arena for tests, and rings and stdins in it that are used as those in memory are."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

from holdfast.config import EngineLimits
from holdfast.engine.durable.record import Record, Records
from holdfast.engine.durable.ring import DurableRing
from holdfast.engine.durable.stdin import DurableStdin
from holdfast.engine.ring import Budget, Ring
from holdfast.engine.stdin import Stdin
from holdfast.host import arena as arenas
from holdfast.host.arena import Arena
from holdfast.model import Chunk
from holdfast.poller import Poller

SIZE = 64 << arenas.SHIFT
MUCH = 1 << 40


class Memory:
    """What outlives servers: the arena, the stage, and what is held for processes."""

    def __init__(self, stack: ExitStack, size: int = SIZE, limit: int = MUCH) -> None:
        self._stack = stack
        self._limit = limit
        self.fd = self.own(arenas.create(size))
        out, into = arenas.create_stage()
        self.stage = self.own(out), self.own(into)
        self.cursor = self.own(os.open(f"/proc/self/fd/{self.fd}", os.O_RDWR))
        """That of the one process that most tests have."""
        self.held: list[int] = []
        """Cursors of journals, as a shim would hold them; the last one counts."""
        self.dropped = 0

    def own(self, fd: int) -> int:
        self._stack.callback(os.close, fd)
        return fd

    def arena(self, limit: int | None = None) -> Arena:
        """The arena, as the next server sees it."""
        made = Arena(self.fd, self.stage, limit=self._limit if limit is None else limit)
        self._stack.callback(made.close)
        return made

    def records(self) -> Records:
        return Records(self.arena())

    def pipe(self) -> tuple[int, int]:
        """A pipe that does not block; first the end that is read."""
        out, into = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        return self.own(out), self.own(into)

    def hold(self, cursor: int) -> None:
        self.held.append(self.own(os.dup(cursor)))

    def drop(self) -> None:
        self.dropped += 1


@contextmanager
def memory(size: int = SIZE, limit: int = MUCH) -> Iterator[Memory]:
    with ExitStack() as stack:
        yield Memory(stack, size, limit)


class SaidRing(DurableRing):
    """A ring in the arena that is given chunks as a ``Ring`` is: they are said into a pipe, and taken."""

    __slots__ = ("_into", "_out", "_record")

    def __init__(self, record: Record, shelf: Memory, *, limit: int, chunks: int, budget: Budget) -> None:
        cursor = shelf.own(record.arena.open_cursor())
        super().__init__(record, cursor, limit=limit, chunks=chunks, budget=budget)
        self._record = record
        self._out, self._into = shelf.pipe()

    def append(self, chunk: Chunk) -> None:
        if chunk.seq == self.next_seq + 1:
            self._record.exited(self.next_seq, b"end", 0.0)
        os.write(self._into, chunk.data)
        assert self.take(self._out, chunk.stream) == chunk.data
        super().append(chunk)


class RingMaker(Protocol):
    """Makes a ring."""

    def __call__(self, *, limit: int, chunks: int, budget: Budget) -> Ring: ...


@contextmanager
def ring_makers(form: str) -> Iterator[RingMaker]:
    """Makes rings in memory, or in an arena."""
    if form == "memory":
        yield Ring
        return
    with memory() as shelf:
        records = shelf.records()
        yield lambda **bounds: SaidRing(records.open(b""), shelf, **bounds)


StdinMaker = Callable[[int, asyncio.AbstractEventLoop, Poller, EngineLimits], Stdin]


@contextmanager
def stdin_makers(form: str) -> Iterator[StdinMaker]:
    """Makes stdins with a queue in memory, or with a journal in an arena."""

    def plain(fd: int, loop: asyncio.AbstractEventLoop, poller: Poller, limits: EngineLimits) -> Stdin:
        return Stdin(fd, loop=loop, poller=poller, limits=limits)

    if form == "memory":
        yield plain
        return
    with memory() as shelf:
        records = shelf.records()

        def durable(fd: int, loop: asyncio.AbstractEventLoop, poller: Poller, limits: EngineLimits) -> Stdin:
            record = records.open(b"")
            return DurableStdin(
                record, fd, loop=loop, poller=poller, limits=limits, hold=shelf.hold, drop=shelf.drop
            )

        yield durable


class Killed(Exception):
    """In place of SIGKILL: nothing follows."""


class MortalMemory:
    """Memory whose owner is killed when it has made so many stores, all such memories together."""

    left = 0

    def __init__(self, memory: Any) -> None:
        self.memory = memory

    def __getitem__(self, at: Any) -> Any:
        return self.memory[at]

    def __setitem__(self, at: Any, value: Any) -> None:
        if not MortalMemory.left:
            raise Killed
        MortalMemory.left -= 1
        self.memory[at] = value
