"""The seam between the engine and the host: what stands on one side fits what the other expects."""

from __future__ import annotations

from holdfast.engine import children
from holdfast.engine.children import NO_CHILD
from holdfast.host.child import ShimChild
from holdfast.host.environ import Environment
from holdfast.host.spawn import Spawner
from tests.fakes.process import command, nothing_left_open, started


def test_a_child_of_this_host_is_what_the_engine_needs() -> None:
    """The type checker compares the interfaces; running it shows that they mean the same."""
    with nothing_left_open(), started(command("sleep", "1000")) as child:
        seen: children.Child = child
        assert isinstance(seen, ShimChild)
        assert seen.receive() is None
        assert seen.pid == child.pid
        assert seen.members() == [child.pid]
        assert seen.stdin is None
        assert len(seen.outputs) == 2


def test_the_spawner_of_this_host_is_where_children_come_from() -> None:
    source: children.Children = Spawner(Environment({}))

    source.close()


def test_nobody_is_a_child_of_whom_nothing_is_left() -> None:
    nobody: children.Child = NO_CHILD

    nobody.kill()
    nobody.close()

    assert nobody.has_ended()
    assert nobody.receive() is None
    assert nobody.members() == []
