"""What a process leaves behind may hold its output open: how long the result waits, and for whom."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.app_client import (
    TRANSPORTS,
    AppClient,
    Place,
    app_client,
    exec_params,
    serving,
    spawn_params,
)
from tests.fakes.client import Message
from tests.fakes.gate import Gate, end, gone

QUIET = 0.4
"""Seconds of silence that end the output, on the servers that have such an end."""
SHORT = 0.3
"""The hard cap of a server whose tests wait for it."""
LONG = 8.0
"""The hard cap of servers whose tests must not reach it."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("drain")


@pytest.fixture(scope="module")
def quiet(folder: Path) -> Iterator[Place]:
    """Silence ends the output; the hard cap is far away."""
    options = ("--drain", str(LONG), "--process-quiet", str(QUIET), "--command-quiet", str(QUIET))
    with serving("ws", folder, *options) as place:
        yield place


@pytest.fixture(scope="module")
def short(folder: Path) -> Iterator[Place]:
    """The hard cap is near; silence ends the output of commands only."""
    options = ("--drain", str(SHORT), "--process-quiet", "0", "--command-quiet", str(QUIET))
    with serving("ws", folder, *options) as place:
        yield place


@pytest.fixture(scope="module")
def patient(folder: Path) -> Iterator[Place]:
    """Only the end of the output counts; the hard cap is far away."""
    options = ("--drain", str(LONG), "--process-quiet", "0", "--command-quiet", "0")
    with serving("ws", folder, *options) as place:
        yield place


class Watch:
    """How long something took."""

    seconds = 0.0


@contextlib.contextmanager
def timed() -> Iterator[Watch]:
    watch = Watch()
    clock = asyncio.get_running_loop().time
    before = clock()
    yield watch
    watch.seconds = clock() - before


async def run(talking: AppClient, family: str, script: str, **options: Any) -> Message:
    """Run a script as a process or as a command; gives what is told of its end."""
    if family == "command":
        return await talking.execute("sh", "-c", script, **options)
    await talking.spawn("h", "sh", "-c", script, **options)
    return await talking.exited("h")


both = pytest.mark.parametrize("family", ["process", "command"])


# Silence.


@pytest.mark.slow
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_late_words_of_a_background_writer_are_waited_for_but_not_its_end(
    tmp_path: Path, transport: str
) -> None:
    """A moment of patience gets the whole word; the rest of the writer's life is nobody's business."""
    script = "(sleep 0.03; printf il; exec sleep 1000) & printf $! >&2; printf ta"
    options = ("--drain", str(LONG), "--command-quiet", str(QUIET))
    with serving(transport, tmp_path, *options) as place:
        async with app_client(place) as talking:
            with timed() as took:
                answered = await talking.execute("sh", "-c", script)
            await gone(int(answered["stderr"]))

    assert (answered["exitCode"], answered["stdout"]) == (0, "tail")
    assert QUIET <= took.seconds < LONG


@pytest.mark.slow
@both
async def test_a_silent_holder_is_waited_for_as_long_as_the_silence_may_last(
    quiet: Place, family: str
) -> None:
    """It was no hard end, and is not said to be."""
    async with app_client(quiet) as talking:
        with timed() as took:
            told = await run(talking, family, "sleep 1000 & printf $!; exit 3")
        await gone(int(told["stdout"]))

    assert told["exitCode"] == 3
    assert not told.get("outputDrainTimedOut")
    assert QUIET <= took.seconds < LONG


@pytest.mark.slow
async def test_every_word_starts_the_silence_anew(quiet: Place) -> None:
    """A writer that pauses for less than the silence is heard to its end."""
    words = " ".join(map(str, range(5)))
    script = f"(for i in {words}; do sleep 0.1; printf $i; done; exec sleep 1000) & printf x"
    async with app_client(quiet) as talking:
        with timed() as took:
            told = await run(talking, "process", script)

    assert told["stdout"] == "x01234"
    assert not told["outputDrainTimedOut"]
    assert took.seconds >= 2 * QUIET


UNTIL = f"import time; end = time.monotonic() + {3 * QUIET}\nwhile time.monotonic() < end: pass"
SPIN = f"{sys.executable} -I -S -c '{UNTIL}'"
"""Works for longer than the silence may last, and says nothing."""


@pytest.mark.slow
@both
@pytest.mark.parametrize("given", ["", ">/dev/null 2>&1"], ids=["itself", "somebody it waits for"])
async def test_who_is_at_work_is_waited_for_though_it_is_silent(
    quiet: Place, family: str, given: str
) -> None:
    """Had it got a processor sooner it would have spoken in time."""
    script = f"({SPIN} {given}; printf il; exec sleep 1000) & printf ta"
    async with app_client(quiet) as talking:
        told = await run(talking, family, script)

    assert (told["exitCode"], told["stdout"]) == (0, "tail")
    assert not told.get("outputDrainTimedOut")


# The hard cap.


