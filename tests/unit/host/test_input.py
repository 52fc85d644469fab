"""Who waits for input: real programs that read it in every way there is, and others that only look so."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Callable

import pytest

from holdfast.backend import HostedProcess
from holdfast.engine.local import LocalBackend
from holdfast.host import input as inputs
from holdfast.host.tree import Look, stat_of
from holdfast.inspection import Inspection
from tests.fakes.process import TERMINAL, command, eventually, python, sh
from tests.fakes.recorder import Recorder, record

_PAUSE = 0.01
"""Seconds between two looks."""

_LOOKS = 5
"""Looks at a process that must not be mistaken for one that waits."""


async def look(process: HostedProcess) -> Inspection:
    told: asyncio.Future[Inspection] = asyncio.get_running_loop().create_future()
    process.look_at_input(told.set_result)
    return await told


async def until(process: HostedProcess, is_so: Callable[[Inspection], object]) -> Inspection:
    """Look again and again until it is so.  What never becomes so is ended by the limit of the test."""
    found = await look(process)
    while not is_so(found):
        assert process.exit is None, "it has ended"
        await asyncio.sleep(_PAUSE)  # Nobody tells of this, and whoever is looked at needs a processor, too.
        found = await look(process)
    return found


def waits(found: Inspection) -> bool:
    return found.waiting_for_input is True


async def never_waits(process: HostedProcess, recorder: Recorder) -> None:
    """Look several times after it has said that it is ready."""
    await recorder.until_said(b"ready")
    assert [(await look(process)).waiting_for_input for _ in range(_LOOKS)] == [False] * _LOOKS


# Those who wait.

READERS = {
    "cat": "cat",
    "a shell": "read line",
    "a child of a shell": "exec 7<&0; (cat; true) <&7 & wait",
    "behind a pipe that it fills": "cat | sleep 1000",
    "under another number": "exec 7<&0 < /dev/null; cat <&7",
}


@pytest.mark.parametrize("script", READERS.values(), ids=list(READERS))
async def test_whoever_reads_our_pipe_waits(backend: LocalBackend, script: str) -> None:
    """Also a process that the command has started: it is the tree that was given the input."""
    process = await backend.start(sh(script, stdin=True))

    found = await until(process, waits)

    assert found == Inspection(waiting_for_input=True)


POLLERS = {
    "input()": "input()",
    "poll": "import select; p = select.poll(); p.register(0, select.POLLIN); p.poll()",
    "select": "import os, select; os.dup2(0, 5); select.select([5], [], [])",
    "epoll": "import select; e = select.epoll(); e.register(0, select.EPOLLIN); e.poll()",
    "an epoll in an epoll": (
        "import select; e, f = select.epoll(), select.epoll(); e.register(0, select.EPOLLIN);"
        "f.register(e.fileno(), select.EPOLLIN); f.poll()"
    ),
    "a thread": "import threading; threading.Thread(target=input).start()",
    "readv": "import os; os.readv(0, [bytearray(9)])",
    "splice": "import os; r, w = os.pipe(); os.splice(0, w, 9)",
}


@pytest.mark.parametrize("code", POLLERS.values(), ids=list(POLLERS))
async def test_every_call_counts_that_input_would_wake(backend: LocalBackend, code: str) -> None:
    """A program with an event loop waits for input together with other things."""
    process = await backend.start(python(code, stdin=True))

    assert waits(await until(process, waits))


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
async def test_an_event_loop_that_reads_its_stdin_waits(backend: LocalBackend) -> None:
    process = await backend.start(command("node", "-e", "process.stdin.on('data', () => 0)", stdin=True))

    assert waits(await until(process, waits))


async def test_a_question_for_a_password_is_told_from_other_questions(backend: LocalBackend) -> None:
    """It waits, and the terminal does not show what is typed."""
    process = await backend.start(command("bash", "-c", "read -s secret", terminal=TERMINAL))
    plain = await backend.start(command("bash", "-c", "read line", terminal=TERMINAL))

    secret = await until(process, lambda found: waits(found) and found.echo is False)
    line = await until(plain, waits)

    assert secret.waiting_for_input
    assert (line.echo, line.canonical) == (True, True)


async def test_an_interactive_shell_waits_at_its_prompt_only(backend: LocalBackend) -> None:
    """While a command runs the shell does not read, and what is typed is nobody's yet."""
    process = await backend.start(command("bash", "--norc", "-i", terminal=TERMINAL))
    recorder = record(process)
    prompt = await until(process, waits)

    await process.write(b"echo rea''dy; sleep 1000\n")
    await never_waits(process, recorder)
    # Once may not be enough: a shell that is just starting the command takes no notice.
    while not waits(await look(process)):
        assert process.exit is None
        await process.write(b"\x03")
        await asyncio.sleep(_PAUSE)

    assert (prompt.echo, prompt.canonical) == (False, False)


@pytest.mark.skipif(shutil.which("vim") is None, reason="there is no vim")
async def test_an_editor_waits(backend: LocalBackend) -> None:
    process = await backend.start(command("vim", "-u", "NONE", terminal=TERMINAL))

    found = await until(process, waits)

    assert found.canonical is False


async def test_whoever_opens_its_terminal_by_name_waits(backend: LocalBackend) -> None:
    """As programs do that ask for a password while their stdin is something else."""
    process = await backend.start(sh("read line < /dev/tty", terminal=TERMINAL))

    assert waits(await until(process, waits))


# Those who do not.

