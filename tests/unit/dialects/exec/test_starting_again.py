"""A start that is asked for twice: what a retry finds, whenever and from wherever it comes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.errors import Fault, NameTaken, SpawnFailed, StartCancelled
from tests.fakes.dialects import FakeProcess
from tests.fakes.exec_talk import START, ExecTalk, ready

ONCE = {**START, "idempotent": True}
NEW = {"processId": "p", "sandboxType": "none", "existing": False}
FOUND = {**NEW, "existing": True}
NO_SUCH_FILE = SpawnFailed(Fault.PROGRAM, "x", "No such file or directory", number=2)


async def moved(scene: ExecTalk) -> ExecTalk:
    """The client, on another connection."""
    other = ExecTalk(beside=scene)
    await other.take_over(scene.talk.session.key)
    return other


async def retried(scene: ExecTalk, params: dict[str, Any] = ONCE) -> asyncio.Task[Any]:
    """A retry that waits for the first start."""
    task = asyncio.create_task(scene.call("process/start", params))
    turn = asyncio.Event()
    asyncio.get_running_loop().call_soon(turn.set)
    await turn.wait()
    assert not task.done()
    return task


# Once it has started.


async def test_a_retry_finds_the_process_of_the_first_request() -> None:
    scene = await ready(process := FakeProcess())

    results = [await scene.call("process/start", ONCE) for _ in range(3)]

    assert results == [NEW, FOUND, FOUND]
    assert len(scene.backend.specs) == 1
    assert process.calls == [("retain", 10)]


async def test_a_retry_is_told_of_the_limits_too() -> None:
    """It knows nothing of the first answer, which may be lost."""
    process = FakeProcess()
    process.limits = {"memory": "cgroup"}
    scene = await ready(process)

    results = [await scene.call("process/start", ONCE) for _ in range(2)]

    assert [result["limits"] for result in results] == [{"memoryBytes": "cgroup"}] * 2


@pytest.mark.parametrize("closed", [False, True])
async def test_a_retry_finds_a_process_that_has_ended_while_it_is_kept(*, closed: bool) -> None:
    """The command has run: to run it again is what must not happen."""
    scene = await ready(process := FakeProcess(), FakeProcess())
    await scene.call("process/start", ONCE)
    process.exit_with(0)
    if closed:
        process.close()

    kept = await scene.call("process/start", ONCE)
    scene.loop.move(30.0)
    later = await scene.call("process/start", {**ONCE, "processId": "p" if closed else "q"})

    assert (kept, later["existing"]) == (FOUND, False)


async def test_a_retry_on_another_connection_finds_it() -> None:
    """The usual reason for one: the first answer was lost with its connection."""
    scene = await ready(FakeProcess())
    await scene.call("process/start", ONCE)
    scene.talk.ended()
    other = ExecTalk(beside=scene)
    await other.shake_hands(resumeSessionId=scene.talk.session.key)

    assert await other.call("process/start", ONCE) == FOUND


OTHERS: list[dict[str, Any]] = [
    {"argv": ["x", "y"]},
    {"cwd": "file:///"},
    {"env": {"A": "2"}},
    {"env": {}},
    {"tty": True},
    {"pipeStdin": True},
    {"arg0": "name"},
    {"timeoutMs": 1},
    {"idleTimeoutMs": 1},
    {"graceMs": 1},
    {"drainMs": 1},
    {"retainBytes": 1},
    {"outputBytesLimit": 1},
    {"outputBytesLimit": 1, "truncateOutput": True},
    {"limits": {"processes": 1}},
    {"tty": True, "size": {"rows": 1, "cols": 1}},
    {"user": "bob"},
    {"idempotent": False},
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda other: next(iter(other)))
async def test_another_request_of_the_same_name_is_refused(other: dict[str, Any]) -> None:
    """In whatever it differs: the process that is there is not the one that was asked for."""
    scene = await ready(FakeProcess())
    await scene.call("process/start", ONCE)

    error = await scene.refusal("process/start", {**ONCE, **other})

    assert isinstance(error, NameTaken)
    assert error.name == "p"
    assert len(scene.backend.specs) == 1


async def test_a_process_that_was_not_to_be_found_again_is_not() -> None:
    """Who started it did not expect a second request for it."""
    scene = await ready(FakeProcess())
    first = await scene.call("process/start", START)

    error = await scene.refusal("process/start", ONCE)

    assert first == {"processId": "p", "sandboxType": "none"}
    assert isinstance(error, NameTaken)


async def test_two_requests_are_the_same_however_they_are_written() -> None:
    """An object has no order, and null stands for what is left out."""
    scene = await ready(FakeProcess())
    env = {"A": "1", "B": "2"}
    await scene.call("process/start", {**ONCE, "env": env})

    again: dict[str, Any] = {"idempotent": True, "arg0": None, "limits": None, "unknown": 1}
    again |= {**START, "env": dict(reversed(env.items())), "pipeStdin": False}

    assert await scene.call("process/start", again) == FOUND


async def test_a_request_that_makes_no_sense_is_refused_whatever_is_there() -> None:
    scene = await ready(FakeProcess())
    await scene.call("process/start", ONCE)

    error = await scene.refusal("process/start", {**ONCE, "argv": []})

    assert str(error) == "argv must not be empty"


# While it starts.


async def test_a_retry_waits_for_the_start_that_is_under_way() -> None:
    """The connection was lost while the process started, and the client is back already."""
    gate = asyncio.Event()
    scene = await ready(gate, FakeProcess())
    first = await scene.starting(idempotent=True)
    other = await moved(scene)
    retries = [await retried(other) for _ in range(2)]

    gate.set()

    assert await first == NEW
    assert [await retry for retry in retries] == [FOUND, FOUND]
    assert len(scene.backend.specs) == 1


@pytest.mark.parametrize("idempotent", [False, True])
async def test_another_request_is_refused_at_once_while_it_starts(*, idempotent: bool) -> None:
    gate = asyncio.Event()
    scene = await ready(gate, FakeProcess())
    first = await scene.starting(idempotent=True)

    error = await scene.refusal("process/start", {**ONCE, "argv": ["y"], "idempotent": idempotent})

    assert isinstance(error, NameTaken)
    gate.set()
    assert await first == NEW


async def test_a_retry_whose_first_start_fails_starts_anew() -> None:
    """The failure was told to whoever asked first, and may be over."""
    gate = asyncio.Event()
    scene = await ready(gate, NO_SUCH_FILE, FakeProcess())
    first = await scene.starting(idempotent=True)
    other = await moved(scene)
    retries = [await retried(other) for _ in range(2)]

    gate.set()

    with pytest.raises(SpawnFailed):
        await first
    assert [await retry for retry in retries] == [NEW, FOUND]
    assert len(scene.backend.specs) == 2


async def test_a_retry_after_a_failure_starts_anew() -> None:
    scene = await ready(NO_SUCH_FILE, FakeProcess())

    first = await scene.refusal("process/start", ONCE)

    assert first is NO_SUCH_FILE
    assert await scene.call("process/start", ONCE) == NEW


async def test_a_retry_that_fails_as_well_says_so() -> None:
    gate = asyncio.Event()
    scene = await ready(gate, NO_SUCH_FILE, NO_SUCH_FILE)
    first = await scene.starting(idempotent=True)
    retry = await retried(await moved(scene))

    gate.set()

    for task in (first, retry):
        with pytest.raises(SpawnFailed):
            await task
    assert scene.talk.session.find("p") is None


async def test_a_retry_that_is_cancelled_leaves_the_first_start_alone() -> None:
    gate = asyncio.Event()
    scene = await ready(gate, FakeProcess())
    first = await scene.starting(idempotent=True)
    retry = await retried(await moved(scene))

    retry.cancel()
    with pytest.raises(asyncio.CancelledError):
        await retry
    gate.set()

    assert await first == NEW


# When everything is given up meanwhile.


async def test_what_is_terminated_while_it_starts_is_not_started_anew_by_a_retry() -> None:
    """Whoever was told that it is ended must not find it running."""
    scene = await ready(asyncio.Event(), FakeProcess(), FakeProcess())
    first = await scene.starting(idempotent=True)
    other = await moved(scene)
    retry = await retried(other)

    await other.call("process/terminate", {"processId": "p"})

    for task in (first, retry):
        with pytest.raises(StartCancelled):
            await task
    assert len(scene.backend.specs) == 1


async def test_a_retry_that_waits_starts_nothing_when_its_session_is_closed() -> None:
    """There would be nobody left to end it."""
    scene = await ready(asyncio.Event(), FakeProcess(), FakeProcess())
    first = await scene.starting(idempotent=True)
    other = await moved(scene)
    retry = await retried(other)

    await other.call("session/close")

    for task in (first, retry):
        with pytest.raises(StartCancelled):
            await task
    assert len(scene.backend.specs) == 1


async def test_a_retry_that_waits_starts_nothing_when_its_session_expires() -> None:
    """It goes on though its connection is lost, and would run for ever in a session that nobody can find."""
    scene = await ready(asyncio.Event(), FakeProcess(), FakeProcess())
    first = await scene.starting(idempotent=True)
    other = await moved(scene)
    retry = await retried(other)
    other.talk.ended()

    scene.loop.move(30.0)

    for task in (first, retry):
        with pytest.raises(StartCancelled):
            await task
    assert (len(scene.endpoint.sessions), len(scene.backend.specs)) == (0, 1)


async def test_a_name_is_free_again_in_the_next_session() -> None:
    """What one session has started is none of another's."""
    scene = await ready(FakeProcess(), FakeProcess())
    await scene.call("process/start", ONCE)
    await scene.call("session/close")
    await scene.shake_hands()

    assert await scene.call("process/start", ONCE) == NEW
