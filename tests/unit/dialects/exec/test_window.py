"""How far a process is read ahead of its client.  The clock is moved by hand."""

from __future__ import annotations

import random

import pytest

from holdfast.config import MIB
from holdfast.dialects.exec.window import Window
from holdfast.model import Stream
from tests.fakes.dialects import HandLoop
from tests.fakes.watched import Watched

PATIENCE = 30.0


class Scene:
    """A window on a process."""

    def __init__(self, size: int, *, patience: float | None = None) -> None:
        self.loop = HandLoop()
        self.process = Watched()
        self.rooms: list[int] = []
        self.window = Window(
            self.process, size, clock=self.loop, make_room=self.rooms.append, patience=patience
        )

    @property
    def is_open(self) -> bool:
        return self.window.valve.is_open

    def fill(self) -> None:
        """Say more than fits."""
        self.process.say(b"x" * 100)
        assert not self.is_open


# What is outstanding.


def test_a_process_is_read_until_the_window_is_full() -> None:
    scene = Scene(10)

    scene.process.say(b"12345")
    scene.process.say(b"6789", Stream.STDERR)
    before = scene.is_open
    scene.process.say(b"0")

    assert before
    assert not scene.is_open


def test_it_is_read_again_when_less_is_outstanding_than_the_window() -> None:
    scene = Scene(10)
    for data in (b"12345", b"67890", b"1"):
        scene.process.say(data)

    scene.window.acknowledge(0)
    nothing = scene.is_open
    scene.window.acknowledge(1)

    assert not nothing
    assert scene.is_open


def test_who_waits_for_the_valve_is_called_once() -> None:
    scene, called = Scene(1), []
    scene.fill()
    scene.window.valve.wait(lambda: called.append("go"))

    scene.window.acknowledge(1)
    scene.window.acknowledge(1)

    assert called == ["go"]


def test_the_smallest_window_lets_one_piece_through_at_a_time() -> None:
    scene = Scene(1)

    for seq in range(1, 6):
        seen = [scene.is_open]
        scene.process.say(b"x" * 70_000)
        seen.append(scene.is_open)
        scene.window.acknowledge(seq)
        assert seen == [True, False]


def test_nothing_is_acknowledged_before_it_was_told() -> None:
    """A client that counts wrongly, or reads behind the end, would have its process run away."""
    scene = Scene(10)
    scene.process.say(b"x" * 4)

    scene.window.acknowledge(2**64 - 1)
    scene.process.say(b"x" * 10)

    assert not scene.is_open
    scene.window.acknowledge(1)
    assert not scene.is_open
    scene.window.acknowledge(2)
    assert scene.is_open


def test_an_older_number_takes_nothing_back() -> None:
    scene = Scene(10)
    for _ in range(3):
        scene.process.say(b"x" * 4)

    scene.window.acknowledge(2)
    scene.window.acknowledge(1)
    scene.process.say(b"x" * 5)

    assert scene.is_open
    scene.process.say(b"x")
    assert not scene.is_open


def test_an_exit_has_a_number_and_no_bytes() -> None:
    """Output of those who were left behind follows it."""
    scene = Scene(10)
    scene.process.say(b"x" * 9)
    scene.process.exit_with(0)
    scene.process.say(b"x")

    scene.window.acknowledge(2)
    scene.process.say(b"x" * 8)

    assert scene.is_open
    scene.process.say(b"x")
    assert not scene.is_open


def test_the_number_of_pieces_is_bounded_too() -> None:
    """A process keeps 50,000 of them, however small they are."""
    scene = Scene(MIB)

    for _ in range(32_767):
        scene.process.say(b"x")
    before = scene.is_open
    scene.process.say(b"x")
    full = scene.is_open
    scene.window.acknowledge(1)

    assert (before, full, scene.is_open) == (True, False, True)


