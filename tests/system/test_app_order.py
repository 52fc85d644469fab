"""Requests that arrive together: each gets its own answer, in the order its process allows."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.app_client import (
    TRANSPORTS,
    Place,
    app_client,
    exec_params,
    serving,
    spawn_params,
    write_params,
)
from tests.fakes.client import Message, sha256
from tests.fakes.server import held_program


@pytest.fixture(scope="module", params=TRANSPORTS)
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A server per transport: what arrives together does so in another way on each."""
    with serving(request.param, tmp_path_factory.mktemp("order")) as place:
        yield place


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One server for the tests for which the transport is no matter."""
    with serving("ws", tmp_path_factory.mktemp("order")) as place:
        yield place


def kill(handle: str) -> tuple[str, Message]:
    return "process/kill", {"processHandle": handle}


def spawn(handle: str, *command: str, **options: Any) -> tuple[str, Message]:
    return "process/spawn", spawn_params(handle, *command, **options)


def write(handle: str, data: bytes | None = None, *, close: bool = False) -> tuple[str, Message]:
    return "process/writeStdin", write_params(handle, data, close=close)


def outcome(answer: Message) -> Any:
    """The result, or the text of the error."""
    return answer["result"] if "result" in answer else answer["error"]["message"]


@pytest.mark.slow
async def test_spawn_write_and_kill_in_one_packet_are_about_one_process(place: Place) -> None:
    """Answered in their order, and the exit comes behind them."""
    async with app_client(place) as talking:
        posted = talking.post_together(
            spawn("h", "cat", streamStdin=True), write("h", b"hello"), kill("h"), kill("other")
        )
        answers = [outcome(await talking.answer(answer)) for answer in posted]
        told = await talking.exited("h")
        order = [message.get("id", message.get("method")) for message in talking.messages[1:]]

    assert answers == [{}, {}, {}, 'no active process for process handle "other"']
    assert told["exitCode"] == 137
    # The kill of another process waits for nobody; the rest keeps its order.
    order.remove(5)
    assert order == [2, 3, 4, "process/exited"]


async def test_what_follows_in_the_same_packet_sees_what_went_before(ws: Place) -> None:
    """As if each request had waited for the answer to the one before it."""
    async with app_client(ws) as talking:
        closed = talking.post_together(
            spawn("c", "cat", streamStdin=True), write("c", b"x"), write("c", close=True), write("c", b"y")
        )
        twice = talking.post_together(spawn("t", "sleep", "1000"), spawn("t", "sleep", "1000"), kill("t"))
        failed = talking.post_together(
            spawn("f", "/nothing/here"), kill("f"), spawn("f", "sleep", "1000"), kill("f")
        )
        early = talking.post_together(kill("e"), spawn("e", "true"))
        told = await talking.exited("c")
        answers = [
            [outcome(await talking.answer(answer)) for answer in posted]
            for posted in (closed, twice, failed, early)
        ]
        codes = [(await talking.exited(handle))["exitCode"] for handle in ("t", "f", "e")]

    nowhere = "failed to spawn process: No such file or directory (os error 2)"
    assert answers[0] in (
        [{}, {}, {}, "stdin is already closed"],
        # The child may have ended in between; then there is nobody to write to.
        [{}, {}, {}, 'process "c" is no longer running'],
    )
    assert told["stdout"] == "x"
    assert answers[1:] == [
        [{}, 'duplicate active process handle: "t"', {}],
        [nowhere, 'no active process for process handle "f"', {}, {}],
        ['no active process for process handle "e"', {}],
    ]
    assert codes == [137, 137, 0]


@pytest.mark.slow
async def test_a_write_right_behind_its_command_reaches_it(place: Place) -> None:
    """Though the command's own answer is far away."""
    name = {"processId": "c"}
    async with app_client(place) as talking:
        running, written, closed = talking.post_together(
            ("command/exec", exec_params("cat", streamStdin=True, **name)),
            ("command/exec/write", {**name, "deltaBase64": "aGk="}),
            ("command/exec/write", {**name, "closeStdin": True}),
        )
        cat = await talking.result(running)
        killed, terminated = talking.post_together(
            ("command/exec", exec_params("sleep", "1000", **name)), ("command/exec/terminate", name)
        )
        sleep = await talking.result(killed)
        order = [message["id"] for message in talking.messages[1:]]

    assert cat == {"exitCode": 0, "stdout": "hi", "stderr": ""}
    assert sleep == {"exitCode": 137, "stdout": "", "stderr": ""}
    assert [outcome(answer.result()) for answer in (written, closed, terminated)] == [{}] * 3
    assert order == [3, 4, 2, 6, 5]


