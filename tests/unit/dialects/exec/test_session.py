"""The handshake, the host, and the end and the taking over of a session, at each stage of a conversation."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.dialects.dialect import Breach
from holdfast.dialects.exec.conversation import Handshake
from holdfast.dialects.exec.methods import METHODS
from holdfast.errors import LimitReached, OutOfTurn, SessionBusy, SessionUnknown, StartCancelled
from holdfast.model import Leftovers, Page
from holdfast.value import replace
from tests.fakes.dialects import FakeClient, FakeProcess, exited
from tests.fakes.exec_talk import INITIALIZED, START, ExecTalk, ready, started


@pytest.mark.parametrize(
    ("params", "extended"),
    [
        ({}, False),
        ({"holdfast": None}, False),
        ({"holdfast": 0}, False),
        ({"holdfast": 1}, True),
        ({"holdfast": 2**64 - 1}, True),
    ],
)
async def test_a_client_says_whether_it_knows_the_extensions(
    params: dict[str, Any], *, extended: bool
) -> None:
    """A later version knows those of this one."""
    scene = ExecTalk()
    await scene.shake_hands(**params)
    first = scene.talk.session.extended
    again = ExecTalk(beside=scene)
    await again.take_over(scene.talk.session.key, **params)

    assert (first, again.talk.session.extended) == (extended, extended)


@pytest.mark.parametrize(("before", "after"), [({}, {"holdfast": 1}), ({"holdfast": 1}, {})])
async def test_who_comes_back_says_anew_what_it_knows(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Another program may resume the session."""
    scene = ExecTalk()
    await scene.shake_hands(**before)
    scene.talk.ended()

    again = ExecTalk(beside=scene)
    await again.shake_hands(resumeSessionId=scene.talk.session.key, **after)

    assert again.talk.session is scene.talk.session
    assert again.talk.session.extended is bool(after)


# Taking over.


async def test_a_session_is_taken_over_from_a_client_that_is_alive() -> None:
    """It is not even asked: whoever takes over knows what it does."""
    scene, process = await started()
    scene.client.alive = True
    other = ExecTalk(beside=scene)

    result = await other.call("session/takeOver", {"sessionId": scene.talk.session.key})
    process.say(b"x")

    assert result["sessionId"] == scene.talk.session.key
    assert result["environmentInfo"] == await other.call("environment/info")
    assert scene.client.asked == []
    assert scene.client.cuts == ["the session was resumed by another connection"]
    assert (scene.client.raw, [message["method"] for message in other.client.sent]) == (
        [],
        ["process/output"],
    )


async def test_a_session_that_ends_with_its_client_is_not_taken_from_it() -> None:
    """To cut the client would end what was to be taken over."""
    holder = ExecTalk(FakeProcess(), client=FakeClient(transport="stdio", alive=True))
    await holder.shake_hands()
    await holder.call("process/start", START)

    error = await ExecTalk(beside=holder).refusal("session/takeOver", {"sessionId": holder.talk.session.key})

    assert isinstance(error, SessionBusy)
    assert holder.client.cuts == []
    assert holder.entry().process.exit is None


async def test_a_session_without_a_client_can_be_taken_over_too() -> None:
    scene, _ = await started()
    scene.talk.ended()
    other = ExecTalk(beside=scene)

    await other.take_over(scene.talk.session.key)

    assert other.talk.session.client is other.client
    assert scene.client.cuts == []
    scene.loop.move(31.0)
    assert scene.endpoint.sessions.get(other.talk.session.key) is other.talk.session


async def test_taking_over_stands_in_for_initialize() -> None:
    """What comes before and after is the same."""
    scene = await ready()
    other = ExecTalk(beside=scene)

    other.talk.gate(METHODS["session/takeOver"])
    with pytest.raises(OutOfTurn, match="must call initialize"):
        other.talk.gate(METHODS["process/list"])
    await other.call("session/takeOver", {"sessionId": scene.talk.session.key})
    with pytest.raises(OutOfTurn, match="must send initialized"):
        other.talk.gate(METHODS["process/list"])
    other.talk.notified(INITIALIZED)
    other.talk.gate(METHODS["process/list"])


