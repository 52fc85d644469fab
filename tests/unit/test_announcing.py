"""What happens to many processes, told to whoever subscribes; the clock is moved by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.announcing import _LOOKS, _PATIENCE, _PAUSE, Announcer
from holdfast.inspection import Inspection
from holdfast.model import Exit, Kind, Outcome
from holdfast.process_events import EventKind, ProcessEvent
from tests.fakes.dialects import FakeProcess, HandLoop
from tests.fakes.listening import Listener

STARTED, WAITING, RESUMED, EXITED = (
    EventKind.STARTED,
    EventKind.WAITING,
    EventKind.RESUMED,
    EventKind.EXITED,
)


class Slow(FakeProcess):
    """Its look ends when somebody says so."""

    def __init__(self) -> None:
        super().__init__()
        self.tell: Callable[[Inspection], None] | None = None

    def look_at_input(self, tell: Callable[[Inspection], None]) -> None:
        self.calls.append(("look_at_input",))
        self.tell = tell


class Scene:
    """An announcer with one subscriber."""

    def __init__(self) -> None:
        self.clock = HandLoop()
        self.announcer = Announcer(self.clock.loop)
        self.sink = Listener()
        self.announcer.subscribe(self.sink)

    def start(
        self, identifier: str, process: FakeProcess | None = None, *, waits: bool = False
    ) -> FakeProcess:
        process = process or FakeProcess()
        process.inspection = Inspection(waits)
        self.announcer.started(identifier, "", process, argv=["x"], terminal=False, kept=False)
        return process

    def rounds(self, count: int = 1) -> None:
        for _ in range(count):
            self.clock.move(_PAUSE)


def test_starts_and_ends_are_numbered() -> None:
    scene = Scene()
    process = FakeProcess()
    end = Exit(3, Outcome(Kind.EXIT, 3))

    scene.announcer.started("p", "web", process, argv=["sh"], terminal=True, kept=True)
    scene.announcer.exited("p", "web", process, end)
    scene.announcer.forgotten("q", "", process)

    first, second, third = scene.sink.events
    assert first == ProcessEvent(1, STARTED, first.time, "p", "web", 1, argv=["sh"], terminal=True, kept=True)
    assert second == ProcessEvent(2, EXITED, second.time, "p", "web", 1, exit_code=3, outcome=end.outcome)
    assert third == ProcessEvent(3, EventKind.FORGOTTEN, third.time, "q", "", 1)


def test_a_process_that_waits_for_input_is_told_once() -> None:
    scene = Scene()
    scene.start("p", waits=True)

    scene.rounds(9)

    assert scene.sink.kinds == [(1, STARTED, "p"), (2, WAITING, "p")]


def test_the_end_of_the_wait_is_told() -> None:
    scene = Scene()
    process = scene.start("p", waits=True)
    scene.rounds(2)

    process.inspection = Inspection(waiting_for_input=False)
    scene.rounds(2)

    assert scene.sink.kinds[1:] == [(2, WAITING, "p"), (3, RESUMED, "p")]


def test_the_next_question_is_told_though_nobody_saw_the_answer() -> None:
    """A prompt that follows at once would otherwise be waited for in vain."""
    scene = Scene()
    process = scene.start("p", waits=True)
    scene.rounds(2)

    process.next_seq += 1
    scene.rounds(3)

    assert scene.sink.kinds[1:] == [(2, WAITING, "p"), (3, WAITING, "p")]


def test_what_the_kernel_does_not_tell_is_no_news() -> None:
    scene = Scene()
    process = scene.start("p", waits=True)
    scene.rounds(2)

    process.inspection = Inspection(waiting_for_input=None)
    scene.rounds(5)

    assert scene.sink.kinds[1:] == [(2, WAITING, "p")]


def test_whoever_goes_on_talking_is_looked_at_now_and_then() -> None:
    """Most likely it does not wait; but a program with a clock on its screen does both."""
    scene = Scene()
    process = scene.start("p")

    for _ in range(20):
        process.next_seq += 1
        scene.rounds()

    assert len(process.calls) == 4


def test_nobody_is_looked_at_without_a_subscriber() -> None:
    scene = Scene()
    process = scene.start("p", waits=True)

    assert not scene.announcer.unsubscribe(scene.sink)
    scene.rounds(5)

    assert process.calls == []
    assert scene.clock.timers == []


def test_a_late_subscriber_is_told_who_waits() -> None:
    scene = Scene()
    scene.start("p", waits=True)
    scene.rounds(2)
    late = Listener()

    scene.announcer.subscribe(late)
    scene.rounds(2)

    assert late.kinds == [(3, WAITING, "p")]
    assert scene.announcer.unsubscribe(late)


def test_of_many_processes_some_are_looked_at_in_each_round_and_all_in_the_end() -> None:
    scene = Scene()
    processes = [scene.start(f"p{number}") for number in range(3 * _LOOKS)]

    scene.rounds(2)
    looked_at = [sum(bool(process.calls) for process in processes)]
    scene.rounds(2)
    looked_at.append(sum(bool(process.calls) for process in processes))

    assert looked_at == [_LOOKS, 3 * _LOOKS]


def test_whoever_has_fallen_silent_comes_first() -> None:
    scene = Scene()
    processes = [scene.start(f"p{number}") for number in range(5 * _LOOKS)]
    scene.rounds(7)
    for process in processes:
        process.calls.clear()

    processes[-1].next_seq += 1
    scene.rounds(2)

    assert processes[-1].calls == [("look_at_input",)]


def test_two_looks_are_under_way_at_most_and_one_that_hangs_stops_nobody() -> None:
    scene = Scene()
    slow = [Slow() for _ in range(4)]
    for number, process in enumerate(slow):
        scene.start(f"p{number}", process)
    scene.rounds(2)
    under_way = [bool(process.tell) for process in slow]

    scene.clock.move(_PATIENCE)
    after = [len(process.calls) for process in slow]

    assert sorted(under_way) == [False, False, True, True]
    assert sum(after) == 4


def test_a_look_at_whoever_has_ended_meanwhile_tells_nothing() -> None:
    scene = Scene()
    process = Slow()
    scene.start("p", process)
    scene.rounds(2)
    assert process.tell is not None

    scene.announcer.exited("p", "", process, Exit(0, Outcome(Kind.EXIT, 0)))
    process.tell(Inspection(waiting_for_input=True))

    assert [kind for _, kind, _ in scene.sink.kinds] == [STARTED, EXITED]


@pytest.mark.parametrize("error", [None, OSError("gone")])
def test_its_end_is_told(error: Exception | None) -> None:
    scene = Scene()
    scene.start("p", waits=True)

    scene.announcer.close(error)
    scene.rounds(3)

    assert scene.sink.ends == [error]
    assert scene.sink.kinds == [(1, STARTED, "p")]
