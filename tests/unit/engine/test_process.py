"""The life of one process: each rule of the module by its name, and what the contract does not see."""

from __future__ import annotations

import asyncio
import hashlib
import logging

import pytest

from holdfast.backend import Process, Valve
from holdfast.engine.local import LocalBackend
from holdfast.errors import StdinFailed
from holdfast.model import Chunk, Exit, Size, Stream, WriteStatus
from tests.fakes.gate import Gate
from tests.fakes.process import TERMINAL, command, eventually, is_alive, python, sh
from tests.fakes.recorder import Recorder, finished, record

BOTH = pytest.mark.parametrize("terminal", [None, TERMINAL], ids=["pipe", "pty"])


async def test_it_is_a_process(backend: LocalBackend) -> None:
    """For the type checker; the contract says the rest."""
    seen: Process = await backend.start(command("true"))

    assert seen.next_seq == 1


# What must hold.


async def test_output_exit_and_close_share_one_gapless_series_of_numbers(
    backend: LocalBackend, gate: Gate
) -> None:
    """1."""
    script = f"(echo early; {gate.shell}; echo late; echo late >&2) & echo out; echo err >&2; exit 9"
    recorder = record(process := await backend.start(sh(script)))
    await recorder.until("exited", 9)
    await gate.reached()

    gate.open()
    await recorder.until("closed")

    assert recorder.numbers == list(range(1, len(recorder.told) + 1))
    assert recorder.told[-1] == ("closed",)
    assert 1 < recorder.told.index(("exited", 9)) + 1 < len(recorder.told) - 1
    page = await process.read()
    assert [chunk.seq for chunk in page.chunks] == [
        number
        for number, event in zip(recorder.numbers, recorder.told, strict=True)
        if event[0] in ("stdout", "stderr")
    ]
    assert page.next_seq == process.next_seq == len(recorder.told) + 1


@BOTH
@pytest.mark.slow
async def test_what_the_child_wrote_before_it_ended_is_numbered_before_its_exit(
    backend: LocalBackend, terminal: Size | None
) -> None:
    """2.  Many at once, so that ends and outputs come in every order within one batch."""
    raw = "stty raw; " if terminal else ""

    async def one(size: int) -> None:
        process = await backend.start(sh(f"{raw}head -c {size} /dev/zero", terminal=terminal))
        recorder = await finished(process)
        stream = "pty" if terminal else "stdout"
        assert recorder.outline == [(stream, bytes(size)), ("exited", 0), ("closed",)]

    for _ in range(8):
        await asyncio.gather(*(one(size) for size in (1, 100, 4096, 8192, 40_000, 65_536)))


async def test_exited_comes_once_when_the_child_is_reaped_and_closed_once_after_the_last_output_ended(
    backend: LocalBackend, gate: Gate
) -> None:
    """3."""
    process = await backend.start(sh(f"(exec 2>&-; {gate.shell}) & (exec >&-; {gate.shell}) & exit 1"))
    recorder = record(process)
    await gate.reached(2)
    await recorder.until("exited", 1)
    assert not is_alive(process.pid)
    gate.open()
    await finished(await backend.start(command("true")))
    assert recorder.told == [("exited", 1)]

    gate.open()

    await recorder.until("closed")
    await finished(await backend.start(command("true")))
    assert recorder.told == [("exited", 1), ("closed",)]


async def test_a_chunk_is_never_split_merged_or_changed_after_it_has_a_number(backend: LocalBackend) -> None:
    """4.  What a watcher was told and what readers get are the same, however they ask."""
    process = await backend.start(sh("seq 1 40000; seq 1 40000 >&2"))
    recorder = await finished(process)

    whole = list((await process.read()).chunks)
    one_by_one = list[Chunk]()
    while page := (await process.read(after=one_by_one[-1].seq if one_by_one else 0, limit=0)).chunks:
        one_by_one += page

    assert whole == recorder.chunks
    assert one_by_one == recorder.chunks