OTHERS = {
    "sleep": "echo ready; exec sleep 1000",
    "a busy loop": "echo ready; while :; do :; done",
    "a pipeline of its own": "echo ready; sleep 1000 | cat",
    "a reader of another file": "mkfifo {place}; (echo ready; exec sleep 1000) & cat < {place}",
    "a reader of a socket": (
        f'exec {sys.executable} -c \'import socket; a, b = socket.socketpair(); print("ready", flush=True);'
        "a.recv(1)'"
    ),
    "a poll for room": (
        f"exec {sys.executable} -c 'import select; p = select.poll(); p.register(0, select.POLLERR);"
        'print("ready", flush=True); p.poll()\''
    ),
}


@pytest.mark.parametrize("on", ["pipe", "terminal"])
@pytest.mark.parametrize("script", OTHERS.values(), ids=list(OTHERS))
async def test_whoever_does_something_else_does_not_wait(
    backend: LocalBackend, script: str, on: str, tmp_path: os.PathLike[str]
) -> None:
    """An agent that is told of a question where there is none answers into the void."""
    script = script.replace("{place}", os.fspath(tmp_path) + "/fifo")
    process = await backend.start(
        sh(script, stdin=on == "pipe", terminal=TERMINAL if on == "terminal" else None)
    )

    await never_waits(process, record(process))


async def test_a_process_in_the_background_of_its_terminal_does_not_wait(backend: LocalBackend) -> None:
    """What is typed goes to the foreground; whoever else reads it is stopped."""
    code = "import select; print('ready', flush=True); select.select([0], [], [])"
    line = f'{sys.executable} -c "{code}" & sleep 1000\n'
    process = await backend.start(command("bash", "--norc", "-i", terminal=TERMINAL))
    recorder = record(process)
    await until(process, waits)

    await process.write(line.encode())
    await recorder.until_said(b"\nready")

    await until(process, lambda found: not waits(found))
    assert not [found for found in [await look(process) for _ in range(_LOOKS)] if waits(found)]


async def test_a_stopped_process_does_not_wait(backend: LocalBackend) -> None:
    """It would not notice any input."""
    process = await backend.start(command("cat", stdin=True))
    await until(process, waits)

    process.signal_now(signal.SIGSTOP)
    await eventually(lambda: (stat_of(process.pid) or [b""])[0] == b"T")

    assert (await look(process)).waiting_for_input is False


async def test_nobody_waits_for_input_that_has_ended_or_never_was(backend: LocalBackend) -> None:
    ended = await backend.start(sh("cat; echo ready; exec sleep 1000", stdin=True))
    without = await backend.start(sh("echo ready; exec sleep 1000"))
    recorder, other = record(ended), record(without)

    ended.close_stdin_now()

    await never_waits(ended, recorder)
    await never_waits(without, other)


async def test_nobody_waits_once_the_process_has_ended(backend: LocalBackend) -> None:
    process = await backend.start(command("true", stdin=True))
    await record(process).until("closed")

    assert (await look(process)).waiting_for_input is False


async def test_a_tree_that_goes_while_it_is_looked_at_does_not_wait(backend: LocalBackend) -> None:
    """Whoever asked gets an answer in any case."""
    process = await backend.start(command("cat", stdin=True))
    recorder = record(process)
    asked = [asyncio.ensure_future(look(process)) for _ in range(20)]
    await asyncio.sleep(0)

    process.end_now()
    await recorder.until("closed")

    assert {(await one).waiting_for_input for one in asked} <= {True, False}


# What is not known.


async def test_what_the_kernel_does_not_tell_is_unknown(
    backend: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A guess would be wrong some day, and nobody could see that it was one."""
    process = await backend.start(command("cat", stdin=True))
    await until(process, waits)

    def forbidden(reader: object, thread: int) -> bytes:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(inputs._Reader, "_call", forbidden)
    refused = await look(process)
    monkeypatch.setattr(inputs, "_calls", dict)
    foreign = await look(process)

    assert refused == foreign == Inspection(waiting_for_input=None)


async def test_a_program_of_another_kind_is_not_understood(
    backend: LocalBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The numbers of calls mean something else for a program with 32 bits."""
    process = await backend.start(command("cat", stdin=True))
    await until(process, waits)

    monkeypatch.setattr(inputs._Reader, "_is_native", lambda reader: False)

    assert (await look(process)).waiting_for_input is None


async def test_a_look_that_was_cut_knows_nothing(backend: LocalBackend) -> None:
    process = await backend.start(sh("echo ready; exec sleep 1000", stdin=True))
    await record(process).until_said(b"ready")

    assert inputs.waits_for_input([process.pid], inputs.InputEnd((0, 0)), Look(1)) is None
    assert inputs.waits_for_input([process.pid], inputs.InputEnd((0, 0)), Look()) is False


async def test_a_set_that_is_too_large_is_not_read() -> None:
    """A client decides how large it is."""
    reader = inputs._Reader(os.getpid(), inputs.InputEnd((0, 0)), Look())

    assert reader.polls([0, inputs._MOST_POLLED + 1]) is None
    assert reader.selects([inputs._MOST_POLLED + 1, 1]) is None
    assert reader.selects([1, 0]) is False
    assert reader.is_unknown([]) is None


def test_a_terminal_that_is_none_has_no_facts() -> None:
    reading, writing = os.pipe()
    try:
        with pytest.raises(FileNotFoundError):
            inputs.terminal_end(writing)
        assert inputs.pipe_end(writing) == inputs.pipe_end(reading)
    finally:
        os.close(reading)
        os.close(writing)
