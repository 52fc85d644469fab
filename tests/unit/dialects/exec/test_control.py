"""Talking to what runs: input, size, signals, end; on processes that only remember what was asked of them."""

from __future__ import annotations

import asyncio
import signal as signals
from typing import Any

import pytest

from holdfast.errors import BadRequest, LimitReached, NoTerminal, StillStarting, UnknownProcess
from holdfast.model import Exit, Kind, Outcome, Size, WriteStatus
from holdfast.protocol.shapes import Undecodable
from tests.fakes.app_talk import Pipes
from tests.fakes.dialects import FakeProcess
from tests.fakes.exec_talk import START, ExecTalk, ready, started

# Input.


@pytest.mark.parametrize(
    ("status", "answer"), [(WriteStatus.ACCEPTED, "accepted"), (WriteStatus.STDIN_CLOSED, "stdinClosed")]
)
async def test_a_write_is_answered_at_once_if_it_can_be(status: WriteStatus, answer: str) -> None:
    scene, process = await started()
    process.write_status = status

    result = await scene.call("process/write", {"processId": "p", "chunk": "YQ==", "writeId": "w"})

    assert result == {"status": answer}
    assert process.calls == [("try_write", b"a", "w")]


async def test_a_write_that_must_wait_waits() -> None:
    scene, process = await started()
    process.write_status = None

    result = await scene.call("process/write", {"processId": "p", "chunk": "YQ==", "writeId": "w"})

    assert result == {"status": "stdinClosed"}
    assert process.calls == [("try_write", b"a", "w"), ("write", b"a", "w")]


@pytest.mark.parametrize("absent", [{}, {"writeId": None}])
async def test_a_write_without_an_identifier_is_passed_on_without_one(absent: dict[str, Any]) -> None:
    """Clients up to 0.140 send none."""
    scene, process = await started()

    result = await scene.call("process/write", {"processId": "p", "chunk": "YQ==", **absent})

    assert result == {"status": "accepted"}
    assert process.calls == [("try_write", b"a", None)]


@pytest.mark.parametrize("name", ["p", "nope"])
async def test_a_write_with_an_empty_identifier_is_refused_whatever_it_is_for(name: str) -> None:
    scene, process = await started()

    error = await scene.refusal("process/write", {"processId": name, "chunk": "", "writeId": ""})

    assert isinstance(error, BadRequest)
    assert (str(error), error.field, process.calls) == ("writeId must not be empty", "writeId", [])


async def test_a_write_to_a_process_nobody_knows_is_answered() -> None:
    scene = await ready()

    result = await scene.call("process/write", {"processId": "nope", "chunk": "", "writeId": "w"})

    assert result == {"status": "unknownProcess"}


@pytest.mark.parametrize(
    ("params", "call"),
    [
        ({}, ("close_stdin",)),
        ({"writeId": None}, ("close_stdin",)),
        ({"writeId": "w"}, ("close_stdin", "w")),
    ],
)
@pytest.mark.parametrize(
    ("status", "answer"), [(WriteStatus.ACCEPTED, "accepted"), (WriteStatus.STDIN_CLOSED, "stdinClosed")]
)
async def test_the_end_of_the_input_is_passed_on(
    params: dict[str, Any], call: tuple[object, ...], status: WriteStatus, answer: str
) -> None:
    """With the client's name for it, if it has one: then a retry takes effect once."""
    scene, process = await started(pipeStdin=True)
    process.stdin_status = status

    result = await scene.call("process/closeStdin", {"processId": "p", **params})

    assert result == {"status": answer}
    assert process.calls == [call]


async def test_the_end_of_the_input_has_no_empty_name_whatever_it_is_for() -> None:
    scene, process = await started()

    for name in ("p", "nope"):
        error = await scene.refusal("process/closeStdin", {"processId": name, "writeId": ""})
        assert isinstance(error, BadRequest)
        assert (str(error), error.field) == ("writeId must not be empty", "writeId")
    assert process.calls == []


async def test_the_input_of_nobody_and_of_one_that_starts_is_answered_as_a_write_is() -> None:
    gate = asyncio.Event()
    scene = await ready(gate, FakeProcess())
    task = await scene.starting()

    results = [await scene.call("process/closeStdin", {"processId": name}) for name in ("nope", "p")]

    assert results == [{"status": "unknownProcess"}, {"status": "starting"}]
    gate.set()
    await task


# Size.


@pytest.mark.parametrize(("rows", "cols"), [(1, 1), (24, 80), (65_535, 65_535)])
async def test_a_terminal_gets_another_size(rows: int, cols: int) -> None:
    scene, process = await started(tty=True)

    result = await scene.call("process/resize", {"processId": "p", "size": {"rows": rows, "cols": cols}})

    assert result == {}
    assert process.calls == [("resize", Size(rows, cols))]


