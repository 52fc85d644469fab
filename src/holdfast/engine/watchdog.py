"""Ends a process that takes too long, says too much or uses too much; or cuts off what is too much.

Only a process that was started with such terms has a watchdog.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from holdfast.model import Cause, Chunk, Exit, Kind, Limits, ProcessTerms, Stream
from holdfast.reports import Load
from holdfast.value import replace
from holdfast.wording import counted

from .life import ProcessSnapshot, WatchdogSnapshot

if TYPE_CHECKING:
    from .process import LocalProcess

_LONGEST = 365 * 24 * 3600.0
"""Seconds; longer timeouts are legal and mean the same, but clocks overflow."""

_GLANCE = 0.05
"""Seconds between two looks at what a tree uses."""

_SHARE = 20
"""A look may take one part in so many of the time: a large tree is looked at less often."""


class Watchdog:
    """Implements ``backend.Watcher``."""

    __slots__ = (
        "_active",
        "_limits",
        "_loop",
        "_process",
        "_said",
        "_started",
        "_terms",
        "_timers",
        "_watch",
        "_writes",
    )

    def __init__(
        self,
        process: LocalProcess,
        terms: ProcessTerms,
        loop: asyncio.AbstractEventLoop,
        resumed: ProcessSnapshot | None = None,
    ) -> None:
        """Watch from the start of the process on, or from where it was written down with its watchdog.

        Of a process that has exited only the output is watched: of those that it has left behind.
        """
        snapshot = None if resumed is None else resumed.watchdog
        now = loop.time()
        self._process = process
        self._terms = terms
        self._loop = loop
        self._limits = process.tree.limits_to_watch
        self._started = now if snapshot is None else snapshot.started
        self._active = now if snapshot is None else snapshot.active
        self._said = 0 if snapshot is None else snapshot.said
        self._writes = 0 if snapshot is None or not snapshot.was_given else -1
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._watch = process.watch(self)
        if snapshot is not None and terms.truncate:
            self._cut_off(snapshot.dropped)
        if resumed is not None and resumed.exit is not None:
            if self._terms.output is not None and self._said > self._terms.output:
                self._arm("over", 0.0)
            return
        if terms.timeout is not None:
            self._arm("wall", self._started + min(terms.timeout, _LONGEST) - now)
        if terms.idle_timeout is not None:
            self._arm("idle", self._active + min(terms.idle_timeout, _LONGEST) - now)
        if self._limits != Limits():
            self._arm("load", _GLANCE)

    def snapshot(self) -> WatchdogSnapshot:
        """Return what another watchdog needs to go on."""
        was_given = self._process.writes != self._writes
        dropped = self._process.outputs.dropped
        return WatchdogSnapshot(self._started, self._active, was_given, self._said, dropped)

    def cancel(self) -> None:
        """Watch no more.  The process goes on."""
        self._watch.stop()
        self._stop_timers()

    def _arm(self, what: str, seconds: float) -> None:
        due = {"wall": self._on_wall, "idle": self._on_idle, "load": self._on_load, "over": self._on_over}
        self._timers[what] = self._loop.call_later(max(0.0, min(seconds, _LONGEST)), due[what])

    def _stop_timers(self) -> None:
        for timer in self._timers.values():
            timer.cancel()

    # Implements ``backend.Watcher``.

    def output(self, chunk: Chunk) -> None:
        self._be_active()
        self._said += len(chunk.data)
        most = self._terms.output
        if self._terms.truncate:
            self._cut_off()
        elif most is not None and self._said > most:
            self._terms = ProcessTerms(grace=self._terms.grace)  # Once.
            if self._process.exit is None:
                self._end(Kind.OUTPUT_LIMIT, f"more than {counted(most, 'byte')} of output")
            else:
                # Everybody is to be told of these bytes before the close, which is all that is left to tell.
                self._arm("over", 0.0)

    def _be_active(self) -> None:
        self._active = now = self._loop.time()
        if self._terms.idle_timeout is not None:
            self._process.recorder.active(now)

    def _cut_off(self, dropped: int = 0) -> None:
        """Once the process has said as much as it may, have what follows dropped."""
        if self._terms.output is not None and self._said >= self._terms.output:
            self._terms = replace(self._terms, output=None, truncate=False)  # Once.
            self._process.outputs.truncate(self._on_dropped, dropped=dropped)

    def _on_dropped(self) -> None:
        self._be_active()  # Whoever talks is not idle, whether or not anybody hears it.
        self._process.recorder.dropped(self._process.outputs.dropped)

    def _on_over(self) -> None:
        if not self._process.closed:
            self._process.end_for(Cause(Kind.OUTPUT_LIMIT, "limit"), self._terms.grace)

    def given(self) -> None:
        """The process is given input."""
        if self._terms.idle_timeout is not None:
            self._process.recorder.active(self._loop.time())

    def ended(self, stream: Stream) -> None:
        pass

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        self._stop_timers()

    def closed(self, seq: int) -> None:
        pass

    # Time.

    def _on_wall(self) -> None:
        # It may have ended in time, and the news be held back because a client is behind.
        if self._process.running:
            self._end(Kind.TIMEOUT, f"more than {counted(self._terms.timeout or 0.0, 'second')}")

    def _on_idle(self) -> None:
        process, idle = self._process, self._terms.idle_timeout
        assert idle is not None
        now = self._loop.time()
        if process.writes != self._writes or not all(valve.is_open for valve in process.valves):
            # It was given something, or may be talking while nobody listens.
            self._writes = process.writes
            self._active = now
            process.recorder.active(now)
        left = self._active + idle - now
        if left > 0:
            self._arm("idle", left)
        elif process.running:
            self._end(Kind.IDLE_TIMEOUT, f"more than {counted(idle, 'second')} without output or input")

    def _on_load(self) -> None:
        self._process.tree.load(self._on_looked)

    def _on_looked(self, found: Load, took: float) -> None:
        if self._process.exit is not None:
            return
        cause = over(found, self._limits)
        if cause is not None:
            self._process.end_for(cause, 0.0)
        else:
            self._arm("load", max(_GLANCE, _SHARE * took))

    def _end(self, kind: Kind, detail: str) -> None:
        self._process.end_for(Cause(kind, "limit", detail), self._terms.grace)


def over(load: Load, limits: Limits) -> Cause | None:
    """The limit that ``load`` is over, if any (pure)."""
    if limits.memory is not None and load.memory > limits.memory:
        return Cause(
            Kind.OOM, "limit", f"{counted(load.memory, 'byte')} of memory, more than {limits.memory}"
        )
    if limits.cpu is not None and load.cpu_us > limits.cpu * 1e6:
        return Cause(Kind.CPU_LIMIT, "limit", f"more than {counted(limits.cpu, 'second')} of processor time")
    if limits.processes is not None and load.processes > limits.processes:
        return Cause(Kind.TERMINATED, "limit", f"{load.processes} processes, more than {limits.processes}")
    return None
