"""Those who watch a process, and those who wait for something to happen to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from holdfast.backend import Valve, Watcher
from holdfast.model import Chunk, Exit, Stream

if TYPE_CHECKING:
    from .process import LocalProcess

_log = logging.getLogger(__name__)


class LocalWatch:
    """One watcher's hold on one process.  Implements ``backend.Watch``."""

    __slots__ = ("_process", "valve", "watcher")

    def __init__(self, process: LocalProcess, watcher: Watcher, valve: Valve | None) -> None:
        self._process: LocalProcess | None = process
        self.watcher = watcher
        self.valve = valve

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.drop(self)
            # A watcher usually holds its watch: what knows each other in a circle is
            # not freed when it is no longer needed, but when somebody looks for it.
            self.watcher = _NOBODY

    def fail(self) -> None:
        if self._process is not None:
            _log.exception("a watcher of process %d failed and is removed", self._process.pid)
        self.stop()


def notify(watches: Iterable[LocalWatch], call: Callable[[Watcher], None]) -> None:
    """Call every watcher; one that raises is removed and logged, and the others are not affected."""
    for watch in watches:
        try:
            call(watch.watcher)
        except Exception:  # noqa: BLE001  (a watcher is code of somebody else)
            watch.fail()


def wait_for_one(valves: Iterable[Valve], resume: Callable[[], None]) -> bool:
    """Whether one of the valves is shut; then ``resume`` is called when it opens."""
    for valve in valves:
        if not valve.is_open:
            valve.wait(resume)
            return True
    return False


class _Nobody:
    """The watcher of a watch that was stopped."""

    def output(self, chunk: Chunk) -> None:
        pass

    def ended(self, stream: Stream) -> None:
        pass

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        pass

    def closed(self, seq: int) -> None:
        pass


_NOBODY = _Nobody()


# Waiting.

_Line = dict[Callable[[], object], asyncio.TimerHandle]
"""Whom to tell, and until when each waits; a dictionary gives up one of thousands at once."""

_ENDS = 2**64
"""In place of a number, above all of them: for those whom only the end of something concerns."""
_STALE = 64
"""Numbers that may be in the heap for nothing before it is worth making it anew."""


class Waiting:
    """Those who wait for the next event, and those whom only the end of something concerns.

    Each kind is apart: a process that talks without end must not wake all who wait for its end, nor those
    who wait for output that is far away.  Nothing runs between a look at the state and ``listen``.
    """

    __slots__ = ("_events", "_loop", "_next")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        # By the number that each knows already.
        self._events: dict[int, _Line] = {}
        # A heap of these numbers, also of some for which nobody waits any more.
        self._next: list[int] = []

    def listen(self, tell: Callable[[], object], deadline: float, after: int = 0) -> Callable[[], None]:
        """Call ``tell`` once: at output behind number ``after``, at anything else, or at the deadline.

        It is called from where the event happens, and must only take note of it.  Nobody else may have given
        the same ``tell``.  What is returned has it not be called.
        """
        line = self._events.get(after)
        if line is None:
            self._events[after] = line = {}
            self._await_number(after)
        line[tell] = self._loop.call_at(deadline, self._expire, after, line, tell)
        return partial(self._leave, after, line, tell)

    def _leave(self, after: int, line: _Line, tell: Callable[[], object]) -> None:
        timer = line.pop(tell, None)
        if timer is not None:
            timer.cancel()
            if not line and self._events.get(after) is line:
                del self._events[after]

    def _expire(self, after: int, line: _Line, tell: Callable[[], object]) -> None:
        self._leave(after, line, tell)
        tell()

    def _await_number(self, after: int) -> None:
        if len(self._next) > 2 * len(self._events) + _STALE:
            self._next = list(self._events)
            heapify(self._next)
        else:
            heappush(self._next, after)

    async def next_event(self, deadline: float, after: int = 0) -> None:
        """Wait for output behind number ``after``, or anything else to happen, at most until the deadline."""
        event: asyncio.Future[None] = self._loop.create_future()
        leave = self.listen(partial(_settle, event), deadline, after)
        try:
            await event
        finally:
            leave()

    async def until(self, is_so: Callable[[], bool], deadline: float) -> None:
        """Wait until something is so that does not come with output, at most until the deadline."""
        while not is_so() and self._loop.time() < deadline:
            await self.next_event(deadline, _ENDS)

    def wake(self) -> None:
        """Something else than output has happened: wake everybody."""
        lines = list(self._events.values())
        self._events.clear()
        self._next.clear()
        for line in lines:
            _wake(line)

    def wake_by_output(self, seq: int) -> None:
        """There is output of this number: wake those who did not know it."""
        while self._next and self._next[0] < seq:
            line = self._events.pop(heappop(self._next), None)
            if line is not None:
                _wake(line)


def _wake(line: _Line) -> None:
    waiting = list(line.items())
    line.clear()
    for tell, timer in waiting:
        timer.cancel()
        tell()


def _settle(event: asyncio.Future[None]) -> None:
    if not event.done():  # Its task may have been cancelled, and not know it yet.
        event.set_result(None)
