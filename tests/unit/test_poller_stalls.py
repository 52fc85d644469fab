"""How long the poller's sources, its deferred work and the turns of its loop take."""

from __future__ import annotations

import asyncio
import os
import re
import time

import pytest

from holdfast.poller import Poller
from holdfast.stalls import Stalls
from tests.unit.test_poller import Counter, pipes, polling

_WHILE = 0.02
"""Seconds that something holds the loop: what is measured is never less."""


def hold() -> None:
    time.sleep(_WHILE)


class Slow:
    """A source that takes its time, and works on something."""

    def __init__(self, stalls: Stalls, fd: int) -> None:
        self._stalls = stalls
        self._fd = fd
        self.called = asyncio.Event()

    def on_ready(self, events: int) -> None:
        os.read(self._fd, 1)
        self._stalls.doing = "some/method"
        hold()
        self.called.set()


def words(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was said, without the times."""
    return [re.sub(r"\d+\.\d+ s", "so long", record.getMessage()) for record in caplog.records]


async def test_a_source_that_holds_the_loop_is_measured_and_named(caplog: pytest.LogCaptureFixture) -> None:
    """Behind any loop: what the poller calls it can time."""
    with polling() as poller, pipes(2) as [(slow, write_slow), (quick, write_quick)]:
        poller.stalls = stalls = Stalls(worth=_WHILE / 2)
        first, second = Slow(stalls, slow), Counter()
        poller.add(slow, first)
        poller.add(quick, second)
        os.write(write_slow, b"x")
        os.write(write_quick, b"x")

        await first.called.wait()
        await second.called()

        assert stalls.take() >= _WHILE
    assert words(caplog) == ["the event loop was held for so long by Slow, last for some/method"]


async def test_deferred_work_that_holds_the_loop_is_measured_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """And what was worked on before it is not blamed on it."""
    with polling() as poller:
        poller.stalls = stalls = Stalls(worth=_WHILE / 2)
        done = asyncio.Event()
        stalls.doing = "some/method"
        poller.defer(hold)
        poller.defer(done.set)

        await done.wait()

        assert stalls.take() >= _WHILE
    assert words(caplog) == ["the event loop was held for so long by hold"]


@pytest.mark.parametrize("how", ["task", "timer"])
def test_tasks_and_timers_of_our_own_loop_are_measured(how: str, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody calls the poller for those: the time between two looks for events is theirs."""
    poller = Poller()
    poller.stalls = stalls = Stalls(worth=_WHILE / 2)

    async def held() -> None:
        if how == "task":
            hold()
        else:
            asyncio.get_running_loop().call_later(0, hold)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=poller.new_loop) as runner:
        runner.run(held())

    assert stalls.take() >= _WHILE
    assert words(caplog) == ["the event loop was held for so long by tasks and timers of one turn"]


def test_waiting_for_events_holds_nothing() -> None:
    """An idle server is not a blocked one."""
    poller = Poller()

    def longest() -> float:
        runner.run(asyncio.sleep(_WHILE))
        return poller.stalls.take()

    with asyncio.Runner(loop_factory=poller.new_loop) as runner:
        # More than once: somebody else on this machine may hold us up, but not every time.
        assert min(longest() for _ in range(10)) < _WHILE