@pytest.mark.parametrize("initialized", [False, True])
async def test_who_has_a_session_takes_over_none(*, initialized: bool) -> None:
    """Not even its own."""
    scene = await ready()
    holder = ExecTalk(beside=scene)
    await holder.call("initialize", {"clientName": "x"})
    if initialized:
        holder.talk.notified(INITIALIZED)
    mine = holder.talk.session

    for key in (mine.key, scene.talk.session.key, "nope"):
        error = await holder.refusal("session/takeOver", {"sessionId": key})
        assert isinstance(error, OutOfTurn)

    assert holder.talk.session is mine
    assert (scene.client.cuts, holder.client.cuts) == ([], [])


@pytest.mark.parametrize("key", ["", "nope"])
async def test_an_unknown_session_cannot_be_taken_over_and_another_try_may_follow(key: str) -> None:
    scene = await ready()
    other = ExecTalk(beside=scene)

    error = await other.refusal("session/takeOver", {"sessionId": key})
    await other.take_over(scene.talk.session.key)

    assert isinstance(error, SessionUnknown)
    assert error.session == key
    assert other.talk.stage is Handshake.READY


async def test_a_session_that_was_taken_over_can_be_taken_back() -> None:
    scene, _ = await started()
    key = scene.talk.session.key
    thief, again = ExecTalk(beside=scene), ExecTalk(beside=scene)
    await thief.take_over(key)

    await again.take_over(key)

    assert again.talk.session.client is again.client
    assert thief.client.cuts == ["the session was resumed by another connection"]


# Closing.


async def test_closing_a_session_ends_everything_in_it() -> None:
    """Returns when it is gone, so that whoever starts the same anew does not meet it."""
    first, second = FakeProcess(), FakeProcess()
    scene = await ready(first, second)
    await scene.call("process/start", START)
    await scene.call("process/start", {**START, "processId": "q"})
    second.exit_with(0)
    second.gate = asyncio.Event()
    stray = FakeProcess()
    stray.has_leftovers = True
    scene.talk.session.strays.keep(stray)

    task = asyncio.create_task(scene.call("session/close"))
    await second.asked.wait()
    done_early = task.done()
    second.gate.set()

    assert (done_early, await task) == (False, {"survivors": []})
    ends = [("end", 0.0, "client"), ("forget", Leftovers.END)]
    assert first.calls[-2:] == second.calls[-2:] == ends
    assert stray.calls == ends[:1]
    assert len(scene.endpoint.sessions) == 0


async def test_closing_a_session_names_who_could_not_be_ended() -> None:
    scene = await ready(first := FakeProcess(), second := FakeProcess())
    await scene.call("process/start", START)
    await scene.call("process/start", {**START, "processId": "q"})
    first.survivors, second.survivors = (7,), (8, 9)

    assert await scene.call("session/close", {}) == {"survivors": [7, 8, 9]}


async def test_a_closed_session_cannot_be_resumed() -> None:
    scene = await ready()
    key = scene.talk.session.key
    await scene.call("session/close")
    other = ExecTalk(beside=scene)

    for method, params in (
        ("initialize", {"clientName": "x", "resumeSessionId": key}),
        ("session/takeOver", {"sessionId": key}),
    ):
        assert isinstance(await other.refusal(method, params), SessionUnknown)


@pytest.mark.parametrize("by_force", [False, True])
async def test_after_a_close_the_connection_is_as_at_its_beginning(*, by_force: bool) -> None:
    """And may begin anew, also with a session that waits for its client."""
    scene = await ready()
    waiting = ExecTalk(beside=scene)
    await waiting.shake_hands()
    waiting.talk.ended()

    await scene.call("session/close")

    with pytest.raises(OutOfTurn, match=r"^client must call initialize before using session methods$"):
        scene.talk.gate(METHODS["session/close"])
    with pytest.raises(Breach):
        scene.talk.notified(INITIALIZED)
    if by_force:
        await scene.take_over(waiting.talk.session.key)
    else:
        await scene.shake_hands(resumeSessionId=waiting.talk.session.key)
    scene.talk.gate(METHODS["session/close"])
    assert scene.talk.session is waiting.talk.session


