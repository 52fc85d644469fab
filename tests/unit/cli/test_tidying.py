"""When a server gives memory back; the clock is moved by hand."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator

import pytest

from holdfast.cli.tidying import Tidying


class Backend:
    """As much of one as the tidying looks at."""

    closures = 0


Look = Callable[[int, int], tuple[int, int]]


@pytest.fixture
def look(monkeypatch: pytest.MonkeyPatch) -> Iterator[Look]:
    """Look so many times, each after so many processes have closed.

    Gives how often memory was given back, and how often the collector was asked before.
    """
    collections: list[int] = []
    given: list[int] = []
    monkeypatch.setattr(gc, "collect", lambda: collections.append(1))
    loop = asyncio.new_event_loop()
    backend = Backend()
    tidying = Tidying(backend, loop)
    tidying._trim = given.append

    def rounds(times: int, closures: int) -> tuple[int, int]:
        collections.clear()
        given.clear()
        for _ in range(times):
            backend.closures = closures
            tidying.on_time()
        return len(given), len(collections)

    yield rounds
    loop.close()


def test_a_quiet_server_is_left_alone(look: Look) -> None:
    assert look(100, 0) == (0, 0)
    assert look(1, 999) == (0, 0)


def test_memory_is_given_back_for_a_while_after_a_burst(look: Look) -> None:
    """A burst is kept for half a minute and then forgotten."""
    assert look(1, 1000) == (1, 1)
    assert look(4, 0) == (4, 4)
    assert look(100, 0) == (0, 0)


def test_memory_is_given_back_now_and_then_by_a_steady_server(look: Look) -> None:
    """Not more often than once a minute, however few of them it takes to make many."""
    assert look(5, 900) == (0, 0)
    assert look(1, 900) == (1, 0)
    assert look(6 * 10, 900) == (10, 0)
    assert look(99, 10) == (0, 0)
    assert look(1, 10) == (1, 0)