def test_any_order_of_words_and_acknowledgements_comes_to_the_same() -> None:
    """Against a model that adds everything up anew."""
    numbers = random.Random(6)  # noqa: S311  (a repeatable test, not a secret)
    scene, sizes, acknowledged = Scene(1000), [0], 0
    for _ in range(5000):
        if numbers.random() < 0.6:
            size = numbers.randrange(0, 300)
            sizes.append(size)
            scene.process.say(b"x" * size)
        else:
            seq = numbers.randrange(0, len(sizes) + 3)
            acknowledged = max(acknowledged, min(seq, len(sizes) - 1))
            scene.window.acknowledge(seq)
        assert scene.is_open is (sum(sizes[acknowledged + 1 :]) < 1000)


# What is kept.


def test_what_an_end_brings_beyond_the_window_is_kept_too() -> None:
    """Pipes are emptied at the end, whatever they hold: a program can make them hold much."""
    scene, piece = Scene(10), b"x" * 65_536
    assert scene.window.room == 10 + MIB

    room, said = scene.window.room, 0
    for _ in range(100):
        scene.process.say(piece)
        said += len(piece)
        assert said <= room, "it was dropped before anybody could say so"
        room = scene.rooms[-1] if scene.rooms else room

    assert room == scene.window.room
    assert room <= said + MIB
    assert len(scene.rooms) < 10


def test_what_fits_needs_no_more_room() -> None:
    scene = Scene(10 * MIB)

    for seq in range(1, 1000):
        scene.process.say(b"x" * 65_536)
        scene.window.acknowledge(seq - 100)

    assert scene.rooms == []


# The end.


@pytest.mark.parametrize("patience", [None, PATIENCE])
def test_a_window_that_is_released_holds_nothing_any_more(patience: float | None) -> None:
    scene = Scene(1, patience=patience)
    scene.fill()

    scene.window.release()
    scene.window.release()
    scene.process.say(b"x" * 100)
    scene.window.acknowledge(1)

    assert scene.is_open
    assert scene.process.watches == []
    assert scene.loop.timers == []


@pytest.mark.parametrize("patience", [None, PATIENCE])
def test_a_close_is_a_release(patience: float | None) -> None:
    scene = Scene(1, patience=patience)
    scene.fill()

    scene.process.exit_with()
    scene.process.close()

    assert scene.is_open
    assert scene.loop.timers == []


# Nobody.


def test_a_window_without_patience_waits_for_ever() -> None:
    scene = Scene(1)
    scene.fill()

    scene.loop.move(1e6)

    assert not scene.is_open


def test_a_process_is_held_only_as_long_as_its_client_may_be_there() -> None:
    scene = Scene(1, patience=PATIENCE)
    scene.loop.move(100.0)
    scene.fill()

    scene.loop.move(29.9)
    before = scene.is_open
    scene.loop.move(0.2)

    assert not before
    assert scene.is_open
    assert scene.process.watches == []
    assert scene.loop.timers == []


def test_a_client_that_is_heard_of_has_its_time_again() -> None:
    """Also if what it says changes nothing."""
    scene = Scene(1, patience=PATIENCE)
    scene.fill()

    for _ in range(10):
        scene.loop.move(29.0)
        scene.window.acknowledge(0)
    still = scene.is_open
    scene.loop.move(30.1)

    assert not still
    assert scene.is_open


def test_there_is_one_timer_however_often_it_shuts() -> None:
    scene = Scene(1, patience=PATIENCE)

    for seq in range(1, 1000):
        scene.process.say(b"x")
        scene.window.acknowledge(seq)
        assert len(scene.loop.timers) == 1
        scene.loop.move(0.01)
    scene.loop.move(60.0)
    none = list(scene.loop.timers)
    scene.fill()

    assert none == [], "nothing is held, so nothing has to be watched"
    scene.loop.move(29.9)
    assert not scene.is_open
    scene.loop.move(0.2)
    assert scene.is_open


def test_a_client_that_waits_for_output_is_there() -> None:
    scene = Scene(1, patience=PATIENCE)

    with scene.window.reading():
        scene.fill()
        scene.loop.move(1000.0)
        reading = scene.is_open
    scene.loop.move(29.9)
    after = scene.is_open
    scene.loop.move(40.0)

    assert (reading, after, scene.is_open) == (False, False, True)
