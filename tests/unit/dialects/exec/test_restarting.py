"""Processes started again: what is remembered of a request, and what becomes of the first process."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.errors import BadRequest, StillRunning, UnknownProcess
from holdfast.model import Ended
from tests.fakes.dialects import FakeProcess
from tests.fakes.exec_talk import START, ExecTalk, ready

WEB = {**START, "processId": "one", "name": "web", "keep": True, "timeoutMs": 5000}
AGAIN = {"processId": "one", "newProcessId": "two"}


class Mortal(FakeProcess):
    """A process that an end really ends."""

    async def end(self, *, grace: float = 0.0, by: str = "client") -> Ended:
        ended = await super().end(grace=grace, by=by)
        if self.exit is None:
            self.exit_with(137)
            self.close()
        return ended


async def found(scene: ExecTalk, name: str) -> str:
    identifier: str = (await scene.call("process/find", {"name": name}))["processId"]
    return identifier


@pytest.mark.parametrize("ended", [None, "exited", "archived"])
async def test_the_same_is_started_under_the_same_name(ended: str | None) -> None:
    scene = await ready(first := Mortal(), Mortal())
    await scene.call("process/start", WEB)
    if ended:
        first.exit_with(3)
        first.close()
    if ended == "archived":
        scene.loop.move(2.0)

    result = await scene.call("process/restart", AGAIN)

    one, two = scene.backend.specs
    assert (two.argv, two.env, two.terms, two.name) == (one.argv, one.env, one.terms, "two")
    assert result["processId"] == "two"
    assert [await found(scene, each) for each in ("web", "one")] == ["two", "one"]


async def test_it_can_be_done_again_and_again() -> None:
    scene = await ready(*(Mortal() for _ in range(4)))
    await scene.call("process/start", {**WEB, "processId": "0"})
    for number in range(3):
        await scene.call("process/restart", {"processId": str(number), "newProcessId": str(number + 1)})

    assert await found(scene, "web") == "3"


async def test_a_process_that_cannot_be_ended_is_not_started_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = await ready(first := FakeProcess(), FakeProcess())
    await scene.call("process/start", WEB)

    async def end(**options: Any) -> Ended:
        return Ended(running=True, survivors=(7,))

    monkeypatch.setattr(first, "end", end)

    assert type(await scene.refusal("process/restart", AGAIN)) is StillRunning
    assert len(scene.backend.specs) == 1


@pytest.mark.parametrize("leaves", ["closes its session", "closes it and opens another", "is cut off"])
async def test_it_is_started_again_though_the_client_leaves_before_it_has_ended(leaves: str) -> None:
    """It was ended for the restart: without one it would just be gone."""
    held = asyncio.Event()

    class Slow(Mortal):
        async def end(self, *, grace: float = 0.0, by: str = "client") -> Ended:
            await held.wait()
            return await super().end(grace=grace, by=by)

    scene = await ready(Slow(), Mortal())
    await scene.call("process/start", WEB)
    restarting = asyncio.create_task(scene.call("process/restart", AGAIN))
    turn = asyncio.Event()
    asyncio.get_running_loop().call_soon(turn.set)
    await turn.wait()
    if leaves == "is cut off":
        scene.talk.ended()
    else:
        await scene.call("session/close")
    if leaves == "closes it and opens another":
        await scene.shake_hands()
    held.set()

    assert (await restarting)["processId"] == "two"
    other = ExecTalk(beside=scene)
    await other.shake_hands()
    assert await found(other, "web") == "two"


@pytest.mark.parametrize("params", [{"keep": False}, {"env": {"A": "x" * 20_000}}])
async def test_what_is_not_remembered_is_not_ended(params: dict[str, Any]) -> None:
    scene = await ready(process := FakeProcess())
    await scene.call("process/start", {**WEB, **params})

    assert type(await scene.refusal("process/restart", AGAIN)) is BadRequest
    assert process.exit is None


async def test_nobody_is_restarted_who_is_not_there() -> None:
    assert type(await (await ready()).refusal("process/restart", AGAIN)) is UnknownProcess


async def test_what_is_remembered_counts_as_long_as_the_process_is_known() -> None:
    scene = await ready(process := FakeProcess())
    await scene.call("process/start", {**WEB, "env": {"A": "x" * 10_000}})
    shared = scene.talk.session.tenant.shared
    assert shared.size > 10_000
    process.exit_with(0)
    process.close()

    await scene.call("process/remove", {"processId": "one"})

    assert shared.size == 0
