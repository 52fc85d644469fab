"""Processes that belong to no client: who can reach them, and for how long.  The clock is moved by hand."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.config import SessionLimits
from holdfast.dialects.exec.entries import ArchivedEntry, StartSummary
from holdfast.dialects.exec.scopes import Session
from holdfast.errors import (
    NameTaken,
    SessionUnknown,
    StartCancelled,
    StillStarting,
)
from holdfast.model import Chunk, Leftovers, Page, Stream
from tests.fakes.dialects import FakeClient, FakeProcess, exited
from tests.fakes.exec_talk import START, ExecTalk, a_tenant, ready
from tests.fakes.watched import Watched

KEPT = {**START, "keep": True}
P = {"processId": "p"}
ENDED = ("forget", Leftovers.END)


async def kept(process: FakeProcess | None = None, **params: Any) -> tuple[ExecTalk, ExecTalk, FakeProcess]:
    """A client that has started a kept process, another client, and the process."""
    process = process or FakeProcess()
    scene = await ready(process, FakeProcess(), FakeProcess())
    await scene.call("process/start", {**KEPT, **params})
    return scene, await beside(scene), process


async def beside(scene: ExecTalk, *, extended: bool = False) -> ExecTalk:
    """Another client."""
    other = type(scene)(beside=scene)
    await other.shake_hands(**({"holdfast": 1} if extended else {}))
    return other


def common(scene: ExecTalk, name: str = "p") -> object:
    return scene.talk.session.tenant.shared.find(name)


# Names (without a talk).

SUMMARY = StartSummary(b"", b"", None)


def test_a_client_finds_its_own_before_what_is_kept() -> None:
    tenant = a_tenant()
    own, other = Session("a", tenant, SessionLimits()), Session("b", tenant, SessionLimits())
    _, mine = tenant.reserve(own, "p", SUMMARY, keep=False)
    home, everybodys = tenant.reserve(other, "p", SUMMARY, keep=True)

    assert home is tenant.shared
    assert tenant.find(own, "p") == (own, mine)
    assert tenant.find(other, "p") == (tenant.shared, everybodys)
    assert tenant.find(other, "q") == (tenant.shared, None)


@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("second", [False, True])
def test_a_name_means_one_process_to_a_client(*, first: bool, second: bool) -> None:
    tenant = a_tenant()
    own = Session("a", tenant, SessionLimits())
    tenant.reserve(own, "p", SUMMARY, keep=first)

    with pytest.raises(NameTaken) as caught:
        tenant.reserve(own, "p", SUMMARY, keep=second)

    assert caught.value.name == "p"


def test_ended_processes_are_given_in_the_order_of_their_ends() -> None:
    shared = a_tenant(SessionLimits(kept_ended=2, kept_seconds=100.0)).shared

    assert [list(shared.ended(name, now)) for name, now in (("a", 1.0), ("b", 2.0))] == [[], []]
    assert shared.next_deadline == 101.0
    assert list(shared.ended("c", 3.0)) == ["a"]
    assert list(shared.due(101.9)) == []
    assert list(shared.due(102.0)) == ["b"]
    assert shared.next_deadline == 103.0
    assert list(shared.due(1e9)) == ["c"]
    assert shared.next_deadline is None


# Everybody.


async def test_everybody_reaches_a_kept_process() -> None:
    scene, other, process = await kept()
    process.calls.clear()
    process.page = Page([Chunk(1, Stream.STDOUT, b"hi")], 2, None, closed=False)

    read = await other.call("process/read", P)
    written = await other.call("process/write", {**P, "chunk": "YQ==", "writeId": "w"})
    waited = await other.call("process/wait", P)
    closed = await other.call("process/closeStdin", P)
    await other.call("process/resize", {**P, "size": {"rows": 1, "cols": 2}})
    await other.call("process/signal", {**P, "signal": "hangup"})
    ended = await other.call("process/terminate", P)

    assert read["chunks"] == [{"seq": 1, "stream": "stdout", "chunk": "aGk="}]
    assert (written["status"], closed["status"], waited["exited"]) == ("accepted", "accepted", False)
    assert ended["running"]
    assert [call[0] for call in process.calls] == [
        *("try_read", "try_write", "wait", "close_stdin", "resize", "signal", "end")
    ]
    assert scene.client.sent == other.client.sent == []


async def test_nobody_is_told_what_a_kept_process_does() -> None:
    scene, other, process = await kept()

    process.say(b"hi")
    process.exit_with(3)
    process.close()

    assert scene.client.sent == other.client.sent == []


async def test_the_answer_to_its_start_is_as_usual() -> None:
    scene = await ready(FakeProcess())

    assert await scene.call("process/start", KEPT) == {"processId": "p", "sandboxType": "none"}


async def test_a_list_has_ones_own_and_then_what_is_kept() -> None:
    scene, other, _ = await kept()
    await other.call("process/start", {**START, "processId": "own"})

    lists = [(await talk.call("process/list"))["processes"] for talk in (scene, other)]

    assert [[(one["processId"], one.get("kept")) for one in found] for found in lists] == [
        [("p", True)],
        [("own", None), ("p", True)],
    ]


async def test_how_an_end_is_told_depends_on_who_asks() -> None:
    scene, plain, process = await kept()
    process.page = Page([], 3, exited(0), closed=True)
    knowing = await beside(scene, extended=True)

    assert "outcome" not in await plain.call("process/read", P)
    assert (await knowing.call("process/read", P))["outcome"]["kind"] == "exit"


async def test_a_read_that_waits_goes_on_when_its_client_closes_its_session() -> None:
    _, other, process = await kept()
    process.reads_wait, process.gate = True, asyncio.Event()
    reading = asyncio.create_task(other.call("process/read", {**P, "waitMs": 1000}))
    await process.asked.wait()

    await other.call("session/close")
    process.gate.set()

    assert (await reading)["chunks"] == []


# It outlives clients.


@pytest.mark.parametrize("end", ["close", "leave", "leave for good"])
async def test_a_kept_process_outlives_its_client(end: str) -> None:
    process = FakeProcess()
    scene = ExecTalk(
        process, client=FakeClient(transport="stdio" if end == "leave for good" else "websocket")
    )
    await scene.shake_hands()
    await scene.call("process/start", KEPT)
    process.calls.clear()

    if end == "close":
        assert await scene.call("session/close") == {"survivors": []}
    else:
        scene.talk.ended()
    scene.loop.move(1000.0)
    other = await beside(scene)

    assert len(scene.endpoint.sessions) == 1
    assert process.calls == []
    assert [one["state"] for one in (await other.call("process/list"))["processes"]] == ["running"]


async def test_a_kept_process_that_starts_outlives_its_client_too() -> None:
    gate, process = asyncio.Event(), FakeProcess()
    scene = await ready(gate, process)
    task = await scene.starting(keep=True)
    other = await beside(scene)

    still = await other.refusal("process/read", P)
    await scene.call("session/close")
    gate.set()
    await task

    assert isinstance(still, StillStarting)
    assert (await other.call("process/wait", P))["exited"] is False


async def test_a_start_can_be_given_up_by_another_client() -> None:
    gate = asyncio.Event()
    scene = await ready(gate, FakeProcess())
    task = await scene.starting(keep=True)
    other = await beside(scene)

    await other.call("process/terminate", P)

    with pytest.raises(StartCancelled):
        await task
    assert common(scene) is None


async def test_the_end_of_the_endpoint_is_its_end() -> None:
    scene, _, process = await kept(Watched(), window=1)
    assert isinstance(process, Watched)
    process.say(b"x")
    gate = asyncio.Event()
    scene.backend._outcomes.insert(0, gate)
    scene.backend.asked.clear()
    task = await scene.starting(processId="q", keep=True)

    scene.endpoint.close()

    assert process.calls[-1] == ENDED
    assert scene.loop.timers == []
    with pytest.raises(StartCancelled):
        await task


async def test_nobody_can_resume_the_session_of_the_kept() -> None:
    scene, _, _ = await kept()
    thief = ExecTalk(beside=scene)

    error = await thief.refusal("initialize", {"clientName": "x", "resumeSessionId": ""})
    forced = await thief.refusal("session/takeOver", {"sessionId": ""})

    assert isinstance(error, SessionUnknown)
    assert isinstance(forced, SessionUnknown)


# Names (in a talk).


@pytest.mark.parametrize("keep", [False, True])
async def test_a_kept_name_is_taken_for_everybody(*, keep: bool) -> None:
    _, other, _ = await kept()

    assert isinstance(await other.refusal("process/start", {**START, "keep": keep}), NameTaken)


async def test_ones_own_name_cannot_be_kept_but_by_others() -> None:
    scene = await ready(FakeProcess(), FakeProcess())
    await scene.call("process/start", START)
    other = await beside(scene)

    error = await scene.refusal("process/start", KEPT)
    await other.call("process/start", KEPT)

    assert isinstance(error, NameTaken)
    (own,) = [one for one in (await scene.call("process/list"))["processes"] if "kept" not in one]
    assert own["processId"] == "p"
    assert scene.endpoint.find(scene.talk.session, "p") is scene.entry()
    assert scene.endpoint.find(other.talk.session, "p") is common(scene)


@pytest.mark.parametrize("when", ["starting", "running", "ended", "archived"])
async def test_a_retry_from_another_session_finds_the_process(when: str) -> None:
    gate, process, past = asyncio.Event(), FakeProcess(), FakeProcess()
    scene = await ready(gate, process)
    process.packed, scene.backend.unpacked[("block",)] = ("block",), past
    once = {**KEPT, "idempotent": True}
    first = await scene.starting(keep=True, idempotent=True)
    other = await beside(scene)
    again: asyncio.Future[Any] | None = None
    if when == "starting":
        again = asyncio.ensure_future(other.call("process/start", once))
    gate.set()
    assert (await first)["existing"] is False
    if when in ("ended", "archived"):
        process.exit_with()
        process.close()
    if when == "archived":
        scene.loop.move(1000.0)
        assert isinstance(common(scene), ArchivedEntry)

    found = await (again or other.call("process/start", once))
    not_it = await other.refusal("process/start", {**once, "keep": False})

    assert found["existing"] is True
    assert isinstance(not_it, NameTaken)
    assert len(scene.backend.specs) == 1
