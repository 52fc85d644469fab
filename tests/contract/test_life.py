"""The life of a process: output, exit and close, in one series of numbers."""

from __future__ import annotations

import signal as signals

import pytest

from holdfast.backend import Backend
from holdfast.errors import NoTerminal, SignalFailed
from holdfast.model import Size, Stream
from tests.fakes.gate import Gate, gone
from tests.fakes.process import TERMINAL, command, is_alive, sh
from tests.fakes.recorder import Recorder, finished, record

BOTH = pytest.mark.parametrize("terminal", [None, TERMINAL], ids=["pipe", "pty"])


async def test_a_process_speaks_exits_and_closes(backend: Backend) -> None:
    process = await backend.start(command("echo", "hello"))

    recorder = await finished(process)

    assert recorder.told == [("stdout", b"hello\n"), ("exited", 0), ("closed",)]
    assert recorder.numbers == [1, 2, 3]
    assert (process.exit_code, process.next_seq) == (0, 4)


async def test_a_running_process_has_a_pid_and_no_exit_code(backend: Backend, gate: Gate) -> None:
    process = await backend.start(sh(gate.shell))
    await gate.reached()

    assert is_alive(process.pid)
    assert (process.exit_code, process.next_seq) == (None, 1)


async def test_stdout_and_stderr_are_told_apart(backend: Backend) -> None:
    recorder = await finished(await backend.start(sh("echo out; echo err >&2")))

    assert recorder.said(Stream.STDOUT) == b"out\n"
    assert recorder.said(Stream.STDERR) == b"err\n"
    assert recorder.told[-2:] == [("exited", 0), ("closed",)]


async def test_a_terminal_has_one_stream_for_both(backend: Backend) -> None:
    recorder = await finished(await backend.start(sh("echo out; echo err >&2", terminal=TERMINAL)))

    assert recorder.outline == [("pty", b"out\r\nerr\r\n"), ("exited", 0), ("closed",)]


@BOTH
@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 7", 7), ("exit 256", 0), ("kill -15 $$", 143)]
)
async def test_the_exit_code_is_128_and_the_number_after_a_signal(
    backend: Backend, script: str, code: int, terminal: Size | None
) -> None:
    recorder = await finished(await backend.start(sh(script, terminal=terminal)))

    assert recorder.told == [("exited", code), ("closed",)]


async def test_the_numbers_have_no_gaps(backend: Backend) -> None:
    """A client that misses a number knows that it missed something."""
    script = "for i in 1 2 3 4 5 6 7 8 9; do echo $i; echo $i >&2; done; (sleep 0; echo late) & exit 3"

    recorder = await finished(await backend.start(sh(script)))

    assert recorder.numbers == list(range(1, len(recorder.told) + 1))
    assert recorder.told[-1] == ("closed",)
    assert recorder.told.count(("exited", 3)) == 1


async def test_exit_is_told_before_a_grandchild_lets_go_of_stdout(backend: Backend, gate: Gate) -> None:
    """
    The exit of the child and the end of its output are two events: a
    grandchild that kept the pipe may still speak after the first.
    """
    watcher = Recorder()
    process = await backend.start(sh(f"({gate.shell}; echo late) & echo early"))
    process.watch(watcher)

    await gate.reached()
    await watcher.until("exited", 0)
    assert ("closed",) not in watcher.told

    gate.open()
    await watcher.until("closed")
    assert watcher.told == [
        ("stdout", b"early\n"),
        ("exited", 0),
        ("stdout", b"late\n"),
        ("closed",),
    ]


async def test_an_output_that_ended_early_does_not_close_the_process(backend: Backend, gate: Gate) -> None:
    recorder = record(await backend.start(sh(f"exec >&- 2>&-; {gate.shell}; exit 4")))
    await gate.reached()
    assert recorder.told == []

    gate.open()

    await recorder.until("closed")
    assert recorder.told == [("exited", 4), ("closed",)]


@BOTH
@pytest.mark.slow
async def test_what_was_written_before_death_is_numbered_before_the_exit(
    backend: Backend, terminal: Size | None
) -> None:
    """However much it is and whichever event comes first: 75 deaths right after a large last write."""
    raw = "stty raw; " if terminal else ""
    for size in (1, 4095, 4097, 30_000, 65_536) * 15:
        script = f"{raw}head -c {size} /dev/zero; kill -9 $$"
        recorder = await finished(await backend.start(sh(script, terminal=terminal)))

        stream = "pty" if terminal else "stdout"
        assert recorder.outline == [(stream, bytes(size)), ("exited", 137), ("closed",)]


