"""What processes have said, how they are, how they ended: on processes that only remember what was asked."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import ANY

import pytest

from holdfast.errors import StillStarting, UnknownProcess
from holdfast.model import Chunk, Denied, Exit, Gap, Kind, Outcome, Page, Stream, Usage
from holdfast.sandbox import Denial
from tests.fakes.dialects import FakeProcess, exited
from tests.fakes.exec_talk import ExecTalk, ready, started

TIMEOUT = Exit(137, Outcome(Kind.TIMEOUT, signal=9, by="limit"), Usage(1000, 2000, 3), held_by=(7,))
TIMEOUT_TOLD = {"kind": "timeout", "exitCode": None, "signal": "SIGKILL", "by": "limit", "detail": None}

# Reading.

PAGE = Page([Chunk(1, Stream.STDOUT, b"abc"), Chunk(2, Stream.STDERR, b"")], 5, exited(3), closed=True)


async def test_a_read_is_answered_with_a_page() -> None:
    scene, process = await started()
    process.page = PAGE

    result = await scene.call("process/read", {"processId": "p"})

    assert result == {
        "chunks": [
            {"seq": 1, "stream": "stdout", "chunk": "YWJj"},
            {"seq": 2, "stream": "stderr", "chunk": ""},
        ],
        "nextSeq": 5,
        "exited": True,
        "exitCode": 3,
        "closed": True,
        "failure": None,
        "sandboxDenied": False,
    }
    assert list(result) == ["chunks", "nextSeq", "exited", "exitCode", "closed", "failure", "sandboxDenied"]


@pytest.mark.parametrize(
    ("after", "asked"), [(7, [("try_read", 7, None, 0.0)]), (8, []), (9, []), (2**64 - 1, [])]
)
async def test_nobody_is_asked_for_output_that_there_cannot_be(
    after: int, asked: list[tuple[object, ...]]
) -> None:
    """What a process that runs has said ends below its next number, and so does what it has dropped."""
    scene, process = await started()
    process.page = Page([], 9, None, closed=False)

    answer = await scene.call("process/read", {"processId": "p", "afterSeq": after})

    assert answer["nextSeq"] == 9
    assert process.calls == asked


async def test_a_page_of_a_running_process_has_no_exit_code() -> None:
    scene, _ = await started()

    assert await scene.call("process/read", {"processId": "p"}) == {
        "chunks": [],
        "nextSeq": 1,
        "exited": False,
        "exitCode": None,
        "closed": False,
        "failure": None,
        "sandboxDenied": False,
    }


YEAR = 365 * 24 * 3600.0


@pytest.mark.parametrize(
    ("params", "kept", "asked"),
    [
        ({}, 0, (0, None, 0.0)),
        ({"afterSeq": None, "maxBytes": None, "waitMs": None}, 10_000, (0, None, 0.0)),
        ({"afterSeq": 2**64 - 1, "maxBytes": 0, "waitMs": 300}, 0, (2**64 - 1, 0, 0.3)),
        ({"maxBytes": 7}, 0, (0, 7, 0.0)),
        ({"waitMs": 2**64 - 1}, 0, (0, None, YEAR)),
        ({"maxBytes": 2**64 - 1}, 0, (0, 10_000, 0.0)),
        ({}, 10_001, (0, 10_000, 0.0)),
    ],
)
async def test_a_read_asks_for_what_fits_into_one_answer(
    params: dict[str, Any], kept: int, asked: tuple[object, ...]
) -> None:
    """Without a bound of the client's own there is none, unless the answer would be too large for a peer."""
    scene, process = await started()
    process.retained_bytes, process.next_seq = kept, 9

    await scene.call("process/read", {"processId": "p", **params})

    assert process.calls == [("try_read", *asked)]


