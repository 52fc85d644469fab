"""Signals by name: to the group of a process, as with the reference, or to everybody it has started."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterator

import pytest

from tests.fakes.client import Client, Refusal, client
from tests.fakes.server import Program, eventually, is_running, program_at, stat_of
from tests.fakes.trees import exit_of, knowing


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Program, str]]:
    """One server for all tests of this module; each has its own session."""
    with program_at() as served:
        yield served


@pytest.fixture
async def talking(served: tuple[Program, str]) -> AsyncIterator[Client]:
    async with knowing(served[1]) as client:
        yield client


async def say(talking: Client, text: bytes) -> None:
    """Wait until the process has said this."""
    tale = talking.tale("p")
    await talking.until(lambda: text in tale.data())


HEARD = {
    "interrupt": "INT",
    "terminate": "TERM",
    "hangup": "HUP",
    "quit": "QUIT",
    "user1": "USR1",
    "user2": "USR2",
    "continue": "CONT",
}

EARS = f"""
import os, signal
def listen(who):
    heard = [getattr(signal, "SIG" + name) for name in {list(HEARD.values())}]
    signal.pthread_sigmask(signal.SIG_BLOCK, heard)
    os.write(1, f"{{who}} ready\\n".encode())
    while True:
        os.write(1, f"{{who}} {{signal.sigwait(heard).name[3:]}}\\n".encode())
if os.fork() == 0:
    listen("near")
if os.fork() == 0:
    os.setsid()
    listen("far")
listen("first")
"""
"""Three who say what they hear; one of them is in a session of its own.

They wait with ``sigwait``: a signal that comes just before ``pause`` would be noticed only after it.
"""


@pytest.mark.parametrize("name", HEARD)
@pytest.mark.parametrize("tree", [None, False, True])
async def test_every_signal_reaches_whom_it_is_meant_for(
    talking: Client,
    name: str,
    tree: bool | None,  # noqa: FBT001
) -> None:
    """The group, as with the reference; or everybody, wherever they went."""
    await talking.start("p", "python3", "-I", "-S", "-c", EARS)
    for who in ("first", "near", "far"):
        await say(talking, f"{who} ready\n".encode())
    params = {"processId": "p", "signal": name, **({} if tree is None else {"tree": tree})}

    answer = await talking.call("process/signal", params)
    await say(talking, f"near {HEARD[name]}\n".encode())
    await say(talking, f"first {HEARD[name]}\n".encode())
    if tree:
        await say(talking, f"far {HEARD[name]}\n".encode())
    other = "user1" if name != "user1" else "user2"
    await talking.call("process/signal", {"processId": "p", "signal": other, "tree": True})
    await say(talking, f"far {HEARD[other]}\n".encode())

    heard_far = f"far {HEARD[name]}\n".encode() in talking.tale("p").data()
    assert answer == {}
    assert heard_far is bool(tree)


@pytest.mark.parametrize("tree", [False, True])
async def test_a_process_is_stopped_and_goes_on(talking: Client, tree: bool) -> None:  # noqa: FBT001
    """To hold a program for a while."""
    await talking.start("p", "sh", "-c", "setsid sleep 1000 & echo $$ $!; exec sleep 1000")
    await say(talking, b"\n")
    first, far = map(int, talking.tale("p").data().split())
    await eventually(lambda: os.getsid(far) == far)

    def states() -> str:
        stats = stat_of(first), stat_of(far)
        return "".join(stat.state for stat in stats if stat is not None)

    await talking.call("process/signal", {"processId": "p", "signal": "stop", "tree": tree})
    await eventually(lambda: states() == ("TT" if tree else "TS"))
    await talking.call("process/signal", {"processId": "p", "signal": "continue", "tree": tree})
    await eventually(lambda: states() == "SS")

    assert (await talking.call("process/wait", {"processId": "p"}))["exited"] is False


@pytest.mark.parametrize("tree", [None, False, True])
async def test_kill_is_for_those_who_know_it(talking: Client, tree: bool | None) -> None:  # noqa: FBT001
    """It takes the group, or everybody."""
    await talking.start("p", "sh", "-c", "setsid sleep 1000 & echo $!; exec sleep 1000")
    await say(talking, b"\n")
    far = int(talking.tale("p").data())
    await eventually(lambda: os.getsid(far) == far)
    params = {"processId": "p", "signal": "kill", **({} if tree is None else {"tree": tree})}

    answer = await talking.call("process/signal", params)
    end = await exit_of(talking, "p")
    if tree:
        await eventually(lambda: not is_running(far))

    assert answer == {}
    assert end["exitCode"] == 128 + signal.SIGKILL
    assert is_running(far) is not bool(tree)


async def test_kill_does_not_exist_for_those_who_do_not_know_it(served: tuple[Program, str]) -> None:
    """Clients of the reference are promised that; with `tree` they show that they know."""
    async with client(served[1]) as talking:
        await talking.start("p", "sleep", "1000")

        with pytest.raises(Refusal) as caught:
            await talking.call("process/signal", {"processId": "p", "signal": "kill"})
        alive = await talking.call("process/wait", {"processId": "p"})
        await talking.call("process/signal", {"processId": "p", "signal": "kill", "tree": True})
        end = await exit_of(talking, "p")

    assert caught.value.code == -32602
    assert "unknown variant `kill`, expected `interrupt`" in caught.value.text
    assert alive["exited"] is False
    assert end["exitCode"] == 137


async def test_a_signal_to_nobody_is_no_error(talking: Client) -> None:
    """It may have ended a moment ago."""
    await talking.start("p", "true")
    await talking.closed("p")

    for name in (*HEARD, "kill", "stop"):
        for tree in (False, True):
            for process in ("p", "nobody"):
                params = {"processId": process, "signal": name, "tree": tree}
                assert await talking.call("process/signal", params) == {}
