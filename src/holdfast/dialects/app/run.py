"""One process of a connection, from its start to its result.

What must hold:

1. Output is told, or kept, up to the cap and in order; all of it before the result.
2. From the exit on nothing reaches the process any more, also while the rest of
   its output is awaited.
3. There is one result, and nothing follows it; what is left of the process is
   gone by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from holdfast.backend import HostedProcess, Valve
from holdfast.model import Chunk, Exit, Kind, Leftovers, Stream

from .buffered import Capped, OutputRoom
from .drain import Drain
from .order import Terms

TIMED_OUT = 124
"""The exit code of a process that was killed because its time was over."""


class Run:
    """One process of an app connection, from its start to its result.  Implements ``backend.Watcher``."""

    __slots__ = (
        "_drain",
        "_loop",
        "_on_lost",
        "_on_over",
        "_tell",
        "_terms",
        "_timer",
        "exit_code",
        "killed",
        "over",
        "process",
        "stderr",
        "stdin_open",
        "stdout",
    )

    def __init__(
        self,
        process: HostedProcess,
        terms: Terms,
        *,
        valve: Valve,
        room: OutputRoom,
        loop: asyncio.AbstractEventLoop,
        tell: Callable[[Stream, bytes, bool], None],
        on_over: Callable[[Run], bool | None],
        on_lost: Callable[[], object],
    ) -> None:
        """
        Args:
            tell: Takes a piece of streamed output, and whether the cap is reached with it.
            on_over: Called when everything about the process is known.  True if what is kept of its output
                is needed for longer: then ``give_back`` is the caller's.
            on_lost: Called instead if there will be no result.
        """
        self.process = process
        self.stdout = Capped(terms.cap, room)
        self.stderr = Capped(terms.cap, room)
        self.stdin_open = terms.stdin
        self.exit_code: int | None = None
        self.over = False
        self.killed = False
        """Whether it was ended by somebody, or by its timeout."""
        self._terms = terms
        self._tell = tell
        self._on_over = on_over
        self._on_lost = on_lost
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None
        streams = (Stream.STDOUT,) if terms.terminal else (Stream.STDOUT, Stream.STDERR)
        self._drain = Drain(streams, quiet=terms.quiet, hard=terms.hard)
        process.retain(0)  # It is told or kept here; nobody asks for it again.
        process.watch(self, valve if terms.streamed else None)

    @property
    def takes_stdin(self) -> bool:
        """Whether it was started to be written to."""
        return self._terms.stdin

    @property
    def torn(self) -> bool:
        """Whether the output may end in the middle of a character, wherever the caps were."""
        return self.killed or self._drain.unfinished

    @property
    def drain_timed_out(self) -> bool:
        """Whether the output was cut short because somebody held it open for too long."""
        return self._drain.timed_out

    # Implements ``backend.Watcher``.

    def output(self, chunk: Chunk) -> None:
        if chunk.stream is Stream.STDERR:
            stream, capped = Stream.STDERR, self.stderr
        else:
            stream, capped = Stream.STDOUT, self.stdout
        if capped.full:
            return
        if self._terms.streamed:
            data, full = capped.cut(chunk.data)
            self._tell(stream, data, full)
        else:
            full = capped.keep(chunk.data)
        if full:
            self._drain.ended(stream)
        if self.exit_code is not None:
            self._drain.on_output(self._loop.time())
            if full:
                self._look()

    def ended(self, stream: Stream) -> None:
        self._drain.ended(Stream.STDERR if stream is Stream.STDERR else Stream.STDOUT)
        if self.exit_code is not None and not self._drain.unfinished:
            self._look()

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        timed_out = exit.outcome.kind is Kind.TIMEOUT
        self.killed = self.killed or timed_out
        self.exit_code = TIMED_OUT if timed_out else exit.code
        self._drain.exited(self._loop.time())
        self._look()

    def closed(self, seq: int) -> None:
        self._drain.all_ended()
        self._finish()

    # Time.

    def _look(self) -> None:
        """See when it will be over.  Not here and now: whoever tells us something has not finished."""
        now = self._loop.time()
        self._set_timer(now if self._drain.is_over(now) else self._drain.deadline)

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_at(when, self._on_drain_due)

    def _on_drain_due(self) -> None:
        self.process.drain()  # What is ready wins over a deadline.
        if self.over:
            return
        now = self._loop.time()
        look = not self._drain.is_over(now) and self._drain.is_to_look(now)
        self._go_on(now)
        if look:
            self.process.look_at_holders(self._on_looked)

    def _on_looked(self, at_work: bool) -> None:  # noqa: FBT001
        if self.over:
            return
        self.process.drain()  # It may have been said after the look.
        if not self.over:
            now = self._loop.time()
            self._drain.looked(now, at_work=at_work)
            self._go_on(now)

    def _go_on(self, now: float) -> None:
        if self._drain.is_over(now):
            self._finish()
        else:
            self._set_timer(self._drain.deadline)

    # The end.

    def kill(self) -> None:
        """Kill the process and everything it has started; its exit and its result follow."""
        self.killed = True
        self.process.end_now()

    def _finish(self) -> None:
        # Whoever has left the group of a process that ended by itself is not in its way.
        self._let_go(Leftovers.END if self.killed else Leftovers.END_GROUP)
        if not self._on_over(self):
            self.give_back()

    def abandon(self) -> None:
        """End it without a result.  May be called twice."""
        if not self.over:
            self._let_go(Leftovers.END)
            self._on_lost()
            self.give_back()

    def give_back(self) -> None:
        """Let go of what was kept of the output."""
        self.stdout.give_back()
        self.stderr.give_back()

    def _let_go(self, leftovers: Leftovers) -> None:
        self.over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.process.forget(leftovers)