async def test_a_read_that_must_wait_waits_with_the_same_bounds() -> None:
    scene, process = await started()
    process.reads_wait, process.page = True, PAGE

    result = await scene.call("process/read", {"processId": "p", "afterSeq": 4, "maxBytes": 7, "waitMs": 300})

    assert (result["nextSeq"], result["exitCode"]) == (5, 3)
    assert process.calls == [("try_read", 4, 7, 0.3), ("listen", 4), ("try_read", 4, 7, ANY)]


@pytest.mark.parametrize(("next_seq", "calls"), [(5, [("retain", 10)]), (4, [])])
async def test_a_returned_client_that_has_read_everything_needs_no_more_room(
    next_seq: int, calls: list[tuple[object, ...]]
) -> None:
    scene, process = await started()
    entry = scene.entry()
    entry.retention.is_for_absent, process.next_seq = True, 5
    process.page = Page([], next_seq, None, closed=False)

    await scene.call("process/read", {"processId": "p"})

    assert process.calls[1:] == calls
    assert entry.retention.is_for_absent is (not calls)


async def test_a_read_that_waited_is_answered_when_the_client_takes_answers() -> None:
    """One piece of output wakes all who wait for it: without this, each of their answers would pile up."""
    scene, process = await started()
    process.reads_wait = True
    process.page = PAGE
    scene.talk.congested()
    reading = asyncio.ensure_future(scene.call("process/read", {"processId": "p", "waitMs": 1000}))
    for _ in range(5):
        await asyncio.sleep(0)
    held = not reading.done()
    scene.talk.drained()

    assert (await reading)["nextSeq"] == 5
    assert held


async def test_a_read_of_a_process_nobody_knows_is_refused() -> None:
    scene = await ready()

    error = await scene.refusal("process/read", {"processId": "nope", "waitMs": 1000})

    assert isinstance(error, UnknownProcess)
    assert error.name == "nope"


@pytest.mark.parametrize("extended", [False, True])
async def test_a_gap_is_told_to_everybody(*, extended: bool) -> None:
    """Nothing else says that output is missing, but a jump in numbers that may be looked for or not."""
    scene, process = await started(extended=extended)
    process.page = Page([Chunk(9, Stream.STDOUT, b"x")], 10, None, closed=False, gap=Gap(3, 8, 600))

    result = await scene.call("process/read", {"processId": "p", "afterSeq": 2})

    assert result["gap"] == {"fromSeq": 3, "toSeq": 8, "bytes": 600}
    assert "outcome" not in result


async def test_a_gap_that_nobody_has_measured_is_told_without_its_size() -> None:
    scene, process = await started()
    process.page = Page([], 10, None, closed=False, gap=Gap(1, 9, None))

    assert (await scene.call("process/read", {"processId": "p"}))["gap"]["bytes"] is None


@pytest.mark.parametrize("extended", [False, True])
@pytest.mark.parametrize(
    ("end", "told"),
    [
        (exited(3), {"kind": "exit", "exitCode": 3, "signal": None, "by": None, "detail": None}),
        (TIMEOUT, TIMEOUT_TOLD),
    ],
)
async def test_how_a_process_ended_is_told_where_the_code_does_not_say_it(
    end: Exit, told: dict[str, Any], *, extended: bool
) -> None:
    """Or to a client that knows the extensions, always."""
    scene, process = await started(extended=extended)
    process.page = Page([], 3, end, closed=True)

    result = await scene.call("process/read", {"processId": "p"})

    assert result["exitCode"] == end.code
    assert result.get("outcome") == (told if extended or end is TIMEOUT else None)
    assert ("usage" in result, "heldBy" in result) == (
        extended and end.usage is not None,
        extended and bool(end.held_by),
    )


async def test_a_read_of_a_process_that_starts_is_refused() -> None:
    gate = asyncio.Event()
    scene = await ready(gate, FakeProcess())
    task = await scene.starting()

    errors = [await scene.refusal(method, {"processId": "p"}) for method in ("process/read", "process/wait")]

    assert [type(error) for error in errors] == [StillStarting] * 2
    gate.set()
    await task


