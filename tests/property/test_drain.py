"""Random endings of a process: output, silence, caps, ends and deadlines in every order.

The machine alone and the run that drives it are held against the same rules.
The usual run tries several hundred; ``HOLDFAST_PROPERTY_RUNS`` asks for more.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.backend import Valve
from holdfast.dialects.app.conversation import Run
from holdfast.dialects.app.output import Capped, Drain, OutputRoom
from holdfast.model import Leftovers, Stream
from tests.fakes.app_talk import AppLoop, terms
from tests.fakes.dialects import FakeProcess
from tests.property.drained import STREAMS, Plan, Result, Say, World, check

RUNS = int(os.environ.get("HOLDFAST_PROPERTY_RUNS", "160"))

# Small numbers, so that things happen at the same moment often.
moments = st.integers(0, 30)
says = st.builds(Say, moments, st.sampled_from(STREAMS), st.integers(1, 4), st.sampled_from((0, 0, 0, 1, 5)))


def _in_order(said: list[Say]) -> tuple[Say, ...]:
    return tuple(sorted(said, key=lambda say: say.at))


plans = st.builds(
    Plan,
    exit_at=moments,
    said=st.lists(says, max_size=12).map(_in_order),
    ends=st.tuples(*[st.none() | moments for _ in STREAMS]),
    cap=st.none() | st.integers(0, 8),
    quiet=st.none() | st.integers(1, 12),
    hard=st.integers(0, 20),
    timers_first=st.booleans(),
    busy=st.lists(moments, max_size=4).map(sorted).map(tuple),
)


# The machine alone, driven as a run drives it.


class Driven:
    """As much of a run as the machine needs."""

    def __init__(self, plan: Plan) -> None:
        self.world = World(
            plan,
            on_output=self.output,
            on_ended=self.ended,
            on_exit=self.exited,
            on_closed=self.closed,
            run_timers=self.on_due,
            next_timer=lambda: self.timer,
        )
        self.results: list[Result] = []
        self.timer: float | None = None
        self._drain = Drain(STREAMS, quiet=plan.quiet, hard=plan.hard)
        self._capped = {stream: Capped(plan.cap, OutputRoom(1 << 30)) for stream in STREAMS}
        self._exited = False

    def output(self, stream: Stream, data: bytes) -> None:
        capped = self._capped[stream]
        if self.results or capped.full:
            return
        if capped.keep(data):
            self._drain.ended(stream)
        if self._exited:
            self._drain.on_output(self.world.now)
            self._look_again()

    def ended(self, stream: Stream) -> None:
        self._drain.ended(stream)
        if self._exited:
            self._look_again()

    def exited(self) -> None:
        self._exited = True
        self._drain.exited(self.world.now)
        self._look_again()

    def _look_again(self) -> None:
        now = self.world.now
        self.timer = now if self._drain.is_over(now) else self._drain.deadline

    def closed(self) -> None:
        if not self.results:
            self._drain.all_ended()
            assert self._drain.is_over(self.world.now)
            self._finish()

    def on_due(self, now: float) -> None:
        self.timer = None
        self.world.drain()  # What is ready wins over a deadline.
        if not self._drain.is_over(now) and self._drain.is_to_look(now):
            self._drain.looked(now, at_work=self.world.look())
        if self._drain.is_over(now):
            self._finish()
        else:
            self.timer = self._drain.deadline

    def _finish(self) -> None:
        self.timer = None
        told = {stream: bytes(capped.data) for stream, capped in self._capped.items()}
        self.world.stop()
        self.results.append(Result(self.world.now, told, self._drain.timed_out))


@pytest.mark.slow
@pytest.mark.timeout(max(60, RUNS // 20))
@settings(max_examples=RUNS, deadline=None)
@given(plans)
def test_whatever_the_order_of_events_the_machine_ends_the_wait_for_the_right_reason(plan: Plan) -> None:
    """Not too early, which loses output; not too late, which holds up a client."""
    driven = Driven(plan)

    driven.world.play()

    check(plan, driven.world, driven.results)


# The run.


class Simulated(FakeProcess):
    """A process whose output is the world's."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def drain(self) -> None:
        self._world.drain()

    def look_at_holders(self, tell: Callable[[bool], None]) -> None:
        tell(self._world.look())

    def forget(self, leftovers: Leftovers = Leftovers.SPARE) -> None:
        self.watcher = None  # From now on it is told nothing.

    def end_stream(self, stream: Stream) -> None:
        assert self.watcher is not None
        self.watcher.ended(stream)


