"""The seam between the engine and the host: what stands on one side fits what the other expects."""

from __future__ import annotations

import asyncio

from holdfast.engine import children
from holdfast.engine.starter import Starter
from holdfast.host.child import Child
from holdfast.host.environ import Environment
from holdfast.host.spawn import Spawner
from tests.fakes.process import command, nothing_left_open, started


def test_a_child_of_this_host_is_what_the_engine_needs() -> None:
    """The type checker compares the interfaces; running it shows that they mean the same."""
    with nothing_left_open(), started(command("sleep", "1000")) as child:
        seen: children.Child = child
        assert isinstance(seen, Child)
        assert seen.reap() is None
        assert seen.pid == child.pid
        assert seen.stdin is None
        assert len(seen.outputs) == 2


async def test_the_starter_of_this_host_is_where_children_come_from() -> None:
    source: children.Children = Starter(Spawner(Environment({})).start, asyncio.get_running_loop())

    source.close()