async def test_a_read_by_a_connection_that_has_lost_its_session_gives_up_no_room() -> None:
    """What it was told does not reach the client who has the session now."""
    scene, process = await started()
    other = ExecTalk(beside=scene)
    await other.take_over(scene.talk.session.key)
    scene.entry().retention.is_for_absent = True
    process.calls.clear()

    await scene.call("process/read", {"processId": "p"})
    kept = list(process.calls[1:])
    await other.call("process/read", {"processId": "p"})

    assert (kept, process.calls[2:]) == ([], [("retain", 10)])


async def test_a_client_that_said_how_much_to_keep_gets_that_when_it_has_caught_up() -> None:
    scene, process = await started(retainBytes=5000)
    scene.entry().retention.is_for_absent = True

    await scene.call("process/read", {"processId": "p"})

    assert process.calls[1:] == [("retain", 5000)]


# Waiting.


@pytest.mark.parametrize(
    ("params", "seconds"),
    [
        ({}, 0.0),
        ({"waitMs": None}, 0.0),
        ({"waitMs": 0}, 0.0),
        ({"waitMs": 1}, 0.001),
        ({"waitMs": 2**64 - 1}, YEAR),
    ],
)
async def test_a_wait_lasts_as_long_as_it_was_asked_for(params: dict[str, Any], seconds: float) -> None:
    scene, process = await started()

    result = await scene.call("process/wait", {"processId": "p", **params})

    assert process.calls == [("wait", seconds)]
    assert result == {
        "exited": False,
        "exitCode": None,
        "outcome": None,
        "usage": None,
        "heldBy": [],
        "closed": False,
    }


@pytest.mark.parametrize("extended", [False, True])
async def test_a_wait_tells_everything_about_the_end(*, extended: bool) -> None:
    """The reference has no such method, so whoever uses it knows the extensions."""
    scene, process = await started(extended=extended)
    process.gate = asyncio.Event()
    task = asyncio.create_task(scene.call("process/wait", {"processId": "p", "waitMs": 60_000}))
    await process.asked.wait()

    process.exit_with(end=TIMEOUT)
    process.gate.set()

    assert await task == {
        "exited": True,
        "exitCode": 137,
        "outcome": TIMEOUT_TOLD,
        "usage": {"userMs": 1, "systemMs": 2, "maxRssBytes": 3},
        "heldBy": [7],
        "closed": False,
    }
    process.close()
    assert (await scene.call("process/wait", {"processId": "p"}))["closed"] is True


@pytest.mark.parametrize(
    ("denied", "told"),
    [
        (
            Denied(True, True, (Denial("open", "/etc/\udcff", 2),)),
            {
                "sandboxDenied": True,
                "denials": [{"op": "open", "path": "/etc/\ufffd", "count": 2}],
                "denial": "exact",
            },
        ),
        (Denied(False, False), {"sandboxDenied": False, "denial": "guess"}),
    ],
)
async def test_a_wait_tells_what_the_sandbox_refused(denied: Denied, told: dict[str, Any]) -> None:
    """Whoever only waits for a kept process reads nothing that would tell it."""
    scene, process = await started()
    process.exit_with(end=Exit(1, Outcome(Kind.EXIT, 1), denied=denied))

    result = await scene.call("process/wait", {"processId": "p"})

    assert {key: result[key] for key in result if key in ("sandboxDenied", "denials", "denial")} == told


async def test_what_an_end_cost_may_be_unknown() -> None:
    scene, process = await started()
    process.exit_with(0)

    result = await scene.call("process/wait", {"processId": "p"})

    assert (result["exited"], result["exitCode"], result["usage"]) == (True, 0, None)


async def test_a_wait_for_a_process_nobody_knows_is_refused() -> None:
    scene = await ready()

    error = await scene.refusal("process/wait", {"processId": "nope", "waitMs": 1})

    assert isinstance(error, UnknownProcess)
