"""Waits until a process has brought something about: real ports, servers, files and output."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.conditions import Condition, Waited, WaitEnd
from holdfast.engine.local import LocalBackend
from holdfast.model import Kind
from holdfast.waiting import wait_for
from tests.fakes.process import PATIENCE, command, eventually, sh
from tests.fakes.recorder import record

MET = Waited(WaitEnd.MET)


@pytest.fixture
def port() -> int:
    """One that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
        return number


@asynccontextmanager
async def serving(port: int, status: bytes = b"200 OK", *, answers: bool = True) -> AsyncIterator[None]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(1) and answers:
            writer.write(b"HTTP/1.1 %b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % status)
            await writer.drain()
        elif not answers:
            await reader.read()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", port):
        yield


# What comes later.


async def test_a_port_is_waited_for(backend: LocalBackend, port: int) -> None:
    process = await backend.start(command("sleep", "1000"))
    waiting = asyncio.ensure_future(wait_for(process, Condition(port=port), backend, seconds=PATIENCE))
    refused = await wait_for(process, Condition(port=port), backend, seconds=0)

    async with serving(port):
        found = await waiting

    assert found == MET
    assert refused == Waited(WaitEnd.TIMEOUT, trouble="Connection refused")


async def test_a_url_is_waited_for_until_it_is_no_error(backend: LocalBackend, port: int) -> None:
    """A server that answers that it is not ready is not ready."""
    process = await backend.start(command("sleep", "1000"))
    condition = Condition(url=f"http://127.0.0.1:{port}/health")
    waiting = asyncio.ensure_future(wait_for(process, condition, backend, seconds=PATIENCE))

    async with serving(port, b"503 Busy"):
        busy = await wait_for(process, condition, backend, seconds=0)
    async with serving(port, b"302 Found"):
        found = await waiting

    assert busy == Waited(WaitEnd.TIMEOUT, status=503, trouble="the status is 503")
    assert found == Waited(WaitEnd.MET, status=302)


async def test_a_file_is_waited_for(backend: LocalBackend, tmp_path: Path) -> None:
    process = await backend.start(command("sleep", "1000"))
    condition = Condition(file=str(tmp_path / "ready"))
    waiting = asyncio.ensure_future(wait_for(process, condition, backend, seconds=PATIENCE))
    missing = await wait_for(process, condition, backend, seconds=0)

    (tmp_path / "ready").touch()

    assert await waiting == MET
    assert missing.end is WaitEnd.TIMEOUT
    assert "No such file" in str(missing.trouble)


async def test_a_text_is_waited_for_in_whatever_pieces_it_comes(backend: LocalBackend) -> None:
    process = await backend.start(
        sh("printf 'listening on po'; read go; printf 'rt 8080\\n'; exec sleep 1000", stdin=True)
    )
    await record(process).until_said(b"po")
    waiting = asyncio.ensure_future(
        wait_for(process, Condition(output=r"port \d+$"), backend, seconds=PATIENCE)
    )

    await process.write(b"\n")
    found = await waiting

    assert found == Waited(WaitEnd.MET, line="listening on port 8080", seq=2)


async def test_streams_are_searched_each_for_itself(backend: LocalBackend) -> None:
    """What is half on one and half on the other nobody has printed."""
    process = await backend.start(sh("printf re; printf ady >&2"))

    found = await wait_for(process, Condition(output="ready"), backend, seconds=PATIENCE)

    assert found.end is WaitEnd.EXITED


# What was before.


async def test_what_was_so_before_counts(backend: LocalBackend, tmp_path: Path) -> None:
    """Also if the process has ended meanwhile: it has done what it was to do."""
    process = await backend.start(sh(f"echo done; touch {tmp_path}/made; exit 3"))
    await record(process).until("closed")

    said = await wait_for(process, Condition(output="^done$"), backend, seconds=PATIENCE)
    made = await wait_for(process, Condition(file=f"{tmp_path}/made"), backend, seconds=PATIENCE)

    assert (said.end, said.line, said.seq) == (WaitEnd.MET, "done", 1)
    assert made == MET


async def test_the_last_line_may_have_no_end(backend: LocalBackend) -> None:
    process = await backend.start(sh("printf done"))

    assert (await wait_for(process, Condition(output="done$"), backend, seconds=PATIENCE)).line == "done"


async def test_nothing_is_awaited_if_there_is_no_time(backend: LocalBackend) -> None:
    """But what is there is found."""
    process = await backend.start(sh("echo done; exec sleep 1000"))
    await record(process).until_said(b"done")

    found = await wait_for(process, Condition(output="done"), backend, seconds=0)
    other = await wait_for(process, Condition(output="gone"), backend, seconds=0)

    assert found.end is WaitEnd.MET
    assert other == Waited(WaitEnd.TIMEOUT)


# The end.


@pytest.mark.parametrize("what", ["port", "url", "output", "file"])
async def test_a_wait_ends_with_its_process(
    backend: LocalBackend, port: int, tmp_path: Path, what: str
) -> None:
    """Whoever has crashed will never be ready, and nobody should wait for the deadline."""
    conditions = {
        "port": Condition(port=port),
        "url": Condition(url=f"http://localhost:{port}/"),
        "output": Condition(output="never"),
        "file": Condition(file=f"{tmp_path}/never"),
    }
    process = await backend.start(sh("read go; exit 7", stdin=True))
    waiting = asyncio.ensure_future(wait_for(process, conditions[what], backend, seconds=1e6))
    await asyncio.sleep(0)

    await process.write(b"\n")
    found = await waiting

    assert found.end is WaitEnd.EXITED
    assert found.exit is not None
    assert (found.exit.outcome.kind, found.exit.code) == (Kind.EXIT, 7)


async def test_an_attempt_that_hangs_ends_with_the_process(backend: LocalBackend, port: int) -> None:
    """A server that takes the request and does not answer is what a crash often begins with."""
    process = await backend.start(command("cat", stdin=True))
    condition = Condition(url=f"http://127.0.0.1:{port}/")

    async with serving(port, answers=False):
        waiting = asyncio.ensure_future(wait_for(process, condition, backend, seconds=1e6))
        await eventually(lambda: backend.usage()["http.requests"] == 1)
        process.end_now()
        found = await waiting

    assert found.end is WaitEnd.EXITED
    assert found.trouble == "there was no answer in time"
    assert backend.usage()["http.requests"] == 0


async def test_whoever_is_left_behind_and_goes_on_printing_is_not_waited_for(backend: LocalBackend) -> None:
    process = await backend.start(sh("(while :; do echo noise; done) & exit 0"))

    found = await wait_for(process, Condition(output="never"), backend, seconds=1e6)

    assert found.end is WaitEnd.EXITED


async def test_a_flood_does_not_outlast_the_deadline(backend: LocalBackend) -> None:
    """There is always something left to search."""
    process = await backend.start(sh("exec yes"))

    found = await wait_for(process, Condition(output="never"), backend, seconds=0.2)

    assert found.end is WaitEnd.TIMEOUT
