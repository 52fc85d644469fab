"""A connection that is silent: asked first, cut then; with a clock moved by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from holdfast.client.channel import ServerChannel
from holdfast.client.connecting import Heartbeat


class Timer:
    def __init__(self, when: float, work: Callable[[], None]) -> None:
        self.when = when
        self.work: Callable[[], None] | None = work

    def cancel(self) -> None:
        self.work = None


class Clock:
    """What a heart needs of a loop."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[Timer] = []

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, work: Callable[[], None]) -> Timer:
        self.timers.append(Timer(self.now + delay, work))
        return self.timers[-1]

    def pass_by(self, seconds: float) -> None:
        """Let time pass, and what is due happen."""
        end = self.now + seconds
        while due := [timer for timer in self.timers if timer.work is not None and timer.when <= end]:
            first = min(due, key=lambda timer: timer.when)
            self.now = max(self.now, first.when)
            work, first.work = first.work, None
            assert work is not None
            work()
        self.now = end


class Wire:
    """What a heart needs of a channel."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.received_at = clock.now
        self.pings: list[float] = []
        self.cuts: list[str] = []

    def ping(self) -> None:
        self.pings.append(self._clock.now)

    def cut(self, reason: str) -> None:
        self.cuts.append(reason)


def scene() -> tuple[Clock, Wire, Heartbeat]:
    clock = Clock()
    wire = Wire(clock)
    loop = cast(Any, clock)
    return clock, wire, Heartbeat(cast(ServerChannel, wire), 10.0, cast(asyncio.AbstractEventLoop, loop))


def test_one_that_speaks_is_left_alone() -> None:
    clock, wire, _ = scene()
    for _ in range(20):
        clock.pass_by(3)
        wire.received_at = clock.now

    assert (wire.pings, wire.cuts) == ([], [])


def test_one_that_is_silent_is_asked_and_then_cut() -> None:
    clock, wire, _ = scene()

    clock.pass_by(100)

    assert (wire.pings, wire.cuts) == ([10.0], ["nothing was heard for 20 seconds"])
    assert not any(timer.work for timer in clock.timers)


def test_one_that_answers_is_asked_again_after_the_next_silence() -> None:
    clock, wire, _ = scene()
    for _ in range(3):
        clock.pass_by(16)
        wire.received_at = clock.now

    assert len(wire.pings) == 3
    assert wire.cuts == []


def test_a_long_stall_of_our_own_is_not_held_against_the_other() -> None:
    """What it said meanwhile may not have been read yet."""
    clock, wire, _ = scene()
    clock.now = 1000.0

    clock.pass_by(0)

    assert (wire.pings, wire.cuts) == ([1000.0], [])


def test_a_heart_that_was_stopped_beats_no_more() -> None:
    clock, wire, heart = scene()

    heart.stop()
    heart.stop()
    clock.pass_by(100)

    assert (wire.pings, wire.cuts) == ([], [])
