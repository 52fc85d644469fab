"""The client library on the reference's own server: run where ``HOLDFAST_REFERENCE`` names its program.

That server knows no window, no close of stdin and one signal.  What it can do, the same
interface does; what it cannot is refused by name.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import holdfast
from holdfast.client.remote import RemoteBackend
from holdfast.errors import Fault, FileFailed, SpawnFailed, Unsupported
from holdfast.files import Purpose
from holdfast.model import Kind, Limits, ProcessTerms, Size, WriteStatus
from holdfast.place import Naming
from tests.fakes.backends import REFERENCE, stranger
from tests.fakes.faults import Fault as Break
from tests.fakes.faults import Trouble, Way, bad_network
from tests.fakes.process import PATIENCE, command, sh
from tests.fakes.recorder import Recorder, finished, record

pytestmark = pytest.mark.skipif(REFERENCE is None, reason="HOLDFAST_REFERENCE names no program")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The reference's server."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"ws://127.0.0.1:{port}"
    assert REFERENCE is not None
    said = tmp_path_factory.mktemp("reference") / "said"
    with stranger((REFERENCE, "exec-server", "--listen", address), said, lines=1):
        yield address


@pytest.fixture
async def backend(url: str) -> AsyncIterator[RemoteBackend]:
    made = RemoteBackend(url, reconnect_timeout=PATIENCE)
    await made.open()
    yield made
    await made.aclose()


async def test_a_process_speaks_exits_and_closes(backend: RemoteBackend) -> None:
    recorder = await finished(await backend.start(sh("echo out; echo err >&2; exit 3")))

    assert (sorted(recorder.said().split()), recorder.told[-2:]) == (
        [b"err", b"out"],
        [("exited", 3), ("closed",)],
    )
    assert recorder.numbers == [1, 2, 3, 4]


async def test_a_terminal_is_written_to_and_read(backend: RemoteBackend) -> None:
    recorder = record(process := await backend.start(command("cat", terminal=Size())))

    assert await process.write(b"hello\n\x04") is WriteStatus.ACCEPTED

    await recorder.until("closed")
    assert recorder.said() == b"hello\r\nhello\r\n"


async def test_a_write_is_written_once(backend: RemoteBackend) -> None:
    recorder = record(process := await backend.start(command("head", "-c", "6", stdin=True)))

    for word in (b"one", b"ONE"):
        assert await process.write(word, write_id="1") is WriteStatus.ACCEPTED
    await process.write(b"two", write_id="2")

    await recorder.until("closed")
    assert recorder.said() == b"onetwo"


async def test_what_cannot_be_started_is_told(backend: RemoteBackend) -> None:
    with pytest.raises(SpawnFailed) as caught:
        await backend.start(command("no-such-program"))

    assert caught.value.fault is Fault.PROGRAM


async def test_an_end_and_an_interrupt(backend: RemoteBackend) -> None:
    first = record(waiting := await backend.start(command("sleep", "1000")))
    second = record(
        trapped := await backend.start(sh("trap 'exit 5' INT; echo ready; while :; do sleep 0.01; done"))
    )
    await second.until("stdout", b"ready\n")

    await trapped.signal(signal.SIGINT)
    await waiting.end()

    await first.until("closed")
    await second.until("closed")
    assert second.exit is not None
    assert second.exit.code == 5


async def test_what_it_cannot_do_is_refused_by_name(backend: RemoteBackend) -> None:
    process = await backend.start(command("cat", stdin=True))

    with pytest.raises(Unsupported, match="the end of stdin"):
        await process.close_stdin()
    with pytest.raises(Unsupported, match="timeout"):
        await backend.start(sh("true", terms=ProcessTerms(timeout=1)))
    with pytest.raises(Unsupported, match="limits"):
        await backend.start(sh("true", terms=ProcessTerms(limits=Limits(processes=1))))
    with pytest.raises(Unsupported, match="keep"):
        await backend.start(command("true"), Naming(keep=True))
    with pytest.raises(Unsupported, match="a list of processes"):
        await backend.list()
    await process.end()


async def test_files_are_read_and_written(backend: RemoteBackend, tmp_path: Path) -> None:
    path, data = str(tmp_path / "a b"), random.Random(1).randbytes(3 << 20)  # noqa: S311

    await backend.files.write(path, data)
    opened = await backend.files.open(path, Purpose.READ)
    piece = await opened.read(1 << 20, 1000)
    opened.close()

    assert await backend.files.read(path, at_once=16 << 20) == data
    assert piece == data[1 << 20 : (1 << 20) + 1000]
    with pytest.raises(FileFailed):
        await backend.files.metadata(str(tmp_path / "nothing"))


async def test_a_host_runs_commands(url: str) -> None:
    async with holdfast.connect(url) as host:
        done = await host.run(["sh", "-c", "echo out; exit 2"], capture_output=True)
        with pytest.raises(Unsupported, match="the end of stdin"):
            await host.run(["cat"], input=b"x", capture_output=True)

    assert (done.returncode, done.stdout, done.outcome.kind) == (2, b"out\n", Kind.EXIT)


@pytest.mark.timeout(120)
async def test_connections_that_break_lose_and_double_nothing(url: str) -> None:
    """It resumes sessions too; only what it keeps, one mebibyte, bounds how far behind one may be."""
    chance, sent, count = random.Random(3), hashlib.sha256(), 100  # noqa: S311

    def plan(number: int) -> Break | None:
        trouble = chance.choice((Trouble.CUT, Trouble.HALF_CLOSE))
        way, at = chance.choice(((Way.THERE, 1_000), (Way.BACK, 3_500)))
        return Break(trouble, way, at + chance.randrange(20_000)) if number < count else None

    recorder = Recorder()
    async with bad_network(url, plan) as (proxy, network):
        backend = RemoteBackend(proxy, heartbeat=1.0, reconnect_timeout=2 * PATIENCE)
        await backend.open()
        process = await backend.start(sh("exec head -c 400000", stdin=True))
        process.watch(recorder)
        left = 400_000
        while left:
            text = chance.randbytes(min(left, chance.randrange(1, 3_000)))
            sent.update(text)
            left -= len(text)
            assert await process.write(text) is WriteStatus.ACCEPTED
        async with asyncio.timeout(60):
            await recorder.until("closed")
        await backend.aclose()

    assert hashlib.sha256(recorder.said()).hexdigest() == sent.hexdigest()
    assert recorder.numbers == list(range(1, len(recorder.numbers) + 1))
    assert network.faults >= 20