@pytest.mark.slow
async def test_what_was_written_to_both_outputs_before_death_is_numbered_before_the_exit(
    backend: Backend,
) -> None:
    for _ in range(50):
        process = await backend.start(sh("head -c 20000 /dev/zero; head -c 30000 /dev/zero >&2; exit 5"))
        recorder = await finished(process)

        assert recorder.told[-2:] == [("exited", 5), ("closed",)]
        assert (len(recorder.said(Stream.STDOUT)), len(recorder.said(Stream.STDERR))) == (20_000, 30_000)


async def test_a_watcher_attached_at_once_misses_nothing(backend: Backend) -> None:
    """Nothing is told to anybody before the caller's next wait."""
    for _ in range(20):
        recorder = await finished(await backend.start(command("true")))

        assert recorder.told == [("exited", 0), ("closed",)]


# Size.


async def test_a_terminal_that_is_resized_tells_the_child(backend: Backend, gate: Gate) -> None:
    """The child sees the new size, and is told that there is one."""
    script = f"trap 'echo changed' WINCH; stty size; {gate.shell}; stty size"
    process = await backend.start(sh(script, terminal=Size(rows=24, cols=80)))
    recorder = record(process)
    await gate.reached()

    await process.resize(Size(rows=5, cols=1000))
    gate.open()

    await recorder.until("closed")
    assert recorder.said().split(b"\r\n")[0] == b"24 80"
    assert set(recorder.said().split(b"\r\n")[1:]) >= {b"5 1000", b"changed"}
    await process.resize(Size(rows=1, cols=1))


async def test_pipes_have_no_size(backend: Backend, gate: Gate) -> None:
    recorder = record(process := await backend.start(sh(gate.shell)))
    await gate.reached()

    with pytest.raises(NoTerminal):
        await process.resize(Size(rows=5, cols=5))
    gate.open()
    await recorder.until("closed")
    with pytest.raises(NoTerminal):
        await process.resize(Size(rows=5, cols=5))


# Signals.


async def test_a_signal_kills_the_whole_group(backend: Backend, gate: Gate) -> None:
    """Unlike a terminate it waits for the output: somebody outside the group may still have a word."""
    recorder = record(process := await backend.start(sh(f"({gate.shell}) & echo $!; {gate.shell}")))
    await gate.reached(2)
    await recorder.when(lambda: recorder.said().endswith(b"\n"))
    other = int(recorder.said())

    await process.signal(signals.SIGKILL)
    await process.signal(signals.SIGKILL)

    await recorder.until("closed")
    await gone(other)
    assert recorder.told[1:] == [("exited", 137), ("closed",)]


async def test_a_signal_the_system_does_not_know_is_refused(backend: Backend, gate: Gate) -> None:
    process = await backend.start(sh(gate.shell))
    await gate.reached()

    with pytest.raises(SignalFailed):
        await process.signal(999)

    assert is_alive(process.pid)


async def test_interrupt_reaches_the_whole_group(backend: Backend, gate: Gate) -> None:
    """As Ctrl-C does: a shell and what it runs."""
    script = f"trap 'echo shell' INT; (trap 'echo subshell; exit' INT; {gate.shell}); echo end"
    recorder = record(process := await backend.start(sh(script)))
    await gate.reached()

    await process.signal(signals.SIGINT)

    await recorder.until("closed")
    assert recorder.outline == [("stdout", b"subshell\nshell\nend\n"), ("exited", 0), ("closed",)]


async def test_interrupting_what_has_exited_does_nothing(backend: Backend, gate: Gate) -> None:
    """Not even to those it left behind: they are no longer the client's process."""
    recorder = record(process := await backend.start(sh(f"({gate.shell}; echo alive) & exit 0")))
    await recorder.until("exited", 0)

    await process.signal(signals.SIGINT)
    await gate.reached()
    gate.open()

    await recorder.until("stdout", b"alive\n")
    await recorder.until("closed")
    await process.signal(signals.SIGINT)
