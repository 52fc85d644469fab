"""Every bound of a real server, reached: what happens there, that it is shown, and that it passes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from docs.bounds import BOUNDS
from tests.fakes.app_client import AppClient, SocketLink
from tests.fakes.client import Client, Refusal, page_bytes, write_params
from tests.fakes.frames import CONTINUATION, TEXT, Wire
from tests.fakes.limits import (
    ADMISSION,
    BRIEF,
    ELSEWHERE,
    SMALL,
    app_client,
    figures,
    refusals,
    refused,
    server,
    session,
    until_used,
)

SILENT = ("sleep", "1000")


@pytest.fixture(scope="module")
def small() -> Iterator[str]:
    with server(SMALL) as (_, url):
        yield url


@pytest.fixture
async def talking(small: str) -> AsyncIterator[Client]:
    async with session(small) as talking:
        yield talking


def test_every_limit_is_tried() -> None:
    """Here, or where it is said to be."""
    assert {*SMALL, *BRIEF, *ADMISSION, *ELSEWHERE} == set(BOUNDS)
    assert [path for path in ELSEWHERE.values() if not Path(path).is_file()] == []


async def test_the_limits_and_their_use_are_shown_by_their_names(small: str) -> None:
    """All that are set, as they are set; and of each the use, if the table says so."""
    async with session(small), app_client(small):
        found = await figures(small)

    quiet = {"app.process_quiet_seconds"}  # None is set.
    assert set(found.most) == set(BOUNDS) - quiet
    assert (found.most["engine.processes"], found.most["session.name_bytes"]) == (3, 2048)
    assert set(found.used) == {name for name, bound in BOUNDS.items() if bound.used}


# Processes.


async def test_processes(small: str, talking: Client) -> None:
    for name in "abc":
        await talking.start(name, *SILENT)

    await refused(small, "engine.processes", lambda: talking.start("d", *SILENT))
    assert (await figures(small)).used["engine.processes"] == 3

    await talking.terminate("a")
    await talking.closed("a")
    await talking.start("d", *SILENT)


async def test_names_of_a_session(small: str, talking: Client) -> None:
    """Those of ended processes count; another session has its own."""
    for name in "abcde":
        await talking.start(name, "true")
        await talking.closed(name)

    await refused(small, "session.names", lambda: talking.start("f", "true"))
    assert (await figures(small)).used["session.names"] == 5

    await talking.call("session/close")
    await talking.initialize()
    await talking.start("f", "true")


async def test_bytes_of_names(small: str, talking: Client) -> None:
    await talking.start("x" * 1500, "true")

    await refused(small, "session.name_bytes", lambda: talking.start("y" * 600, "true"))
    assert (await figures(small)).used["session.name_bytes"] == 1500

    await talking.start("y" * 500, "true")


async def test_arguments(small: str, talking: Client) -> None:
    """By their number, and by their bytes: characters outside of ASCII count as what they are."""
    await refused(small, "engine.arguments", lambda: talking.start("p", "echo", *["x"] * 50))
    await refused(small, "engine.argument_bytes", lambda: talking.start("p", "echo", "\u00e9" * 2600))

    await talking.start("p", "echo", *["x" * 100] * 49)


async def test_variables_and_their_patterns(small: str, talking: Client) -> None:
    """Of one request: it may make the next one smaller."""
    policy = {"inherit": "none", "ignoreDefaultExcludes": True, "exclude": [], "set": {}, "includeOnly": []}
    asking: dict[str, dict[str, Any]] = {
        "variables": {"env": dict.fromkeys("ABCDE", "")},
        "name_bytes": {"env": {"A" * 41: ""}},
        "patterns": {"envPolicy": {**policy, "exclude": ["a", "b"], "includeOnly": ["a", "b"]}},
        "pattern_bytes": {"envPolicy": {**policy, "exclude": ["*" * 21]}},
    }
    for name, options in asking.items():
        await refused(small, f"environment.{name}", partial(talking.start, "p", "true", **options))

    fits = {**policy, "exclude": ["a" * 10, "b" * 9], "includeOnly": ["P"], "set": {"P": "x"}}
    await talking.start("p", "true", envPolicy=fits)


async def test_kept_processes(small: str, talking: Client) -> None:
    """Also the ended ones, of which the oldest makes room for the next."""
    before = (await figures(small)).used["session.kept_names"]  # The last one that ended stays.
    names = [uuid4().hex for _ in range(3 - int(before))]
    for name in names:
        await talking.start(name, *SILENT, keep=True)

    await refused(small, "session.kept_names", lambda: talking.start("k", *SILENT, keep=True))
    assert (await figures(small)).used["session.kept_names"] == 3

    for name in names:
        await talking.terminate(name)
        await talking.call("process/wait", {"processId": name})
    await until_used(small, "session.kept_names", 1)
    with pytest.raises(Refusal, match=f"unknown process id {names[0]}"):
        await talking.read(names[0])
    await talking.read(names[-1])
    again = uuid4().hex
    await talking.start(again, "true", keep=True)
    await talking.call("process/wait", {"processId": again})
    await until_used(small, "session.kept_names", 1)


async def test_requests_that_wait_for_a_grace(small: str, talking: Client) -> None:
    await talking.start("p", "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done")
    await talking.until(lambda: talking.tale("p").events)
    waiting = talking.post("process/terminate", {"processId": "p", "graceMs": 3_600_000})

    def ask() -> Any:
        return talking.call("process/terminate", {"processId": "p", "graceMs": 3_600_000})

    await refused(small, "session.waiting_ends", ask)
    assert (await figures(small)).used["session.waiting_ends"] == 1

    await talking.terminate("p")
    await talking.result(waiting)
    await ask()


# Requests that wait.


async def test_requests_that_wait(small: str, talking: Client) -> None:
    await talking.start("p", *SILENT)
    polls = [talking.post("process/read", {"processId": "p", "waitMs": 3_600_000}) for _ in range(4)]

    await refused(small, "connection.waiting_requests", lambda: talking.read("p", waitMs=1))
    assert (await figures(small)).used["connection.waiting_requests"] == 4

    await talking.terminate("p")
    for poll in polls:
        await talking.result(poll)
    await talking.read("p", waitMs=1)


async def test_bytes_of_requests_that_wait(small: str, talking: Client) -> None:
    """Counted as they came: blanks are bytes, too."""
    await talking.start("p", *SILENT)

    def poll() -> asyncio.Future[Any]:
        message, answer = talking.compose("process/read", {"processId": "p", "waitMs": 3_600_000})
        talking.wire.send_text(message.ljust(9000))
        return answer

    first = poll()
    await refused(small, "connection.waiting_bytes", lambda: talking.result(poll()))
    assert (await figures(small)).used["connection.waiting_bytes"] == 9000

    await talking.terminate("p")
    await talking.result(first)
    await talking.result(poll())


async def test_writes_that_nobody_reads(small: str, talking: Client) -> None:
    """The pipe takes two and a half, the queue two; the last is in no queue: it waits."""
    await talking.start("p", *SILENT, pipeStdin=True)
    data = bytes(30_000)  # Not so large that the pipe is made larger.
    for number in range(4):
        assert await talking.write("p", data, f"w{number}") == "accepted"

    last = talking.post("process/write", write_params("p", data, "w4"))
    await until_used(small, "connection.waiting_requests", 1)
    assert not last.done()

    await talking.terminate("p")
    await asyncio.wait([last])


# What is kept.


async def said(talking: Client, name: str, *texts: bytes) -> None:
    """Have a process say something, piece by piece."""
    for text in texts:
        tale = talking.tale(name)
        before = len(tale.data())
        assert await talking.write(name, text, f"{before}") == "accepted"
        await talking.until(lambda: len(tale.data()) == before + len(text))  # noqa: B023


async def cat(talking: Client, name: str) -> None:
    await talking.start(name, "cat", pipeStdin=True)


async def test_output_of_one_process_in_pieces_and_in_bytes(small: str, talking: Client) -> None:
    await cat(talking, "pieces")
    await cat(talking, "bytes")

    await said(talking, "pieces", *(b"%d" % digit for digit in range(6)))
    await said(talking, "bytes", *(b"%d" % digit * 500 for digit in range(4)))

    page = await talking.read("pieces", afterSeq=0)
    assert (page["gap"]["fromSeq"], page["gap"]["toSeq"]) == (1, 2)
    assert page_bytes(page) == b"2345"
    page = await talking.read("bytes", afterSeq=0)
    assert page["gap"]["toSeq"] >= 2
    # An answer ends where it would get too long, and the next one goes on.
    assert len(page_bytes(page)) == 500


async def test_output_of_all_processes(small: str, talking: Client) -> None:
    """Whoever adds pays for it: the other one's output is untouched."""
    await cat(talking, "a")
    await cat(talking, "b")

    await said(talking, "a", b"1" * 500, b"2" * 500)
    await said(talking, "b", b"3" * 500, b"4" * 500)

    assert (await figures(small)).used["engine.retained_bytes"] == 3 * (500 + 128)
    assert "gap" not in await talking.read("a", afterSeq=0)
    page = await talking.read("b", afterSeq=0)
    assert (page["gap"]["toSeq"], page_bytes(page)) == (1, b"4" * 500)


