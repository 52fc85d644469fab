"""Sessions that outlive their connection: what a client finds when it comes back."""

from __future__ import annotations

import contextlib
import os
import random
import tempfile
from collections.abc import Iterator

import pytest

from tests.fakes.client import (
    Client,
    Message,
    Refusal,
    client,
    page_bytes,
    sha256,
    start_params,
)
from tests.fakes.server import Program, commands, eventually, program_at, resident_bytes, serving

MIB = 1 << 20

GENERATE = "import random, sys; r = random.Random({seed}); w = sys.stdout.buffer.write"
"""The beginning of a child whose output the test can make itself."""


def generator(seed: int, mebibytes: int) -> tuple[str, str]:
    """A Python program that prints so much, and the hash of what it prints."""
    source = f"{GENERATE.format(seed=seed)}\nfor _ in range({mebibytes}): w(r.randbytes({MIB}))"
    numbers = random.Random(seed)  # noqa: S311  (a repeatable output, not a secret)
    return source, sha256(b"".join(numbers.randbytes(MIB) for _ in range(mebibytes)))


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    """One server for all tests of this module; each has its own session."""
    with program_at() as served:
        yield served


@pytest.fixture
def url(served: tuple[Program, str]) -> str:
    return served[1]


async def leave_behind(server: Program, url: str, *argv: str) -> str:
    """Start a process that begins when its client is gone, and wait for its end; gives the session."""
    before = commands(server.pid)
    with tempfile.TemporaryDirectory() as folder:
        door = os.path.join(folder, "door")
        os.mkfifo(door)
        first = await Client.open(url)
        await first.start("p", "sh", "-c", 'read go <"$0"; exec "$@"', door, *argv)
        with_client = sockets(server)
        await first.abort()
        # What the server still sends to a client that it takes for alive is not kept for its return.
        await eventually(lambda: sockets(server) < with_client, within=20)
        opened = os.open(door, os.O_RDWR)
        os.write(opened, b"\n")
        await eventually(lambda: commands(server.pid) <= before, within=60)
        os.close(opened)
    return first.session


def sockets(server: Program) -> int:
    """How many the server has open: one fewer once it knows that a client is gone."""
    folder = f"/proc/{serving(server.pid)}/fd"
    links = []
    for name in os.listdir(folder):
        with contextlib.suppress(OSError):
            links.append(os.readlink(f"{folder}/{name}"))
    return sum(link.startswith("socket:") for link in links)


async def read_all(talking: Client, name: str, *, after: int = 0) -> list[Message]:
    """Read page after page until the process has closed and nothing is left."""
    pages = []
    while True:
        page = await talking.read(name, afterSeq=after, waitMs=10_000)
        pages.append(page)
        if page["closed"] and page["nextSeq"] - 1 <= after:
            return pages
        after = page["nextSeq"] - 1


@pytest.mark.slow
async def test_resume_keeps_sequence_and_write_ids(url: str) -> None:
    """A lost connection is invisible to the process and to everything counted for it."""
    async with client(url) as first:
        await first.start("p", "cat", pipeStdin=True)
        assert await first.write("p", b"one\n", "w1") == "accepted"
        await first.until(lambda: first.tale("p").seqs == [1])
        await first.abort()

    async with client(url, resume=first.session) as second:
        assert second.session == first.session
        assert await second.write("p", b"again\n", "w1") == "accepted"
        assert await second.write("p", b"two\n", "w2") == "accepted"
        await second.until(lambda: second.tale("p").seqs == [2])
        page = await second.read("p")
        await second.terminate("p")
        tale = await second.closed("p")

    assert page_bytes(page) == b"one\ntwo\n"
    assert tale.seqs == [2, 3, 4]


async def test_missed_notifications_are_not_sent_again_but_can_be_read(served: tuple[Program, str]) -> None:
    """The client says with a number what it has; the server does not guess."""
    server, url = served
    session = await leave_behind(server, url, "sh", "-c", "echo missed; exit 7")

    async with client(url, resume=session) as second:
        page = await second.read("p")

    assert page_bytes(page) == b"missed\n"
    assert (page["exitCode"], page["closed"], page["nextSeq"]) == (7, True, 4)
    assert second.tales == {}


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_all_output_of_a_detached_time_is_there_after_resume(served: tuple[Program, str]) -> None:
    """A client that comes back within the time finds everything, far more than an attached one could."""
    server, url = served
    source, expected = generator(1, 30)
    session = await leave_behind(server, url, "python3", "-c", source)
    async with client(url, resume=session) as second:
        pages = await read_all(second, "p")
        again = await second.read("p")

    assert sha256(b"".join(map(page_bytes, pages))) == expected
    assert len(page_bytes(again)) <= MIB, "what was read is kept no longer than for any attached client"
    assert [chunk["seq"] for page in pages for chunk in page["chunks"]] == list(
        range(1, 1 + sum(len(page["chunks"]) for page in pages))
    )


@pytest.mark.slow
async def test_answers_above_eight_mebibytes_arrive_in_fragments(served: tuple[Program, str]) -> None:
    """Peers refuse frames above 16 MiB; a long answer must not break the connection it answers on."""
    server, url = served
    source, expected = generator(2, 20)
    session = await leave_behind(server, url, "python3", "-c", source)
    async with client(url, resume=session) as second:
        page = await second.read("p")
        largest = second.largest_frame

    assert sha256(page_bytes(page)) == expected
    assert 4 * MIB < largest <= 8 * MIB


