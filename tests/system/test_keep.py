"""Kept processes: they belong to no client, outlive all of them, and everybody can reach them."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

import holdfast
from holdfast.config import SessionLimits
from tests.fakes.client import Client, Message, Refusal, client, page_bytes, start_params
from tests.fakes.gate import Gate
from tests.fakes.server import (
    Program,
    eventually,
    inside,
    is_running,
    program_at,
)
from tests.fakes.trees import knowing

KIB = 1 << 10
MIB = 1 << 20

ECHO = ("sh", "-c", 'echo ready; while read line; do echo "got $line"; done; echo end; exit 5')


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    """One server for all tests of this module; each uses names of its own."""
    with program_at() as served:
        yield served


@pytest.fixture
def url(served: tuple[Program, str]) -> str:
    return served[1]


@pytest.fixture
def name() -> str:
    """One that no other test has taken: what is kept outlives the test."""
    return f"p-{os.urandom(8).hex()}"


async def listed(talking: Client, name: str) -> Message | None:
    """What a list says of a process; None if it is not in it."""
    found = [one for one in (await talking.call("process/list"))["processes"] if one["processId"] == name]
    assert len(found) <= 1
    return found[0] if found else None


async def read_until(talking: Client, name: str, text: bytes) -> bytes:
    """Read from the beginning until the output contains ``text``."""
    page: Message = {"chunks": [], "nextSeq": 1}
    data = b""
    async with asyncio.timeout(10):
        while text not in data:
            page = await talking.read(name, afterSeq=page["nextSeq"] - 1, waitMs=10_000)
            data += page_bytes(page)
            assert not page["closed"] or text in data
    return data


async def read_to_end(talking: Client, name: str) -> tuple[bytes, Message]:
    """All its output, and the last page."""
    after, data = 0, []
    while True:
        page = await talking.read(name, afterSeq=after, waitMs=10_000)
        assert "gap" not in page
        data.append(page_bytes(page))
        if page["closed"]:
            return b"".join(data), page
        after = page["nextSeq"] - 1


async def is_refused(talking: Client, text: str, name: str, *argv: str, **options: Any) -> None:
    with pytest.raises(Refusal) as caught:
        await talking.start(name, *argv, **options)
    assert (caught.value.code, caught.value.text) == (-32600, text)


# Everybody.


@pytest.mark.parametrize("end", ["abort", "close", "session/close"])
async def test_a_kept_process_is_there_for_others_when_its_client_has_gone(
    url: str, name: str, end: str
) -> None:
    """Seen, read, written to, and ended by a client that has never heard of the first one."""
    first = await Client.open(url)
    result = await first.start(name, *ECHO, keep=True, pipeStdin=True)
    await read_until(first, name, b"ready\n")
    if end == "abort":
        await first.abort()
    else:
        if end == "session/close":
            assert await first.call("session/close") == {"survivors": []}
        await first.close()

    async with client(url) as second:
        seen = await listed(second, name)
        await second.write(name, b"hello\n", "w1")
        await second.write(name, b"hello\n", "w1")
        read = await read_until(second, name, b"got hello\n")
        closed = await second.call("process/closeStdin", {"processId": name})
        waited = await second.call("process/wait", {"processId": name, "waitMs": 10_000})
        whole, page = await read_to_end(second, name)
        ended = await listed(second, name)

    assert result == {"processId": name, "sandboxType": "none"}
    assert seen is not None
    assert (seen["state"], seen["kept"], seen["argv"][0]) == ("running", True, "sh")
    assert read == b"ready\ngot hello\n"
    assert closed == {"status": "accepted"}
    assert (waited["exited"], waited["exitCode"]) == (True, 5)
    assert whole == b"ready\ngot hello\nend\n"
    assert (page["exitCode"], "outcome" in page) == (5, False)
    assert ended is not None
    assert (ended["state"], ended["kept"]) == ("closed", True)
    assert first.tales == second.tales == {}, "nobody is told what was not asked for"


async def test_a_kept_process_can_be_signalled_and_terminated_by_others(url: str, name: str) -> None:
    script = "trap 'echo caught' HUP; echo ready; while :; do sleep 1000 & wait; done"
    async with client(url) as first, knowing(url) as second:
        await first.start(name, "sh", "-c", script, keep=True)
        await read_until(second, name, b"ready\n")
        await second.call("process/signal", {"processId": name, "signal": "hangup"})
        said = await read_until(first, name, b"caught\n")
        result = await second.call("process/terminate", {"processId": name})
        page = await second.read(name)
        plain = await first.read(name)

    assert said == b"ready\ncaught\n"
    assert (result["running"], result["survivors"]) == (True, [])
    assert (page["exitCode"], page["closed"], page["outcome"]["kind"]) == (137, True, "terminated")
    assert plain["outcome"]["by"] == "client"


async def test_a_terminal_can_be_resized_by_others(url: str, name: str) -> None:
    async with client(url) as first, client(url) as second:
        await first.start(name, "sh", "-c", "read go; stty size", keep=True, tty=True)
        await second.call("process/resize", {"processId": name, "size": {"rows": 7, "cols": 77}})
        await second.write(name, b"\n", "w")
        data, _ = await read_to_end(second, name)

    assert b"7 77" in data


async def test_its_own_limits_end_it(url: str, name: str) -> None:
    async with knowing(url) as first:
        await first.start(name, "sleep", "1000", keep=True, timeoutMs=50)
        waited = await first.call("process/wait", {"processId": name, "waitMs": 10_000})

    assert waited["outcome"]["kind"] == "timeout"


async def test_each_client_is_told_the_end_in_its_own_way(url: str, name: str) -> None:
    async with client(url) as plain, knowing(url) as extended:
        await plain.start(name, "true", keep=True)
        _, without = await read_to_end(plain, name)
        _, full = await read_to_end(extended, name)

    assert "outcome" not in without
    assert full["outcome"]["kind"] == "exit"


async def test_a_read_that_waits_outlives_the_session_of_its_client(url: str, name: str) -> None:
    async with client(url) as first, client(url) as second:
        await first.start(name, "cat", keep=True, pipeStdin=True)
        waiting = second.post("process/read", {"processId": name, "waitMs": 10_000})
        await second.call("session/close")
        await second.initialize()
        await first.write(name, b"hi", "w")
        page = await second.result(waiting)
        await second.terminate(name)

    assert page_bytes(page) == b"hi"


# Names.


async def test_a_name_has_one_meaning_for_a_client(url: str, name: str) -> None:
    taken = f"process {name} already exists"
    async with client(url) as first, client(url) as second:
        await first.start(name, "sleep", "1000", keep=True)
        for talking in (first, second):
            for keep in (False, True):
                await is_refused(talking, taken, name, "true", keep=keep)
        await second.terminate(name)
        await is_refused(second, taken, name, "true")


async def test_a_name_of_ones_own_hides_what_others_keep(url: str, name: str) -> None:
    async with client(url) as first, client(url) as second:
        await first.start(name, "sh", "-c", "echo own; exec sleep 1000")
        await is_refused(first, f"process {name} already exists", name, "true", keep=True)
        await second.start(name, "sh", "-c", "echo kept; exec sleep 1000", keep=True)
        own = await read_until(first, name, b"\n")
        kept = await read_until(second, name, b"\n")
        await first.terminate(name)
        alive = await listed(second, name)
        await second.terminate(name)

    assert (own, kept) == (b"own\n", b"kept\n")
    assert alive is not None
    assert alive["state"] == "running"


@pytest.mark.slow
async def test_retries_from_many_connections_start_one_process(url: str, name: str) -> None:
    """Whoever wins, the others find what it has started."""
    params = start_params(name, "sleep", "1000", keep=True, idempotent=True)
    clients = [await Client.open(url) for _ in range(8)]

    results = await asyncio.gather(*(talking.call("process/start", params) for talking in clients))
    pids = {(await listed(talking, name) or {})["pid"] for talking in clients}
    ends = await asyncio.gather(*(talking.terminate(name) for talking in clients))
    for talking in clients:
        await talking.close()

    assert sorted(result["existing"] for result in results) == [False] + [True] * 7
    assert len(pids) == 1
    assert any(ends)


@pytest.mark.slow
async def test_clients_that_race_for_a_name_get_it_one_at_a_time(url: str, name: str) -> None:
    """Some keep, some do not, some vanish: one process has the name, or none."""
    clients = [await Client.open(url) for _ in range(6)]
    posts = [
        talking.post("process/start", start_params(name, "sleep", "1000", keep=number % 2 == 0))
        for number, talking in enumerate(clients)
    ]
    await clients[0].abort()
    await clients[1].abort()
    results = [await post for post in posts[2:]]

    async with client(url) as other:
        kept = await listed(other, name)
        started = ["result" in result for result in results]
        if kept is not None:
            while kept["state"] == "starting":
                kept = await listed(other, name)
                assert kept is not None
            assert await other.terminate(name)
    for talking in clients[2:]:
        await talking.call("session/close")
        await talking.close()

    assert kept is not None, "one of those that keep has it, whoever else was first"
    assert sum(started[0::2]) <= 1
    assert all(is_gone["error"]["code"] == -32600 for is_gone in results if "error" in is_gone)


# Its time.


async def test_a_kept_process_outlives_a_session_that_expires() -> None:
    async with inside(sessions=SessionLimits(detached_seconds=0.05)) as server:
        first = await Client.open(server.url)
        await first.start("own", "sleep", "1000")
        await first.start("kept", "sleep", "1000", keep=True)
        await first.abort()
        await eventually(lambda: len(server.endpoint.sessions) == 0)

        async with client(server.url) as second:
            (found,) = (await second.call("process/list"))["processes"]

    assert (found["processId"], found["state"]) == ("kept", "running")


async def short(talking: Client, name: str, **options: Any) -> None:
    """A process that has closed."""
    await talking.start(name, "echo", name, **options)
    page = await talking.read(name, waitMs=10_000)
    while not page["closed"]:
        page = await talking.read(name, afterSeq=page["nextSeq"] - 1, waitMs=10_000)


async def names(talking: Client) -> list[str]:
    return [one["processId"] for one in (await talking.call("process/list"))["processes"]]


@pytest.mark.slow
async def test_a_kept_process_can_be_read_longer_after_its_close_than_others() -> None:
    limits = SessionLimits(closed_seconds=0.05, kept_seconds=1.0)
    async with inside(sessions=limits) as server, client(server.url) as first, client(server.url) as second:
        await short(first, "own")
        await short(first, "kept", keep=True)
        session = server.endpoint.sessions.get(first.session)
        assert session is not None
        own = session
        await eventually(lambda: own.find("own") is None)
        left = await names(first)
        page = await second.read("kept")
        common = session.tenant.shared
        await eventually(lambda: common.find("kept") is None)
        with pytest.raises(Refusal) as caught:
            await second.read("kept")
        await short(second, "kept", keep=True)

    assert left == ["kept"]
    assert page_bytes(page) == b"kept\n"
    assert caught.value.text == "unknown process id kept"


async def test_so_many_ended_ones_are_kept_and_no_more() -> None:
    limits = SessionLimits(kept_ended=2, kept_names=4)
    async with inside(sessions=limits) as server, client(server.url) as talking:
        await talking.start("runs", "sleep", "1000", keep=True)
        for number in range(5):
            await short(talking, f"p{number}", keep=True)
        left = await names(talking)
        await talking.start("more", "sleep", "1000", keep=True)
        with pytest.raises(Refusal) as caught:
            await talking.start("too many", "sleep", "1000", keep=True)
        await talking.start("own", "true")

    assert left == ["runs", "p3", "p4"]
    assert (caught.value.code, caught.value.text) == (-32603, "limit reached: kept processes (4)")


async def test_kept_processes_and_what_they_left_behind_end_with_the_server() -> None:
    with program_at() as (server, url):
        async with client(url) as talking:
            await talking.start("runs", "sleep", "1000", keep=True)
            await talking.start("left", "sh", "-c", "setsid sleep 1000 >&- 2>&- & echo $!", keep=True)
            data, _ = await read_to_end(talking, "left")
            running = await listed(talking, "runs")
        assert running is not None
        pids = [running["pid"], int(data)]
        before = [is_running(pid) for pid in pids]
        server.send_signal(signal.SIGTERM)
        code = await asyncio.to_thread(server.wait)
        await eventually(lambda: not any(is_running(pid) for pid in pids))

    assert before == [True, True]
    assert code == 0


# Its output.


async def test_output_is_kept_as_for_a_client_that_is_there(url: str, name: str) -> None:
    """What is older is lost, and said to be."""
    async with client(url) as talking:
        await talking.start(name, "head", "-c", str(4 * MIB), "/dev/zero", keep=True)
        await talking.call("process/wait", {"processId": name, "waitMs": 10_000})
        page = await talking.read(name, waitMs=10_000)
        seen = await listed(talking, name)

    assert len(page_bytes(page)) <= MIB
    assert page["gap"]["bytes"] + len(page_bytes(page)) == 4 * MIB
    assert seen is not None
    assert seen["retainedBytes"] <= MIB


async def test_one_that_closes_after_it_was_found_is_read_to_its_end(url: str, name: str, gate: Gate) -> None:
    """The first page of it says that it has closed, and is not all of it."""
    script = f"echo begin; {gate.shell}; head -c 400000 /dev/zero"
    async with holdfast.connect(url) as one, holdfast.connect(url) as other:
        started = await one.start(["sh", "-c", script], name=name, keep=True)
        await gate.reached()
        found = await other.attach(name)
        started.detach()
        gate.open()
        await started.wait()

        assert sum([len(data) async for data in found]) == len(b"begin\n") + 400_000
