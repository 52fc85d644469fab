"""The methods of the exec dialect, on processes that only remember what was asked of them."""

from __future__ import annotations

import signal as signals
from typing import Any

import pytest

from holdfast.dialects.exec.feed import Feed
from holdfast.dialects.exec.methods import METHODS
from holdfast.errors import BadRequest, HoldfastError, UnknownProcess
from holdfast.model import Chunk, Page, Stream, WriteStatus
from tests.fakes.dialects import ExecTalk, FakeProcess

START = {"processId": "p", "argv": ["x"], "cwd": "file:///tmp", "env": {"A": "1"}, "tty": False}


async def refusal(scene: ExecTalk, method: str, params: Any) -> HoldfastError:
    with pytest.raises(HoldfastError) as caught:
        await scene.call(method, params)
    return caught.value


async def ready() -> ExecTalk:
    scene = ExecTalk()
    await scene.shake_hands()
    return scene


async def started() -> tuple[ExecTalk, FakeProcess]:
    process = FakeProcess()
    scene = ExecTalk(process)
    await scene.shake_hands()
    await scene.call("process/start", START)
    process.calls.clear()
    return scene, process


# The handshake and the host.


async def test_initialize_tells_the_session_and_the_host() -> None:
    scene = ExecTalk()

    result = await scene.call("initialize", {"clientName": ""})

    assert result["sessionId"] == scene.talk.session.key
    capabilities = result["environmentInfo"].pop("capabilities")
    assert result["environmentInfo"] == {
        "shell": {"name": "bash", "path": "/bin/bash"},
        "executorVersion": "9.9.9",
        "providerId": "sha256:00",
        "cwd": "file:///srv/a%20b",
        "userHomeDir": "file:///home/%C3%A9",
        "platformOs": "linux",
        "prependPathDirs": [],
        "temporaryDirectories": [],
        "tempDir": "file:///tmp",
    }
    assert set(capabilities.values()) == {False}


async def test_the_host_is_told_the_same_later() -> None:
    scene = ExecTalk()
    first = await scene.call("initialize", {"clientName": "o"})

    assert await scene.call("environment/info") == first["environmentInfo"]
    assert await scene.call("environment/status", {}) == {"status": "ready"}


# Running processes.

PAGE = Page([Chunk(1, Stream.STDOUT, b"abc"), Chunk(2, Stream.STDERR, b"")], 5, 3, closed=True)


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
        ({"afterSeq": None, "maxBytes": None, "waitMs": None}, 1000, (0, None, 0.0)),
        ({"afterSeq": 2**64 - 1, "maxBytes": 0, "waitMs": 300}, 0, (2**64 - 1, 0, 0.3)),
        ({"maxBytes": 7}, 0, (0, 7, 0.0)),
        ({"waitMs": 2**64 - 1}, 0, (0, None, YEAR)),
        ({"maxBytes": 2**64 - 1}, 0, (0, 1000, 0.0)),
        ({}, 1001, (0, 1000, 0.0)),
    ],
)
async def test_a_read_asks_for_what_fits_into_one_answer(
    params: dict[str, Any], kept: int, asked: tuple[object, ...]
) -> None:
    """Without a bound of the client's own there is none, unless the answer would be too large for a peer."""
    scene, process = await started()
    process.kept = kept

    await scene.call("process/read", {"processId": "p", **params})

    assert process.calls == [("try_read", *asked)]


async def test_a_read_that_must_wait_waits_with_the_same_bounds() -> None:
    scene, process = await started()
    process.reads_wait, process.page = True, PAGE

    result = await scene.call("process/read", {"processId": "p", "afterSeq": 4, "maxBytes": 7, "waitMs": 300})

    assert (result["nextSeq"], result["exitCode"]) == (5, 3)
    assert process.calls == [("try_read", 4, 7, 0.3), ("read", 4, 7, 0.3)]