@pytest.mark.slow
async def test_writes_behind_a_slow_start_keep_their_order(ws: Place, tmp_path: Path) -> None:
    """They wait for their process; requests about others do not."""
    pieces = [os.urandom(3000) for _ in range(200)]
    async with app_client(ws) as talking:
        with held_program("/usr/bin/sha256sum", tmp_path / "held") as held:
            posted = talking.post_together(
                spawn("h", held.path, streamStdin=True),
                *(write("h", piece) for piece in pieces),
                write("h", close=True),
            )
            other = await talking.execute("echo", "other")
            waiting = [answer.done() for answer in posted]
            held.release()
            answers = [await talking.result(answer) for answer in posted]
            told = await talking.exited("h")

    assert other["stdout"] == "other\n"
    assert not any(waiting)
    assert answers == [{}] * 202
    assert told["stdout"].split()[0] == sha256(b"".join(pieces))


@pytest.mark.slow
async def test_three_thousand_kills_of_nobody_are_all_answered_properly(place: Place) -> None:
    """Nobody is told to come back later for what costs next to nothing."""
    async with app_client(place) as talking:
        posted = talking.post_together(*(kill(f"h{number}") for number in range(3000)))
        answers = [await talking.answer(answer) for answer in posted]

    assert [answer["error"] for answer in answers] == [
        {
            "code": -32600,
            "message": f'no active process for process handle "h{number}"',
            "data": {"kind": "unknownProcess", "name": f"h{number}"},
        }
        for number in range(3000)
    ]


@pytest.mark.slow
@pytest.mark.stress
async def test_three_thousand_cheap_requests_among_two_hundred_spawns_are_all_answered_properly(
    place: Place,
) -> None:
    """Load of one kind is no reason to refuse the other."""
    requests: list[tuple[str, Message]] = []
    for number in range(200):
        requests.append(spawn(f"h{number}", "sh", "-c", "echo $0; cat", str(number), streamStdin=True))
        requests.append(write(f"h{number}", f"in {number}".encode(), close=True))
        requests += [kill("nobody")] * 13
        requests += [("command/exec/terminate", {"processId": "nobody"}), ("nosuch", {})]
    async with app_client(place) as talking:
        posted = talking.post_together(*requests)
        answers = [await talking.answer(answer) for answer in posted]
        told = [await talking.exited(f"h{number}") for number in range(200)]

    counted = Counter(str(outcome(answer)).partition(",")[0] for answer in answers)
    assert counted == {
        "{}": 400,
        'no active process for process handle "nobody"': 2600,
        'no active command/exec for process id "nobody"': 200,
        "Invalid request: unknown variant `nosuch`": 200,
    }
    assert [message["stdout"] for message in told] == [f"{n}\nin {n}" for n in range(200)]
    assert {message["exitCode"] for message in told} == {0}


@pytest.mark.slow
@pytest.mark.stress
async def test_two_hundred_commands_at_once_each_get_their_own_result(ws: Place) -> None:
    """The answers may come in any order; each belongs to its question."""
    async with app_client(ws) as talking:
        posted = talking.post_together(
            *(("command/exec", exec_params("sh", "-c", f"echo {n}; exit {n}")) for n in range(200))
        )
        results = [await talking.result(answer) for answer in posted]

    assert results == [{"exitCode": n, "stdout": f"{n}\n", "stderr": ""} for n in range(200)]