async def test_the_processes_of_a_new_session_are_its_own() -> None:
    scene = await ready(FakeProcess(), again := FakeProcess())
    await scene.call("process/start", START)

    await scene.call("session/close")
    await scene.shake_hands()
    listed = await scene.call("process/list")
    result = await scene.call("process/start", START)
    again.say(b"x")

    assert (listed, result["processId"]) == ({"processes": []}, "p")
    assert [message["method"] for message in scene.client.sent] == ["process/output"]


async def test_a_session_is_closed_by_those_who_have_done_the_handshake() -> None:
    scene = ExecTalk()
    close = METHODS["session/close"]

    with pytest.raises(OutOfTurn, match=r"^client must call initialize before using session methods$"):
        scene.talk.gate(close)
    await scene.call("initialize", {"clientName": "x"})
    with pytest.raises(OutOfTurn, match=r"^client must send initialized before using session methods$"):
        scene.talk.gate(close)
    scene.talk.notified(INITIALIZED)
    scene.talk.gate(close)


async def test_closing_a_session_gives_up_what_is_starting() -> None:
    scene = await ready(asyncio.Event(), FakeProcess())
    task = await scene.starting()

    result = await scene.call("session/close")

    assert result == {"survivors": []}
    with pytest.raises(StartCancelled):
        await task


async def test_the_end_of_a_connection_whose_session_is_closed_changes_nothing() -> None:
    scene, process = await started()
    await scene.call("session/close")
    calls = list(process.calls)

    scene.talk.congested()
    scene.talk.drained()
    scene.talk.ended()
    scene.loop.move(60.0)

    assert process.calls == calls


async def test_closing_makes_room_for_another_session() -> None:
    class Narrow(ExecTalk):
        limits = replace(ExecTalk.limits, sessions=1)

    scene = Narrow()
    await scene.shake_hands()
    other = ExecTalk(beside=scene)
    full = await other.refusal("initialize", {"clientName": "x"})

    await scene.call("session/close")
    await other.shake_hands()

    assert isinstance(full, LimitReached)
    assert len(scene.endpoint.sessions) == 1


async def test_a_close_whose_connection_is_lost_gives_nothing_up() -> None:
    """Nobody else knows the session any more, so nobody else could forget its processes."""
    scene, process = await started()
    process.gate = asyncio.Event()
    task = asyncio.create_task(scene.call("session/close"))
    await process.asked.wait()

    scene.talk.ended()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert process.calls == [("end", 0.0, "client"), ("forget", Leftovers.END)]


# What is under way when a session is closed.


@pytest.mark.parametrize("anew", [False, True])
async def test_a_read_that_waits_is_answered_when_its_session_is_closed(*, anew: bool) -> None:
    """The end of the process is the answer it waited for; a new session has nothing to do with it."""
    scene, process = await started(extended=True)
    process.reads_wait, process.gate = True, asyncio.Event()
    process.page = Page([], 3, exited(137), closed=True)
    reading = asyncio.create_task(scene.call("process/read", {"processId": "p", "waitMs": 10_000}))
    await process.asked.wait()

    closing = asyncio.create_task(scene.call("session/close"))
    asyncio.get_running_loop().call_soon(process.gate.set)
    if anew:
        await closing
        await scene.shake_hands()
    result = await reading

    assert (result["exitCode"], result["closed"]) == (137, True)
    assert result["outcome"]["kind"] == "exit"
    await closing


async def test_a_start_and_the_close_of_its_session_may_come_in_one_packet() -> None:
    """The start has taken its name and has not begun; the answer to the close comes when it is given up."""
    scene = await ready(FakeProcess())
    method = METHODS["process/start"]
    not_begun = method.handle(scene.talk, method.decode(START))

    closing = asyncio.create_task(scene.call("session/close"))
    done, _ = await asyncio.wait([closing], timeout=0.02)
    with pytest.raises(StartCancelled):
        await not_begun
    await closing

    assert (done, scene.backend.specs) == (set(), [])