@pytest.mark.slow
@pytest.mark.parametrize("held", ["", ">/dev/null", "2>/dev/null"], ids=["both", "stderr", "stdout"])
async def test_a_silent_holder_ends_at_the_hard_cap_where_silence_is_no_end(short: Place, held: str) -> None:
    """One stream is enough to hold; the result says that it may not be complete."""
    async with app_client(short) as talking:
        with timed() as took:
            told = await run(talking, "process", f"sleep 1000 {held} & printf $!; exit 3")
        await gone(int(told["stdout"]))

    assert (told["exitCode"], told["outputDrainTimedOut"]) == (3, True)
    assert took.seconds >= SHORT


@pytest.mark.slow
@both
@pytest.mark.parametrize("streamed", [False, True], ids=["buffered", "streamed"])
async def test_a_holder_that_goes_on_talking_ends_at_the_hard_cap(
    short: Place, family: str, *, streamed: bool
) -> None:
    """Whoever never falls silent does not keep the client waiting for ever, and what it said is kept."""
    script = "(while :; do printf .; sleep 0.02; done) & printf $! >&2; exit 3"
    options: dict[str, Any] = {"streamStdoutStderr": streamed}
    if family == "command":
        options["processId"] = "h"
    async with app_client(short) as talking:
        with timed() as took:
            told = await run(talking, family, script, **options)
        tale = talking.tale("h") if family == "process" else talking.command("h")
        ticks = tale.data("stdout").decode() if streamed else told["stdout"]
        pid = tale.data("stderr").decode() if streamed else told["stderr"]
        await gone(int(pid))
        # Had anything been told after the result, it would have come before this answer.
        await talking.execute("true")

    assert told["exitCode"] == 3
    assert told.get("outputDrainTimedOut") == (True if family == "process" else None)
    assert set(ticks) == {"."}
    assert len(ticks) > 1
    assert took.seconds >= SHORT
    if streamed:
        assert tale.data("stdout").decode() == ticks


@pytest.mark.slow
@both
async def test_a_daemon_in_a_session_of_its_own_does_not_delay_past_the_hard_cap(
    short: Place, family: str
) -> None:
    """It cannot be ended with the group, but its hold on the pipe ends."""
    script = "setsid sh -c 'printf $$; while :; do printf . >&2; sleep 0.02; done' & exit 3"
    async with app_client(short) as talking:
        with timed() as took:
            told = await run(talking, family, script)
        end(int(told["stdout"]))

    assert told["exitCode"] == 3
    assert told.get("outputDrainTimedOut") == (True if family == "process" else None)
    assert took.seconds >= SHORT


@pytest.mark.slow
async def test_a_kill_takes_the_daemon_that_holds_the_pipe(patient: Place, gate: Gate) -> None:
    """Nobody is left who could delay the news."""
    script = f"setsid sh -c 'printf $$; {gate.report}; exec sleep 1000' & wait"
    async with app_client(patient) as talking:
        await talking.spawn("h", "sh", "-c", script)
        await gate.reached()
        await talking.call("process/kill", {"processHandle": "h"})
        told = await talking.exited("h")
        await gone(int(told["stdout"]))

    assert (told["exitCode"], told["outputDrainTimedOut"]) == (137, False)


@pytest.mark.slow
async def test_a_timeout_that_comes_after_the_exit_changes_nothing(patient: Place, gate: Gate) -> None:
    """The process ended in time; that its output is still awaited is not its fault."""
    time = {"timeoutMs": 500}
    async with app_client(patient) as talking:
        await talking.spawn("h", "sh", "-c", f"({gate.shell}) & exit 3", **time)
        await gate.reached()
        await over(talking, "process/writeStdin", {"processHandle": "h"})
        await talking.spawn("later", "sleep", "1000", **time)
        later = await talking.exited("later")
        gate.open()
        told = await talking.exited("h")

    assert later["exitCode"] == 124
    assert (told["exitCode"], told["outputDrainTimedOut"]) == (3, False)


# No wait at all.


@both
@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "terminal"])
async def test_a_holder_of_nothing_delays_nothing_and_goes_with_the_group(
    patient: Place, family: str, *, tty: bool
) -> None:
    """Only the output is waited for, not the children; they end with the result all the same."""
    script = "sleep 1000 >/dev/null 2>&1 </dev/null & printf $!"
    options = {"tty": tty, **({"processId": "h"} if family == "command" else {})}
    async with app_client(patient) as talking:
        with timed() as took:
            told = await run(talking, family, script, **options)
        tale = talking.tale("h") if family == "process" else talking.command("h")
        await gone(int(told["stdout"] or tale.data()))

    assert told["exitCode"] == 0
    assert not told.get("outputDrainTimedOut")
    assert took.seconds < LONG


