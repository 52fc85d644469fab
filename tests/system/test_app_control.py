"""Talking to a process that runs: its stdin, its terminal, its time, its end."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator

import pytest

from tests.fakes.app_client import TRANSPORTS, Place, app_client, serving, write_params
from tests.fakes.client import sha256
from tests.fakes.gate import Gate, gone

BLOCK = b"x" * 65_536

SIZES = (
    "import os, signal\n"
    "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})\n"
    "while True:\n"
    "    s = os.get_terminal_size(0); print('size', s.lines, s.columns, flush=True)\n"
    "    signal.sigwait({signal.SIGWINCH})\n"
)
"""Tells the size of its terminal, at once and whenever the kernel says that it has changed."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One server for all tests of this module."""
    with serving("ws", tmp_path_factory.mktemp("control")) as place:
        yield place


# Input.


async def test_bytes_reach_the_child_in_order_and_the_close_comes_behind_them(place: Place) -> None:
    """A filter sees what was written and then the end, whatever was sent together with what."""
    async with app_client(place) as talking:
        await talking.spawn("h", "cat", streamStdin=True, streamStdoutStderr=True)
        await talking.write("h", b"one ")
        await talking.said("h", b"one ")
        await talking.write("h", b"")
        await talking.write("h", b"two ")
        await talking.write("h", b"three", close=True)
        told = await talking.exited("h")

    assert talking.tale("h").data() == b"one two three"
    assert told["exitCode"] == 0


async def test_what_is_closed_stays_closed_but_may_be_closed_again(place: Place, gate: Gate) -> None:
    """Only bytes that cannot be delivered are refused."""
    async with app_client(place) as talking:
        await talking.spawn("h", "sh", "-c", f"cat; {gate.shell}", streamStdin=True)
        answers = [
            await talking.write("h", b"kept", close=True),
            await talking.write("h", close=True),
            await talking.write("h", b""),
            await talking.write("h", b"", close=True),
        ]
        refusals = [
            await talking.refusal("process/writeStdin", write_params("h", b"late")),
            await talking.refusal("process/writeStdin", write_params("h", b"late", close=True)),
        ]
        gate.open()
        told = await talking.exited("h")

    assert answers == [{}] * 4
    assert refusals == [(-32600, "stdin is already closed")] * 2
    assert told["stdout"] == "kept"


async def test_bad_base64_with_a_close_closes_nothing(place: Place) -> None:
    """A request that is refused has no effect."""
    async with app_client(place) as talking:
        await talking.spawn("h", "cat", streamStdin=True)
        refusal = await talking.refusal(
            "process/writeStdin", {"processHandle": "h", "deltaBase64": "!", "closeStdin": True}
        )
        await talking.write("h", b"open", close=True)
        told = await talking.exited("h")

    assert refusal[0] == -32602
    assert told["stdout"] == "open"


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_much_more_than_a_pipe_holds_reaches_a_slow_reader_before_the_close(
    tmp_path_factory: pytest.TempPathFactory, gate: Gate, transport: str
) -> None:
    """The close waits behind every accepted byte, and no byte is lost or doubled."""
    pieces = [os.urandom(200_000) for _ in range(20)]
    script = f"{gate.shell}; sha256sum"
    with serving(transport, tmp_path_factory.mktemp("stdin")) as place:
        async with app_client(place) as talking:
            await talking.spawn("h", "sh", "-c", script, streamStdin=True)
            await gate.reached()
            answers = talking.post_together(
                *(("process/writeStdin", write_params("h", piece)) for piece in pieces),
                ("process/writeStdin", write_params("h", close=True)),
            )
            gate.open()
            results = [await talking.result(answer) for answer in answers]
            told = await talking.exited("h")

    assert results == [{}] * (len(pieces) + 1)
    assert told["stdout"].split()[0] == sha256(b"".join(pieces))


@pytest.mark.slow
async def test_one_write_of_several_mebibytes_and_a_close_in_it_are_delivered(place: Place) -> None:
    """A single large write is answered at once and still wholly delivered."""
    data = os.urandom(5 << 20)
    async with app_client(place) as talking:
        await talking.spawn("h", "sha256sum", streamStdin=True)
        answer = await talking.write("h", data, close=True)
        told = await talking.exited("h")

    assert answer == {}
    assert told["stdout"].split()[0] == sha256(data)


