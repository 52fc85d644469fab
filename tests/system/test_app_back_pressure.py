"""App clients that do not read: they slow down themselves and nobody else, and cost bounded memory."""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.app_client import AppClient, Place, StdioLink, app_client, exec_params, serving, spawn_params
from tests.fakes.client import Message
from tests.fakes.server import Sighting, commands, eventually, resident_bytes

MIB = 1 << 20

BLOCKS = 1200
"""Blocks of 64 KiB: far more than pipes, sockets and buffers hold together."""

NOISE = "import sys\nfor n in range(int(sys.argv[1])): sys.stdout.buffer.write(bytes([n % 251]) * 65536)\n"
"""Prints blocks of 64 KiB that differ from their neighbours."""


def noise(blocks: int) -> tuple[str, ...]:
    return ("python3", "-c", NOISE, str(blocks))


def noise_hash(blocks: int) -> str:
    digest = hashlib.sha256()
    for number in range(blocks):
        digest.update(bytes([number % 251]) * 65536)
    return digest.hexdigest()


class Digest:
    """Keeps the hash of the output, not the output."""

    def __init__(self, client: AppClient) -> None:
        self._digest = hashlib.sha256()
        self.size = 0
        client.keeps_output = False
        client.on_message = self._hear

    def _hear(self, message: Message) -> None:
        if "outputDelta" in message.get("method", ""):
            data = base64.b64decode(message["params"]["deltaBase64"])
            self._digest.update(data)
            self.size += len(data)

    @property
    def hash(self) -> str:
        return self._digest.hexdigest()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A server of its own for each test, because they look at its memory."""
    with serving("ws", tmp_path) as place:
        yield place


async def settled(pid: int) -> int:
    """A server's memory once it has not grown for a while."""
    sizes = [0]

    def is_settled() -> bool:
        sizes.append(resident_bytes(pid))
        return len(sizes) > 40 and max(sizes[-40:]) - min(sizes[-40:]) < 65_536

    await eventually(is_settled)
    return sizes[-1]


async def warm_up(client: AppClient) -> None:
    """Let the server allocate once what it needs for any output at all."""
    await client.spawn("warm", *noise(100), streamStdoutStderr=True, outputBytesCap=None)
    await client.exited("warm")


REQUESTS: dict[str, tuple[str, Message]] = {
    "process": (
        "process/spawn",
        spawn_params("h", *noise(BLOCKS), streamStdoutStderr=True, outputBytesCap=None, timeoutMs=None),
    ),
    "command": (
        "command/exec",
        exec_params(
            *noise(BLOCKS),
            processId="h",
            streamStdoutStderr=True,
            disableOutputCap=True,
            disableTimeout=True,
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.parametrize(("transport", "family"), [("ws", "process"), ("unix", "command")])
async def test_a_client_that_stops_reading_slows_its_own_process_only_and_gets_every_byte(
    tmp_path: Path, transport: str, family: str
) -> None:
    """What nobody reads stays in the child; after reading on, nothing is missing."""
    with serving(transport, tmp_path) as place:
        await stall(place, family)


async def stall(place: Place, family: str) -> None:
    assert place.program is not None
    pid = place.program.pid
    async with app_client(place) as stalled, app_client(place) as other:
        await warm_up(stalled)
        digest = Digest(stalled)
        before = await settled(pid)
        stalled.stop_listening()
        started = stalled.post(*REQUESTS[family])
        grown = await settled(pid) - before

        others = await other.execute("sh", "-c", "head -c 500000 /dev/zero")
        stalled.listen_again()
        answer = await stalled.answer(started)
        if family == "process":
            told = await stalled.exited("h")

    assert grown < BLOCKS * 65_536 // 8
    assert others["stdout"] == "\0" * 500_000
    assert digest.size == BLOCKS * 65_536
    assert digest.hash == noise_hash(BLOCKS)
    if family == "process":
        assert answer["result"] == {}
        assert (told["exitCode"], told["outputDrainTimedOut"]) == (0, False)
    else:
        assert answer["result"] == {"exitCode": 0, "stdout": "", "stderr": ""}


@pytest.mark.slow
@pytest.mark.stress
async def test_a_stalled_reader_on_standard_output_is_bounded_too(tmp_path: Path) -> None:
    """A pipe has other buffers than a socket, and the same promise."""
    with serving("stdio", tmp_path) as place:
        async with app_client(place) as stalled:
            assert isinstance(stalled.link, StdioLink)
            pid = stalled.link.process.pid
            await warm_up(stalled)
            digest = Digest(stalled)
            before = await settled(pid)
            # The pipe behind this link is read by the loop itself, which must be told to stop as well.
            stalled.stop_listening()
            stalled.link.pause()
            stalled.post(*REQUESTS["process"])
            grown = await settled(pid) - before
            stalled.link.resume()
            stalled.listen_again()
            told = await stalled.exited("h")

    assert grown < BLOCKS * 65_536 // 8
    assert (digest.size, digest.hash) == (BLOCKS * 65_536, noise_hash(BLOCKS))
    assert told["exitCode"] == 0


@pytest.mark.slow
async def test_a_client_that_stopped_reading_can_kill_its_process_once_it_reads(place: Place) -> None:
    """Back pressure must not turn into a deadlock between a client and its own requests."""
    async with app_client(place) as talking:
        Digest(talking)
        talking.stop_listening()
        posted = talking.post(
            "process/spawn",
            spawn_params(
                "h", "cat", "/dev/zero", streamStdoutStderr=True, outputBytesCap=None, timeoutMs=None
            ),
        )
        killed = talking.post("process/kill", {"processHandle": "h"})
        talking.listen_again()
        answers = [await talking.result(posted), await talking.result(killed)]
        told = await talking.exited("h")

    assert answers == [{}, {}]
    assert told["exitCode"] == 137


def cats(pid: int) -> set[Sighting]:
    """The commands that clients have started; the server may try out sandboxes at the same time."""
    found = set()
    for each in commands(pid):
        with contextlib.suppress(OSError):  # It has ended.
            if Path(f"/proc/{each.pid}/comm").read_text() == "cat\n":
                found.add(each)
    return found


@pytest.mark.slow
async def test_a_stalled_clients_processes_end_with_it(place: Place) -> None:
    """Whatever is still unsent is nobody's any more."""
    assert place.program is not None
    pid = place.program.pid
    stalled = AppClient(await place.link())
    await stalled.initialize()
    stalled.stop_listening()
    options: dict[str, Any] = {"streamStdoutStderr": True, "outputBytesCap": None, "timeoutMs": None}
    for number in range(5):
        stalled.post("process/spawn", spawn_params(f"h{number}", "cat", "/dev/zero", **options))
    await eventually(lambda: len(cats(pid)) == 5)
    await settled(pid)
    children = cats(pid)
    await stalled.abort()
    await eventually(lambda: not commands(pid))

    assert len(children) == 5
