"""The promises about order: what a client may rely on without sorting anything itself."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.client import Message, client, start_params, write_params
from tests.fakes.server import program_at


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """One server for all tests of this module; each has its own session."""
    with program_at() as (_, url):
        yield url


@pytest.mark.slow
async def test_the_start_answer_precedes_every_notification_of_that_process(url: str) -> None:
    """A client that learns of output before it knows the process would have to keep it for later."""
    names = [f"p{number}" for number in range(400)]
    answered: set[str] = set()
    too_early: list[Message] = []

    def check(message: Message) -> None:
        if "result" in message and "processId" in message["result"]:
            answered.add(message["result"]["processId"])
        elif "params" in message and message["params"]["processId"] not in answered:
            too_early.append(message)

    async with client(url) as watching:
        watching.on_message = check

        for name in names:
            watching.post("process/start", start_params(name, "echo", name))
        for name in names:
            await watching.closed(name)

    assert answered == set(names)
    assert too_early == []


@pytest.mark.slow
async def test_wire_order_equals_sequence_order_per_process(url: str) -> None:
    """Numbers that arrive in their order need no buffer on the client's side."""
    burst = "for i in 1 2 3 4 5 6 7 8 9; do echo out$i; echo err$i >&2; done"
    script = f"for n in 1 2 3 4 5 6 7 8 9 10; do {burst}; done"
    names = [f"p{number}" for number in range(20)]
    async with client(url) as watching:
        for name in names:
            watching.post("process/start", start_params(name, "sh", "-c", script))
        tales = [await watching.closed(name) for name in names]

    for tale in tales:
        assert tale.seqs == list(range(1, len(tale.events) + 1))
        assert tale.kinds[-2:] == ["exited", "closed"]
        assert tale.data("stdout").count(b"\n") == 90
        assert tale.data("stderr").count(b"\n") == 90


@pytest.mark.slow
@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "terminal"])
async def test_what_a_child_wrote_before_it_died_is_numbered_before_its_exit(url: str, *, tty: bool) -> None:
    """A client that stops reading at the exit has everything, unless somebody else holds the output."""
    script = "printf %2000s a; printf %2000s b >&2; kill -KILL $$"
    names = [f"p{number}" for number in range(100)]
    async with client(url) as watching:
        for name in names:
            watching.post("process/start", start_params(name, "sh", "-c", script, tty=tty))
        tales = [await watching.closed(name) for name in names]

    for tale in tales:
        assert tale.kinds[-2:] == ["exited", "closed"]
        assert len(tale.data()) == 4000
        assert tale.exit_codes == [137]


@pytest.mark.slow
async def test_all_of_a_large_last_word_is_numbered_before_the_exit(url: str) -> None:
    """A full pipe at the moment of death takes more than one read."""
    names = [f"p{number}" for number in range(20)]
    async with client(url) as watching:
        for name in names:
            watching.post("process/start", start_params(name, "head", "-c", "1000000", "/dev/zero"))
        tales = [await watching.closed(name) for name in names]

    for tale in tales:
        assert tale.kinds.count("output") == len(tale.events) - 2
        assert tale.kinds[-2:] == ["exited", "closed"]
        assert len(tale.data()) == 1_000_000


async def test_output_of_those_left_behind_is_numbered_after_the_exit_and_closed_comes_last(
    url: str, tmp_path: Path
) -> None:
    """The exit is news at once, even if a grandchild goes on talking."""
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    async with client(url) as watching:
        await watching.start("p", "sh", "-c", 'cat "$0" & echo early; exit 4', str(gate))
        tale = watching.tale("p")
        await watching.until(lambda: "exited" in tale.kinds)
        page = await watching.read("p")
        gate.write_bytes(b"late")
        await watching.closed("p")

    assert (page["exited"], page["closed"]) == (True, False)
    assert tale.kinds == ["output", "exited", "output", "closed"]
    assert tale.seqs == [1, 2, 3, 4]
    assert tale.data() == b"early\nlate"
    assert tale.exit_codes == [4]