@both
async def test_streams_that_had_reached_their_caps_are_not_waited_for(patient: Place, family: str) -> None:
    """Nothing of them is wanted any more, so the exit is all there is to tell."""
    script = "printf 0123456789; printf 0123456789 >&2; sleep 1000 & exit 3"
    async with app_client(patient) as talking:
        with timed() as took:
            told = await run(talking, family, script, outputBytesCap=5)

    assert (told["exitCode"], told["stdout"], told["stderr"]) == (3, "01234", "01234")
    assert took.seconds < LONG


async def test_streams_that_reach_their_caps_during_the_drain_end_it(patient: Place, gate: Gate) -> None:
    """The same, when the last wanted byte comes from somebody left behind."""
    script = f"({gate.shell}; printf 0123456789; printf 0123456789 >&2; exec sleep 1000) & exit 3"
    async with app_client(patient) as talking:
        with timed() as took:
            await talking.spawn("h", "sh", "-c", script, outputBytesCap=5)
            await gate.reached()
            await over(talking, "process/writeStdin", {"processHandle": "h"})
            gate.open()
            told = await talking.exited("h")

    assert (told["exitCode"], told["stdout"], told["stderr"]) == (3, "01234", "01234")
    assert not told["outputDrainTimedOut"]
    assert took.seconds < LONG


async def test_a_stream_at_its_cap_is_not_waited_for_when_the_other_has_ended(short: Place) -> None:
    """Each stream is complete in its own way; together they are complete as well."""
    script = "printf 0123456789; sleep 1000 2>/dev/null & exit 3"
    async with app_client(short) as talking:
        told = await run(talking, "process", script, outputBytesCap=5)

    assert (told["exitCode"], told["stdout"], told["stdoutCapReached"]) == (3, "01234", True)
    assert not told["outputDrainTimedOut"]


# Meanwhile.


async def over(talking: AppClient, method: str, params: Message) -> None:
    """Wait until a process that takes no input has exited, as its refusals tell."""
    text = "stdin streaming is not enabled"
    while text in (refusal := await talking.refusal(method, {**params, "closeStdin": True}))[1]:
        pass
    assert refusal[1].endswith("is no longer running")


@pytest.mark.parametrize("tty", [False, True], ids=["pipe", "terminal"])
async def test_control_during_the_drain_of_a_process_is_answered_at_once(
    patient: Place, gate: Gate, *, tty: bool
) -> None:
    """It has exited, and whoever asks is told so without waiting for the rest of its output."""
    script = f"trap '' HUP; ({gate.shell}; printf late) & {gate.report}; exit 3"
    handle = {"processHandle": "h"}
    async with app_client(patient) as talking:
        await talking.spawn("h", "sh", "-c", script, tty=tty)
        await gate.reached(2)
        while (
            "error"
            not in (answer := await talking.answer(talking.post("process/resizePty", resized(handle))))
            or "no longer" not in answer["error"]["message"]
        ):
            assert not talking.tale("h").exits
        refusals = [
            await talking.refusal("process/kill", handle),
            await talking.refusal("process/writeStdin", {**handle, "closeStdin": True}),
            await talking.refusal("process/writeStdin", {**handle, "deltaBase64": "YQ=="}),
            await talking.refusal("process/resizePty", resized(handle)),
        ]
        taken = await talking.refusal("process/spawn", spawn_params("h", "true"))
        told_meanwhile = list(talking.tale("h").exits)
        gate.open()
        told = await talking.exited("h")

    said = talking.tale("h").data().decode() or told["stdout"]
    assert refusals == [(-32600, 'process "h" is no longer running')] * 4
    assert taken == (-32600, 'duplicate active process handle: "h"')
    assert told_meanwhile == []
    assert (told["exitCode"], told["outputDrainTimedOut"], said) == (3, False, "late")


def resized(params: Message) -> Message:
    return {**params, "size": {"rows": 5, "cols": 5}}


async def test_control_during_the_drain_of_a_command_is_answered_at_once(patient: Place, gate: Gate) -> None:
    """The same, before the command's own answer."""
    script = f"({gate.shell}; printf late) & exit 3"
    name = {"processId": 'a"b'}
    async with app_client(patient) as talking:
        running = talking.post("command/exec", exec_params("sh", "-c", script, **name))
        await gate.reached()
        await over(talking, "command/exec/write", name)
        refusals = [
            await talking.refusal("command/exec/terminate", name),
            await talking.refusal("command/exec/write", {**name, "closeStdin": True}),
            await talking.refusal("command/exec/resize", resized(name)),
        ]
        taken = await talking.refusal("command/exec", exec_params("true", **name))
        answered_meanwhile = running.done()
        gate.open()
        answered = await talking.result(running)
        late = await talking.refusal("command/exec/terminate", name)

    assert refusals == [(-32600, r'command/exec "a\"b" is no longer running')] * 3
    assert taken == (-32600, r'duplicate active command/exec process id: "a\"b"')
    assert not answered_meanwhile
    assert answered == {"exitCode": 3, "stdout": "late", "stderr": ""}
    assert late == (-32600, r'no active command/exec for process id "a\"b"')