@pytest.mark.parametrize(("rows", "cols"), [(0, 1), (1, 0), (0, 0)])
async def test_a_size_without_room_for_a_character_is_refused_whatever_it_is_for(
    rows: int, cols: int
) -> None:
    scene, process = await started(tty=True)

    for name in ("p", "nope"):
        error = await scene.refusal(
            "process/resize", {"processId": name, "size": {"rows": rows, "cols": cols}}
        )
        assert isinstance(error, BadRequest)
        assert (str(error), error.field) == ("size.rows and size.cols must be at least 1", "size")
    assert process.calls == []


async def test_pipes_have_no_size() -> None:
    scene = await ready(Pipes())
    await scene.call("process/start", START)

    error = await scene.refusal("process/resize", {"processId": "p", "size": {"rows": 1, "cols": 1}})

    assert isinstance(error, NoTerminal)


async def test_nobody_and_one_that_starts_cannot_be_resized() -> None:
    gate = asyncio.Event()
    scene = await ready(gate, FakeProcess())
    task = await scene.starting()

    errors = [
        await scene.refusal("process/resize", {"processId": name, "size": {"rows": 1, "cols": 1}})
        for name in ("nope", "p")
    ]

    assert [type(error) for error in errors] == [UnknownProcess, StillStarting]
    gate.set()
    await task


# Signals.