class Running:
    """A run, its process and its clock."""

    def __init__(self, plan: Plan, *, streamed: bool) -> None:
        self.loop = AppLoop()
        self.world = World(plan)
        self.results: list[Result] = []
        self.process = process = Simulated(self.world)
        self._streamed = streamed
        self._told: dict[Stream, bytes] = dict.fromkeys(STREAMS, b"")
        self.run = Run(
            process,
            terms(streamed=streamed, cap=plan.cap, quiet=plan.quiet, hard=plan.hard),
            room=OutputRoom(1 << 30),
            valve=Valve(),
            loop=self.loop.loop,
            tell=self._tell,
            on_over=self._over,
            on_lost=lambda: None,
        )
        self.world.on_output = lambda stream, data: self._when_watched(lambda: process.say(data, stream))
        self.world.on_ended = lambda stream: self._when_watched(lambda: process.end_stream(stream))
        self.world.on_exit = lambda: self._when_watched(process.exit_with)
        self.world.on_closed = lambda: self._when_watched(process.close)
        self.world.run_timers = lambda now: self.loop.move(now - self.loop.now)
        self.world.next_timer = lambda: min((timer.when() for timer in self.loop.timers), default=None)

    def _when_watched(self, act: Callable[[], None]) -> None:
        self.loop.now = self.world.now
        if self.process.watcher is not None:
            act()

    def _tell(self, stream: Stream, data: bytes, full: bool) -> None:  # noqa: FBT001
        self._told[stream] += data

    def _over(self, run: Run) -> None:
        if not self._streamed:
            self._told = {Stream.STDOUT: bytes(run.stdout.data), Stream.STDERR: bytes(run.stderr.data)}
        self.world.stop()
        self.results.append(Result(self.loop.now, self._told, run.drain_timed_out))


@pytest.mark.slow
@pytest.mark.timeout(max(60, RUNS // 20))
@settings(max_examples=RUNS, deadline=None)
@given(plans, st.booleans())
def test_whatever_the_order_of_events_a_run_has_one_result_and_loses_no_byte(
    plan: Plan,
    streamed: bool,  # noqa: FBT001
) -> None:
    """It is late for nobody, and says so only when it really cut somebody off."""
    running = Running(plan, streamed=streamed)

    running.world.play()

    check(plan, running.world, running.results)
    assert running.loop.timers == []


def test_the_rules_see_a_result_that_breaks_them() -> None:
    """Rules that nothing can break would hold for any machine."""
    said = (Say(1, Stream.STDOUT, 3), Say(5, Stream.STDOUT, 3))
    plan = Plan(2, said, (None, None), None, None, 10, timers_first=False)
    driven = Driven(plan)
    driven.world.play()
    (right,) = driven.results
    wrong = [
        [],
        [right, right],
        [Result(1, right.told, right.timed_out)],
        [Result(13, right.told, right.timed_out)],
        [Result(right.at, right.told, timed_out=False)],
        [Result(right.at, {**right.told, Stream.STDOUT: right.told[Stream.STDOUT][:3]}, timed_out=True)],
        [Result(right.at, {**right.told, Stream.STDERR: b"x"}, timed_out=True)],
        [Result(6, right.told, timed_out=False)],
    ]

    check(plan, driven.world, [right])
    for results in wrong:
        try:
            check(plan, driven.world, results)
        except (AssertionError, ValueError):
            continue
        raise AssertionError(f"nobody complained about {results}")
