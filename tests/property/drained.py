"""A process that has left somebody behind, simulated, and what must be true of its result (pure).

Bytes become readable at one moment and are noticed at that moment or later, as a
busy poller would do it; only a drain notices them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from holdfast.model import Stream

STREAMS = (Stream.STDOUT, Stream.STDERR)
LAST = 10_000
"""A time by which everything is over."""


@dataclass(frozen=True)
class Say:
    """A stream becomes readable; somebody notices ``lag`` later."""

    at: int
    stream: Stream
    size: int
    lag: int = 0


@dataclass(frozen=True)
class Plan:
    """What happens, whatever anybody does."""

    exit_at: int
    said: tuple[Say, ...]
    ends: tuple[int | None, ...]
    """When each stream ends; None if somebody holds it open for ever."""
    cap: int | None
    quiet: int | None
    hard: int
    timers_first: bool
    """Of a timer and an event of the same moment, which comes first."""
    busy: tuple[int, ...] = ()
    """When somebody who holds a stream open was at work, and said nothing."""


@dataclass
class Result:
    """What a run came to."""

    at: float
    told: dict[Stream, bytes]
    timed_out: bool


@dataclass
class World:
    """Plays a plan against somebody who listens and has one timer."""

    plan: Plan
    on_output: Callable[[Stream, bytes], None] = lambda stream, data: None
    on_ended: Callable[[Stream], None] = lambda stream: None
    on_exit: Callable[[], None] = lambda: None
    on_closed: Callable[[], None] = lambda: None
    run_timers: Callable[[float], None] = lambda now: None
    next_timer: Callable[[], float | None] = lambda: None
    now: float = 0
    readable: list[tuple[Stream, bytes]] = field(default_factory=list)
    heard: list[tuple[float, Stream, int]] = field(default_factory=list)
    """When how much of a stream was noticed."""
    ended: dict[Stream, float] = field(default_factory=dict)
    """When the end of a stream was noticed."""
    looked_at: float = -1
    exited: bool = False
    over: bool = False

    def stop(self) -> None:
        """There is a result: what is noticed from now on is nobody's business."""
        self.over = True

    def drain(self) -> None:
        """Notice everything that is readable."""
        readable, self.readable = self.readable, []
        for stream, data in readable:
            if not self.over:
                self.heard.append((self.now, stream, len(data)))
            self.on_output(stream, data)

    def look(self) -> bool:
        """Whether anybody is at work who holds a stream open, or was since the last look."""
        before, self.looked_at = self.looked_at, self.now
        return any(before < at <= self.now for at in self.plan.busy)

    def play(self) -> None:
        """Let time pass until nothing is left to happen."""
        events = self._events()
        while events or self.next_timer() is not None:
            at = self.next_timer()
            due = events[0][0] if events else LAST
            if at is not None and (at < due or (at == due and self.plan.timers_first)):
                self.now = max(self.now, at)
                self.run_timers(self.now)
            elif events:
                self.now, _, act = events.pop(0)
                act()

    def _events(self) -> list[tuple[float, int, Callable[[], None]]]:
        plan = self.plan
        events: list[tuple[float, int, Callable[[], None]]] = [(plan.exit_at, 2, self._exit)]
        number = 0
        for say in plan.said:
            data = bytes((number + index) % 251 for index in range(say.size))
            number += say.size
            events.append((say.at, 0, lambda say=say, data=data: self.readable.append((say.stream, data))))  # type: ignore[misc]
            events.append((say.at + say.lag, 1, self.drain))
        for stream, at in zip(STREAMS, plan.ends, strict=True):
            if at is not None:
                # The end is behind all that was said.
                last = max([at, *(say.at + say.lag for say in plan.said if say.stream is stream)])
                events.append((last, 3, lambda stream=stream: self._end(stream)))  # type: ignore[misc]
        return sorted(events, key=lambda event: event[:2])

    def _exit(self) -> None:
        self.drain()  # What the child wrote before its end comes before it.
        self.exited = True
        self.on_exit()
        self._close_if_ended()

    def _end(self, stream: Stream) -> None:
        if self.over:
            return
        self.ended[stream] = self.now
        self.on_ended(stream)
        self._close_if_ended()

    def _close_if_ended(self) -> None:
        if self.exited and not self.over and len(self.ended) == len(STREAMS):
            self.on_closed()


def check(plan: Plan, world: World, results: Sequence[Result]) -> None:
    """Everything that must hold of the result, whatever the order of events."""
    (result,) = results
    hard_at = plan.exit_at + plan.hard
    assert plan.exit_at <= result.at <= hard_at, "never before the exit, never after the hard deadline"
    _check_bytes(plan, result)
    complete_at = _complete(plan, world)
    quiet_at = _silent(plan, world)
    first = min(complete_at, quiet_at, hard_at)
    if plan.quiet is None or not any(plan.exit_at <= at <= result.at for at in plan.busy):
        assert result.at == first, "at the first reason to end, and at no other time"
    else:
        assert first <= result.at <= min(complete_at, hard_at), "work is no reason to end"
        if result.at < min(complete_at, hard_at):
            at_work = max(at for at in plan.busy if at <= result.at)
            assert result.at >= at_work + plan.quiet, "who was at work gets the whole window"
    assert result.timed_out == (complete_at > result.at == hard_at), "timed out if the hard deadline ended it"


def _check_bytes(plan: Plan, result: Result) -> None:
    """No byte that could be read before the end is lost, none is told twice, and the order is kept."""
    number = 0
    said: dict[Stream, bytes] = dict.fromkeys(STREAMS, b"")
    before: dict[Stream, int] = dict.fromkeys(STREAMS, 0)
    for say in plan.said:
        said[say.stream] += bytes((number + index) % 251 for index in range(say.size))
        number += say.size
    for say in plan.said:
        if say.at < result.at:
            before[say.stream] += say.size
    for stream in STREAMS:
        told = result.told[stream]
        wanted = said[stream] if plan.cap is None else said[stream][: plan.cap]
        assert told == wanted[: len(told)], "in order, and nothing else"
        assert len(told) >= min(before[stream], len(wanted)), "nothing is lost"


def _complete(plan: Plan, world: World) -> float:
    """When nothing more was wanted: every stream has reached its cap or has ended."""
    done = [min(_full(plan, world, stream), world.ended.get(stream, LAST)) for stream in STREAMS]
    return max(plan.exit_at, *done)


def _full(plan: Plan, world: World, stream: Stream) -> float:
    """When a stream had reached its cap."""
    total = 0
    for at, where, size in world.heard:
        if where is stream:
            total += size
            if plan.cap is not None and total >= plan.cap:
                return at
    return LAST


def _silent(plan: Plan, world: World) -> float:
    """When the window of silence was over: it begins anew with every byte that is wanted."""
    if plan.quiet is None:
        return LAST
    begins: float = plan.exit_at
    totals: dict[Stream, int] = {}
    for at, stream, size in world.heard:
        # A cap is reached by the first byte that does not fit, also a cap of nothing.
        if plan.cap is None or stream not in totals or totals[stream] < plan.cap:
            begins = max(begins, at)
        totals[stream] = totals.get(stream, 0) + size
    return begins + plan.quiet