NUMBERS = {
    "interrupt": signals.SIGINT,
    "terminate": signals.SIGTERM,
    "kill": signals.SIGKILL,
    "hangup": signals.SIGHUP,
    "quit": signals.SIGQUIT,
    "user1": signals.SIGUSR1,
    "user2": signals.SIGUSR2,
    "stop": signals.SIGSTOP,
    "continue": signals.SIGCONT,
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize(
    ("given", "call"), [({}, ()), ({"tree": None}, ()), ({"tree": False}, ()), ({"tree": True}, ("tree",))]
)
async def test_a_signal_goes_to_the_group_or_to_the_whole_tree(
    name: str, given: dict[str, Any], call: tuple[str, ...]
) -> None:
    scene, process = await started(extended=True)

    result = await scene.call("process/signal", {"processId": "p", "signal": name, **given})

    assert result == {}
    assert process.calls == [("signal", NUMBERS[name], *call)]


@pytest.mark.parametrize("name", set(NUMBERS) - {"kill"})
async def test_every_other_signal_is_for_every_client(name: str) -> None:
    scene, process = await started()

    await scene.call("process/signal", {"processId": "p", "signal": name})

    assert process.calls == [("signal", NUMBERS[name])]


@pytest.mark.parametrize("given", [{}, {"tree": None}])
async def test_a_client_of_the_reference_is_told_that_there_is_no_kill(given: dict[str, Any]) -> None:
    """It finds that out by trying, and uses terminate instead."""
    scene, process = await started()

    for name in ("p", "nope"):
        error = await scene.refusal("process/signal", {"processId": name, "signal": "kill", **given})
        assert isinstance(error, Undecodable)
        assert str(error) == "unknown variant `kill`, expected `interrupt`"
    assert process.calls == []


@pytest.mark.parametrize(("tree", "call"), [(True, ("tree",)), (False, ())])
async def test_who_says_whom_to_kill_knows_the_extensions(call: tuple[str, ...], *, tree: bool) -> None:
    scene, process = await started()

    await scene.call("process/signal", {"processId": "p", "signal": "kill", "tree": tree})

    assert process.calls == [("signal", signals.SIGKILL, *call)]


async def test_a_signal_for_nobody_is_answered_the_same() -> None:
    scene = await ready()

    assert await scene.call("process/signal", {"processId": "nope", "signal": "interrupt"}) == {}


# The end.

DAY = 24 * 3600.0


@pytest.mark.parametrize(
    ("params", "grace"),
    [
        ({}, 0.0),
        ({"graceMs": None}, 0.0),
        ({"graceMs": 0}, 0.0),
        ({"graceMs": 1}, 0.001),
        ({"graceMs": 2**64 - 1}, DAY),
    ],
)
async def test_a_process_is_ended_with_the_time_it_is_given(params: dict[str, Any], grace: float) -> None:
    scene, process = await started()

    result = await scene.call("process/terminate", {"processId": "p", **params})

    assert result == {"running": True, "survivors": [], "treeExact": True}
    assert process.calls == [("end", grace, "client")]


async def test_who_could_not_be_ended_is_told_and_whether_all_were_seen() -> None:
    scene, process = await started()
    process.survivors, process.exact = (7, 8), False

    result = await scene.call("process/terminate", {"processId": "p"})

    assert result == {"running": True, "survivors": [7, 8], "treeExact": False}


@pytest.mark.parametrize("given", [{}, {"graceMs": None}])
@pytest.mark.parametrize("closed", [False, True])
async def test_what_an_ended_process_left_behind_is_spared(given: dict[str, Any], *, closed: bool) -> None:
    """As clients of the reference expect: their daemons live on when they clean up names."""
    scene, process = await started()
    process.exit_with(0)
    if closed:
        process.close()

    result = await scene.call("process/terminate", {"processId": "p", **given})

    assert result == {"running": False, "survivors": [], "treeExact": True}
    assert process.calls == []


async def test_of_a_process_that_was_lost_nobody_knows_who_is_left() -> None:
    scene, process = await started()
    process.exit_with(end=Exit(-1, Outcome(Kind.LOST)))

    result = await scene.call("process/terminate", {"processId": "p"})

    assert result == {"running": False, "survivors": [], "treeExact": False}


@pytest.mark.parametrize(("grace", "seconds"), [(0, 0.0), (1500, 1.5)])
async def test_what_an_ended_process_left_behind_is_ended_for_those_who_say_how(
    grace: int, seconds: float
) -> None:
    scene, process = await started()
    process.exit_with(0)
    process.survivors = (7,)

    result = await scene.call("process/terminate", {"processId": "p", "graceMs": grace})

    assert result == {"running": False, "survivors": [7], "treeExact": True}
    assert process.calls == [("end", seconds, "client")]


@pytest.mark.parametrize("given", [{}, {"graceMs": 0}, {"graceMs": 5}])
async def test_terminating_nobody_is_no_error(given: dict[str, Any]) -> None:
    scene = await ready()

    result = await scene.call("process/terminate", {"processId": "nope", **given})

    assert result == {"running": False, "survivors": [], "treeExact": True}


# Requests that wait for an end.

MOST = 1024


async def waiting(scene: ExecTalk, process: FakeProcess, count: int) -> list[asyncio.Task[Any]]:
    """Requests that give a process time to end."""
    asked = {"processId": "p", "graceMs": 60_000}
    tasks = [asyncio.create_task(scene.call("process/terminate", asked)) for _ in range(count)]
    await process.asked.wait()
    assert process.calls == [("end", 60.0, "client")] * count
    return tasks


async def test_the_requests_that_wait_for_an_end_are_bounded() -> None:
    """Each is a task, and a client may send a million of them."""
    scene, process = await started()
    process.gate = asyncio.Event()
    tasks = await waiting(scene, process, MOST)

    error = await scene.refusal("process/terminate", {"processId": "p", "graceMs": 1})
    process.gate.set()
    results = [await task for task in tasks]

    assert isinstance(error, LimitReached)
    assert (error.limit, error.value) == ("requests waiting for the end of a process", MOST)
    assert all(result["running"] for result in results)
    assert (await scene.call("process/terminate", {"processId": "p", "graceMs": 1}))["running"]


async def test_an_end_without_delay_is_never_refused() -> None:
    """It takes no longer than the kernel does."""
    scene, process = await started()
    process.gate = asyncio.Event()
    tasks = await waiting(scene, process, MOST)
    process.calls.clear()

    now = asyncio.create_task(scene.call("process/terminate", {"processId": "p"}))
    process.gate.set()

    assert (await now)["running"]
    assert process.calls == [("end", 0.0, "client")]
    await asyncio.gather(*tasks)


async def test_a_request_that_is_given_up_waits_no_more() -> None:
    """Those of a lost connection are cancelled."""
    scene, process = await started()
    process.gate = asyncio.Event()
    tasks = await waiting(scene, process, MOST)

    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    process.gate.set()

    assert (await scene.call("process/terminate", {"processId": "p", "graceMs": 1}))["running"]


async def test_a_process_whose_end_was_refused_is_not_counted_as_ended() -> None:
    """It goes on, and may end by itself."""
    scene = await ready(slow := FakeProcess(), other := FakeProcess())
    await scene.call("process/start", START)
    await scene.call("process/start", {**START, "processId": "q"})
    slow.calls.clear()
    slow.gate = asyncio.Event()
    tasks = await waiting(scene, slow, MOST)

    await scene.refusal("process/terminate", {"processId": "q", "graceMs": 1})
    other.exit_with(0)
    slow.gate.set()
    await asyncio.gather(*tasks)