async def test_identifiers_of_writes(talking: Client) -> None:
    """The oldest is forgotten: its retry is written again, that of the others is not."""
    await cat(talking, "number")
    await cat(talking, "bytes")
    for name, ids in (("number", "abc"), ("bytes", ["a" * 60, "b" * 60])):
        for each in ids:
            await talking.write(name, each[:1].encode(), each)
        for each in [*ids[:0:-1], ids[0]]:
            await talking.write(name, each[:1].upper().encode(), each)

    await talking.until(lambda: len(talking.tale("number").data()) == 4)
    await talking.until(lambda: len(talking.tale("bytes").data()) == 3)
    assert (talking.tale("number").data(), talking.tale("bytes").data()) == (b"abcA", b"abA")


# Messages.


@pytest.mark.parametrize("frames", [(204_801,), (150_000, 54_801)], ids=["one frame", "two frames"])
async def test_messages(small: str, frames: tuple[int, ...]) -> None:
    wire = await Wire.open(small)

    async with refusals(small, "connection.message_bytes"):
        for index, size in enumerate(frames):
            wire.send(CONTINUATION if index else TEXT, b" " * size, final=False)
        goodbye = await wire.farewell()

    assert goodbye is not None
    assert goodbye.close_code == 1009
    await wire.close()