@pytest.mark.slow
async def test_the_pieces_of_concurrent_writers_keep_their_order(url: str) -> None:
    """Writes pipelined to many processes at once reach each of them in the order of sending."""
    pieces = [f"{number}\n".encode() for number in range(300)]
    names = [f"p{number}" for number in range(10)]
    async with client(url) as watching:
        for name in names:
            await watching.start(name, "cat", pipeStdin=True)

        answers = [
            watching.post("process/write", write_params(name, piece, f"w{number}"))
            for number, piece in enumerate(pieces)
            for name in names
        ]
        statuses = {(await answer)["result"]["status"] for answer in answers}
        expected = b"".join(pieces)
        tales = [watching.tale(name) for name in names]
        await watching.until(lambda: all(len(tale.data()) >= len(expected) for tale in tales))
        for name in names:
            await watching.terminate(name)

    assert statuses == {"accepted"}
    assert {hashlib.sha256(tale.data()).hexdigest() for tale in tales} == {
        hashlib.sha256(expected).hexdigest()
    }


async def test_requests_that_arrive_together_with_a_start_are_about_that_process(url: str) -> None:
    """Requests for one process keep their order: nothing sent behind a start finds no process."""
    async with client(url) as watching:
        start, write, read, terminate = watching.post_together(
            ("process/start", start_params("p", "cat", pipeStdin=True)),
            ("process/write", write_params("p", b"hello", "w")),
            ("process/read", {"processId": "p", "waitMs": 10_000}),
            ("process/terminate", {"processId": "q"}),
        )

        assert await watching.result(start) == {"processId": "p", "sandboxType": "none"}
        assert await watching.result(write) == {"status": "accepted"}
        assert (await watching.result(read))["chunks"][0]["chunk"] == "aGVsbG8="
        assert await watching.result(terminate) == {"running": False, "survivors": [], "treeExact": True}


async def test_a_terminate_that_arrives_together_with_its_start_ends_the_process(url: str) -> None:
    """Whoever starts and changes its mind at once must not be told that there is nothing to end."""
    async with client(url) as watching:
        start, terminate = watching.post_together(
            ("process/start", start_params("p", "sleep", "1000")),
            ("process/terminate", {"processId": "p"}),
        )
        running = await watching.result(terminate)
        outcome = await asyncio.wait_for(start, 10)

        assert running == {"running": True, "survivors": [], "treeExact": True}
        if "error" in outcome:
            assert outcome["error"]["message"] == "process p start was cancelled"
        else:
            assert (await watching.closed("p")).exit_codes == [137]


async def test_requests_behind_a_failed_start_find_no_process(url: str) -> None:
    """They wait for the start, and then they are answered like any other."""
    async with client(url) as watching:
        start, write, read = watching.post_together(
            ("process/start", start_params("p", "/nothing/here")),
            ("process/write", write_params("p", b"hello", "w")),
            ("process/read", {"processId": "p"}),
        )

        assert "error" in await start
        assert await watching.result(write) == {"status": "unknownProcess"}
        assert (await read)["error"]["message"] == "unknown process id p"


async def test_a_second_start_of_the_same_name_waits_for_the_first_and_is_refused(url: str) -> None:
    """Two starts in flight must not both believe the name is theirs."""
    async with client(url) as watching:
        answers = watching.post_together(*[("process/start", start_params("p", "true"))] * 3)
        outcomes = [await asyncio.wait_for(answer, 10) for answer in answers]
        await watching.closed("p")

    assert outcomes[0]["result"]["processId"] == "p"
    assert [outcome["error"]["message"] for outcome in outcomes[1:]] == ["process p already exists"] * 2


@pytest.mark.slow
async def test_order_holds_while_several_clients_compete(url: str) -> None:
    """One loop serves them all; no client's numbers may suffer from another's load."""

    async def load(number: int) -> None:
        async with client(url) as watching:
            for turn in range(20):
                watching.post("process/start", start_params(f"p{turn}", "sh", "-c", "seq 500; seq 500 >&2"))
            for turn in range(20):
                tale = await watching.closed(f"p{turn}")
                assert tale.seqs == list(range(1, len(tale.events) + 1)), number
                assert tale.data("stdout") == tale.data("stderr")

    await asyncio.gather(*map(load, range(5)))


async def test_the_answers_of_quick_requests_come_in_their_order(url: str) -> None:
    """Clients that count answers instead of reading ids are wrong, and lucky with this server."""
    async with client(url) as watching:
        seen: list[int] = []
        watching.on_message = lambda message: seen.append(message["id"])

        await asyncio.gather(*(watching.post("environment/status") for _ in range(500)))

    assert seen == sorted(seen)
