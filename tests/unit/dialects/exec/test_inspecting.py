"""Whether processes wait for input, for clients that ask."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from holdfast.dialects.exec import inspecting
from holdfast.errors import UnknownProcess
from holdfast.inspection import Inspection
from tests.fakes.dialects import FakeProcess, exited
from tests.fakes.exec_talk import started


class Silent(FakeProcess):
    """Its look never ends."""

    def look_at_input(self, tell: Callable[[Inspection], None]) -> None:
        pass


async def test_a_process_is_looked_at_when_a_client_asks() -> None:
    scene, process = await started()
    process.inspection = Inspection(waiting_for_input=True, echo=False, canonical=True)

    answer = await scene.call("process/inspect", {"processId": "p"})

    assert process.calls == [("look_at_input",)]
    assert answer == {"waitingForInput": True, "echo": False, "canonical": True}


async def test_nobody_can_look_at_a_process_that_is_not_there() -> None:
    scene, _ = await started()

    assert isinstance(await scene.refusal("process/inspect", {"processId": "nope"}), UnknownProcess)


@pytest.mark.parametrize("waiting", [True, False, None])
async def test_a_list_tells_it_of_whoever_runs(*, waiting: bool | None) -> None:
    scene, process = await started(extended=True)
    process.inspection = Inspection(waiting)

    (listed,) = (await scene.call("process/list", {"inspect": True}))["processes"]
    process.exit = exited(0)
    process.runs = False
    (ended,) = (await scene.call("process/list", {"inspect": True}))["processes"]

    assert listed["waitingForInput"] is waiting
    assert "waitingForInput" not in ended


@pytest.mark.parametrize("params", [None, {}, {"inspect": False}, {"inspect": None}])
async def test_nobody_is_looked_at_unless_it_was_asked_for(params: object) -> None:
    """A list is asked for often, and a look costs."""
    scene, process = await started(extended=True)

    (listed,) = (await scene.call("process/list", params))["processes"]

    assert "waitingForInput" not in listed
    assert process.calls == []


async def test_a_client_that_does_not_know_the_extensions_is_told_nothing_new() -> None:
    scene, process = await started()

    (listed,) = (await scene.call("process/list", {"inspect": True}))["processes"]

    assert "waitingForInput" not in listed
    assert process.calls == []


async def test_a_list_waits_for_looks_no_longer_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not known in time is not told as if it were."""
    monkeypatch.setattr(inspecting, "_SECONDS", 0.0)
    monkeypatch.setattr(FakeProcess, "look_at_input", Silent.look_at_input)
    scene, _ = await started(extended=True)

    (listed,) = (await scene.call("process/list", {"inspect": True}))["processes"]

    assert listed["waitingForInput"] is None
