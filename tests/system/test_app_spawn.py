"""process/spawn from end to end: the answer, the output, its caps, the environment, the handle."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.app_client import TRANSPORTS, AppClient, Place, app_client, serving, spawn_params
from tests.fakes.client import Message, sha256

MIB = 1 << 20

STREAMED = {"streamStdoutStderr": True}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """One server for the tests that need no other."""
    env = {"KEPT": "server", "TAKEN": "server"}
    with serving("ws", tmp_path_factory.mktemp("spawn"), env=env) as place:
        yield place


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """8 MiB in which every byte can follow every other."""
    path = tmp_path_factory.mktemp("noise") / "noise"
    path.write_bytes(os.urandom(8 * MIB))
    return path


def exit_params(handle: str, **changes: Any) -> Message:
    """What is told of a process that ended well and silently."""
    return {
        "processHandle": handle,
        "exitCode": 0,
        "outputDrainTimedOut": False,
        "stdout": "",
        "stdoutCapReached": False,
        "stderr": "",
        "stderrCapReached": False,
        **changes,
    }


def split(stdout: Path, stderr: Path) -> tuple[str, ...]:
    """A command that prints one file on each stream, both at once."""
    return ("sh", "-c", 'cat "$0" & cat "$1" >&2; wait', str(stdout), str(stderr))


# The answer, and what follows.


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_eight_mebibytes_of_anything_arrive_unchanged_on_both_streams(
    tmp_path: Path, noise: Path, transport: str
) -> None:
    """Neither encoding nor joining, neither order nor volume may touch a byte."""
    other = tmp_path / "other"
    other.write_bytes(noise.read_bytes()[::-1])
    with serving(transport, tmp_path) as place:
        async with app_client(place) as talking:
            await talking.spawn("h", *split(noise, other), **STREAMED, outputBytesCap=None)
            told = await talking.exited("h")

    tale = talking.tale("h")
    assert sha256(tale.data("stdout")) == sha256(noise.read_bytes())
    assert sha256(tale.data("stderr")) == sha256(other.read_bytes())
    assert set(tale.caps("stdout") + tale.caps("stderr")) == {False}
    assert told == exit_params("h")


@pytest.mark.slow
async def test_the_answer_precedes_everything_the_process_says_and_the_exit_is_last(place: Place) -> None:
    """A client knows each handle before it hears of it, and may forget it at the exit."""
    handles = [f"h{number}" for number in range(200)]
    async with app_client(place) as talking:
        answers = talking.post_together(
            *(
                (
                    "process/spawn",
                    spawn_params(handle, "sh", "-c", "echo $0; echo $0 >&2", handle, **STREAMED),
                )
                for handle in handles
            )
        )
        numbers: dict[int, str] = {
            (await talking.answer(answer))["id"]: handle
            for answer, handle in zip(answers, handles, strict=True)
        }
        for handle in handles:
            await talking.exited(handle)

    stories: dict[str, list[str]] = {handle: [] for handle in handles}
    for message in talking.messages:
        if "method" in message:
            stories[message["params"]["processHandle"]].append(message["method"])
        elif message["id"] in numbers:
            stories[numbers[message["id"]]].append("answer")
    shape = ["answer", "process/outputDelta", "process/outputDelta", "process/exited"]
    assert {tuple(story) for story in stories.values()} == {tuple(shape)}
    assert {talking.tale(handle).data() for handle in handles} == {
        f"{handle}\n{handle}\n".encode() for handle in handles
    }


async def test_buffered_output_comes_once_with_the_exit(place: Place) -> None:
    """Whoever does not want to follow gets one notification with everything."""
    async with app_client(place) as talking:
        answer = await talking.spawn("h", "sh", "-c", "printf out; printf err >&2; exit 3")
        told = await talking.exited("h")

    assert answer == {}
    assert told == exit_params("h", exitCode=3, stdout="out", stderr="err")
    assert talking.tale("h").deltas == []


async def test_it_runs_in_its_directory_with_null_for_stdin_and_as_leader_of_its_session(
    place: Place, tmp_path: Path
) -> None:
    """What a program finds around itself is part of the promise."""
    source = (
        "import os, sys; print(os.getcwd(), os.getsid(0) == os.getpgid(0) == os.getpid(),"
        " os.readlink('/proc/self/fd/0'))"
    )
    async with app_client(place) as talking:
        await talking.spawn("h", sys.executable, "-c", source, cwd=str(tmp_path))
        told = await talking.exited("h")

    assert told["stdout"] == f"{tmp_path} True /dev/null\n"


# Caps.


@pytest.mark.parametrize(
    ("cap", "said", "told", "reached"),
    [
        (5, "abcdefgh", "abcde", True),
        (5, "abcde", "abcde", True),
        (5, "abcd", "abcd", False),
        (0, "a", "", True),
        (0, "", "", False),
        (None, "abcdefgh", "abcdefgh", False),
    ],
    ids=["over", "exact", "under", "zero with output", "zero without output", "none"],
)
async def test_output_is_cut_exactly_at_the_cap_and_said_to_be(
    place: Place, cap: int | None, said: str, told: str, *, reached: bool
) -> None:
    """Per stream, streamed and buffered alike; nothing follows the delta that reaches it."""
    argv = ("sh", "-c", 'printf %s "$0"; printf zz >&2', said)
    async with app_client(place) as talking:
        await talking.spawn("b", *argv, outputBytesCap=cap)
        buffered = await talking.exited("b")
        await talking.spawn("s", *argv, outputBytesCap=cap, **STREAMED)
        streamed = await talking.exited("s")

    err, err_reached = ("zz", False) if cap is None or cap > 2 else ("", True)
    flags = {"stdoutCapReached": reached, "stderrCapReached": err_reached}
    tale = talking.tale("s")
    assert buffered == exit_params("b", stdout=told, stderr=err, **flags)
    assert streamed == exit_params("s", **flags)
    assert (tale.data("stdout"), tale.data("stderr")) == (told.encode(), err.encode())
    assert tale.caps("stdout")[-1:] == ([reached] if said else [])
    assert tale.caps("stdout").count(True) == int(reached)
    assert tale.caps("stderr").count(True) == int(err_reached)


@pytest.mark.parametrize("streamed", [False, True], ids=["buffered", "streamed"])
async def test_one_cap_does_not_stop_the_other_stream_nor_the_child(place: Place, *, streamed: bool) -> None:
    """What is over the cap is read and dropped, so that the child never waits for nobody."""
    script = "head -c 3000000 /dev/zero; printf end >&2; exit 7"
    async with app_client(place) as talking:
        await talking.spawn("h", "sh", "-c", script, outputBytesCap=1000, streamStdoutStderr=streamed)
        told = await talking.exited("h")

    tale = talking.tale("h")
    out, err = ("", "") if streamed else ("\0" * 1000, "end")
    assert told == exit_params("h", exitCode=7, stdout=out, stdoutCapReached=True, stderr=err)
    assert tale.data("stdout") == (b"\0" * 1000 if streamed else b"")
    assert tale.data("stderr") == (b"end" if streamed else b"")
    assert tale.caps("stdout").count(True) == int(streamed)


@pytest.mark.parametrize(
    ("said", "kept", "reached"),
    [(MIB - 1, MIB - 1, False), (MIB, MIB, True), (MIB + 1, MIB, True)],
    ids=["under", "exact", "over"],
)
@pytest.mark.parametrize("streamed", [False, True], ids=["buffered", "streamed"])
async def test_without_a_word_about_it_the_cap_is_one_mebibyte(
    place: Place, said: int, kept: int, *, reached: bool, streamed: bool
) -> None:
    """A default that protects the client, and whose edge is exact."""
    async with app_client(place) as talking:
        await talking.spawn("h", "head", "-c", str(said), "/dev/zero", streamStdoutStderr=streamed)
        told = await talking.exited("h")

    tale = talking.tale("h")
    told_bytes = len(tale.data()) if streamed else len(told["stdout"])
    assert told_bytes == kept
    assert (told["stdoutCapReached"], told["stderrCapReached"]) == (reached, False)
    assert tale.caps()[-1:] == ([reached] if streamed else [])


async def test_the_output_of_a_terminal_has_the_same_cap_on_its_one_stream(place: Place) -> None:
    """Whatever it wrote to, it is stdout."""
    async with app_client(place) as talking:
        await talking.spawn("h", "sh", "-c", "printf abc; printf defgh >&2", tty=True, outputBytesCap=5)
        told = await talking.exited("h")

    tale = talking.tale("h")
    assert told == exit_params("h", stdoutCapReached=True)
    assert (tale.data("stdout"), tale.data("stderr")) == (b"abcde", b"")
    assert tale.caps()[-1]


# The environment.


async def environment(talking: AppClient, **options: Any) -> dict[str, str]:
    turn = len(talking.tale("env").exits) + 1
    await talking.spawn("env", "/usr/bin/env", "-0", **options)
    told = await talking.exited("env", turn)
    pairs = (entry.partition("=") for entry in told["stdout"].split("\0") if entry)
    return {name: value for name, _, value in pairs}


async def test_overrides_are_laid_over_the_servers_environment_and_null_takes_away(place: Place) -> None:
    """A client changes what it must and need not know the rest."""
    async with app_client(place) as talking:
        plain = await environment(talking)
        null = await environment(talking, env=None)
        changed = await environment(talking, env={"KEPT": "client", "TAKEN": None, "NEW": "", "NONE": None})

    assert (plain["KEPT"], plain["TAKEN"]) == ("server", "server")
    assert null == plain
    assert changed == {**{k: v for k, v in plain.items() if k != "TAKEN"}, "KEPT": "client", "NEW": ""}


async def test_nothing_is_added_for_a_process(place: Place) -> None:
    """Only commands are told of a sandbox; a process has none."""
    async with app_client(place) as talking:
        plain = await environment(talking)

    assert "CODEX_SANDBOX_NETWORK_DISABLED" not in plain


# The handle.


@pytest.mark.slow
async def test_a_handle_can_be_used_again_right_after_its_exit(place: Place) -> None:
    """300 times, each sent from within the notification's arrival: never a duplicate."""
    turns = 300
    outcomes: list[asyncio.Future[Message]] = []

    def again(message: Message) -> None:
        if message.get("method") == "process/exited" and len(outcomes) < turns:
            outcomes.append(talking.post("process/spawn", spawn_params("h", "true")))

    async with app_client(place) as talking:
        talking.on_message = again
        await talking.spawn("h", "true")
        await talking.exited("h", turns + 1)

    assert [outcome.result().get("result") for outcome in outcomes] == [{}] * turns


async def test_a_handle_is_free_after_a_start_that_failed(place: Place) -> None:
    """Nothing runs under it, so nothing may hold it."""
    async with app_client(place) as talking:
        refusal = await talking.refusal("process/spawn", spawn_params("h", "/nothing/here"))
        answer = await talking.spawn("h", "true")
        told = await talking.exited("h")

    assert refusal == (-32603, "failed to spawn process: No such file or directory (os error 2)")
    assert answer == {}
    assert told == exit_params("h")


async def test_a_process_and_a_command_may_have_the_same_name(place: Place) -> None:
    """The two families know nothing of each other."""
    async with app_client(place) as talking:
        await talking.spawn("x", "cat", streamStdin=True)
        result = await talking.execute("echo", "command", processId="x")
        await talking.write("x", b"process", close=True)
        told = await talking.exited("x")

    assert result == {"exitCode": 0, "stdout": "command\n", "stderr": ""}
    assert told["stdout"] == "process"
