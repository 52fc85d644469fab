"""Server, keeper, all of them die.  What is to outlive that does, and nothing else is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.app_client import AppClient, SocketLink, spawn_params
from tests.fakes.backends import LONG
from tests.fakes.client import Client, Message, page_bytes
from tests.fakes.frames import Wire
from tests.fakes.mortal import ON, await_part, kill_server, mortal_at, part
from tests.fakes.server import (
    PATIENCE,
    Program,
    Sighting,
    commands,
    descendants,
    eventually,
    is_running,
    is_same,
    program,
)
from tests.fakes.trees import knowing

pytestmark = pytest.mark.slow

ECHO = ("sh", "-c", "stty -echo 2>/dev/null; echo ready; exec cat")

TREE = "setsid sleep 1000 & (sleep 1000 &) ; sleep 1000 & echo ready; wait"
"""A program with a child, one that has left the session, and one whose parent has gone."""

MEMBERS = 4
"""Processes of one such tree."""

MANY = 140 if LONG else 30


@pytest.fixture
def served() -> Iterator[tuple[Program, str]]:
    with mortal_at() as served:
        yield served


async def grow_trees(talking: Client, program: Program, count: int) -> set[Sighting]:
    """Start so many trees; return everybody in them."""
    await asyncio.gather(*(talking.start(f"tree-{number}", "sh", "-c", TREE) for number in range(count)))
    await eventually(lambda: len(commands(program.pid)) >= MEMBERS * count, within=6 * PATIENCE)
    return commands(program.pid)


def no_one_of(family: set[Sighting]) -> bool:
    return not any(is_same(each) for each in family)


async def until_said(talking: Client, name: str, text: bytes) -> Message:
    """The answer to a read from the beginning, once the process has said so."""
    page: Message = {"chunks": []}
    async with asyncio.timeout(PATIENCE):
        while text not in page_bytes(page):
            page = await talking.read(name, waitMs=50)
    return page


LONG_TRIALS = ("--limit", "sandbox.trial_seconds=1000", "--listen", "ws://127.0.0.1:0")
"""Whatever is tried out may take longer than any test."""

# Who dies.


async def test_exec_processes_outlive_the_server_and_app_processes_end(served: tuple[Program, str]) -> None:
    program, url = served
    async with knowing(url) as talking:
        kept = await grow_trees(talking, program, 3)
        app = AppClient(SocketLink(await Wire.open(url)))
        await app.initialize()
        await app.call(
            "process/spawn", spawn_params("app", "sh", "-c", "setsid sleep 1000 & exec sleep 1000")
        )
        await eventually(lambda: len(commands(program.pid) - kept) >= 2)
        doomed = commands(program.pid) - kept

        kill_server(program)

        await eventually(lambda: no_one_of(doomed))
        assert all(is_same(each) for each in kept)
        with contextlib.suppress(ConnectionError):
            await app.close()
        session = talking.session
    async with knowing(url, resume=session) as again:
        assert all(is_same(each) for each in kept)
        assert len((await again.call("process/list"))["processes"]) == 3


async def test_what_is_being_tried_out_does_not_outlive_the_keeper(tmp_path: Path) -> None:
    """The spare begins to try out what sandboxes need when the first server is there, and here that hangs."""
    path, tried = hanging_bubblewrap(tmp_path)
    with program(*ON, *LONG_TRIALS, env={b"PATH": path}) as keeper:
        await eventually(lambda: tried.exists() and len(tried.read_text().split()) == 2)
        pids = [int(pid) for pid in tried.read_text().split()]

        keeper.send_signal(signal.SIGTERM)

        keeper.wait()
        assert [pid for pid in pids if is_running(pid)] == []


@pytest.mark.parametrize("options", [ON, ("--durability", "off")], ids=["durable", "alone"])
async def test_a_server_stops_though_what_it_tries_out_hangs(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Before it listens it waits for its sandboxes, here for longer than anybody waits for its end."""
    path, tried = hanging_bubblewrap(tmp_path)
    with program(*options, *LONG_TRIALS, env={b"PATH": path}) as server:
        await eventually(lambda: tried.exists() and bool(tried.read_text()))
        pids = [int(pid) for pid in tried.read_text().split()]

        server.send_signal(signal.SIGTERM)

        assert server.wait() == 0
        assert [pid for pid in pids if is_running(pid)] == []


