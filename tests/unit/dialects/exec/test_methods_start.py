"""Starting a process in the exec dialect: names, refusals, and what may happen meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.dialects.exec.feed import Feed
from holdfast.dialects.exec.methods import METHODS
from holdfast.errors import (
    BadRequest,
    Fault,
    HoldfastError,
    NameTaken,
    SpawnFailed,
    StartCancelled,
    StillStarting,
    Unsupported,
)
from holdfast.model import EnvPolicy, Inherit, Size, Spec
from tests.fakes.dialects import ExecTalk, FakeProcess

START = {"processId": "p", "argv": ["x"], "cwd": "file:///tmp", "env": {"A": "1"}, "tty": False}
NO_SUCH_FILE = SpawnFailed(Fault.PROGRAM, "x", "No such file or directory", number=2)


async def refusal(scene: ExecTalk, method: str, params: Any) -> HoldfastError:
    with pytest.raises(HoldfastError) as caught:
        await scene.call(method, params)
    return caught.value


async def ready(*outcomes: FakeProcess | BaseException | asyncio.Event) -> ExecTalk:
    scene = ExecTalk(*outcomes)
    await scene.shake_hands()
    return scene


async def test_a_start_hands_the_request_to_the_backend() -> None:
    scene = await ready(FakeProcess())
    policy = {
        "inherit": "core",
        "ignoreDefaultExcludes": False,
        "exclude": ["B*"],
        "set": {"C": "2", "B": "1"},
        "includeOnly": ["D"],
    }

    result = await scene.call(
        "process/start", {**START, "pipeStdin": True, "arg0": "name", "envPolicy": policy}
    )

    assert result == {"processId": "p", "sandboxType": "none"}
    assert scene.backend.specs == [
        Spec(
            argv=["x"],
            cwd="/tmp",
            env={"A": "1"},
            env_policy=EnvPolicy(Inherit.CORE, False, ("B*",), (("C", "2"), ("B", "1")), ("D",)),
            stdin=True,
            arg0="name",
        )
    ]


async def test_a_start_in_a_terminal_has_the_size_of_the_reference() -> None:
    scene = await ready(FakeProcess())

    await scene.call("process/start", {**START, "tty": True})

    assert scene.backend.specs == [Spec(argv=["x"], cwd="/tmp", env={"A": "1"}, terminal=Size(24, 80))]


async def test_a_started_process_is_counted_and_watched_and_bounded() -> None:
    process = FakeProcess()
    scene = await ready(process)

    await scene.call("process/start", START)

    assert isinstance(scene.talk.session.scope.find("p"), Feed)
    assert process.watcher is scene.talk.session.scope.find("p")
    assert process.calls == [("retain", 10)]
    assert scene.tally.counts["exec_server_processes_active",] == 1


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"argv": []}, "argv must not be empty"),
        (
            {"argv": [], "cwd": "file://h/x"},
            "cwd URI `file://h/x` is not valid on this exec-server host: 'file://h/x' is invalid on 'linux'",
        ),
        (
            {"cwd": "file:///c:"},
            "cwd URI `file:///C:` is not valid on this exec-server host: 'file:///C:' is invalid on 'linux'",
        ),
    ],
)
async def test_a_start_that_makes_no_sense_is_refused(params: dict[str, Any], words: str) -> None:
    scene = await ready()

    error = await refusal(scene, "process/start", {**START, **params})

    assert isinstance(error, BadRequest)
    assert str(error) == words
    assert scene.backend.specs == []


@pytest.mark.parametrize(
    "params",
    [
        {"sandbox": {"permissions": {"type": "disabled"}, "windowsSandboxLevel": "disabled"}},
        {"networkProxy": {"proxy": {}}},
        {"shellSnapshot": {"scopeId": "a"}},
        {"enforceManagedNetwork": True},
    ],
)
async def test_what_this_server_does_not_do_is_never_silently_ignored(params: dict[str, Any]) -> None:
    """A client that asks for confinement must not get a process without it."""
    scene = await ready()

    error = await refusal(scene, "process/start", {**START, **params})

    assert isinstance(error, Unsupported)
    assert error.feature == f"`{next(iter(params))}`"
    assert scene.backend.specs == []


async def test_a_name_in_use_is_refused_before_anything_starts() -> None:
    scene = await ready(FakeProcess())
    await scene.call("process/start", START)

    error = await refusal(scene, "process/start", START)

    assert isinstance(error, NameTaken)
    assert len(scene.backend.specs) == 1


async def test_a_failed_start_frees_its_name_at_once() -> None:
    scene = await ready(NO_SUCH_FILE, FakeProcess())

    error = await refusal(scene, "process/start", START)
    result = await scene.call("process/start", START)

    assert error is NO_SUCH_FILE
    assert result == {"processId": "p", "sandboxType": "none"}
    assert scene.tally.counts["exec_server_processes_active",] == 1


async def starting(scene: ExecTalk) -> asyncio.Task[Any]:
    """A start that the backend holds back."""
    task = asyncio.create_task(scene.call("process/start", START))
    await scene.backend.asked.wait()
    return task


async def test_while_a_process_starts_others_are_told_so() -> None:
    gate = asyncio.Event()
    scene = await ready(gate, FakeProcess())
    task = await starting(scene)

    read = await refusal(scene, "process/read", {"processId": "p"})
    write = await scene.call("process/write", {"processId": "p", "chunk": "", "writeId": "w"})
    signal = await scene.call("process/signal", {"processId": "p", "signal": "interrupt"})
    taken = await refusal(scene, "process/start", START)
    gate.set()

    assert isinstance(read, StillStarting)
    assert (write, signal) == ({"status": "starting"}, {})
    assert isinstance(taken, NameTaken)
    assert await task == {"processId": "p", "sandboxType": "none"}


async def test_terminating_a_start_gives_it_up() -> None:
    scene = await ready(asyncio.Event(), FakeProcess())
    task = await starting(scene)

    result = await scene.call("process/terminate", {"processId": "p"})

    assert result == {"running": True}
    with pytest.raises(StartCancelled) as caught:
        await task
    assert caught.value.name == "p"
    assert scene.talk.session.scope.find("p") is None


async def test_a_start_may_be_given_up_before_it_has_begun() -> None:
    """Both requests may come in one packet."""
    scene = await ready()
    method = METHODS["process/start"]
    not_begun = method.handle(scene.talk, method.decode(START))

    result = await scene.call("process/terminate", {"processId": "p"})

    assert result == {"running": True}
    with pytest.raises(StartCancelled):
        await not_begun
    assert scene.talk.session.scope.find("p") is None
    assert scene.backend.specs == []


async def test_a_start_that_is_cancelled_from_outside_is_cancelled() -> None:
    """Then nobody waits for an answer, and the name is free."""
    scene = await ready(asyncio.Event(), FakeProcess())
    task = await starting(scene)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert scene.talk.session.scope.find("p") is None


async def test_a_process_whose_client_left_while_it_started_keeps_more() -> None:
    gate, process = asyncio.Event(), FakeProcess()
    scene = await ready(gate, process)
    task = await starting(scene)

    scene.talk.ended()
    gate.set()
    await task

    assert process.calls == [("retain", 99)]
