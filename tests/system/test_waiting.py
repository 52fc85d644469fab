"""Nothing that waits holds up anything else: slow starts, blocked writes, long polls."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.client import Client, Refusal, client, sha256, start_params, write_params
from tests.fakes.frames import CLOSE
from tests.fakes.server import (
    Program,
    commands,
    eventually,
    held_program,
    program_at,
    starts_under_way,
)

BLOCK = b"x" * 65_536


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    """One server for all tests of this module; each has its own session."""
    with program_at() as served:
        yield served


@pytest.fixture
def url(served: tuple[Program, str]) -> str:
    return served[1]


# Blocked writes.


@pytest.mark.slow
@pytest.mark.parametrize("count", [140, 1000])
async def test_blocked_writes_delay_nobody_and_terminate_least_of_all(url: str, count: int) -> None:
    """The client must be able to kill exactly the process that does not read."""
    async with client(url) as talking:
        await talking.start("p", "sleep", "1000", pipeStdin=True)
        writes = [
            talking.post("process/write", write_params("p", BLOCK, f"w{number}")) for number in range(count)
        ]

        status = await talking.call("environment/status")
        await talking.start("other", "echo", "hi")
        other = await talking.closed("other")
        running = await talking.terminate("p")
        tale = await talking.closed("p")
        answers = [await asyncio.wait_for(write, 10) for write in writes]

    assert status == {"status": "ready"}
    assert other.data() == b"hi\n"
    assert running
    assert tale.exit_codes == [137]
    accepted = [answer for answer in answers if answer.get("result") == {"status": "accepted"}]
    assert len(accepted) >= 128
    assert answers[: len(accepted)] == accepted, "a later write overtook an earlier one"


@pytest.mark.slow
async def test_blocked_writes_arrive_in_order_once_the_child_reads(url: str) -> None:
    """Waiting for room changes neither the order nor the number of the bytes."""
    pieces = [bytes((65 + number % 26,)) * 65_536 for number in range(200)]
    async with client(url) as talking:
        await talking.start("p", "sh", "-c", "head -c 13107200 | sha256sum", pipeStdin=True)
        writes = [
            talking.post("process/write", write_params("p", piece, f"w{number}"))
            for number, piece in enumerate(pieces)
        ]
        statuses = [(await asyncio.wait_for(write, 10))["result"]["status"] for write in writes]
        tale = await talking.closed("p")

    assert statuses == ["accepted"] * len(pieces)
    assert tale.data().split()[0].decode() == sha256(b"".join(pieces))


async def test_a_write_that_waits_is_answered_when_the_child_exits(url: str) -> None:
    """A waiting request must not wait for ever."""
    async with client(url) as talking:
        await talking.start("p", "sh", "-c", "exec sleep 1000", pipeStdin=True)
        writes = [
            talking.post("process/write", write_params("p", BLOCK, f"w{number}")) for number in range(140)
        ]
        await talking.result(writes[127])
        await talking.call("process/signal", {"processId": "p", "signal": "interrupt"})
        answers = [(await asyncio.wait_for(write, 10))["result"]["status"] for write in writes]

    assert answers[:128] == ["accepted"] * 128
    assert set(answers[128:]) <= {"accepted", "stdinClosed"}
    assert answers[-1] == "stdinClosed"


# Long polls.


async def test_a_long_poll_delays_nobody(url: str) -> None:
    """A client that waits for one process works with others meanwhile."""
    async with client(url) as talking:
        await talking.start("p", "cat", pipeStdin=True)
        polls = [talking.post("process/read", {"processId": "p", "waitMs": 600_000}) for _ in range(50)]

        status = await talking.call("environment/status")
        await talking.start("other", "echo", "hi")
        await talking.closed("other")
        still_waiting = [not poll.done() for poll in polls]
        written = await talking.write("p", b"x", "w")
        pages = [await talking.result(poll) for poll in polls]
        running = await talking.terminate("p")

    assert status == {"status": "ready"}
    assert all(still_waiting)
    assert written == "accepted"
    assert [page["chunks"][0]["seq"] for page in pages] == [1] * 50
    assert running


async def test_a_long_poll_is_woken_by_terminate_behind_it(url: str) -> None:
    """The exit is news for whoever waits."""
    async with client(url) as talking:
        await talking.start("p", "sleep", "1000")
        poll = talking.post("process/read", {"processId": "p", "waitMs": 600_000})

        assert await talking.terminate("p")
        page = await talking.result(poll)

    assert page["exited"]
    assert page["exitCode"] == 137


# Slow starts.


@pytest.mark.slow
async def test_a_slow_start_delays_nobody(url: str, tmp_path: Path) -> None:
    """A program on a stalled disk is the problem of whoever started it."""
    async with client(url) as talking:
        with held_program("/bin/cat", tmp_path / "held") as held:
            start = talking.post("process/start", start_params("slow", held.path, pipeStdin=True))

            status = await talking.call("environment/status")
            others = [f"p{number}" for number in range(20)]
            for name in others:
                await talking.start(name, "echo", "hi")
            tales = [await talking.closed(name) for name in others]
            assert not start.done()
            held.release()

            assert await talking.result(start) == {"processId": "slow", "sandboxType": "none"}
            assert await talking.terminate("slow")
            await talking.closed("slow")

    assert status == {"status": "ready"}
    assert [tale.data() for tale in tales] == [b"hi\n"] * 20


@pytest.mark.slow
async def test_many_slow_starts_delay_nobody(url: str, tmp_path: Path) -> None:
    """Ten stuck starts are as harmless as one."""
    async with client(url) as talking:
        with held_program("/bin/cat", tmp_path / "held") as held:
            starts = [
                talking.post("process/start", start_params(f"slow{number}", held.path))
                for number in range(10)
            ]
            await talking.start("p", "echo", "hi")
            tale = await talking.closed("p")
            assert not any(start.done() for start in starts)
            held.release()
            for start in starts:
                await talking.result(start)

    assert tale.data() == b"hi\n"


@pytest.mark.slow
async def test_slow_starts_among_others_do_not_keep_the_others_output_open(url: str, tmp_path: Path) -> None:
    """A stuck child must not hold the pipes of those that are started beside it, or they never close."""
    async with client(url) as talking:
        with held_program("/bin/cat", tmp_path / "held") as held:
            slow, quick = [], [f"p{number}" for number in range(300)]
            for number, name in enumerate(quick):
                if number % 15 == 0:
                    slow.append(talking.post("process/start", start_params(f"slow{number}", held.path)))
                talking.post("process/start", start_params(name, "true"))

            tales = [await talking.closed(name) for name in quick]
            assert not any(start.done() for start in slow)
            held.release()
            for start in slow:
                await talking.result(start)

    assert {tuple(tale.exit_codes) for tale in tales} == {(0,)}


@pytest.mark.slow
async def test_pipelined_requests_behind_a_slow_start_keep_their_order(url: str, tmp_path: Path) -> None:
    """Start and fifty writes sent at once all take effect, in the order they were sent."""
    pieces = [f"{number}\n".encode() for number in range(50)]
    async with client(url) as talking:
        with held_program("/bin/cat", tmp_path / "held") as held:
            start, *writes = talking.post_together(
                ("process/start", start_params("p", held.path, pipeStdin=True)),
                *(
                    ("process/write", write_params("p", piece, f"w{number}"))
                    for number, piece in enumerate(pieces)
                ),
            )
            read = talking.post("process/read", {"processId": "p", "waitMs": 600_000})
            status = await talking.call("environment/status")
            assert not any(answer.done() for answer in (start, *writes, read))
            held.release()

            await talking.result(start)
            statuses = [(await talking.result(write))["status"] for write in writes]
            await talking.result(read)
            await talking.until(lambda: talking.tale("p").data() == b"".join(pieces))
            await talking.terminate("p")

    assert status == {"status": "ready"}
    assert statuses == ["accepted"] * 50


@pytest.mark.slow
@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "terminal"])
async def test_terminate_cancels_a_slow_start_and_leaves_no_process(
    served: tuple[Program, str], tmp_path: Path, *, tty: bool
) -> None:
    """A start that hangs can be given up at once, and the program never becomes a stray."""
    server, url = served
    before = commands(server.pid)
    async with client(url) as talking:
        with held_program("/bin/sleep", tmp_path / "held") as held:
            start = talking.post("process/start", start_params("p", held.path, "1000", tty=tty))
            await eventually(lambda: len(starts_under_way(server.pid)) == 1)

            running = await talking.terminate("p")
            with pytest.raises(Refusal) as refusal:
                await talking.result(start)
            again = await talking.terminate("p")
            held.release()

            await eventually(lambda: not starts_under_way(server.pid) and commands(server.pid) <= before)
            assert not held.runs()
            await talking.start("p", "echo", "the name is free")
            tale = await talking.closed("p")

    assert running
    assert (refusal.value.code, refusal.value.text) == (-32600, "process p start was cancelled")
    assert not again
    assert tale.data() == b"the name is free\n"


@pytest.mark.slow
async def test_a_slow_start_survives_a_lost_connection_and_is_found_on_return(
    url: str, tmp_path: Path
) -> None:
    """The client asked for it; that the answer could not be delivered changes nothing."""
    with held_program("/bin/echo", tmp_path / "held") as held:
        talking = await Client.open(url)
        talking.post("process/start", start_params("p", held.path, "hello"))
        await talking.call("environment/status")
        await talking.abort()
        async with client(url, resume=talking.session) as again:
            with pytest.raises(Refusal, match="process id p is starting"):
                await again.read("p")

            held.release()

            tale = await again.closed("p")

    assert tale.seqs == [1, 2, 3]
    assert tale.data() == b"hello\n"


@pytest.mark.slow
async def test_a_slow_start_does_not_keep_a_closed_connection_open(url: str, tmp_path: Path) -> None:
    """The stuck child has copies of all descriptors; a socket must end for its peer all the same."""
    with held_program("/bin/echo", tmp_path / "held") as held:
        talking = await Client.open(url)
        talking.post("process/start", start_params("p", held.path, "hello"))
        await talking.call("environment/status")
        talking.wire.send(CLOSE, b"\x03\xe8")

        farewell = await talking.ended()
        held.release()

    await talking.close()
    assert farewell is not None
    assert farewell.close_code == 1000


async def test_initialize_and_requests_of_other_connections_are_never_delayed(url: str) -> None:
    """Connections know nothing of each other's waiting."""
    async with client(url) as talking, client(url) as other:
        await talking.start("p", "sleep", "1000", pipeStdin=True)
        for number in range(140):
            talking.post("process/write", write_params("p", BLOCK, f"w{number}"))
        await other.start("p", "echo", "hi")

        assert (await other.closed("p")).data() == b"hi\n"


# Callers that give up.


async def test_the_answer_to_a_call_that_was_given_up_harms_no_other_call(url: str) -> None:
    """Tests cancel calls: the client that they share must outlive that."""
    async with client(url) as talking:
        await talking.start("p", "sleep", "1000")
        waiting = talking.post("process/wait", {"processId": "p", "waitMs": 60_000})

        waiting.cancel()
        await talking.terminate("p")
        await talking.closed("p")

        assert await talking.call("environment/status") == {"status": "ready"}
