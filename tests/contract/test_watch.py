"""Watchers and their valves."""

from __future__ import annotations

import logging

import pytest

from holdfast.backend import Backend, HostedBackend, Valve
from holdfast.model import Chunk, Exit, Size, Stream
from tests.fakes.gate import Gate
from tests.fakes.process import TERMINAL, command, eventually, is_alive, python, sh
from tests.fakes.recorder import Recorder, finished, record

# Writes to stdout as much as there is room for, reports, and exits when the door opens.
FILL = """if True:
    import os, sys
    os.set_blocking(1, False)
    try:
        while True:
            os.write(1, bytes(4096))
    except BlockingIOError:
        os.system(sys.argv[1])
"""


class Broken(Recorder):
    """A watcher that fails at one of the events."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self._at = at

    def _fail(self, event: str) -> None:
        if event == self._at:
            raise RuntimeError("broken watcher")

    def output(self, chunk: Chunk) -> None:
        super().output(chunk)
        self._fail("output")

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002
        super().exited(seq, exit)
        self._fail("exited")

    def closed(self, seq: int) -> None:
        super().closed(seq)
        self._fail("closed")


async def barrier(backend: Backend) -> None:
    """Let a whole other process live and end: whatever was to be told by now, has been."""
    await finished(await backend.start(command("true")))


def shut_valve() -> Valve:
    valve = Valve()
    valve.shut()
    return valve


# Watchers.


async def test_every_watcher_is_told_everything_from_when_it_came(backend: Backend, gate: Gate) -> None:
    process = await backend.start(sh(f"echo one; {gate.shell}; echo two"))
    first = record(process)
    await gate.reached()
    await first.until("stdout", b"one\n")
    second = record(process)

    gate.open()
    await first.until("closed")

    assert first.told == [("stdout", b"one\n"), ("stdout", b"two\n"), ("exited", 0), ("closed",)]
    assert (second.told, second.numbers) == (first.told[1:], [2, 3, 4])


async def test_a_watcher_that_stopped_is_told_nothing_more(backend: Backend, gate: Gate) -> None:
    process = await backend.start(sh(f"echo one; {gate.shell}; echo two"))
    stopped, other = Recorder(), record(process)
    watch = process.watch(stopped)
    await stopped.until("stdout", b"one\n")

    watch.stop()
    watch.stop()
    gate.open()
    await other.until("closed")

    assert stopped.told == [("stdout", b"one\n")]
    watch.stop()


async def test_a_watcher_may_stop_itself_from_within(backend: Backend) -> None:
    process = await backend.start(sh("echo one"))

    class Once(Recorder):
        def output(self, chunk: Chunk) -> None:
            super().output(chunk)
            watch.stop()

    once = Once()
    watch = process.watch(once)
    other = record(process)
    await other.until("closed")

    assert once.told == [("stdout", b"one\n")]
    assert other.told == [("stdout", b"one\n"), ("exited", 0), ("closed",)]


@pytest.mark.parametrize(("at", "told"), [("output", 1), ("exited", 2), ("closed", 3)])
async def test_a_watcher_that_raises_is_removed_and_the_others_are_not_affected(
    backend: Backend, caplog: pytest.LogCaptureFixture, at: str, told: int
) -> None:
    process = await backend.start(sh("echo one"))
    before, broken, after = record(process), Broken(at), Recorder()
    process.watch(broken)
    process.watch(after)

    with caplog.at_level(logging.ERROR):
        await after.until("closed")

    whole = [("stdout", b"one\n"), ("exited", 0), ("closed",)]
    assert before.told == after.told == whole
    assert broken.told == whole[:told]
    assert [entry.exc_info is not None for entry in caplog.records] == [True]
    assert process.exit_code == 0


async def test_a_watcher_may_terminate_its_process(kept: HostedBackend) -> None:
    """A client may have seen enough."""
    process = await kept.start(sh("echo enough; exec sleep 1000"))

    class Hasty(Recorder):
        def output(self, chunk: Chunk) -> None:
            super().output(chunk)
            process.forget()

    hasty = Hasty()
    process.watch(hasty)
    pid = process.pid
    await hasty.until("stdout", b"enough\n")

    await eventually(lambda: not is_alive(pid))
    assert hasty.told == [("stdout", b"enough\n")]


# Valves.


async def test_behind_a_shut_valve_the_child_has_to_wait(backend: Backend, gate: Gate) -> None:
    """What the child wrote stays in its pipe, and when that is full the child cannot go on."""
    valve, recorder = shut_valve(), Recorder()
    process = await backend.start(python(FILL, gate.shell))
    process.watch(recorder, valve)

    await gate.reached()
    await barrier(backend)
    assert recorder.told == []

    valve.open()
    gate.open()
    await recorder.until("closed")
    assert recorder.said() == bytes(len(recorder.said()))
    assert len(recorder.said()) >= 65_536


async def test_a_valve_may_shut_and_open_while_the_child_speaks(backend: Backend) -> None:
    """Nothing is lost and nothing overtakes, however often a slow client has to pause."""
    valve = Valve()

    class Slow(Recorder):
        def output(self, chunk: Chunk) -> None:
            super().output(chunk)
            valve.shut()

    slow = Slow()
    process = await backend.start(sh("seq 1 100000"))
    process.watch(slow, valve)
    while ("closed",) not in slow.told:
        await slow.when(lambda: not valve.is_open or ("closed",) in slow.told)
        valve.open()

    assert slow.said() == b"".join(b"%d\n" % number for number in range(1, 100_001))
    assert slow.numbers == list(range(1, len(slow.told) + 1))


async def test_the_exit_waits_for_the_valve(backend: Backend) -> None:
    """A client that is behind must not learn of the end before what was said."""
    valve, recorder = shut_valve(), Recorder()
    process = await backend.start(sh("echo last; exit 3"))
    process.watch(recorder, valve)

    await eventually(lambda: not is_alive(process.pid))
    await barrier(backend)
    assert (recorder.told, process.exit_code) == ([], None)

    valve.open()
    await recorder.until("closed")
    assert recorder.told == [("stdout", b"last\n"), ("exited", 3), ("closed",)]


async def test_terminate_does_not_wait_for_the_valve(backend: Backend, gate: Gate) -> None:
    """A client that reads no more must not keep its processes alive."""
    recorder = Recorder()
    process = await backend.start(sh(f"echo said; {gate.shell}"))
    process.watch(recorder, shut_valve())
    await gate.reached()

    assert (await process.end()).running

    await recorder.until("closed")
    assert recorder.told == [("stdout", b"said\n"), ("exited", 137), ("closed",)]


async def test_terminate_does_not_wait_for_the_valve_of_one_that_has_ended(backend: Backend) -> None:
    recorder = Recorder()
    process = await backend.start(sh("echo said; exit 3"))
    process.watch(recorder, shut_valve())
    await eventually(lambda: not is_alive(process.pid))
    await barrier(backend)

    assert (await process.end()).survivors == ()

    await recorder.until("closed")
    assert recorder.told == [("stdout", b"said\n"), ("exited", 3), ("closed",)]


async def test_when_a_slow_watcher_stops_the_process_goes_on(backend: Backend) -> None:
    """Its client went away; whoever else watches has waited long enough."""
    process = await backend.start(sh("echo said; exit 3"))
    watch, other = process.watch(Recorder(), shut_valve()), record(process)
    await eventually(lambda: not is_alive(process.pid))
    await barrier(backend)
    assert other.told == []

    watch.stop()

    await other.until("closed")
    assert other.told == [("stdout", b"said\n"), ("exited", 3), ("closed",)]


async def test_one_valve_serves_many_processes(backend: Backend) -> None:
    valve, recorders = shut_valve(), [Recorder() for _ in range(5)]
    for recorder in recorders:
        (await backend.start(sh("echo said"))).watch(recorder, valve)
    await barrier(backend)
    assert [recorder.told for recorder in recorders] == [[]] * 5

    valve.open()

    for recorder in recorders:
        await recorder.until("closed")
        assert recorder.told == [("stdout", b"said\n"), ("exited", 0), ("closed",)]


# The end of one stream.


class Ends(Recorder):
    """Notes the end of each stream among the other events."""

    def ended(self, stream: Stream) -> None:
        self._note(0, ("ended", stream.value.encode()))


async def test_the_end_of_each_stream_is_told_after_its_last_word(kept: HostedBackend, gate: Gate) -> None:
    """It has no number, and may come before the exit or after it."""
    ends = Ends()
    process = await kept.start(sh(f"echo err >&2; exec 2>&-; {gate.shell}; echo out"))
    process.watch(ends)
    await ends.until("ended", b"stderr")
    await gate.reached()
    gate.open()

    await ends.until("closed")

    told = ends.told
    assert told[:3] == [("stderr", b"err\n"), ("ended", b"stderr"), ("stdout", b"out\n")]
    assert set(told[3:5]) == {("ended", b"stdout"), ("exited", 0)}
    assert told[5:] == [("closed",)]
    assert [number for number in ends.numbers if number] == [1, 2, 3, 4]


async def test_the_end_of_each_stream_is_told_before_the_close(backend: Backend) -> None:
    ends = Ends()
    process = await backend.start(sh("echo out"))
    process.watch(ends)

    await ends.until("closed")

    told = [event for event in ends.told if event[0] == "ended"]
    assert sorted(told) == [("ended", b"stderr"), ("ended", b"stdout")]
    assert ends.told[-1] == ("closed",)


# What is waiting.


@pytest.mark.parametrize("terminal", [None, TERMINAL], ids=["pipe", "pty"])
async def test_a_drain_tells_what_is_waiting_though_a_valve_is_shut(
    kept: HostedBackend, gate: Gate, terminal: Size | None
) -> None:
    """At a deadline, what was said in time counts, whether or not the client has caught up."""
    valve, recorder = Valve(), Recorder()
    process = await kept.start(sh(f"{gate.shell}; echo out; echo err >&2; {gate.shell}", terminal=terminal))
    process.watch(recorder, valve)
    await gate.reached()
    valve.shut()
    gate.open()
    await gate.reached()
    before = list(recorder.told)

    process.drain()
    told = list(recorder.told)
    process.drain()

    assert before == []
    assert recorder.said() == (b"out\r\nerr\r\n" if terminal else b"out\nerr\n")
    assert recorder.told == told
    assert recorder.numbers == list(range(1, len(told) + 1))
    valve.open()
    gate.open()
    await recorder.until("closed")


async def test_a_drain_finds_what_those_say_who_were_left_behind(kept: HostedBackend, gate: Gate) -> None:
    valve, recorder = Valve(), Recorder()
    process = await kept.start(sh(f"({gate.shell}; echo late; {gate.shell}) & exit 0"))
    process.watch(recorder, valve)
    await recorder.until("exited", 0)
    valve.shut()
    await gate.reached()
    gate.open()
    await gate.reached()

    process.drain()

    assert recorder.told == [("exited", 0), ("stdout", b"late\n")]


async def test_a_drain_ends_though_somebody_goes_on_talking(kept: HostedBackend) -> None:
    recorder = record(process := await kept.start(command("yes")))
    await recorder.when(lambda: len(recorder.said()) > 100_000)

    for _ in range(100):
        process.drain()

    assert process.exit_code is None


async def test_draining_what_has_closed_tells_nothing(kept: HostedBackend) -> None:
    recorder = await finished(process := await kept.start(command("echo", "x")))

    process.drain()

    assert recorder.told == [("stdout", b"x\n"), ("exited", 0), ("closed",)]


async def test_a_process_is_known_to_have_ended_while_the_news_of_it_is_held_back(
    kept: HostedBackend,
) -> None:
    process = await kept.start(sh("read line; exit 3", stdin=True))
    valve = shut_valve()
    process.watch(recorder := Recorder(), valve)
    before = process.running

    await process.write(b"go\n")
    await eventually(lambda: not process.running)

    told_early = list(recorder.told)
    valve.open()
    await recorder.until("closed")
    assert before
    assert told_early == []
    assert not process.running
    assert process.exit_code == 3
