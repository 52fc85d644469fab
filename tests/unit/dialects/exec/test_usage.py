"""What the processes of a client use: which of them are told, and what is left out where it is too long."""

from __future__ import annotations

import asyncio
import json

import pytest

from holdfast.dialects.exec import usage
from holdfast.reports import Load
from tests.fakes.dialects import FakeProcess
from tests.fakes.exec_talk import START, ExecTalk, ready, started

TOLD = {"processId": "p", "cpuMs": 30, "residentBytes": 4096, "processes": 1, "outputBytes": 5, "ageMs": 0}


async def test_an_empty_session_uses_nothing() -> None:
    scene = await ready()

    assert await scene.call("process/usage", {}) == {"processes": []}


async def test_a_running_process_is_told_with_what_it_uses() -> None:
    scene, process = await started()
    process.load, process.retained_bytes = Load(1, 4096, 30_000), 5

    assert await scene.call("process/usage", {}) == {"processes": [TOLD]}


async def test_one_that_starts_or_has_ended_uses_nothing() -> None:
    """Unless it has left somebody behind, who uses what nobody would look for."""
    scene, process = await started()
    process.retained_bytes = 5
    process.exit_with(0)
    ended = await scene.call("process/usage", {})
    process.has_leftovers = True

    assert ended == {"processes": []}
    assert await scene.call("process/usage", {}) == {"processes": [TOLD]}


async def test_only_those_that_are_named_are_told_and_each_once() -> None:
    scene = await ready(*[FakeProcess() for _ in "abc"])
    for name in "abc":
        await scene.call("process/start", {**START, "processId": name, "keep": name == "c"})

    result = await scene.call("process/usage", {"names": ["c", "none", "a", "c"]})

    assert [each["processId"] for each in result["processes"]] == ["c", "a"]


async def test_a_process_is_found_by_its_name_and_by_its_identifier_and_told_once() -> None:
    scene = await ready(FakeProcess())
    await scene.call("process/start", {**START, "processId": "p", "keep": True, "name": "web"})

    both = await scene.call("process/usage", {"names": ["web", "p"]})

    assert [(each["processId"], each["name"]) for each in both["processes"]] == [("p", "web")]
    assert await scene.call("process/usage", {"names": ["p"]}) == both


async def test_kept_processes_are_told_behind_those_of_the_session() -> None:
    scene = await ready(FakeProcess(), FakeProcess())
    await scene.call("process/start", {**START, "processId": "kept", "keep": True})
    await scene.call("process/start", {**START, "processId": "own"})

    result = await scene.call("process/usage", {})

    assert [each["processId"] for each in result["processes"]] == ["own", "kept"]


async def test_an_answer_ends_where_a_message_would_be_too_large() -> None:
    names = [f"{number:02000}" for number in range(9)]
    scene = await ready(*[FakeProcess() for _ in names])
    for name in names:
        await scene.call("process/start", {**START, "processId": name})

    result = await scene.call("process/usage", {})

    found = [each["processId"] for each in result["processes"]]
    assert found == names[: len(found)]
    assert 0 < len(found) < len(names)
    assert result["more"] is True
    assert len(json.dumps(result["processes"], separators=(",", ":"))) <= scene.limits.answer_bytes + 2


async def test_others_get_their_turn_while_many_names_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "_AT_ONCE", 2)
    scene = await ready()
    turns = 0
    task = asyncio.create_task(scene.call("process/usage", {"names": list("abcdefgh")}))
    while not task.done():
        turns += 1
        await asyncio.sleep(0)

    assert task.result() == {"processes": []}
    assert turns > 4


async def test_a_client_is_answered_one_request_after_the_other() -> None:
    """However many it sends at once, they take no more of each turn than one."""
    scene, _ = await started()
    scene.talk.congested()
    first, second = (asyncio.create_task(scene.call("process/usage", {})) for _ in range(2))
    early = await asyncio.wait([first, second], timeout=0.02)
    scene.talk.drained()

    assert (await first, early[0]) == (await second, set())


async def test_a_client_is_told_of_its_own_processes_only() -> None:
    scene, _ = await started()
    other = ExecTalk(beside=scene)
    await other.shake_hands()

    assert await other.call("process/usage", {"names": ["p"]}) == {"processes": []}
    assert await other.call("process/usage", {}) == {"processes": []}
