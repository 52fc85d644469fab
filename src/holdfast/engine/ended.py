"""A process of which nothing can change any more: as plain values, and as a process again.

Thousands of ended processes are retained for a while.  Whoever retains them stores the
plain values in whatever way takes the least memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast.backend import ImmediateControls, Packed, Valve, Watcher
from holdfast.errors import NoTerminal, Unsupported
from holdfast.inspection import Inspection
from holdfast.model import (
    Chunk,
    Denied,
    Ended,
    Exit,
    Kind,
    Leftovers,
    Outcome,
    Page,
    Size,
    Stream,
    Usage,
    WriteStatus,
)
from holdfast.ranges import OutputRange, chosen
from holdfast.reports import Load
from holdfast.sandbox import Denial
from holdfast.screens import ScreenSnapshot

from .inspecting import NOT_WAITING
from .offsets import read_range
from .ring import Budget, Ring, page
from .screen import NO_SCREENS, Screen

PACK_MOST = 4096
"""Bytes of output up to which a process is packed: what is larger is mostly output anyway."""


def pack(pid: int, next_seq: int, end: Exit | None, ring: Ring, *, terminal: bool | Packed) -> Packed | None:
    """All there is to know of a process that has closed; None if it is too much.

    ``terminal`` are the sizes of the terminal, if screens can be asked for, or whether it had one.
    """
    if end is None or ring.total > PACK_MOST or ring.gap(0) is not None:
        return None
    said = [(chunk.seq, chunk.stream.value, chunk.data) for chunk in ring.after(0)]
    return (pid, next_seq, terminal, *pack_exit(end), said)


def pack_exit(end: Exit) -> Packed:
    """The end of a process as plain values."""
    outcome, usage = end.outcome, end.usage
    return (
        end.code,
        (outcome.kind.value, outcome.exit_code, outcome.signal, outcome.by, outcome.detail),
        None if usage is None else (usage.user_us, usage.system_us, usage.peak_bytes),
        tuple(end.held_by),
        None if end.denied is None else _packed(end.denied),
        *((end.dropped,) if end.dropped else ()),  # Most have dropped nothing, and take no memory for it.
    )


def unpack_exit(packed: Packed) -> Exit:
    """The end that ``pack_exit`` has made plain."""
    code, (kind, *rest), usage, held_by, denied, *dropped = packed
    return Exit(
        code,
        Outcome(Kind(kind), *rest),
        None if usage is None else Usage(*usage),
        held_by,
        None if denied is None else _unpacked(*denied),
        *dropped,
    )


_PackedDenials = tuple[bool, bool, list[tuple[str, str, int]]]


def _packed(denied: Denied) -> _PackedDenials:
    return denied.failed, denied.exact, [(one.op, one.subject, one.count) for one in denied.denials]


def _unpacked(failed: bool, exact: bool, denials: list[tuple[str, str, int]]) -> Denied:  # noqa: FBT001
    return Denied(failed, exact, tuple(Denial(*one) for one in denials))


class EndedProcess(ImmediateControls):
    """A process that has closed and left nobody behind.  Implements ``backend.HostedProcess``."""

    closed = True
    has_leftovers = False
    running = False

    def __init__(self, packed: Packed, budget: Budget) -> None:
        """``packed`` is what ``pack`` gave; its output still counts in ``budget``."""
        self.pid, self.next_seq, self._terminal, *end, chunks = packed
        self.exit: Exit | None = unpack_exit(tuple(end))
        self._screen: Screen | None = None
        self._budget = budget
        own = Budget(PACK_MOST + budget.piece * len(chunks), budget.piece)
        self._ring = Ring(limit=PACK_MOST, chunks=len(chunks) + 1, budget=own)
        for seq, stream, said in chunks:
            self._ring.append(Chunk(seq, Stream(stream), said))

    def limits_enforced(self) -> dict[str, str]:
        return {}

    def watch(self, watcher: Watcher, valve: Valve | None = None) -> EndedProcess:
        return self

    def stop(self) -> None:
        """As a watch: there is nothing to be told."""

    def try_read(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Page:
        return page(self._ring, after, limit, next_seq=self.next_seq, end=self.exit, closed=True)

    async def read(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Page:
        return self.try_read(after=after, limit=limit)

    def listen(self, tell: Callable[[], object], *, after: int, deadline: float) -> Callable[[], None]:
        return asyncio.get_running_loop().call_soon(tell).cancel  # There is nothing to wait for.

    async def wait(self, seconds: float) -> Exit | None:
        return self.exit

    def try_write(self, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        return WriteStatus.STDIN_CLOSED

    async def write(self, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        return WriteStatus.STDIN_CLOSED

    def close_stdin_now(self, *, write_id: str | None = None) -> WriteStatus:
        return WriteStatus.STDIN_CLOSED

    def resize_now(self, size: Size) -> None:
        if not self._terminal:
            raise NoTerminal

    def try_snapshot(self, until: int) -> ScreenSnapshot | None:
        if not self._terminal:
            raise NoTerminal
        if self._terminal is True:
            raise Unsupported(NO_SCREENS)
        if self._screen is None:
            (_, rows, cols), *sizes = self._terminal
            self._screen = Screen(self._ring, Size(rows, cols))
            for seq, rows, cols in sizes:
                self._screen.resize(seq, Size(rows, cols))
        return self._screen.snapshot(until)

    def signal_now(self, number: int, *, tree: bool = False) -> None:
        pass

    def end_now(self) -> None:
        pass

    def look_at_holders(self, tell: Callable[[bool], None]) -> None:
        tell(False)

    def look_at_load(self, tell: Callable[[Load | None, float], None]) -> None:
        tell(None, 0.0)

    def output_bytes(self) -> int:
        return self._ring.total

    def try_read_range(
        self, stream: Stream | None, offset: int, length: int, *, until: int
    ) -> OutputRange | None:
        stream = chosen(stream, terminal=bool(self._terminal))
        return read_range(self._ring, stream, offset, length, until=until, ended=True)

    def look_at_input(self, tell: Callable[[Inspection], None]) -> None:
        tell(NOT_WAITING)

    def drain(self) -> None:
        pass

    async def end(self, *, grace: float = 0.0, by: str = "client") -> Ended:
        assert self.exit is not None
        return Ended(running=False, exact=self.exit.outcome.kind is not Kind.LOST)

    def retain(self, limit: int) -> None:
        pass

    def retained(self) -> int:
        return self._ring.total

    def acknowledged(self, seq: int) -> None:
        pass

    def pack(self) -> Packed | None:
        return None

    def forget(self, leftovers: Leftovers = Leftovers.SPARE) -> None:
        self._budget.used -= self._ring.cost
        self._ring.close()
