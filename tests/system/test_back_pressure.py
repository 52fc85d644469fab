"""Peers that do not read: they slow down themselves and nobody else, and cost bounded memory."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator

import pytest

from tests.fakes.client import Client, Tale, client, start_params
from tests.fakes.frames import TEXT, frame_bytes
from tests.fakes.server import Program, eventually, program_at, resident_bytes

MIB = 1 << 20

NOISE = "import os, sys\nfor n in range({count}): sys.stdout.buffer.write(bytes([n % 251]) * 65536)"
"""Prints blocks of 64 KiB that differ from their neighbours."""


def noise_hash(count: int) -> str:
    digest = hashlib.sha256()
    for number in range(count):
        digest.update(bytes([number % 251]) * 65536)
    return digest.hexdigest()


@pytest.fixture
def served() -> Iterator[tuple[Program, str]]:
    """A server of its own for each test, because they look at its memory."""
    with program_at() as served:
        yield served


async def settled(server: Program) -> int:
    """The server's memory once it has not grown for a while."""
    sizes = [0]

    def is_settled() -> bool:
        sizes.append(resident_bytes(server.pid))
        return len(sizes) > 40 and max(sizes[-40:]) - min(sizes[-40:]) < 65_536

    await eventually(is_settled)
    return sizes[-1]


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(60)
async def test_a_peer_that_stops_reading_blocks_its_own_child_only_and_gets_every_byte(
    served: tuple[Program, str],
) -> None:
    """500 MiB nobody reads stay in the child; after reading on, nothing is missing."""
    server, url = served
    blocks = 8000
    async with client(url) as stalled, client(url) as other:
        await other.start("warm", "head", "-c", "10000000", "/dev/zero")
        await other.closed("warm")
        before = resident_bytes(server.pid)
        stalled.stop_listening()
        start = stalled.post("process/start", start_params("p", "python3", "-c", NOISE.format(count=blocks)))
        grown = await settled(server) - before

        await other.start("p", "echo", "hi")
        other_tale = await other.closed("p")

        digest, tale = hashlib.sha256(), stalled.tale("p")
        stalled.on_message = lambda _: _digest_and_drop(tale, digest)
        stalled.listen_again()
        await stalled.result(start)
        await stalled.closed("p", within=40)

    assert grown < 16 * MIB
    assert other_tale.data() == b"hi\n"
    assert digest.hexdigest() == noise_hash(blocks)
    assert tale.exit_codes == [0]


def _digest_and_drop(tale: Tale, digest: hashlib._Hash) -> None:
    """Keep the hash of the output, not the output."""
    digest.update(tale.data())
    tale.events = [event for event in tale.events if event[0] != "output"]


@pytest.mark.slow
async def test_a_peer_that_sends_requests_and_never_reads_answers_is_bounded(
    served: tuple[Program, str],
) -> None:
    """Answers nobody takes must not pile up: the server stops reading such a peer."""
    server, url = served
    talking = await Client.open(url)
    await talking.start("p", "head", "-c", "1000000", "/dev/zero")
    await talking.closed("p")
    before = resident_bytes(server.pid)
    talking.stop_listening()

    request = frame_bytes(TEXT, b'{"id":1,"method":"process/read","params":{"processId":"p"}}')
    talking.wire.writer.write(request * 5000)
    grown = await settled(server) - before
    async with client(url) as other:
        status = await other.call("environment/status")
    await talking.abort()

    assert grown < 160 * MIB
    assert status == {"status": "ready"}


@pytest.mark.slow
async def test_large_answers_nobody_reads_are_bounded_too(served: tuple[Program, str]) -> None:
    """Requests that arrive together and ask for 20 MiB each must not all be answered at once."""
    server, url = served
    async with client(url) as first:
        await first.start("p", "sh", "-c", "read go; head -c 31457280 /dev/zero", pipeStdin=True)
        await first.write("p", b"\n", "w")
        await first.abort()
    talking = await Client.open(url, resume=first.session)
    while not (await talking.read("p", afterSeq=1 << 60, waitMs=10_000))["closed"]:
        pass
    before = resident_bytes(server.pid)
    talking.stop_listening()

    params = b'{"processId":"p","maxBytes":20971520}'
    request = frame_bytes(TEXT, b'{"id":1,"method":"process/read","params":%b}' % params)
    talking.wire.writer.write(request * 50)
    grown = await settled(server) - before
    await talking.abort()

    assert grown < 250 * MIB


@pytest.mark.slow
async def test_a_blocked_peer_can_still_end_its_process_once_it_reads(served: tuple[Program, str]) -> None:
    """Back pressure must not turn into a deadlock between the peer and its own requests."""
    server, url = served
    async with client(url) as talking:
        # Its answer is awaited: what ends a start that is under way is told otherwise.
        await talking.start("p", "cat", "/dev/zero")
        talking.stop_listening()
        await settled(server)
        terminate = talking.post("process/terminate", {"processId": "p"})
        talking.listen_again()

        assert await talking.result(terminate) == {"running": True, "survivors": [], "treeExact": True}
        tale = await talking.closed("p")

    assert tale.exit_codes == [137]
    assert tale.seqs == list(range(1, len(tale.seqs) + 1))


@pytest.mark.slow
async def test_many_stalled_peers_cost_bounded_memory_each(served: tuple[Program, str]) -> None:
    """The bound is per connection, and small enough to be multiplied."""
    server, url = served
    before = resident_bytes(server.pid)
    stalled = [await Client.open(url) for _ in range(10)]
    for peer in stalled:
        peer.stop_listening()
        peer.post("process/start", start_params("p", "cat", "/dev/zero"))

    grown = await settled(server) - before
    await asyncio.gather(*(peer.abort() for peer in stalled))

    assert grown < 10 * 8 * MIB
