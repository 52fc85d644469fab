"""The list of a session's processes: each of their states, and what is left out where it is too long."""

from __future__ import annotations

import asyncio
import json
from time import time
from typing import Any

import pytest

from holdfast.dialects.exec import session
from holdfast.errors import NameTaken
from holdfast.model import Exit, Kind, Outcome
from tests.fakes.dialects import FakeProcess
from tests.fakes.exec_talk import START, ExecTalk, ready, started

TIMEOUT = Exit(137, Outcome(Kind.TIMEOUT, signal=9, by="limit"))
TIMEOUT_TOLD = {"kind": "timeout", "exitCode": None, "signal": "SIGKILL", "by": "limit", "detail": None}


async def test_an_empty_session_has_an_empty_list() -> None:
    scene = await ready()

    assert await scene.call("process/list") == {"processes": []}
    assert await scene.call("process/list", {}) == {"processes": []}


async def listed(scene: ExecTalk, name: str = "p") -> Any:
    (found,) = [each for each in (await scene.call("process/list"))["processes"] if each["processId"] == name]
    assert abs(found.pop("startedAtMs") - time() * 1000) < 60_000
    return found


async def test_a_process_is_listed_in_each_of_its_states() -> None:
    gate, process = asyncio.Event(), FakeProcess()
    process.pid, process.retained_bytes = 77, 5
    scene = await ready(gate, process)
    task = await scene.starting(argv=["a b", 'é"'], tty=True)
    request = {"processId": "p", "argv": ["a b", 'é"'], "cwd": "file:///tmp", "tty": True}
    fresh = {"pid": None, "exitCode": None, "outcome": None, "nextSeq": 1, "retainedBytes": 0}

    starting = await listed(scene)
    gate.set()
    await task
    running = await listed(scene)
    process.exit_with(end=TIMEOUT)
    ended = await listed(scene)
    process.close()
    closed = await listed(scene)
    scene.loop.move(30.0)

    alive = {"pid": 77, "retainedBytes": 5}
    dead = {**alive, "exitCode": 137, "outcome": TIMEOUT_TOLD}
    assert starting == {**request, **fresh, "state": "starting"}
    assert running == {**request, **fresh, **alive, "state": "running"}
    assert ended == {**request, **dead, "nextSeq": 2, "state": "exited"}
    assert closed == {**request, **dead, "nextSeq": 3, "state": "closed"}
    assert await scene.call("process/list") == {"processes": []}


async def test_an_end_by_itself_is_listed_with_its_outcome() -> None:
    """Whatever the client knows: there is no list in the reference."""
    scene, process = await started()

    process.exit_with(3)

    assert (await listed(scene))["outcome"]["kind"] == "exit"


async def test_processes_are_listed_in_the_order_in_which_they_were_asked_for() -> None:
    """Names of any text come back as they were given, and a failed start leaves nothing."""
    names = ["z", 'a"\n', "", "é", "%d %b"]
    scene = await ready(*[FakeProcess() for _ in names])
    for name in names:
        await scene.call("process/start", {**START, "processId": name})

    found = (await scene.call("process/list"))["processes"]

    assert [each["processId"] for each in found] == names


async def test_a_list_ends_where_a_message_would_be_too_large() -> None:
    """And says so: a peer would otherwise take the connection for broken."""
    names = [f"{number:02000}" for number in range(9)]
    scene = await ready(*[FakeProcess() for _ in names])
    for name in names:
        await scene.call("process/start", {**START, "processId": name})

    result = await scene.call("process/list")

    found = [each["processId"] for each in result["processes"]]
    assert found == names[: len(found)]
    assert 0 < len(found) < len(names)
    assert result["more"] is True
    assert len(json.dumps(result["processes"], separators=(",", ":"))) <= scene.limits.answer_bytes + 2


FITS = [
    ["x"],
    ["x" * 1020],
    ["é" * 600],
    ['"' * 600],
    ["\0" * 300],
    ["a"] * 255,
    [""] * 300,
    ["x" * 512, "y" * 400],
]


@pytest.mark.parametrize("argv", FITS, ids=range(len(FITS)))
async def test_arguments_of_usual_length_are_listed_whole(argv: list[str]) -> None:
    """However many bytes their characters take: three dots at the end say that something is missing."""
    scene, _ = await started(argv=argv)

    assert (await listed(scene))["argv"] == argv


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["x" * 5000], ["x" * 1024, "..."]),
        (["cmd", "x" * 5000, "y"], ["cmd", "x" * 1020, "..."]),
        (["x" * 1000, "y" * 1000], ["x" * 1000, "y" * 23, "..."]),
        (["é" * 5000], ["é" * 1024, "..."]),
        ([""] * 5000, [*[""] * 1024, "..."]),
    ],
    ids=range(5),
)
async def test_long_arguments_are_listed_in_part(argv: list[str], told: list[str]) -> None:
    """They are kept for as long as the process; the client knows the rest."""
    scene, _ = await started(argv=argv)

    assert (await listed(scene))["argv"] == told
    assert scene.backend.specs[0].argv == argv


async def test_two_long_requests_that_differ_in_what_is_not_listed_are_two() -> None:
    once = {**START, "idempotent": True, "argv": ["x" * 5000]}
    scene = await ready(FakeProcess())
    await scene.call("process/start", once)

    error = await scene.refusal("process/start", {**once, "argv": ["x" * 4999 + "y"]})

    assert isinstance(error, NameTaken)


async def test_a_list_shows_the_processes_of_its_session_only() -> None:
    scene, _ = await started()
    other = ExecTalk(beside=scene)
    await other.shake_hands()

    assert await other.call("process/list") == {"processes": []}


async def test_a_directory_is_listed_as_it_was_given() -> None:
    """A client compares it with what it sent."""
    scene, _ = await started(cwd="file:///tmp/a%20b/../%C3%A9")

    assert (await listed(scene))["cwd"] == "file:///tmp/a%20b/../%C3%A9"


# Long lists.


async def many(monkeypatch: pytest.MonkeyPatch) -> ExecTalk:
    """A client with five processes, of which two are listed at once."""
    monkeypatch.setattr(session, "_AT_ONCE", 2)
    scene = await ready(*[FakeProcess() for _ in range(5)])
    for name in "abcde":
        await scene.call("process/start", {**START, "processId": name})
    return scene


async def test_others_get_their_turn_while_a_long_list_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client may have 65,536 processes, and its neighbours need not notice that it asks for them."""
    scene = await many(monkeypatch)
    turns = 0
    task = asyncio.create_task(scene.call("process/list"))
    while not task.done():
        turns += 1
        await asyncio.sleep(0)

    assert [each["processId"] for each in task.result()["processes"]] == list("abcde")
    assert turns > 2


async def test_long_lists_are_made_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many that are asked for at once take no more of each turn than one."""
    scene = await many(monkeypatch)
    scene.talk.congested()
    first, second = (asyncio.create_task(scene.call("process/list")) for _ in range(2))
    await asyncio.sleep(0)
    ended_early = await asyncio.wait([first, second], timeout=0.02)
    scene.talk.drained()
    await asyncio.wait([first, second], return_when=asyncio.FIRST_COMPLETED)
    order = first.done(), second.done()

    assert await second == await first
    assert (order, ended_early[0]) == ((True, False), set())


async def test_a_list_of_a_session_that_is_closed_meanwhile_is_of_that_session(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = await many(monkeypatch)
    task = asyncio.create_task(scene.call("process/list"))
    await asyncio.sleep(0)

    await scene.call("session/close")

    assert len((await task)["processes"]) == 5