@pytest.mark.parametrize(("next_seq", "calls"), [(5, [("retain", 10)]), (4, [])])
async def test_a_returned_client_that_has_read_everything_needs_no_more_room(
    next_seq: int, calls: list[tuple[object, ...]]
) -> None:
    scene, process = await started()
    feed = scene.talk.session.scope.find("p")
    assert isinstance(feed, Feed)
    feed.roomy, process.next_seq = True, 5
    process.page = Page([], next_seq, None, closed=False)

    await scene.call("process/read", {"processId": "p"})

    assert process.calls[1:] == calls
    assert feed.roomy is (not calls)


async def test_a_read_of_a_process_nobody_knows_is_refused() -> None:
    scene = await ready()

    error = await refusal(scene, "process/read", {"processId": "nope", "waitMs": 1000})

    assert isinstance(error, UnknownProcess)
    assert error.name == "nope"


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


async def test_a_write_without_an_identifier_is_refused_whatever_it_is_for() -> None:
    scene, process = await started()

    for name in ("p", "nope"):
        error = await refusal(scene, "process/write", {"processId": name, "chunk": "", "writeId": ""})
        assert isinstance(error, BadRequest)
        assert (str(error), error.field) == ("writeId must not be empty", "writeId")
    assert process.calls == []


async def test_a_write_to_a_process_nobody_knows_is_answered() -> None:
    scene = await ready()

    result = await scene.call("process/write", {"processId": "nope", "chunk": "", "writeId": "w"})

    assert result == {"status": "unknownProcess"}


async def test_an_interrupt_is_passed_on_and_answered_the_same_for_nobody() -> None:
    scene, process = await started()

    results = [
        await scene.call("process/signal", {"processId": name, "signal": "interrupt"})
        for name in ("p", "nope")
    ]

    assert results == [{}, {}]
    assert process.calls == [("signal", signals.SIGINT)]


@pytest.mark.parametrize("running", [True, False])
async def test_terminate_says_whether_there_was_anything_to_kill(*, running: bool) -> None:
    scene, process = await started()
    process.runs = running
    feed = scene.talk.session.scope.find("p")
    assert isinstance(feed, Feed)

    result = await scene.call("process/terminate", {"processId": "p"})

    assert result == {"running": running}
    assert process.calls == [("terminate",)]
    assert feed.terminated is running


async def test_terminating_nobody_is_no_error() -> None:
    scene = await ready()

    assert await scene.call("process/terminate", {"processId": "nope"}) == {"running": False}


# The table.


@pytest.mark.parametrize(
    ("method", "family"),
    [
        ("initialize", ""),
        ("process/start", "exec"),
        ("process/read", "exec"),
        ("process/write", "exec"),
        ("process/signal", "exec"),
        ("process/terminate", "exec"),
        ("environment/info", "environment info"),
        ("environment/status", "environment status"),
        ("fs/readFile", "filesystem"),
        ("fs/close", "filesystem"),
        ("fs/watchMissing", "filesystem"),
        ("http/request", "http"),
        ("environmentConfig/read", "environment config"),
        ("capabilityRoots/discoverV1", "capability discovery"),
        ("capabilities/discoverV2", "capability discovery"),
    ],
)
def test_a_method_belongs_to_a_family(method: str, family: str) -> None:
    """Named to a client that has not done the handshake."""
    assert METHODS[method].family == family


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"initialize"}))
async def test_a_method_of_the_protocol_that_is_not_here_is_unknown(method: str) -> None:
    if METHODS[method].family in ("exec", "environment info", "environment status"):
        return
    scene = await ready()

    error = await refusal(scene, method, None)

    assert str(error) == f"unknown method {method!r}"


def test_requests_about_a_process_say_about_which() -> None:
    """They wait while it starts; only terminate does not, because it gives the start up."""
    asked = {
        "process/start": START,
        "process/read": {"processId": "p"},
        "process/write": {"processId": "p", "chunk": "", "writeId": "w"},
        "process/signal": {"processId": "p", "signal": "interrupt"},
        "process/terminate": {"processId": "p"},
    }

    names = {name: METHODS[name].name_of(METHODS[name].decode(params)) for name, params in asked.items()}

    assert names == {**dict.fromkeys(asked, "p"), "process/terminate": None}
