"""The server dies: sessions, output, input, terms, sandboxes and starts go on with the next one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.api.handle import Handle
from holdfast.model import Kind
from holdfast.sandbox import Access, Sandbox, SandboxEntry
from tests.fakes.backends import LONG
from tests.fakes.client import Client, Message, Refusal, client, page_bytes
from tests.fakes.gate import Gate
from tests.fakes.mortal import ON, await_part, kill_server, mortal_at
from tests.fakes.server import (
    PATIENCE,
    Program,
    commands,
    eventually,
    held_program,
    is_running,
    program,
    starts_under_way,
)
from tests.fakes.tokens import signing_options, token
from tests.fakes.trees import exit_of, knowing

pytestmark = pytest.mark.slow

ECHO = ("sh", "-c", "stty -echo 2>/dev/null; echo ready; exec cat")

TREE = "setsid sleep 1000 & (sleep 1000 &) ; sleep 1000 & echo ready; wait"
"""A program with a child, one that has left the session, and one whose parent has gone."""

KILLS, TALKERS = (25, 12) if LONG else (6, 12)


@pytest.fixture
def served() -> Iterator[tuple[Program, str]]:
    with mortal_at() as served:
        yield served


async def until_said(talking: Client, name: str, text: bytes) -> Message:
    """The answer to a read from the beginning, once the process has said so."""
    page: Message = {"chunks": []}
    async with asyncio.timeout(PATIENCE):
        while text not in page_bytes(page):
            page = await talking.read(name, waitMs=50)
    return page


# What goes on.

TALK = """
import sys, time
name, code = sys.argv[1:]
for number in range(400):
    print(name, number, "." * (number * 37 % 700), flush=True)
    time.sleep(0.005)
