"""The system runs out of descriptors, disk or memory.  What cannot be had is refused, with the reason."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.fakes.attackers import dial, reset
from tests.fakes.client import Refusal
from tests.fakes.company import company, no_trace
from tests.fakes.server import SETTLE, Program, eventually, open_files, program_at, serving
from tests.fakes.trees import exit_of, knowing
from tests.fakes.web import web

MIB = 1 << 20
FILES = 80
"""Descriptors that the server may have: about three times what it holds when it idles."""

pytestmark = pytest.mark.slow


def limit_files(program: Program, number: int) -> None:
    subprocess.run(["prlimit", "--pid", str(serving(program.pid)), f"--nofile={number}:{number}"], check=True)


# Descriptors.


@contextlib.asynccontextmanager
async def without_files(program: Program, url: str) -> AsyncIterator[None]:
    """While the body runs the server has no descriptor left."""
    limit_files(program, FILES)
    holders: list[socket.socket] = []
    while open_files(program.pid) < FILES and len(holders) < 2 * FILES:
        holders.append(dial(url))
        await eventually(lambda: open_files(program.pid) >= min(FILES, len(holders)))
    try:
        yield
    finally:
        for each in holders:
            reset(each)


@pytest.mark.timeout(90)
async def test_without_descriptors_requests_are_refused_with_the_reason(tmp_path: Path) -> None:
    """And everything that others have goes on; afterwards all is as before."""
    with program_at() as (program, url):
        async with no_trace(program, url), web() as site, company(url) as neighbours, knowing(url) as talking:
            await talking.start("p", "cat", pipeStdin=True)
            await asyncio.sleep(SETTLE)
            requests = {
                "process/start": {
                    "processId": "q",
                    "argv": ["true"],
                    "cwd": "file:///",
                    "env": {},
                    "tty": False,
                },
                "fs/open": {"handleId": "h", "path": "file:///etc/passwd"},
                "fs/readFile": {"path": "file:///etc/passwd"},
                "fs/readDirectory": {"path": "file:///etc"},
                "fs/writeFile": {"path": (tmp_path / "none").as_uri(), "dataBase64": ""},
                "http/request": {"requestId": "r", "method": "GET", "url": site.url},
            }
            async with without_files(program, url):
                for method, params in requests.items():
                    with pytest.raises(Refusal) as caught:
                        await talking.call(method, params)
                    assert "internal error" not in caught.value.text, (method, caught.value.error)
                    assert "open files" in str(caught.value.error), (method, caught.value.error)
                with pytest.raises(Refusal, match="open files"):
                    await talking.start("t", "true", tty=True)
                await neighbours.is_well()
                assert await talking.write("p", b"x", "w") == "accepted"
            await eventually(lambda: open_files(program.pid) < FILES)
            await neighbours.is_well()
            for method, params in requests.items():
                if method != "fs/writeFile":
                    await talking.call(method, params)
            await talking.call("session/close")
            async with knowing(url) as another:  # Whoever waited to be accepted is.
                await another.call("session/close")


# A disk.


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system with room for little."""
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,nr_inodes=20", "none", str(place)],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("no file system can be mounted here")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


async def test_a_full_disk_is_told_and_nothing_is_claimed(small_disk: Path) -> None:
    """What was there before is still there, or what is left of it is not said to be whole."""
    with program_at() as (program, url):
        async with no_trace(program, url), company(url, 1) as neighbours, knowing(url) as talking:
            uri = small_disk.as_uri()
            data = base64.b64encode(bytes(MIB)).decode()
            (small_disk / "there").write_bytes(b"before")
            big = small_disk.parent / "big"
            big.write_bytes(bytes(MIB))
            for method, params in (
                ("fs/writeFile", {"path": f"{uri}/new", "dataBase64": data}),
                (
                    "fs/copy",
                    {"sourcePath": big.as_uri(), "destinationPath": f"{uri}/copy", "recursive": False},
                ),
            ):
                with pytest.raises(Refusal, match="No space left on device"):
                    await talking.call(method, params)
            await talking.call("fs/open", {"handleId": "h", "path": f"{uri}/blocks", "mode": "replace"})
            written = 0
            chunk = base64.b64encode(bytes(64 * 1024)).decode()
            with contextlib.suppress(Refusal):
                while written < MIB:
                    await talking.call("fs/writeBlock", {"handleId": "h", "chunk": chunk, "offset": written})
                    written += 64 * 1024
            with pytest.raises(Refusal, match="No space left on device"):
                await talking.call("fs/writeBlock", {"handleId": "h", "chunk": chunk, "offset": written})
            await talking.call("fs/close", {"handleId": "h"})
            assert (small_disk / "blocks").stat().st_size >= written
            assert (small_disk / "there").read_bytes() == b"before"
            await neighbours.is_well()
            for name in os.listdir(small_disk):
                (small_disk / name).unlink()
            await talking.call("fs/writeFile", {"path": f"{uri}/new", "dataBase64": data[: 64 * 1024]})
            await talking.call("session/close")


# Memory.

HOG = "b = []\nwhile True: b.append(bytearray(1 << 20))"


async def test_a_command_that_runs_out_of_memory_takes_nobody_along() -> None:
    """Neither the server nor anybody else's command."""
    with program_at() as (program, url):
        async with no_trace(program, url), company(url) as neighbours, knowing(url) as talking:
            for number in range(2):
                name = f"hog{number}"
                await talking.start(name, "python3", "-c", HOG, limits={"memoryBytes": 64 * MIB})
                end = await exit_of(talking, name)
                assert (end["outcome"]["kind"], end["exitCode"]) == ("oom", 137)
            await neighbours.is_well()
            await talking.call("session/close")


@pytest.fixture
def group() -> Iterator[Path]:
    """A control group of our own that allows little memory."""
    for root in (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")):
        place = root / f"holdfast-test-{os.getpid()}"
        with contextlib.suppress(OSError):
            place.mkdir()
            limit = place / ("memory.limit_in_bytes" if root.name == "memory" else "memory.max")
            with contextlib.suppress(OSError):
                limit.write_text(str(48 * MIB))
                yield place
                place.rmdir()
                return
            place.rmdir()
    pytest.skip("no control group can be made here")


async def test_a_command_that_the_kernel_kills_for_memory_is_told_as_killed(group: Path) -> None:
    """The group is not ours, so nobody but the kernel knows why; the server and others go on."""
    with program_at() as (program, url):
        async with no_trace(program, url), company(url) as neighbours, knowing(url) as talking:
            script = f"echo $$ > {group}/cgroup.procs; exec python3 -c '{HOG}'"
            await talking.start("hog", "sh", "-c", script)
            end = await exit_of(talking, "hog")
            assert end["exitCode"] == 137
            assert end["outcome"]["signal"] == "SIGKILL"
            await neighbours.is_well()
            await talking.call("session/close")
