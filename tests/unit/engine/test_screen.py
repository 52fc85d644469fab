"""The screen of a process: drawn when it has to be, from what the ring keeps."""

from __future__ import annotations

import pytest

from holdfast.engine import screen
from holdfast.engine.ring import Budget, Ring
from holdfast.engine.screen import Screen
from holdfast.errors import Unsupported
from holdfast.model import Chunk, Size, Stream
from holdfast.screens import ScreenSnapshot
from holdfast.terminal.emulator import Emulator, load

MIB = 1 << 20
SIZE = Size(6, 20)


@pytest.fixture(autouse=True, scope="module")
def _loaded() -> None:
    """It takes longer than a turn, and a server does it before."""
    load()


class Scene:
    """A ring, a screen, and what a process says."""

    def __init__(self, *, limit: int = MIB, size: Size = SIZE) -> None:
        self.ring = Ring(limit=limit, chunks=1000, budget=Budget(1 << 30))
        self.screen = Screen(self.ring, size)
        self.seq = 0
        self.whole = b""

    def say(self, data: bytes) -> None:
        self.seq += 1
        self.whole += data
        chunk = Chunk(self.seq, Stream.PTY, data)
        self.ring.append(chunk)
        self.screen.output(chunk)

    def shown(self) -> ScreenSnapshot:
        """Asks until there was time for all of it."""
        while (found := self.screen.snapshot(self.seq)) is None:
            pass
        return found

    def expected(self, size: Size = SIZE) -> bytes:
        emulator = Emulator(size)
        emulator.feed(self.whole)
        return emulator.snapshot(0, complete=True).data


def test_nothing_is_drawn_before_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most terminals say little, and nobody asks: they cost nothing."""
    made = []

    class Counted(Emulator):
        def __init__(self, size: Size) -> None:
            made.append(size)
            super().__init__(size)

    monkeypatch.setattr(screen, "Emulator", Counted)
    scene = Scene()
    scene.say(b"hello")
    before = list(made)

    found = scene.shown()

    assert before == []
    assert made == [SIZE]
    assert (found.seq, found.data, found.complete) == (1, scene.expected(), True)


@pytest.mark.parametrize("limit", [0, 1000, 100_000, MIB])
def test_more_is_said_than_the_ring_keeps_and_nothing_is_missing(limit: int) -> None:
    scene = Scene(limit=limit)
    for number in range(3000):
        scene.say(b"\x1b[3%dmline %d of them\x1b[m\r\n" % (number % 8, number) + b"x" * 1000)

    found = scene.shown()

    assert (found.seq, found.data, found.complete) == (3000, scene.expected(), True)


def test_what_is_missing_is_told() -> None:
    scene = Scene(limit=MIB)
    scene.say(b"hello")
    scene.ring.retain(1)
    scene.say(b"world")

    found = scene.shown()

    assert not found.complete


def test_a_smaller_ring_loses_nothing_that_is_not_drawn() -> None:
    scene = Scene(limit=MIB)
    scene.say(b"hello ")
    scene.screen.retaining(1)
    scene.ring.retain(1)
    scene.say(b"world")

    found = scene.shown()

    assert (found.data, found.complete) == (scene.expected(), True)


def test_sizes_change_where_they_changed() -> None:
    scene = Scene(size=Size(4, 10))
    scene.say(b"0123456789abcde")
    scene.screen.resize(1, SIZE)
    scene.say(b"\r\n0123456789abcde")

    found = scene.shown()

    emulator = Emulator(Size(4, 10))
    emulator.feed(b"0123456789abcde")
    emulator.resize(SIZE)
    emulator.feed(b"\r\n0123456789abcde")
    assert (found.size, found.data) == (SIZE, emulator.snapshot(0, complete=True).data)


def test_of_many_sizes_only_some_are_remembered() -> None:
    scene = Scene()
    for number in range(1000):
        scene.screen.resize(0, Size(5 + number % 7, 20))

    assert len(scene.screen.sizes()) <= 17


def test_the_same_size_is_no_change() -> None:
    scene = Scene()
    scene.screen.resize(0, SIZE)

    assert scene.screen.sizes() == ((0, 6, 20),)


def test_a_closed_process_keeps_no_terminal() -> None:
    scene = Scene()
    scene.say(b"x" * 100_000)
    scene.screen.closed(3)
    first = scene.shown()

    assert first.data == scene.expected()
    assert scene.screen.snapshot(1) is first


def test_a_size_that_is_too_large_is_refused() -> None:
    scene = Scene(size=Size(65_535, 65_535))
    scene.say(b"hello")

    with pytest.raises(Unsupported):
        scene.screen.snapshot(1)

    scene.screen.resize(1, SIZE)
    assert scene.shown().size == SIZE


def test_output_that_is_costly_to_draw_is_drawn_in_turns() -> None:
    """Three bytes fill a whole screen here; a client must not hold up all others with them."""
    scene = Scene(size=Size(300, 500), limit=16 * MIB)
    scene.say(b"\x1b#8" * 10_000)

    turns = 1
    while scene.screen.snapshot(1) is None:
        turns += 1

    assert turns > 1


COSTLY = b"\x1b#8" * 10_000
"""Takes longer to draw than there is time at once, on a large screen."""


def test_a_chunk_that_was_begun_is_in_a_snapshot_as_a_whole() -> None:
    """Who reads on behind the number would get the begun part twice."""
    scene = Scene(size=Size(300, 500), limit=16 * MIB)
    scene.say(b"hello")
    scene.shown()
    scene.say(COSTLY)
    whole = scene.screen.catch_up()

    while (found := scene.screen.snapshot(1)) is None:
        pass

    assert not whole
    assert (found.seq, found.data) == (2, scene.expected(Size(300, 500)))


def test_what_was_said_since_somebody_asked_is_not_waited_for() -> None:
    scene = Scene(size=Size(300, 500), limit=16 * MIB)
    scene.say(b"hello")
    expected = scene.expected(Size(300, 500))
    scene.say(COSTLY)

    while (found := scene.screen.snapshot(1)) is None:
        pass

    assert (found.seq, found.data) == (1, expected)


def test_a_process_that_closes_while_it_is_drawn_is_drawn_to_its_end() -> None:
    scene = Scene(size=Size(300, 500), limit=16 * MIB)
    scene.say(COSTLY)
    begun = scene.screen.snapshot(1)
    scene.screen.closed(2)

    assert begun is None
    assert scene.shown().data == scene.expected(Size(300, 500))