# The end.


@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "terminal"])
async def test_a_kill_ends_the_whole_group_and_the_exit_says_so(
    place: Place, gate: Gate, *, tty: bool
) -> None:
    """Children of the process go with it, even those that ignore gentler signals."""
    script = f"trap '' HUP TERM INT; sleep 1000 & echo $! $$; {gate.report}; wait"
    async with app_client(place) as talking:
        await talking.spawn("h", "sh", "-c", script, tty=tty, streamStdoutStderr=True, timeoutMs=None)
        await gate.reached()
        await talking.said("h", b"\n")
        answer = await talking.call("process/kill", {"processHandle": "h"})
        told = await talking.exited("h")
        for pid in talking.tale("h").data().split():
            await gone(int(pid))
        late = await talking.refusal("process/kill", {"processHandle": "h"})

    assert answer == {}
    assert told["exitCode"] == 137
    assert not told["outputDrainTimedOut"]
    assert late == (-32600, 'no active process for process handle "h"')


@pytest.mark.slow
@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "terminal"])
async def test_a_kill_goes_ahead_of_writes_that_wait_for_a_child_that_does_not_read(
    place: Place, gate: Gate, *, tty: bool
) -> None:
    """The client must be able to kill exactly the process that blocks it."""
    script = f"{gate.report}; exec sleep 1000"
    async with app_client(place) as talking:
        await talking.spawn("h", "sh", "-c", script, tty=tty, streamStdin=True, timeoutMs=None)
        await gate.reached()
        writes = talking.post_together(*[("process/writeStdin", write_params("h", BLOCK))] * 300)
        killed = await talking.answer(talking.post("process/kill", {"processHandle": "h"}))
        told = await talking.exited("h")
        answers = [await talking.answer(write) for write in writes]
        heard = [message["id"] for message in talking.messages if "id" in message]

    taken = [answer for answer in answers if answer.get("result") == {}]
    behind = heard[heard.index(killed["id"]) + 1 :]
    assert killed["result"] == {}
    assert behind, "no write had to wait, so the kill had nothing to overtake"
    assert told["exitCode"] == 137
    assert answers[: len(taken)] == taken, "a later write overtook an earlier one"
    assert {answer["error"]["code"] for answer in answers[len(taken) :]} <= {-32600}


async def test_two_kills_together_are_both_answered(place: Place) -> None:
    """The second has nothing left to do, and that is no mistake of the client."""
    async with app_client(place) as talking:
        await talking.spawn("h", "sleep", "1000")
        kills = talking.post_together(*[("process/kill", {"processHandle": "h"})] * 2)
        answers = [await talking.result(kill) for kill in kills]
        told = await talking.exited("h")

    assert answers == [{}, {}]
    assert told["exitCode"] == 137


@pytest.mark.parametrize(
    ("script", "code"), [("exit 300", 44), ("kill -TERM $$", 143), ("kill -KILL $$", 137)]
)
async def test_the_exit_code_is_the_childs(place: Place, script: str, code: int) -> None:
    """Modulo 256, and 128 and the signal's number for a death by signal."""
    async with app_client(place) as talking:
        await talking.spawn("h", "sh", "-c", script)
        told = await talking.exited("h")

    assert told["exitCode"] == code


# Time.


@pytest.mark.slow
@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "terminal"])
@pytest.mark.parametrize("milliseconds", [0, 1, 300])
async def test_a_timeout_kills_the_group_and_the_code_is_124(
    place: Place, milliseconds: int, *, tty: bool
) -> None:
    """Whatever the process would have returned, and at once for a time of zero."""
    script = "printf said; sleep 1000 & sleep 1000"
    async with app_client(place) as talking:
        started = asyncio.get_running_loop().time()
        await talking.spawn("h", "sh", "-c", script, tty=tty, timeoutMs=milliseconds, streamStdoutStderr=True)
        told = await talking.exited("h")
        took = asyncio.get_running_loop().time() - started

    assert told["exitCode"] == 124
    assert not told["outputDrainTimedOut"]
    assert talking.tale("h").data() in (b"", b"said")
    assert took >= milliseconds / 1000


