"""From the request for a child to the news that it runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.engine.children import PendingStart
from holdfast.errors import LimitReached, SpawnFailed
from holdfast.host.environ import Environment
from holdfast.host.spawn import Spawner
from holdfast.model import Spec
from holdfast.poller import Poller
from tests.fakes.gate import SlowProgram
from tests.fakes.process import PATIENCE, command, eventually, has_commands, open_files


@contextmanager
def pending_starts() -> Iterator[tuple[Spawner, Poller]]:
    """Where pending starts come from, and a look at what they leave."""
    before = open_files()
    spawner, poller = Spawner(Environment({})), Poller()
    poller.attach(asyncio.get_running_loop())
    try:
        yield spawner, poller
    finally:
        assert poller._sources == {}
        poller.close()
        spawner.close()
    assert open_files().items() <= before.items()


def pending(spawner: Spawner, poller: Poller, spec: Spec) -> PendingStart:
    return PendingStart(spawner.start(spec), loop=asyncio.get_running_loop(), poller=poller)


async def test_who_is_given_up_while_it_starts_leaves_nothing(tmp_path: Path) -> None:
    with pending_starts() as (spawner, poller):
        slow = SlowProgram("/bin/sleep", tmp_path)
        begun = pending(spawner, poller, command(slow.path, "1000"))
        waiting = asyncio.ensure_future(begun.child())
        await slow.reached()

        begun.give_up(LimitReached("processes", 0))
        begun.give_up(LimitReached("processes", 0))

        with pytest.raises(LimitReached):
            await waiting
        slow.close()
        await eventually(lambda: not has_commands())


async def test_a_cancelled_wait_gives_it_up() -> None:
    with pending_starts() as (spawner, poller):
        waiting = asyncio.ensure_future(pending(spawner, poller, command("sleep", "1000")).child())
        await asyncio.sleep(0)

        waiting.cancel()

        with pytest.raises(asyncio.CancelledError):
            await waiting
        await eventually(lambda: not has_commands())


async def test_who_does_not_run_leaves_nothing() -> None:
    with pending_starts() as (spawner, poller), pytest.raises(SpawnFailed):
        await asyncio.wait_for(pending(spawner, poller, command("/no/such", stdin=True)).child(), PATIENCE)


async def test_news_after_the_first_is_left_to_whoever_takes_the_child() -> None:
    """A short command has ended before anybody could look."""
    with pending_starts() as (spawner, poller):
        child = await asyncio.wait_for(pending(spawner, poller, command("true")).child(), PATIENCE)
        for _ in range(10):
            await asyncio.sleep(0)  # The poller tells the pending again and again.

        report = None
        while report is None:
            report = child.receive()

        assert report.value == 0
        poller.remove(child.fileno())
        for _, fd in child.outputs:
            os.close(fd)
        child.close()
