"""Starting processes and commands, and what becomes of them."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import msgspec
import pytest

from holdfast.dialects.app.explain import explain
from holdfast.dialects.dialect import WireError
from holdfast.errors import Fault, HoldfastError, LimitReached, ProgramSearch, SpawnFailed
from holdfast.model import Leftovers, Stream
from tests.fakes.app_talk import CLIENT, HARD, AppTalk, ready
from tests.fakes.dialects import FakeProcess

SPAWN = {"command": ["x"], "processHandle": "h", "cwd": "/tmp"}
EXEC = {"command": ["x"]}
NAMED = {**EXEC, "processId": "c"}
NO_SUCH_FILE = SpawnFailed(Fault.PROGRAM, "x", "No such file or directory", number=2)


async def refusal(scene: AppTalk, method: str, params: Any) -> WireError:
    with pytest.raises(HoldfastError) as caught:
        await scene.start(method, params)
    found = explain(caught.value, ())
    return WireError(found.code, found.message)  # The data is the same in all dialects.


def untimed(raw: list[bytes]) -> list[bytes]:
    """Messages without the time at which they were sent."""
    return [re.sub(rb'(?<="emittedAtMs":)[1-9]\d{12}(?=}$)', b"T", message) for message in raw]


async def spawned(**params: Any) -> tuple[AppTalk, FakeProcess]:
    process = FakeProcess()
    scene = await ready(process)
    assert await scene.call("process/spawn", {**SPAWN, **params}) == {}
    return scene, process


async def executed(**params: Any) -> tuple[AppTalk, FakeProcess, asyncio.Future[Any]]:
    process = FakeProcess()
    scene = await ready(process)
    answer = await scene.start("command/exec", {**EXEC, **params})
    assert isinstance(answer, asyncio.Future)
    return scene, process, answer


async def outcome(scene: AppTalk, process: FakeProcess, params: dict[str, Any], *, said: bytes = b"") -> Any:
    """The result of a command that says something and ends."""
    answer = await scene.start("command/exec", params)
    if said:
        process.say(said)
    process.exit_with(0)
    process.close()
    return await answer


# Processes.


async def test_a_spawned_process_is_answered_before_anything_it_says() -> None:
    scene, process = await spawned(streamStdoutStderr=True)

    assert scene.client.raw == []
    assert [spec.argv for spec in scene.backend.specs] == [["x"]]
    assert process.calls == [("retain", 0)]


async def test_streamed_output_is_told_byte_for_byte_as_the_reference_does() -> None:
    scene, process = await spawned(streamStdoutStderr=True, outputBytesCap=5, processHandle='é"\n')

    process.say(b"out")
    process.say(b"err", Stream.STDERR)
    process.say(b"more")
    process.exit_with(3)
    process.close()

    begin = '{"method":"process/outputDelta","params":{"processHandle":"é\\"\\n","stream":'
    assert untimed(scene.client.raw) == [
        text.encode()
        for text in (
            begin + '"stdout","deltaBase64":"b3V0","capReached":false},"emittedAtMs":T}',
            begin + '"stderr","deltaBase64":"ZXJy","capReached":false},"emittedAtMs":T}',
            begin + '"stdout","deltaBase64":"bW8=","capReached":true},"emittedAtMs":T}',
            '{"method":"process/exited","params":{"processHandle":"é\\"\\n","exitCode":3,'
            '"outputDrainTimedOut":false,"stdout":"","stdoutCapReached":true,'
            '"stderr":"","stderrCapReached":false},"emittedAtMs":T}',
        )
    ]


async def test_a_cap_of_nothing_is_told_once_and_empty() -> None:
    scene, process = await spawned(streamStdoutStderr=True, outputBytesCap=0)

    process.say(b"a")
    process.say(b"b")

    (told,) = scene.client.sent
    assert (told["params"]["deltaBase64"], told["params"]["capReached"]) == ("", True)


async def test_what_a_terminal_says_is_stdout() -> None:
    scene, process = await spawned(tty=True)

    process.say(b"hi", Stream.PTY)

    assert [message["params"]["stream"] for message in scene.client.sent] == ["stdout"]


async def test_buffered_output_comes_with_the_exit_as_text() -> None:
    scene, process = await spawned(outputBytesCap=6)

    process.say("abcdé".encode())
    process.say(b"\xe9t\xe9", Stream.STDERR)
    process.exit_with(0)
    process.close()

    (exited,) = scene.client.sent
    assert exited["params"] == {
        "processHandle": "h",
        "exitCode": 0,
        "outputDrainTimedOut": False,
        "stdout": "abcdé",
        "stdoutCapReached": True,
        "stderr": "été",
        "stderrCapReached": False,
    }


async def test_a_character_that_the_cap_cuts_is_dropped() -> None:
    """Half of one says nothing, and would make the rest look like another encoding."""
    scene, process = await spawned(outputBytesCap=5)

    process.say("abcdé".encode())
    process.exit_with(0)
    process.close()

    assert scene.client.sent[0]["params"]["stdout"] == "abcd"


async def test_output_that_somebody_holds_open_is_said_to_be_cut_short() -> None:
    scene, process = await spawned()
    process.say("é".encode()[:1])
    process.exit_with(0)

    scene.loop.move(HARD)

    (exited,) = scene.client.sent
    assert exited["params"]["outputDrainTimedOut"] is True
    assert exited["params"]["stdout"] == ""


async def test_a_handle_is_free_before_its_exit_is_told() -> None:
    """A client that reads of the exit may use it again at once."""
    scene, process = await spawned()
    free: list[bool] = []
    send = scene.client._send

    def note(*parts: bytes) -> None:
        free.append(scene.talk.processes.find("h") is None)
        send(*parts)

    scene.client._send = note  # type: ignore[method-assign]
    process.exit_with(0)
    process.close()

    assert free == [True]


@pytest.mark.parametrize(
    ("silenced", "heard"),
    [
        (["process/outputDelta"], ["process/exited"]),
        (["process/exited", "x"], ["process/outputDelta"]),
        (["process/*", "", "PROCESS/EXITED"], ["process/outputDelta", "process/exited"]),
    ],
)
async def test_a_client_hears_only_what_it_wants(silenced: list[str], heard: list[str]) -> None:
    process = FakeProcess()
    scene = AppTalk(process)
    capabilities = {"experimentalApi": True, "optOutNotificationMethods": silenced}
    await scene.call("initialize", {"clientInfo": CLIENT, "capabilities": capabilities})
    await scene.call("process/spawn", {**SPAWN, "streamStdoutStderr": True})

    process.say(b"x")
    process.exit_with(0)
    process.close()

    assert [message["method"] for message in scene.client.sent] == heard


# Commands.


async def test_a_command_is_answered_when_it_is_over() -> None:
    _, process, answer = await executed()
    process.say(b"out")
    process.say(b"err", Stream.STDERR)
    process.exit_with(3)
    before = answer.done()
    process.close()

    result = await answer

    assert not before
    assert (result.exit_code, result.stdout, result.stderr) == (3, "out", "err")


async def test_a_command_streams_under_its_name_and_its_answer_has_no_text_then() -> None:
    scene, process, answer = await executed(processId="c", streamStdoutStderr=True, outputBytesCap=3)

    process.say(b"abcd")
    process.exit_with(0)
    process.close()

    assert untimed(scene.client.raw) == [
        b'{"method":"command/exec/outputDelta","params":{"processId":"c","stream":"stdout",'
        b'"deltaBase64":"YWJj","capReached":true},"emittedAtMs":T}'
    ]
    assert ((await answer).stdout, scene.talk.commands.find("c")) == ("", None)


async def test_an_answer_says_that_it_was_cut_only_to_those_who_wanted_everything() -> None:
    """The others asked for the cap, and the reference does not tell them either."""
    scene = await ready(first := FakeProcess(), second := FakeProcess(), third := FakeProcess())
    long = b"x" * 101

    cut = await outcome(scene, first, {**EXEC, "outputBytesCap": 2}, said=long)
    held = await outcome(scene, second, {**EXEC, "disableOutputCap": True}, said=long)
    fits = await outcome(scene, third, {**EXEC, "disableOutputCap": True}, said=b"ab")

    assert [json.loads(msgspec.json.encode(result)) for result in (cut, held, fits)] == [
        {"exitCode": 0, "stdout": "xx", "stderr": ""},
        {"exitCode": 0, "stdout": "x" * 100, "stderr": "", "stdoutCapReached": True},
        {"exitCode": 0, "stdout": "ab", "stderr": ""},
    ]


async def test_a_command_without_a_name_is_out_of_reach_and_takes_nobodys_name() -> None:
    scene = await ready(FakeProcess(), FakeProcess(), FakeProcess())

    for params in (EXEC, {**EXEC, "processId": None}, {**EXEC, "processId": "0"}):
        await scene.start("command/exec", params)

    unknown = await refusal(scene, "command/exec/terminate", {"processId": "1"})
    assert unknown.message == 'no active command/exec for process id "1"'
    assert len(list(scene.talk.unnamed)) == 2


async def test_a_permission_profile_is_for_those_who_know_what_they_ask_for() -> None:
    """Before anything else about the command is looked at."""
    scene = AppTalk(FakeProcess())
    await scene.call("initialize", {"clientInfo": CLIENT})

    refused = await refusal(scene, "command/exec", {"command": [], "permissionProfile": ":x"})
    await scene.start("command/exec", {**EXEC, "permissionProfile": None})

    assert refused == WireError(-32600, "command/exec.permissionProfile requires experimentalApi capability")


# Names.


@pytest.mark.parametrize(
    ("method", "params", "words"),
    [
        ("process/spawn", SPAWN, 'duplicate active process handle: "h"'),
        ("command/exec", NAMED, 'duplicate active command/exec process id: "c"'),
        ("command/exec", {**EXEC, "processId": ""}, 'duplicate active command/exec process id: ""'),
    ],
)
async def test_a_name_is_taken_from_its_request_to_its_result(
    method: str, params: dict[str, Any], words: str
) -> None:
    """Also while the rest of its output is awaited."""
    scene = await ready(process := FakeProcess(), FakeProcess())
    await scene.start(method, params)

    running = await refusal(scene, method, params)
    process.exit_with(0)
    draining = await refusal(scene, method, params)
    process.close()
    await scene.start(method, params)

    assert running == draining == WireError(-32600, words)


async def test_the_two_families_do_not_share_names() -> None:
    scene = await ready(FakeProcess(), FakeProcess())

    await scene.start("process/spawn", {**SPAWN, "processHandle": "same"})
    await scene.start("command/exec", {**EXEC, "processId": "same"})

    assert len(scene.backend.specs) == 2


async def test_a_connection_has_a_bounded_number_of_names() -> None:
    scene = await ready(*(FakeProcess() for _ in range(3)))
    for name in "abc":
        await scene.start("process/spawn", {**SPAWN, "processHandle": name})

    refused = await refusal(scene, "process/spawn", SPAWN)

    assert (refused.code, refused.message) == (-32001, "Server overloaded; retry later.")


# Failures.


@pytest.mark.parametrize(
    ("method", "params", "begin"),
    [
        ("process/spawn", SPAWN, "failed to spawn process: "),
        ("command/exec", NAMED, "failed to spawn command: "),
        ("command/exec", EXEC, "failed to spawn command: "),
    ],
)
async def test_a_failed_start_is_told_in_the_words_of_its_family_and_frees_its_name(
    method: str, params: dict[str, Any], begin: str
) -> None:
    missing = SpawnFailed(Fault.PROGRAM, "x", "why", number=2, terminal=True, search=ProgramSearch("/bin"))
    scene = await ready(NO_SUCH_FILE, missing, FakeProcess())

    first = await refusal(scene, method, params)
    second = await refusal(scene, method, params)
    await scene.start(method, params)

    assert (first.code, first.message) == (-32603, begin + "No such file or directory (os error 2)")
    assert second.message == (f'{begin}Unable to spawn x because:\nNo viable candidates found in PATH "/bin"')


async def test_a_limit_of_the_backend_is_an_overload() -> None:
    scene = await ready(LimitReached("processes", 7), FakeProcess())

    refused = await refusal(scene, "process/spawn", SPAWN)
    await scene.start("process/spawn", SPAWN)

    assert refused == WireError(-32001, "Server overloaded; retry later.")


# The end of the connection.


@pytest.mark.parametrize(("method", "params"), [("process/spawn", SPAWN), ("command/exec", NAMED)])
async def test_a_start_under_way_is_given_up_when_its_client_leaves(
    method: str, params: dict[str, Any]
) -> None:
    scene = await ready(asyncio.Event(), FakeProcess())
    starting = asyncio.ensure_future(refusal(scene, method, params))
    await scene.backend.asked.wait()

    scene.talk.ended()

    assert (await starting).code == -32603
    assert list(scene.talk.processes) == list(scene.talk.commands) == []


async def test_the_answer_of_a_command_is_given_up_with_its_client() -> None:
    scene, process, answer = await executed()

    scene.talk.ended()

    assert answer.cancelled()
    assert process.calls[-1] == ("forget", Leftovers.END)
    assert scene.client.raw == []