sys.exit(int(code))
"""


def tale_of(name: str) -> bytes:
    lines = (f"{name} {number} {'.' * (number * 37 % 700)}\n" for number in range(400))
    return "".join(lines).encode()


@pytest.mark.timeout(180)
async def test_talking_children_lose_nothing_however_often_the_server_dies(
    served: tuple[Program, str],
) -> None:
    program, url = served
    async with holdfast.connect(url) as host:

        async def follow(number: int) -> tuple[bytes, list[int], int | None]:
            argv = [sys.executable, "-I", "-S", "-c", TALK, f"child-{number}", str(number)]
            talker = await host.start(argv)
            chunks = [chunk async for chunk in talker.chunks()]
            await talker.wait()
            return (
                b"".join(chunk.data for chunk in chunks),
                [chunk.seq for chunk in chunks],
                talker.returncode,
            )

        talks = [asyncio.create_task(follow(number)) for number in range(TALKERS)]
        for _ in range(KILLS):
            kill_server(program)
            await host.processes()  # The next one serves.
        found = await asyncio.gather(*talks)

    for number, (data, numbers, code) in enumerate(found):
        assert data == tale_of(f"child-{number}"), number
        assert numbers == list(range(1, len(numbers) + 1))
        assert code == number


async def test_a_session_has_the_same_numbers_and_identifiers(served: tuple[Program, str]) -> None:
    program, url = served
    async with knowing(url) as talking:
        await talking.start("pipe", *ECHO, pipeStdin=True)
        await talking.start("terminal", *ECHO, tty=True)
        pages = {}
        for name in ("pipe", "terminal"):
            await until_said(talking, name, b"ready")
            assert await talking.write(name, b"one\n", "w1") == "accepted"
            pages[name] = await until_said(talking, name, b"one")
        listed = await talking.call("process/list")
        session = talking.session
        kill_server(program)
    async with knowing(url, resume=session) as again:
        assert await again.call("process/list") == listed
        for name, before in pages.items():
            page = await again.read(name)
            assert page["chunks"] == before["chunks"]
            assert page["nextSeq"] == before["nextSeq"]
            assert await again.write(name, b"one\n", "w1") == "accepted"
            assert await again.write(name, b"two\n", "w2") == "accepted"
            after = page_bytes(await until_said(again, name, b"two"))
            assert after.count(b"one") == 1


async def test_what_belongs_to_nobody_is_found_by_its_name(served: tuple[Program, str]) -> None:
    program, url = served
    async with holdfast.connect(url) as host:
        started = await host.start([*ECHO], name="shared", keep=True, stdin=-1)
        assert await anext(aiter(started)) == b"ready\n"
    kill_server(program)
    async with holdfast.connect(url) as host:
        (listed,) = await host.processes()
        assert (listed.name, listed.kept) == ("shared", True)
        found = await host.attach("shared")
        assert found.stdin is not None
        found.stdin.write(b"word\n")
        found.stdin.close()
        assert b"".join([data async for data in found]) == b"ready\nword\n"
        assert found.returncode == 0


async def test_what_has_ended_can_still_be_read(served: tuple[Program, str]) -> None:
    program, url = served
    async with knowing(url) as talking:
        await talking.start("p", "sh", "-c", "echo word; exit 7")
        await talking.until(lambda: talking.tale("p").is_closed)
        before = await talking.read("p")
        session = talking.session
        kill_server(program)
    async with knowing(url, resume=session) as again:
        assert await again.read("p") == before
        with pytest.raises(Refusal):
            await again.start("p", "true")


async def test_one_that_ends_while_there_is_no_server_has_its_own_code(
    served: tuple[Program, str], gate: Gate
) -> None:
    """The spare is stopped, so that the next server comes when the process has gone."""
    program, url = served
    async with holdfast.connect(url) as host:
        handle = await host.start(["sh", "-c", f"echo begin; {gate.shell}; echo end; exit 37"])
        assert handle.pid is not None
        await gate.reached()
        spare = await_part(program, "holdfast-spare")
        os.kill(spare, signal.SIGSTOP)
        try:
            kill_server(program)
            gate.open()
            await eventually(lambda: not is_running(handle.pid or 0))
        finally:
            os.kill(spare, signal.SIGCONT)

        assert b"".join([data async for data in handle]) == b"begin\nend\n"
        assert (await handle.wait()).exit_code == 37


# Ends that are due.


async def test_what_is_dropped_stays_dropped_and_is_counted_on(
    served: tuple[Program, str], gate: Gate
) -> None:
    program, url = served
    flood = "head -c 1000000 /dev/zero"
    async with holdfast.connect(url) as host:
        handle = await host.start(
            ["sh", "-c", f"echo begin; {flood}; {gate.shell}; {flood}; exit 7"],
            output_limit=6,
            truncate_output=True,
        )
        await gate.reached()
        kill_server(program)
        gate.open()

        said = b"".join([data async for data in handle])
        outcome = await handle.wait()

        assert said == b"begin\n"
        assert outcome.exit_code == 7
        # What was read and not counted when the server was killed is one read at most.
        assert 0 <= 2_000_000 - handle.dropped <= 65_536


@pytest.mark.parametrize("option", ["timeout", "idle_timeout"])
async def test_a_timeout_is_armed_for_the_rest(served: tuple[Program, str], option: str) -> None:
    program, url = served
    async with holdfast.connect(url) as host:
        began = time.monotonic()
        handle = await host.start(["sh", "-c", TREE], **{option: 2.0})  # type: ignore[arg-type]
        await anext(aiter(handle))
        ending = asyncio.create_task(handle.wait())
        async with asyncio.timeout(3 * PATIENCE):
            while not ending.done():  # No server lives for as long as the timeout.
                kill_server(program)
                await host.processes()
        outcome = await ending

        assert outcome.kind is (Kind.TIMEOUT if option == "timeout" else Kind.IDLE_TIMEOUT)
        assert time.monotonic() - began >= 2.0
        await eventually(lambda: not commands(program.pid))


async def test_a_grace_is_armed_for_the_rest(served: tuple[Program, str]) -> None:
    program, url = served
    async with holdfast.connect(url) as host:
        handle = await host.start(["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"])
        output = aiter(handle)
        await anext(output)
        ending = asyncio.create_task(handle.end(grace=2.0))
        await host.processes()  # The request before this one was heard.
        kill_server(program)

        await asyncio.wait_for(ending, PATIENCE)

        assert await handle.wait() == holdfast.Outcome(Kind.TERMINATED, None, signal.SIGKILL, "client")


async def test_a_sandboxed_process_keeps_its_denials(
    served: tuple[Program, str], gate: Gate, tmp_path: Path
) -> None:
    program, url = served
    forbidden = tmp_path / "forbidden"
    script = f"(echo x > {forbidden}) 2>/dev/null; {gate.shell}; (echo x > {forbidden}2) 2>/dev/null; exit 3"
    entries = (
        SandboxEntry("/", Access.READ),
        SandboxEntry(str(tmp_path / "door"), Access.WRITE),
        SandboxEntry(str(tmp_path / "reached"), Access.WRITE),
    )
    async with holdfast.connect(url) as host:
        if host.info.sandboxes.backend is None:
            pytest.skip(host.info.sandboxes.reason)
        handle = await host.start(["sh", "-c", script], sandbox=Sandbox(entries, network=True, cwd="/"))
        await gate.reached()
        kill_server(program)
        gate.open()
        await asyncio.wait_for(handle.wait(), PATIENCE)

        assert denials(handle) >= {str(forbidden), f"{forbidden}2"}
        assert not forbidden.exists()


def denials(handle: Handle) -> set[str]:
    """What the sandbox of a process has refused."""
    end = handle._process.exit
    assert end is not None
    assert end.denied is not None
    return {denial.subject for denial in end.denied.denials}


# Listeners and principals.


async def test_a_socket_with_a_path_stays_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with program("--listen", f"unix://{path}", *ON) as started:
        url = started.read_url()
        async with knowing(url) as talking:
            await talking.start("p", *ECHO, pipeStdin=True)
            node, session = path.stat().st_ino, talking.session
            kill_server(started)
        async with knowing(url, resume=session) as again:
            assert path.stat().st_ino == node
            await until_said(again, "p", b"ready")


async def test_sessions_of_others_stay_hidden(tmp_path: Path) -> None:
    with mortal_at(*signing_options(tmp_path)) as (started, url):
        async with client(url, token=token("alice")) as talking:
            await talking.start("p", *ECHO, pipeStdin=True)
            await talking.start("kept", *ECHO, pipeStdin=True, keep=True)
            session = talking.session
            kill_server(started)
        with pytest.raises(Refusal):
            await Client.open(url, resume=session, token=token("mallory"))
        async with client(url, token=token("mallory")) as other:
            assert (await other.call("process/list"))["processes"] == []
        async with client(url, resume=session, token=token("alice")) as again:
            await until_said(again, "p", b"ready")
            names = [each["processId"] for each in (await again.call("process/list"))["processes"]]
            assert sorted(names) == ["kept", "p"]


# In the middle of a start.


async def test_a_start_under_way_is_made_once(served: tuple[Program, str], tmp_path: Path) -> None:
    """The client asks again, and hears of the one that there is, or has another one started."""
    started, url = served
    async with holdfast.connect(url) as host:
        with held_program("/bin/echo", tmp_path / "echo") as held:
            starting = asyncio.create_task(host.start([held.path, "word"], name="p"))
            await eventually(lambda: starts_under_way(started.pid))
            kill_server(started)
        handle = await asyncio.wait_for(starting, PATIENCE)

        assert b"".join([data async for data in handle]) == b"word\n"
        assert handle.returncode == 0


async def test_the_name_of_a_start_under_way_can_be_used(served: tuple[Program, str], tmp_path: Path) -> None:
    started, url = served
    with held_program("/bin/echo", tmp_path / "echo") as held:
        async with client(url) as talking:
            session = talking.session
            talking.post("process/start", {**_params("p", held.path)})
            await eventually(lambda: starts_under_way(started.pid))
            kill_server(started)
        async with client(url, resume=session) as again:
            held.release()
            with contextlib.suppress(Refusal):  # It is there: then it can be read.
                await again.start("p", "echo", "word")
            await again.read("p", waitMs=1000)
    await eventually(lambda: not commands(started.pid))


def _params(name: str, *argv: str) -> Message:
    return {"processId": name, "argv": list(argv), "cwd": "file:///", "env": {}, "tty": False}


@pytest.mark.parametrize("dies", [False, True], ids=["lives", "dies"])
@pytest.mark.parametrize("holds", [False, True], ids=["closed", "open"])
async def test_the_last_write_is_known_after_the_exit(
    served: tuple[Program, str], *, dies: bool, holds: bool
) -> None:
    """Its answer may have been lost, and the client asks again."""
    program, url = served
    script = f"{'sleep 1000 & ' if holds else ''}read line; echo got $line; exit 4"
    async with knowing(url) as talking:
        await talking.start("p", "sh", "-c", script, pipeStdin=True)
        assert await talking.write("p", b"word\n", "w1") == "accepted"
        await talking.until(lambda: talking.tale("p").exit_codes)
        session = talking.session
        if dies:
            kill_server(program)
    async with knowing(url, resume=session) as again:
        assert await again.write("p", b"word\n", "w1") == "accepted"
        assert await again.write("p", b"more\n", "w2") == "stdinClosed"


# Whoever is left of a process.


async def test_nothing_follows_a_close(served: tuple[Program, str], tmp_path: Path) -> None:
    """Somebody still writes to its output, which the shim holds for each next server."""
    program, url = served
    said = tmp_path / "said"
    script = f"(trap '' PIPE; while :; do echo more; echo >>{said}; sleep 0.02; done) & exit 3"
    pages = []
    async with knowing(url) as talking:
        await talking.start("p", "sh", "-c", script, drainMs=0)
        await talking.closed("p")
        pages.append(await talking.read("p"))
        session = talking.session
    for _ in range(2):
        kill_server(program)
        async with knowing(url, resume=session) as again:
            await again.read("p")
            before = said.stat().st_size
            await eventually(lambda: said.stat().st_size > before + 5)  # noqa: B023
            pages.append(await again.read("p"))

    facts = [(page["chunks"], page["nextSeq"], page["exitCode"], page["closed"]) for page in pages]
    assert facts == facts[:1] * 3


async def test_whoever_is_left_fails_to_write_after_the_close(served: tuple[Program, str]) -> None:
    """As without durability: the shim keeps nothing open that nobody will read."""
    program, url = served
    async with knowing(url) as talking:
        await talking.start("p", "sh", "-c", "yes & exit 3", drainMs=0)
        await talking.closed("p")

        await eventually(lambda: not commands(program.pid))


async def test_whoever_is_left_sees_the_end_of_input(served: tuple[Program, str]) -> None:
    _, url = served
    async with knowing(url) as talking:
        await talking.start("p", "sh", "-c", "exec 3<&0; cat <&3 & exit 3", pipeStdin=True)

        await talking.closed("p")


async def test_a_grace_goes_on_after_the_exit(served: tuple[Program, str]) -> None:
    """The command has ended by itself, others of its tree have not, and the server dies."""
    program, url = served
    script = "sh -c \"trap '' TERM; echo ready; while :; do sleep 0.1; done\" & trap 'exit 4' TERM; wait"
    async with knowing(url) as talking:
        await talking.start("p", "sh", "-c", script)
        await talking.until(lambda: b"ready" in talking.tale("p").data())
        ending = asyncio.create_task(talking.call("process/terminate", {"processId": "p", "graceMs": 1500}))
        await exit_of(talking, "p")
        session = talking.session
        kill_server(program)
        ending.cancel()
        await asyncio.gather(ending, return_exceptions=True)

    async with knowing(url, resume=session) as again:
        await again.read("p")
        await eventually(lambda: not commands(program.pid))