class Broken(Recorder):
    """A watcher that fails at the first word."""

    def output(self, chunk: Chunk) -> None:
        super().output(chunk)
        raise RuntimeError("broken watcher")


async def test_a_watcher_that_raises_is_removed_and_logged_and_nobody_else_is_affected(
    backend: LocalBackend, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """5.  Not even by the valve it came with."""
    process = await backend.start(sh(f"echo one; {gate.shell}; echo two"))
    broken, valve, sound = Broken(), Valve(), Recorder()
    process.watch(broken, valve)
    process.watch(sound)
    with caplog.at_level(logging.ERROR):
        await sound.until("stdout", b"one\n")

    valve.shut()
    gate.open()
    await sound.until("closed")

    assert broken.told == [("stdout", b"one\n")]
    assert sound.told == [("stdout", b"one\n"), ("stdout", b"two\n"), ("exited", 0), ("closed",)]
    (entry,) = caplog.records
    assert entry.getMessage() == f"a watcher of process {process.pid} failed and is removed"
    assert entry.exc_info is not None
    assert str(entry.exc_info[1]) == "broken watcher"


async def test_while_a_watchers_valve_is_shut_nothing_is_read_and_the_end_waits_too(
    backend: LocalBackend,
) -> None:
    """6.  For as long as it is, whoever else watches."""
    valve, behind = Valve(), Recorder()
    valve.shut()
    process = await backend.start(sh("echo said; exit 3"))
    process.watch(behind, valve)
    other = record(process)
    await eventually(lambda: not is_alive(process.pid))
    await finished(await backend.start(command("true")))
    assert (behind.told, other.told, process.exit_code, process.next_seq) == ([], [], None, 1)

    valve.open()

    await behind.until("closed")
    assert behind.told == other.told == [("stdout", b"said\n"), ("exited", 3), ("closed",)]


# What watchers may do.


async def test_a_watcher_may_forget_an_exited_process_that_a_grandchild_floods(
    backend: LocalBackend, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """The output ends in the middle of being read."""
    process = await backend.start(sh(f"({gate.shell}; exec yes) & exit 0"))

    class Hasty(Recorder):
        def output(self, chunk: Chunk) -> None:
            super().output(chunk)
            if len(self.chunks) == 50:
                process.forget()

    hasty = Hasty()
    process.watch(hasty)
    await hasty.until("exited", 0)
    await gate.reached()
    gate.open()

    await hasty.when(lambda: len(hasty.chunks) >= 50)
    await finished(await backend.start(command("true")))

    assert len(hasty.chunks) == 50
    assert (await process.read()).closed
    assert caplog.messages == []


async def test_a_watcher_may_forget_its_process_at_its_exit(
    backend: LocalBackend, caplog: pytest.LogCaptureFixture
) -> None:
    process = await backend.start(sh("echo said"))

    class Tidy(Recorder):
        def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002
            super().exited(seq, exit)
            process.forget()

    tidy = Tidy()
    process.watch(tidy)
    await tidy.until("exited", 0)
    await finished(await backend.start(command("true")))

    assert tidy.told == [("stdout", b"said\n"), ("exited", 0)]
    assert (process.exit_code, process.next_seq) == (0, 4)
    assert caplog.messages == []


async def test_a_watcher_may_forget_an_exited_process_while_it_is_drained(
    backend: LocalBackend, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """With the first of two outputs told, the other one is gone already."""
    script = f"({gate.shell}; echo out; echo err >&2; {gate.shell}) & exit 0"
    process = await backend.start(sh(script))
    valve = Valve()

    class Hasty(Recorder):
        def output(self, chunk: Chunk) -> None:
            super().output(chunk)
            process.forget()

    hasty = Hasty()
    process.watch(hasty, valve)
    await hasty.until("exited", 0)
    valve.shut()
    await gate.reached()
    gate.open()
    await gate.reached()

    process.drain()

    assert hasty.told == [("exited", 0), ("stdout", b"out\n")]
    assert (await process.read()).closed
    assert caplog.messages == []


# Waiting readers.


async def test_a_cancelled_poll_leaves_no_waiter(backend: LocalBackend, gate: Gate) -> None:
    """A client that polls and hangs up, again and again, must cost nothing."""
    process = await backend.start(sh(gate.shell))
    await gate.reached()
    polls = [asyncio.ensure_future(process.read(wait=3600)) for _ in range(10)]
    await asyncio.sleep(0)
    assert process._waiting is not None
    assert [len(line) for line in process._waiting._events.values()] == [10]

    for poll in polls:
        poll.cancel()
    await asyncio.gather(*polls, return_exceptions=True)

    assert process._waiting is not None
    assert not process._waiting._events


async def test_a_poll_that_timed_out_leaves_no_waiter(backend: LocalBackend, gate: Gate) -> None:
    process = await backend.start(sh(gate.shell))
    await gate.reached()

    assert (await process.read(wait=0.1)).chunks == []

    assert process._waiting is not None
    assert not process._waiting._events


# Between terminate and exit.


@BOTH
async def test_between_terminate_and_exit_a_write_fails(
    backend: LocalBackend, gate: Gate, terminal: Size | None
) -> None:
    """The bytes could be accepted, but nobody will read them; afterwards stdin is simply closed."""
    recorder = record(process := await backend.start(sh(gate.shell, terminal=terminal, stdin=True)))
    await gate.reached()

    process.kill()
    with pytest.raises(StdinFailed):
        process.try_write(b"x", write_id="1")
    with pytest.raises(StdinFailed):
        await process.write(b"x", write_id="1")

    await recorder.until("closed")
    assert await process.write(b"x", write_id="1") is WriteStatus.STDIN_CLOSED


async def test_without_stdin_a_write_between_terminate_and_exit_says_so(
    backend: LocalBackend, gate: Gate
) -> None:
    process = await backend.start(sh(gate.shell))

    await process.end()

    assert process.try_write(b"x", write_id="1") is WriteStatus.STDIN_CLOSED


# Much, and often.


@BOTH
@pytest.mark.slow
async def test_many_tiny_writes_lose_nothing_and_keep_their_order(
    backend: LocalBackend, terminal: Size | None
) -> None:
    """They are let gather for a moment; nobody but the clock may notice."""
    raw = "stty raw; " if terminal else ""
    script = f"{raw}i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done"

    recorder = await finished(await backend.start(sh(script, terminal=terminal)))

    assert recorder.said() == b"".join(b"%d\n" % number for number in range(20_000))
    assert recorder.numbers == list(range(1, len(recorder.told) + 1))


class Digest(Recorder):
    """Keeps the hash of the output, not the output."""

    def __init__(self) -> None:
        super().__init__()
        self.sha = {Stream.STDOUT: hashlib.sha256(), Stream.STDERR: hashlib.sha256()}

    def output(self, chunk: Chunk) -> None:
        self.sha[chunk.stream].update(chunk.data)


@pytest.mark.slow
@pytest.mark.stress
async def test_sixty_four_mebibytes_arrive_byte_by_byte(backend: LocalBackend) -> None:
    """From both outputs at once, while the ring drops nearly all of it."""
    source = """if True:
        import os
        for number in range(512):
            for fd in (1, 2):
                block = memoryview(bytes([number % 251 + fd]) * 65536)
                while block:
                    block = block[os.write(fd, block):]
    """
    process = await backend.start(python(source))
    digest = Digest()
    process.watch(digest)
    await digest.until("closed")

    for fd, stream in ((1, Stream.STDOUT), (2, Stream.STDERR)):
        expected = hashlib.sha256()
        for number in range(512):
            expected.update(bytes([number % 251 + fd]) * 65536)
        assert digest.sha[stream].digest() == expected.digest()
    assert process.retained() <= 1 << 20
