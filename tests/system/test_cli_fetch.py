"""``holdfast fetch`` as people meet it, from this host and from that of a server."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from tests.fakes.backends import LONG
from tests.fakes.server import PATIENCE, eventually, program_at
from tests.fakes.terminal import HOLDFAST, SILENT, holdfast
from tests.fakes.web import HI, Visit, redirect, response, web

pytestmark = pytest.mark.slow

Done = subprocess.CompletedProcess[bytes]

MUCH = (1024 if LONG else 96) << 20
"""Bytes: more than may wait to be read."""

BOUND = 160 << 20
"""Bytes of memory that must do for any amount of data, Python and its libraries included."""

BLOCK = bytes(range(256)) * 4096


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with program_at() as (_, url):
        yield url


@pytest.fixture(params=["here", "far"])
def command(request: pytest.FixtureRequest) -> list[str]:
    return ["fetch"] if request.param == "here" else ["fetch", "-H", request.getfixturevalue("server")]


async def run(*arguments: str, data: bytes | None = None) -> Done:
    """Run the command while the loop goes on with the web server."""
    return await asyncio.to_thread(holdfast, *arguments, data=data, within=2 * PATIENCE)


async def test_the_body_is_printed_and_nothing_else(command: list[str]) -> None:
    async with web(odd=response(b"\x00\xff\r\n")) as there:
        done = await run(*command, f"{there.url}/odd")

        assert (done.returncode, done.stdout, done.stderr) == (0, b"\x00\xff\r\n", b"")
        assert there.visits[0].line == "GET /odd HTTP/1.1"


async def test_everything_that_is_asked_for_is_sent(command: list[str], tmp_path: Path) -> None:
    question = tmp_path / "question"
    question.write_bytes(b"from a file\xff")
    async with web() as there:
        await run(*command, "-X", "PUT", "--header", "X-A: 1", "-d", "text", there.url)
        await run(*command, "-d", f"@{question}", there.url)
        await run(*command, "-d", "@-", there.url, data=b"from standard input")

        put, posted, piped = there.visits
        assert (put.line, put.body) == ("PUT / HTTP/1.1", b"text")
        assert ("x-a", "1") in put.headers
        assert (posted.line, posted.body) == ("POST / HTTP/1.1", b"from a file\xff")
        assert piped.body == b"from standard input"


async def test_the_head_is_printed_if_that_is_asked(command: list[str]) -> None:
    async with web(moved=redirect(302, "/hi"), hi=HI) as there:
        followed = await run(*command, "-i", f"{there.url}/moved")
        shown = await run(*command, "-i", "--no-follow", f"{there.url}/moved")

        assert followed.stdout == b"HTTP 200 OK\ncontent-length: 2\n\nhi"
        assert shown.stdout == b"HTTP 302 Found\nlocation: /hi\ncontent-length: 0\n\n"


async def test_a_status_is_a_failure_only_if_that_is_asked(command: list[str], tmp_path: Path) -> None:
    async with web(gone=b"HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\ngone") as there:
        url = f"{there.url}/gone"
        plain = await run(*command, url)
        failed = await run(*command, "--fail", "-o", str(tmp_path / "page"), url)
        quiet = await run(*command, "-f", "-q", url)

        assert (plain.returncode, plain.stdout, plain.stderr) == (0, b"gone", b"")
        assert (failed.returncode, failed.stdout) == (22, b"")
        assert failed.stderr == b"holdfast: the response has the status 404 Not Found\n"
        assert (quiet.returncode, quiet.stdout, quiet.stderr) == (22, b"", b"")
        assert list(tmp_path.iterdir()) == []


async def test_a_file_gets_its_name_when_all_of_it_is_there(command: list[str], tmp_path: Path) -> None:
    """Whoever finds the file finds the whole of it."""

    async def cut(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")

    page = tmp_path / "page"
    page.write_text("before")
    async with web(cut=cut, hi=HI) as there:
        broken = await run(*command, "-o", str(page), f"{there.url}/cut")
        assert (broken.returncode, page.read_text()) == (125, "before")
        assert b"HTTP request failed" in broken.stderr

        whole = await run(*command, "-o", str(page), f"{there.url}/hi")
        assert (whole.returncode, whole.stdout, page.read_text()) == (0, b"", "hi")
    assert list(tmp_path.iterdir()) == [page]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
async def test_nothing_is_left_of_a_file_when_the_command_is_ended(
    command: list[str], tmp_path: Path, number: int, code: int
) -> None:
    async def half(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
        await visit.left()

    async with web(half=half) as there:
        process = await asyncio.create_subprocess_exec(
            *HOLDFAST,
            *(*command, "-o", str(tmp_path / "page"), f"{there.url}/half"),
            env={**os.environ, **SILENT},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        await eventually(lambda: any(tmp_path.iterdir()))
        process.send_signal(number)
        _, said = await process.communicate()

    assert (process.returncode, list(tmp_path.iterdir())) == (code, [])
    assert said.endswith(b"/half is not fetched completely\n")


async def test_no_response_is_our_failure(command: list[str]) -> None:
    async def hold(visit: Visit) -> None:
        await visit.left()

    async with web(hold=hold) as there:
        gone = await run(*command, "http://127.0.0.1:1/")
        late = await run(*command, "--timeout", "100ms", f"{there.url}/hold")
        scheme = await run(*command, "file:///etc/passwd")

        assert (gone.returncode, late.returncode, scheme.returncode) == (125, 124, 125)
        assert b"127.0.0.1:1" in gone.stderr
        assert b"timed out" in late.stderr
        assert scheme.stderr == b"holdfast: only http and https can be asked for, not file\n"


async def test_much_goes_through_little_memory(command: list[str]) -> None:
    async def much(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % MUCH)
        for _ in range(MUCH // len(BLOCK)):
            await visit.send(BLOCK)

    digest, expected, most = sha256(), sha256(), 0
    async with web(much=much) as there:
        process = await asyncio.create_subprocess_exec(
            *HOLDFAST,
            *command,
            f"{there.url}/much",
            env={**os.environ, **SILENT},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        while data := await process.stdout.read(1 << 20):
            digest.update(data)
            most = max(most, _peak(process.pid))
        assert await process.wait() == 0

    for _ in range(MUCH // len(BLOCK)):
        expected.update(BLOCK)
    assert digest.digest() == expected.digest()
    assert 0 < most < BOUND


def _peak(pid: int) -> int:
    """The most memory that a process has had, in bytes; 0 if it has ended."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return 0 if found is None else int(found[1]) << 10


async def test_a_reader_that_has_enough_ends_the_command(command: list[str]) -> None:
    """``holdfast fetch URL | head -c1``, as with any program."""
    sent = asyncio.Event()

    async def endless(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\n\r\n")
        sent.set()
        while True:
            await visit.send(BLOCK)

    async with web(endless=endless) as there:
        process = await asyncio.create_subprocess_exec(
            *HOLDFAST,
            *command,
            f"{there.url}/endless",
            env={**os.environ, **SILENT},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            limit=1 << 10,
        )
        assert process.stdout is not None
        await process.stdout.readexactly(1)
        process._transport.get_pipe_transport(1).close()  # type: ignore[attr-defined]
        async with asyncio.timeout(2 * PATIENCE):
            assert await process.wait() == 141