@pytest.mark.slow
async def test_the_limit_of_a_detached_process_is_honoured() -> None:
    """What one process keeps for an absent client is a setting, and the newest output is what stays."""
    with program_at("--retain-detached-bytes", str(3 * MIB)) as (server, url):
        session = await leave_behind(server, url, "sh", "-c", "head -c 9000000 /dev/zero; printf END")
        async with client(url, resume=session) as second:
            data = page_bytes(await second.read("p"))

    assert 2 * MIB < len(data) <= 3 * MIB
    assert data.endswith(b"END")


@pytest.mark.slow
async def test_the_total_budget_is_honoured() -> None:
    """Many absent clients together must not cost more than the server was given."""
    with program_at("--retain-total-bytes", str(8 * MIB)) as (server, url):
        before = resident_bytes(server.pid)
        sessions = [await leave_behind(server, url, "head", "-c", "6291456", "/dev/zero") for _ in range(8)]
        grown = resident_bytes(server.pid) - before
        kept = 0
        for session in sessions:
            async with client(url, resume=session) as back:
                kept += len(page_bytes(await back.read("p")))

    assert grown < 24 * MIB
    # Each process may keep its newest chunk, or it could say nothing once others have used up everything.
    assert MIB < kept <= 8 * MIB + 8 * 65_536


async def test_a_live_holder_keeps_its_session_when_another_client_wants_it(url: str) -> None:
    """Nobody takes a session from a client that answers."""
    async with client(url) as holder:
        await holder.start("p", "cat", pipeStdin=True)
        contender = await Client.connect(url)
        with pytest.raises(Refusal) as refusal:
            await contender.initialize(holder.session)
        fresh = await contender.initialize()
        await contender.close()
        assert await holder.write("p", b"mine", "w") == "accepted"
        await holder.until(lambda: holder.tale("p").data() == b"mine")
        await holder.terminate("p")

    assert refusal.value.code == -32010
    assert refusal.value.text == f"session {holder.session} is already attached to another connection"
    assert fresh["sessionId"] != holder.session


@pytest.mark.slow
async def test_a_silent_holder_loses_its_session_to_the_client_that_asks(url: str) -> None:
    """After a network drop the server still believes in the old connection; the probe finds out."""
    silent = await Client.open(url, answers_pings=False)
    await silent.start("p", "cat", pipeStdin=True)

    async with client(url, resume=silent.session) as heir:
        assert heir.session == silent.session
        assert await heir.write("p", b"mine now", "w") == "accepted"
        await heir.until(lambda: heir.tale("p").data() == b"mine now")
        await heir.terminate("p")
        farewell = await silent.ended()

    await silent.close()
    assert farewell is not None
    assert farewell.close_code == 1008
    assert "resumed by another connection" in farewell.close_reason


@pytest.mark.parametrize("key", ["", "x", "00000000-0000-4000-8000-000000000000"])
async def test_an_unknown_session_is_refused_and_the_client_may_try_again(url: str, key: str) -> None:
    """A client that comes back too late learns it and can begin anew on the same connection."""
    late = await Client.connect(url)

    with pytest.raises(Refusal) as refusal:
        await late.initialize(key)
    fresh = await late.initialize()
    await late.close()

    assert (refusal.value.code, refusal.value.text) == (-32600, f"unknown session id {key}")
    assert fresh["sessionId"]


async def test_processes_of_two_sessions_do_not_meet(url: str) -> None:
    """A name belongs to its session."""
    async with client(url) as one, client(url) as two:
        await one.start("p", "sleep", "1000")
        with pytest.raises(Refusal, match="unknown process id p"):
            await two.read("p")
        assert not await two.terminate("p")
        assert await one.terminate("p")


async def test_output_flows_as_soon_as_a_resumed_session_is_answered(url: str) -> None:
    """Notifications do not wait for ``initialized``, which tells the server nothing it needs for them."""
    async with client(url) as first:
        await first.start("p", "sh", "-c", "while :; do echo tick; sleep 0.01; done")
        await first.abort()
    back = await Client.connect(url)
    await back.call("initialize", {"clientName": "test", "resumeSessionId": first.session})

    await back.until(lambda: back.tale("p").events)

    back.notify("initialized")
    assert await back.terminate("p")
    await back.close()


@pytest.mark.slow
async def test_a_child_that_was_blocked_by_its_client_goes_on_when_the_client_is_lost(
    served: tuple[Program, str],
) -> None:
    """Without a client nothing may hold a process up, however much it prints."""
    server, url = served
    before = commands(server.pid)
    first = await Client.open(url)
    first.stop_listening()
    first.post("process/start", start_params("p", "sh", "-c", "head -c 50000000 /dev/zero; exit 9"))
    await eventually(lambda: len(commands(server.pid) - before) >= 1)
    await first.abort()

    await eventually(lambda: commands(server.pid) <= before)

    async with client(url, resume=first.session) as second:
        assert (await second.read("p", afterSeq=1 << 60))["exitCode"] == 9