@pytest.mark.slow
async def test_what_was_said_before_the_timeout_is_kept(place: Place, gate: Gate) -> None:
    """The last words before a timeout are often the reason for it."""
    async with app_client(place) as talking:
        await talking.spawn("h", "sh", "-c", f"printf said; {gate.shell}", timeoutMs=600)
        await gate.reached()
        told = await talking.exited("h")

    assert (told["exitCode"], told["stdout"]) == (124, "said")


@pytest.mark.slow
async def test_of_two_timeouts_the_shorter_ends_first_and_null_never_ends(place: Place) -> None:
    """The time is each process's own."""
    async with app_client(place) as talking:
        await talking.spawn("never", "sleep", "1000", timeoutMs=None)
        await talking.spawn("largest", "sleep", "1000", timeoutMs=2**63 - 1)
        await talking.spawn("default", "sleep", "1000")
        await talking.spawn("long", "sleep", "1000", timeoutMs=200)
        await talking.spawn("short", "sleep", "1000", timeoutMs=20)
        await talking.exited("long")
        order = [m["params"]["processHandle"] for m in talking.messages if "method" in m]
        for handle in ("never", "largest", "default"):
            await talking.call("process/kill", {"processHandle": handle})
        codes = {
            handle: (await talking.exited(handle))["exitCode"]
            for handle in ("never", "largest", "default", "long", "short")
        }

    assert order == ["short", "long"]
    assert codes == {"never": 137, "largest": 137, "default": 137, "long": 124, "short": 124}


async def test_a_process_that_ends_in_time_keeps_its_code(place: Place) -> None:
    """A timeout that has not come changes nothing."""
    async with app_client(place) as talking:
        await talking.spawn("h", "sh", "-c", "exit 5", timeoutMs=60_000)
        told = await talking.exited("h")

    assert told["exitCode"] == 5


# Terminals.


async def test_a_terminal_has_the_size_that_was_asked_for_and_a_resize_is_seen(place: Place) -> None:
    """The child is woken by the kernel's signal and finds the new size."""
    async with app_client(place) as talking:
        await talking.spawn("d", sys.executable, "-c", SIZES, tty=True)
        await talking.spawn("h", sys.executable, "-c", SIZES, tty=True, size={"rows": 33, "cols": 111})
        await talking.said("d", b"size 24 80\r\n")
        await talking.said("h", b"size 33 111\r\n")
        answer = await talking.call(
            "process/resizePty", {"processHandle": "h", "size": {"rows": 50, "cols": 65_535}}
        )
        await talking.said("h", b"size 50 65535\r\n")

    assert answer == {}
    assert talking.tale("d").data() == b"size 24 80\r\n"
    assert talking.tale("h").data("stdout") == b"size 33 111\r\nsize 50 65535\r\n"


async def test_a_terminal_takes_input_without_asking_for_it(place: Place) -> None:
    """A terminal implies both streams; the control character ends the input as on any terminal."""
    async with app_client(place) as talking:
        await talking.spawn("h", "cat", tty=True)
        await talking.write("h", b"hello\n")
        await talking.said("h", b"hello\r\nhello\r\n")
        await talking.write("h", b"\x04")
        told = await talking.exited("h")

    assert (told["exitCode"], told["stdout"]) == (0, "")


async def test_closing_the_input_of_a_terminal_is_an_end_of_file_for_its_reader(
    place: Place, gate: Gate
) -> None:
    """A program that reads to the end must find one, on a terminal too."""
    async with app_client(place) as talking:
        await talking.spawn("h", "sh", "-c", f"cat; {gate.shell}", tty=True, timeoutMs=3000)
        await talking.write("h", b"unfinished", close=True)
        again = await talking.write("h", close=True)
        resized = await talking.call(
            "process/resizePty", {"processHandle": "h", "size": {"rows": 5, "cols": 5}}
        )
        gate.open()
        told = await talking.exited("h")

    assert (again, resized) == ({}, {})
    assert told["exitCode"] == 0
    assert talking.tale("h").data().replace(b"\r\n", b"") == b"unfinished" * 2