def hanging_bubblewrap(folder: Path) -> tuple[bytes, Path]:
    """A search path with a bubblewrap that hangs, and the file to which each run of it adds its pid."""
    tried, bwrap = folder / "tried", folder / "bwrap"
    bwrap.write_text(f"#!/bin/sh\necho $$ >>{tried}\nexec sleep 1000\n")
    bwrap.chmod(0o755)
    return os.fsencode(f"{folder}:{os.environ['PATH']}"), tried


@pytest.mark.timeout(120)
async def test_of_a_killed_keeper_nothing_is_left() -> None:
    with mortal_at() as (program, url):
        async with knowing(url) as talking:
            family = await grow_trees(talking, program, MANY) | descendants(program.pid)

            program.send_signal(signal.SIGKILL)

            assert program.wait() == -signal.SIGKILL
            await eventually(lambda: no_one_of(family))


@pytest.mark.timeout(120)
async def test_of_keeper_spare_and_server_killed_at_once_nothing_is_left() -> None:
    with mortal_at() as (program, url):
        async with knowing(url) as talking:
            family = await grow_trees(talking, program, MANY) | descendants(program.pid)
            spare, server = await_part(program, "holdfast-spare"), await_part(program, "holdfast-server")

            for pid in (spare, server):
                os.kill(pid, signal.SIGKILL)
            program.send_signal(signal.SIGKILL)

            assert program.wait() == -signal.SIGKILL
            await eventually(lambda: no_one_of(family))


async def test_a_server_that_dies_whenever_it_is_started_is_given_up() -> None:
    """The spare is left no room for the arena: no server that it forks from now on can serve."""
    with mortal_at() as (program, url):
        async with knowing(url) as talking:
            family = await grow_trees(talking, program, 2) | descendants(program.pid)
            spare = await_part(program, "holdfast-spare")
            _, hard = resource.prlimit(spare, resource.RLIMIT_AS)
            resource.prlimit(spare, resource.RLIMIT_AS, (1 << 30, hard))

            kill_server(program)

            await eventually(lambda: program.code is not None, within=4 * PATIENCE)
        assert program.wait() == 70
        assert b"the server dies whenever it is started" in program.errors
        await eventually(lambda: no_one_of(family))


async def test_a_dead_spare_is_replaced_and_nobody_notices(served: tuple[Program, str]) -> None:
    program, url = served
    async with knowing(url) as talking:
        await talking.start("p", *ECHO, pipeStdin=True)
        spare = await_part(program, "holdfast-spare")
        os.kill(spare, signal.SIGKILL)
        await eventually(lambda: part(program, "holdfast-spare") not in (None, spare))
        assert await talking.write("p", b"one\n", "w1") == "accepted"
        session = talking.session
        kill_server(program)
    async with knowing(url, resume=session) as again:
        assert page_bytes(await until_said(again, "p", b"one\n")) == b"ready\none\n"


async def test_a_keeper_that_has_no_server_ends_at_a_signal(served: tuple[Program, str]) -> None:
    """The fourth server within ten seconds is not started at once."""
    program, url = served
    async with knowing(url) as talking:
        family = await grow_trees(talking, program, 2)
    for _ in range(4):
        kill_server(program)
    program.send_signal(signal.SIGTERM)

    assert program.wait() == 0
    await eventually(lambda: no_one_of(family))


async def test_a_keeper_whose_spare_does_not_answer_ends_at_a_signal(served: tuple[Program, str]) -> None:
    program, url = served
    async with knowing(url) as talking:
        family = await grow_trees(talking, program, 2)
    spare = await_part(program, "holdfast-spare")
    os.kill(spare, signal.SIGSTOP)
    try:
        server = await_part(program, "holdfast-server")
        os.kill(server, signal.SIGKILL)
        program.send_signal(signal.SIGTERM)

        assert program.wait() == 0
        await eventually(lambda: no_one_of(family))
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(spare, signal.SIGCONT)
