"""Silence ends a run only if nobody is at work who could break it."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.model import Stream
from tests.fakes.app_run import Scene
from tests.fakes.app_talk import HARD, QUIET, Pipes


def test_silence_is_no_end_while_somebody_is_at_work_who_could_break_it() -> None:
    """It only waits for a processor."""
    scene = Scene()
    scene.process.at_work = True
    scene.process.exit_with(0)

    scene.loop.move(QUIET * 2)
    assert not scene.run.over
    scene.process.say(b"late")
    scene.process.at_work = False
    scene.loop.move(QUIET)

    assert scene.told == [("over", 0)]
    assert scene.run.stdout.data == b"late"
    assert not scene.run.drain_timed_out


class Slow(Pipes):
    """A process whose holders are looked at for as long as the test wants."""

    def __init__(self) -> None:
        super().__init__()
        self.tells: list[Callable[[bool], None]] = []

    def look_at_holders(self, tell: Callable[[bool], None]) -> None:
        self.tells.append(tell)


def test_what_is_ready_when_a_look_is_over_wins_over_what_it_saw() -> None:
    """Who was seen asleep may have said its word and have gone to sleep again."""
    process = Slow()
    scene = Scene(process)
    process.exit_with(0)
    scene.loop.move(QUIET)
    process.tells.pop()(False)
    scene.loop.move(0)

    process.ready.append((Stream.STDOUT, b"late"))
    process.tells.pop()(False)

    assert not scene.run.over
    assert scene.run.stdout.data == b"late"


def test_a_look_that_takes_too_long_delays_the_result_no_further_than_the_hard_deadline() -> None:
    """And what it tells after that is nobody's business."""
    process = Slow()
    scene = Scene(process)
    process.exit_with(0)

    scene.loop.move(HARD)
    (late,) = process.tells
    late(True)

    assert scene.told == [("over", 0)]
    assert scene.loop.timers == []