# The app dialects.


async def test_names_of_an_app_client(small: str) -> None:
    async with app_client(small) as talking:
        await talking.spawn("a", *SILENT)

        await refused(small, "app.names", lambda: talking.spawn("b", *SILENT))
        assert (await figures(small)).used["app.names"] == 1
        async with app_client(small) as other:
            await refused(small, "app.name_bytes", lambda: other.spawn("x" * 101, "true"))
            await other.spawn("x" * 100, "true")

        await talking.call("process/kill", {"processHandle": "a"})
        await talking.exited("a")
        await talking.spawn("b", "true")


async def test_notifications_that_an_app_client_opts_out_of(small: str) -> None:
    """Most are unknown to us, and whoever is refused may ask for fewer."""
    wire = await Wire.open(small)
    talking = AppClient(SocketLink(wire))

    for name, asked in (("app.opt_outs", ["a"] * 3), ("app.opt_out_bytes", ["é" * 26])):
        await refused(small, name, lambda asked=asked: talking.initialize(optOutNotificationMethods=asked))  # type: ignore[misc]
    await talking.initialize(optOutNotificationMethods=["é" * 25, ""])
    await talking.close()


async def test_ports_of_a_managed_network(small: str, talking: Client) -> None:
    """They are not used, but a list is held and compared for as long as it is."""
    asked = partial(talking.start, "p", "true")

    await refused(small, "session.loopback_ports", lambda: asked(managedNetwork={"loopbackPorts": [1, 1, 1]}))
    await asked(managedNetwork={"loopbackPorts": [1, 1]})


async def test_output_kept_for_a_result(small: str) -> None:
    """Of one stream, and of all."""
    loud = "head -c {} /dev/zero | tr '\\0' x"
    async with app_client(small) as talking:
        one = await talking.call("command/exec", {"command": ["sh", "-c", loud.format(1100)]})
        both = await talking.call(
            "command/exec", {"command": ["sh", "-c", f"{loud.format(900)}; {loud.format(900)} >&2"]}
        )
        after = await talking.call("command/exec", {"command": ["sh", "-c", loud.format(900)]})

    assert (len(one["stdout"]), one["stdoutCapReached"]) == (1000, True)
    assert len(both["stdout"]) + len(both["stderr"]) == 1500
    assert True in (both.get("stdoutCapReached"), both.get("stderrCapReached"))
    assert (len(after["stdout"]), after.get("stdoutCapReached")) == (900, None)
    assert (await figures(small)).used["app.buffered_total"] == 0
