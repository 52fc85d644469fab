"""What a client that knows the extensions can ask: list, wait, end of input, size."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.fakes.client import Client, Message, Refusal, sha256, start_params, write_params
from tests.fakes.gate import Gate
from tests.fakes.server import Program, held_program, is_running, program_at
from tests.fakes.trees import exit_of, knowing

LONG = 600_000
"""Milliseconds that nobody waits for."""


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    """One server for all tests of this module; each has its own session."""
    with program_at() as served:
        yield served


@pytest.fixture
async def talking(served: tuple[Program, str]) -> AsyncIterator[Client]:
    async with knowing(served[1]) as client:
        yield client


async def refused(talking: Client, method: str, **params: object) -> tuple[int, str]:
    with pytest.raises(Refusal) as caught:
        await talking.call(method, params)
    return caught.value.code, caught.value.text


async def say(talking: Client, text: bytes, name: str = "p") -> None:
    """Wait until a process has said this."""
    tale = talking.tale(name)
    await talking.until(lambda: text in tale.data())


# List.


async def test_a_list_has_every_process_in_every_state(talking: Client, tmp_path: Path) -> None:
    """A client that comes back finds out what it had, without any memory of its own."""
    earliest = int(time.time() * 1000) - 1
    with held_program("/bin/sleep", tmp_path / "held") as held:
        await talking.start("closed", "sh", "-c", "printf 12345; exit 4")
        await talking.closed("closed")
        await talking.start("exited", "sh", "-c", "sleep 1000 & exit 0")
        await exit_of(talking, "exited")
        await talking.start("running", "sh", "-c", "echo $$; exec cat", tty=True, cwd="file:///tmp")
        await say(talking, b"\n", "running")
        start = talking.post("process/start", start_params("starting", held.path, "1000"))

        listed = (await talking.call("process/list"))["processes"]
        held.release()
        await talking.result(start)
    others = (await talking.call("process/list"))["processes"]

    pids = [entry.pop("pid") for entry in listed]
    times = [entry.pop("startedAtMs") for entry in listed]
    assert times == sorted(times)
    assert earliest <= times[0] <= times[-1] <= time.time() * 1000 + 1
    assert pids[2] == int(talking.tale("running").data())
    assert pids[3] is None
    assert others[3]["state"] == "running"
    assert is_running(others[3]["pid"])
    ended = {"kind": "exit", "exitCode": 0, "signal": None, "by": None, "detail": None}
    four = {"exitCode": 4, "outcome": {**ended, "exitCode": 4}, "nextSeq": 4, "retainedBytes": 5}
    kept = len(talking.tale("running").data())
    assert listed == [
        entry("closed", "sh", "-c", "printf 12345; exit 4", **four),
        entry("exited", "sh", "-c", "sleep 1000 & exit 0", exitCode=0, outcome=ended, nextSeq=2),
        entry(
            "running",
            "sh",
            "-c",
            "echo $$; exec cat",
            cwd="file:///tmp",
            tty=True,
            nextSeq=2,
            retainedBytes=kept,
        ),
        entry("starting", held.path, "1000"),
    ]


def entry(state: str, *argv: str, **members: object) -> Message:
    """What a list says of a process that is called like its state, but for its pid and its time."""
    return {
        "processId": state,
        "argv": list(argv),
        "cwd": "file:///",
        "tty": False,
        "state": state,
        "exitCode": None,
        "outcome": None,
        "nextSeq": 1,
        "retainedBytes": 0,
        **members,
    }


async def test_a_list_has_nobody_elses_processes(served: tuple[Program, str], talking: Client) -> None:
    """Sessions do not see each other."""
    async with knowing(served[1]) as other:
        await other.start("theirs", "sleep", "1000")

        assert await talking.call("process/list") == {"processes": []}


# Wait.


async def test_a_wait_ends_with_the_process(talking: Client) -> None:
    """Nobody needs to ask again and again."""
    await talking.start("p", "sh", "-c", "read _; exit 6", pipeStdin=True)
    waits = [talking.post("process/wait", {"processId": "p", "waitMs": LONG}) for _ in range(3)]
    at_once = await talking.call("process/wait", {"processId": "p"})
    status = await talking.call("environment/status")
    nobody_answered = not any(wait.done() for wait in waits)

    await talking.write("p", b"\n", "w")
    answers = [await talking.result(wait) for wait in waits]
    end = await exit_of(talking, "p")

    assert status == {"status": "ready"}
    assert nobody_answered
    assert at_once == {
        "exited": False,
        "exitCode": None,
        "outcome": None,
        "usage": None,
        "heldBy": [],
        "closed": False,
    }
    for answer in answers:
        assert answer.pop("closed") in (True, False)
        assert answer == {
            "exited": True,
            "exitCode": 6,
            "outcome": end["outcome"],
            "usage": end["usage"],
            "heldBy": [],
        }


async def test_a_wait_is_over_when_its_time_is(talking: Client) -> None:
    """And says that the process still runs."""
    await talking.start("p", "sleep", "1000")

    answer = await talking.call("process/wait", {"processId": "p", "waitMs": 30})

    assert answer["exited"] is False


async def test_a_wait_is_not_woken_by_output(talking: Client) -> None:
    """A read is; a wait is for the end only."""
    await talking.start("p", "cat", pipeStdin=True)
    wait = talking.post("process/wait", {"processId": "p", "waitMs": LONG})
    await talking.write("p", b"hello", "w")
    await say(talking, b"hello")
    await talking.call("environment/status")
    waiting = not wait.done()
    await talking.terminate("p")

    answer = await talking.result(wait)

    assert waiting
    assert answer["outcome"]["kind"] == "terminated"


@pytest.mark.parametrize("method", ["process/wait", "process/read"])
async def test_a_wait_for_nobody_is_refused(talking: Client, method: str) -> None:
    """As a read is."""
    assert await refused(talking, method, processId="nobody") == (-32600, "unknown process id nobody")


# The end of input.


@pytest.mark.slow
async def test_the_end_of_input_comes_after_everything_that_was_queued(talking: Client, gate: Gate) -> None:
    """The child gets every byte of it, however late it reads."""
    pieces = [bytes((number,)) * 65_536 for number in range(16)]
    await talking.start("p", "sh", "-c", f"{gate.shell}; exec sha256sum", pipeStdin=True)
    await gate.reached()
    for number, piece in enumerate(pieces):
        talking.post("process/write", write_params("p", piece, f"w{number}"))

    first = await talking.call("process/closeStdin", {"processId": "p", "writeId": "end"})
    again = await talking.call("process/closeStdin", {"processId": "p", "writeId": "end"})
    other = await talking.call("process/closeStdin", {"processId": "p"})
    late = await talking.write("p", b"late", "late")
    retried = await talking.write("p", pieces[3], "w3")
    gate.open()
    tale = await talking.closed("p")

    assert first == again == {"status": "accepted"}
    assert other == {"status": "stdinClosed"}
    assert late == "stdinClosed"
    assert retried == "accepted"
    assert tale.data("stdout").split()[0].decode() == sha256(b"".join(pieces))
    assert tale.exit_codes == [0]


async def test_the_end_of_input_is_remembered_over_a_lost_connection(served: tuple[Program, str]) -> None:
    """A client that did not hear the answer asks again, and is not told that it failed."""
    async with knowing(served[1]) as first:
        await first.start("p", "sh", "-c", "cat; sleep 1000", pipeStdin=True)
        await first.write("p", b"all of it", "w")
        first.post("process/closeStdin", {"processId": "p", "writeId": "end"})
        await first.call("environment/status")
        await first.abort()

    async with knowing(served[1], resume=first.session) as second:
        retried = await second.call("process/closeStdin", {"processId": "p", "writeId": "end"})
        write = await second.write("p", b"all of it", "w")
        await second.terminate("p")

    assert retried == {"status": "accepted"}
    assert write == "accepted"


@pytest.mark.parametrize("data", [b"abc", b"abc\n", b""])
async def test_the_end_of_input_of_a_terminal_is_what_a_user_would_press(
    talking: Client, data: bytes
) -> None:
    """Its reader sees the end; the terminal goes on showing what the program says."""
    await talking.start("p", "sh", "-c", "cat >/dev/null; echo over; exit 3", tty=True)
    if data:
        await talking.write("p", data, "w")

    answer = await talking.call("process/closeStdin", {"processId": "p"})
    tale = await talking.closed("p")

    assert answer == {"status": "accepted"}
    assert b"over\r\n" in tale.data()
    assert tale.exit_codes == [3]


async def test_the_end_of_input_that_is_none_is_an_answer(talking: Client) -> None:
    """As with a write."""
    await talking.start("p", "sleep", "1000")

    without = await talking.call("process/closeStdin", {"processId": "p"})
    unknown = await talking.call("process/closeStdin", {"processId": "nobody"})
    empty = await refused(talking, "process/closeStdin", processId="p", writeId="")

    assert without == {"status": "stdinClosed"}
    assert unknown == {"status": "unknownProcess"}
    assert empty[0] == -32602


# Size.

SIZES = "trap 'stty size' WINCH; stty size; while :; do sleep 0.01; done"


async def test_a_terminal_has_the_size_that_it_was_given_and_is_told_of_another(talking: Client) -> None:
    """Editors and pagers draw with it."""
    await talking.start("p", "sh", "-c", SIZES, tty=True, size={"rows": 40, "cols": 111})
    await say(talking, b"40 111\r\n")

    answer = await talking.call("process/resize", {"processId": "p", "size": {"rows": 7, "cols": 65_535}})
    await say(talking, b"7 65535\r\n")
    await talking.start("plain", "stty", "size", tty=True)
    plain = await talking.closed("plain")

    assert answer == {}
    assert talking.tale("p").data() == b"40 111\r\n7 65535\r\n"
    assert plain.data() == b"24 80\r\n"


async def test_a_size_that_is_none_is_refused(talking: Client) -> None:
    """So is one for a process without a terminal."""
    await talking.start("p", "cat", pipeStdin=True)
    size = {"rows": 0, "cols": 80}

    of_nobody = await refused(talking, "process/resize", processId="nobody", size={"rows": 1, "cols": 1})
    of_pipes = await refused(talking, "process/resize", processId="p", size={"rows": 1, "cols": 1})
    empty = await refused(talking, "process/resize", processId="p", size=size)
    at_start = await refused(talking, "process/start", **start_params("q", "true", tty=True, size=size))
    of_no_terminal = await refused(
        talking, "process/start", **start_params("q", "true", size={"rows": 1, "cols": 1})
    )

    assert of_nobody == (-32600, "unknown process id nobody")
    assert of_pipes[0] == -32600
    assert {empty[0], at_start[0], of_no_terminal[0]} == {-32602}
    assert len((await talking.call("process/list"))["processes"]) == 1
