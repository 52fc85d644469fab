"""When a server gives memory back; the clock is moved by hand."""

from __future__ import annotations

import asyncio
import gc
import mmap
from collections.abc import Iterator

import pytest

from holdfast.cli.serve_memory import MemoryTrimmer, resident

MIB = 1 << 20


class Scene:
    """A server, as far as the trimmer looks at it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.closures = 0
        self.size = 30 * MIB
        self.free = 0
        """How much of that goes back to the system if it is asked to."""
        self.given: list[int] = []
        """At which looks memory was given back."""
        self.collections = 0
        self._looks = 0
        self._trimmer = MemoryTrimmer(self, loop, size=lambda: self.size)
        self._trimmer._trim = self._trim

    def _trim(self, pad: int) -> None:
        self.given.append(self._looks)
        self.size -= self.free
        self.free = 0

    def look(self, times: int, closures: int = 0) -> None:
        """Look so many times, each after so many processes have closed."""
        for _ in range(times):
            self._looks += 1
            self.closures = closures
            self._trimmer._on_time()


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    loop = asyncio.new_event_loop()
    made = Scene(loop)

    def collect() -> int:
        made.collections += 1
        return 0

    monkeypatch.setattr(gc, "collect", collect)
    yield made
    loop.close()


def test_a_server_that_needs_no_more_than_ever_is_left_alone(scene: Scene) -> None:
    scene.look(200)
    scene.size += 15 * MIB
    scene.look(200, 999)

    assert (scene.given, scene.collections) == ([], 0)


def test_what_few_processes_have_left_is_given_back(scene: Scene) -> None:
    """It was kept until a thousand had ended, however much each of them had said."""
    scene.look(100)
    scene.size += 300 * MIB
    scene.look(1, 3)  # They have closed, and can still be read.
    scene.look(3)
    scene.free = 300 * MIB  # They are forgotten, and nobody needs any of it.
    scene.look(10)

    assert scene.size == 30 * MIB
    assert scene.given == [101, 107]
    scene.look(200)
    assert (scene.given, scene.collections) == ([101, 107], 1)


def test_memory_that_is_in_use_is_looked_at_now_and_then(scene: Scene) -> None:
    """Once a minute while processes end, every ten minutes while nothing happens: it has a price."""
    scene.size += 300 * MIB
    scene.look(60, 1)
    busy = len(scene.given)
    scene.look(10)
    scene.given.clear()
    scene.look(180)

    assert (busy, len(scene.given)) == (10, 3)


def test_what_is_freed_while_nothing_happens_is_given_back(scene: Scene) -> None:
    """What was kept of ended processes can go an hour later."""
    scene.size += 300 * MIB
    scene.look(1, 1)
    scene.look(360)
    scene.free = 300 * MIB
    scene.look(60)

    assert scene.size == 30 * MIB


def test_after_a_burst_the_collector_is_asked_first(scene: Scene) -> None:
    """A burst is kept for half a minute and then forgotten."""
    scene.look(1, 1000)
    scene.look(4)
    assert (scene.given, scene.collections) == ([1, 2, 3, 4, 5], 5)
    scene.look(200)

    assert len(scene.given) == 5


def test_much_memory_is_a_reason_to_ask_the_collector(scene: Scene) -> None:
    """A circle of few objects may hold hundreds of mebibytes; nothing else would have them looked for."""
    scene.size += 255 * MIB
    scene.look(60)
    below = scene.collections
    scene.size += MIB
    scene.look(60)
    above = scene.collections
    scene.look(600)
    steady = scene.collections
    scene.size += 256 * MIB
    scene.look(60)

    assert (below, above, steady, scene.collections) == (0, 1, 1, 2), "once for each time that it has grown"


def test_the_least_that_was_ever_needed_is_what_counts(scene: Scene) -> None:
    scene.size, scene.free = 130 * MIB, 110 * MIB
    scene.look(6, 1)
    assert scene.size == 20 * MIB
    scene.size = 36 * MIB
    scene.look(6, 1)

    assert len(scene.given) == 2


def test_what_this_program_has_is_known_to_the_system() -> None:
    before = resident()
    # Straight from the system: what the allocator has may have been touched before.
    with mmap.mmap(-1, 64 * MIB) as held:
        for page in range(0, len(held), mmap.PAGESIZE):
            held[page] = 1

        assert resident() - before > 60 * MIB


def test_a_system_that_does_not_tell_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*args: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr("builtins.open", missing)

    assert resident() == 0
