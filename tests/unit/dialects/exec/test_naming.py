"""Names of processes: who has one, who is found by it, and how an ended process is forgotten."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.dialects.exec import naming
from holdfast.errors import (
    BadRequest,
    NameAmbiguous,
    NameTaken,
    StillRunning,
    StillStarting,
    UnknownProcess,
)
from tests.fakes.dialects import FakeProcess
from tests.fakes.exec_talk import START, ExecTalk, ready

WEB = {**START, "name": "web", "keep": True}


async def started(scene: ExecTalk, identifier: str, **params: Any) -> None:
    await scene.call("process/start", {**WEB, "processId": identifier, **params})


async def found(scene: ExecTalk, name: str) -> str:
    identifier: str = (await scene.call("process/find", {"name": name}))["processId"]
    return identifier


async def beside(scene: ExecTalk) -> ExecTalk:
    other = ExecTalk(beside=scene)
    await other.shake_hands()
    return other


@pytest.mark.parametrize("keep", [False, True])
async def test_a_name_belongs_to_the_process_that_runs(*, keep: bool) -> None:
    scene = await ready(FakeProcess())
    await started(scene, "one", keep=keep)

    refusal = await scene.refusal("process/start", {**WEB, "processId": "two"})

    assert (type(refusal), refusal.args) == (NameTaken, ("web",))
    assert await found(scene, "web") == "one"


@pytest.mark.parametrize("closed", [False, True])
async def test_a_process_that_has_ended_frees_its_name_at_once(*, closed: bool) -> None:
    scene = await ready(first := FakeProcess(), FakeProcess())
    await started(scene, "one")
    first.exit_with(0)
    if closed:
        first.close()
        scene.loop.move(2.0)  # Archived.
    assert await found(scene, "web") == "one"

    await started(scene, "two")

    assert [await found(scene, each) for each in ("web", "one", "two")] == ["two", "one", "two"]


async def test_a_name_is_taken_while_its_process_starts() -> None:
    scene = await ready(asyncio.Event())
    starting = await scene.starting(name="web", keep=True)

    refusal = await scene.refusal("process/start", {**WEB, "processId": "two"})

    assert (type(refusal), refusal.args) == (NameTaken, ("web",))
    assert (await scene.call("process/find", {"name": "web"}))["state"] == "starting"
    starting.cancel()


async def test_the_identifier_of_a_live_process_is_no_name_for_another() -> None:
    """Clients that know no names call their processes by their identifiers."""
    scene = await ready(FakeProcess())
    await started(scene, "web", name=None)

    assert type(await scene.refusal("process/start", {**WEB, "processId": "two"})) is NameTaken


async def test_another_client_finds_a_shared_process_by_its_name_and_none_of_a_session() -> None:
    scene = await ready(FakeProcess(), FakeProcess(), FakeProcess())
    await started(scene, "one")
    await started(scene, "two", name="own", keep=False)
    other = await beside(scene)

    assert await found(other, "web") == "one"
    assert type(await other.refusal("process/find", {"name": "own"})) is UnknownProcess
    await started(other, "three", name="own", keep=False)
    assert [await found(each, "own") for each in (scene, other)] == ["two", "three"]


async def test_an_identifier_is_found_by_a_beginning_that_no_other_has() -> None:
    scene = await ready(*(FakeProcess() for _ in range(3)))
    for identifier in ("abcd1", "abcd2", "efgh"):
        await started(scene, identifier, name=None)

    assert [await found(scene, each) for each in ("abcd1", "efgh")] == ["abcd1", "efgh"]
    assert type(await scene.refusal("process/find", {"name": "abcd"})) is NameAmbiguous
    assert type(await scene.refusal("process/find", {"name": "abc"})) is UnknownProcess
    assert type(await scene.refusal("process/find", {"name": "abcd3"})) is UnknownProcess


async def test_among_very_many_it_is_looked_for_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(naming, "_AT_ONCE", 2)
    scene = await ready(*(FakeProcess() for _ in range(9)))
    for number in range(9):
        await started(scene, f"{number}-long", name=None, keep=bool(number % 2))

    assert [await found(scene, f"{number}-lo") for number in range(9)] == [
        f"{number}-long" for number in range(9)
    ]
    assert type(await scene.refusal("process/find", {"name": "nobody"})) is UnknownProcess


@pytest.mark.parametrize("name", ["", "x" * 201, "a\x1b"])
async def test_a_name_that_cannot_be_typed_is_refused(name: str) -> None:
    refusal = await (await ready()).refusal("process/start", {**WEB, "name": name})

    assert isinstance(refusal, BadRequest)
    assert refusal.field == "name"


# Forgetting.


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize("keep", [False, True])
async def test_a_removed_process_is_gone(*, keep: bool, archived: bool) -> None:
    scene = await ready(process := FakeProcess(), FakeProcess())
    await started(scene, "one", keep=keep)
    process.exit_with(0)
    process.close()
    if archived:
        scene.loop.move(2.0)

    await scene.call("process/remove", {"processId": "one"})

    assert (await scene.call("process/list"))["processes"] == []
    for name in ("web", "one"):
        assert type(await scene.refusal("process/find", {"name": name})) is UnknownProcess
    await started(scene, "one", keep=keep)
    scene.loop.move(10_000.0)  # Nothing is left that would end the new one.
    assert await found(scene, "web") == "one"


async def test_only_a_process_that_has_ended_is_removed() -> None:
    scene = await ready(FakeProcess(), asyncio.Event())
    await started(scene, "one")
    scene.backend.asked.clear()
    starting = await scene.starting()

    refusals = [
        type(await scene.refusal("process/remove", {"processId": each})) for each in ("one", "p", "nobody")
    ]

    assert refusals == [StillRunning, StillStarting, UnknownProcess]
    starting.cancel()


async def test_ends_and_removals_leave_nothing_behind() -> None:
    """Each foreground command of a client is one of these."""
    processes = [FakeProcess() for _ in range(200)]
    scene = await ready(*processes)
    for number, process in enumerate(processes):
        await started(scene, str(number))
        process.exit_with(0)
        process.close()
        await scene.call("process/remove", {"processId": str(number)})

    assert len(scene.endpoint.tenants._due) <= 2
    assert len(scene.talk.session.tenant.shared) == 0


async def test_a_process_that_removes_itself_is_listed_no_more_and_read_for_a_while() -> None:
    scene = await ready(process := FakeProcess())
    await started(scene, "one", autoRemove=True)
    assert len((await scene.call("process/list"))["processes"]) == 1
    process.exit_with(3)
    process.close()
    scene.loop.move(2.0)

    assert (await scene.call("process/list"))["processes"] == []
    assert (await scene.call("process/wait", {"processId": "one"}))["exitCode"] == 3
    scene.loop.move(30.0)
    assert type(await scene.refusal("process/wait", {"processId": "one"})) is UnknownProcess


async def test_what_belongs_to_a_session_cannot_remove_itself() -> None:
    refusal = await (await ready()).refusal("process/start", {**WEB, "keep": False, "autoRemove": True})

    assert isinstance(refusal, BadRequest)
    assert refusal.field == "autoRemove"
