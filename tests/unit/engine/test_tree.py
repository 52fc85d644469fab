"""A command and everything it has started, as the engine sees it."""

from __future__ import annotations

import asyncio
import os
import signal

from holdfast.backend import Valve
from holdfast.engine.local import LocalBackend
from holdfast.engine.tree import GONE
from holdfast.host.tree import below
from holdfast.model import Ended, Kind, Leftovers, Stream
from tests.fakes.gate import Gate
from tests.fakes.process import eventually, is_alive, sh, status
from tests.fakes.recorder import Recorder, record


async def test_the_end_of_the_tree_is_told_after_the_exit(backend: LocalBackend, gate: Gate) -> None:
    """1."""
    process = await backend.start(sh(f"(exec >&- 2>&-; {gate.shell}) & exit 4"))
    recorder = record(process)
    await recorder.until("closed")
    await gate.reached()
    assert process.has_leftovers
    assert not process.tree.gone

    gate.open()

    await eventually(lambda: process.tree is GONE)
    assert not process.has_leftovers


async def test_after_a_kill_no_signal_goes_to_a_number_that_may_be_anothers(
    backend: LocalBackend, gate: Gate
) -> None:
    """2."""
    process = await backend.start(sh(gate.shell))
    await gate.reached()
    process.kill()
    sent: list[int] = []
    original = os.killpg
    os.killpg = lambda pid, number: sent.append(pid)
    try:
        process.signal_now(signal.SIGINT)
    finally:
        os.killpg = original

    assert sent == []


async def test_a_signal_reaches_everybody_or_the_group(backend: LocalBackend, gate: Gate) -> None:
    inner = f"trap 'echo inner' USR1; {gate.report}; while :; do sleep 0.01; done"
    script = f"trap 'echo outer' USR1; setsid sh -c \"{inner}\" & {gate.report}; while :; do sleep 0.01; done"
    process = await backend.start(sh(script))
    recorder = record(process)
    await gate.reached(2)

    process.signal_now(signal.SIGUSR1)
    await recorder.until_said(b"outer")
    alone = recorder.said()
    process.signal_now(signal.SIGUSR1, tree=True)
    await recorder.until_said(b"inner")

    assert b"inner" not in alone
    assert await process.end() == Ended(running=True)


async def test_a_kill_of_the_tree_leaves_its_last_words(backend: LocalBackend, gate: Gate) -> None:
    """Unlike terminate: whoever drains the output wants it whole."""
    process = await backend.start(sh(f"setsid sh -c 'printf deep; {gate.shell}' & wait"))
    recorder = record(process)
    await gate.reached()

    process.signal_now(signal.SIGKILL, tree=True)

    await recorder.until("closed")
    assert recorder.outline == [("stdout", b"deep"), ("exited", 137), ("closed",)]


async def test_grace_asks_first_and_kills_later(backend: LocalBackend, gate: Gate) -> None:
    deaf = f"trap '' TERM; {gate.report}; while :; do sleep 0.01; done"
    script = (
        f"setsid sh -c \"{deaf}\" & trap 'echo bye; exit 5' TERM; {gate.report}; while :; do sleep 0.01; done"
    )
    process = await backend.start(sh(script))
    recorder = record(process)
    await gate.reached(2)

    ended = await process.end(grace=0.2)

    assert ended == Ended(running=True)
    assert recorder.said(Stream.STDOUT) == b"bye\n"
    assert recorder.told[-2:] == [("exited", 5), ("closed",)]
    assert process.exit is not None
    assert process.exit.outcome.kind is Kind.TERMINATED


async def test_who_ends_in_time_is_not_waited_for(backend: LocalBackend, gate: Gate) -> None:
    process = await backend.start(sh(gate.shell))
    await gate.reached()

    await asyncio.wait_for(process.end(grace=3600), 10)

    assert process.exit_code == 143


async def test_a_second_request_can_only_shorten_the_grace(backend: LocalBackend, gate: Gate) -> None:
    process = await backend.start(sh(f"trap '' TERM; {gate.shell}; {gate.shell}"))
    await gate.reached()
    patient = asyncio.ensure_future(process.end(grace=3600))
    await asyncio.sleep(0)

    await process.end(grace=0.01)

    assert await patient == Ended(running=True)


async def test_while_a_watcher_is_behind_the_exit_waits_and_a_kill_does_not(
    backend: LocalBackend, gate: Gate
) -> None:
    process = await backend.start(sh(gate.shell))
    valve, recorder = Valve(), Recorder()
    process.watch(recorder, valve)
    await gate.reached()
    valve.shut()
    gate.open()
    await eventually(lambda: not is_alive(process.pid))
    await asyncio.sleep(0)
    assert process.exit is None
    assert not process.running

    await process.end()

    await recorder.until("closed")


async def test_a_shim_that_is_killed_takes_the_knowledge_of_the_end_with_it(
    backend: LocalBackend, gate: Gate
) -> None:
    """The fork server ends what it leaves."""
    process = await backend.start(sh(f"setsid sh -c '{gate.shell}' & echo said; {gate.shell}"))
    recorder = record(process)
    await gate.reached(2)
    await recorder.until_said(b"said")
    members = below(int(status(process.pid)["PPid"]))

    os.kill(int(status(process.pid)["PPid"]), signal.SIGKILL)

    await recorder.until("closed")
    assert recorder.told[-2:] == [("exited", -1), ("closed",)]
    assert process.exit is not None
    assert process.exit.outcome.kind is Kind.LOST
    await eventually(lambda: not any(map(is_alive, members)))
    assert await process.end() == Ended(running=False, exact=False)


async def test_only_the_group_can_be_ended_too(backend: LocalBackend, gate: Gate) -> None:
    script = f"(exec >&- 2>&-; {gate.shell}) & setsid sh -c 'exec >&- 2>&-; {gate.shell}' & exit 0"
    process = await backend.start(sh(script))
    recorder = record(process)
    await gate.reached(2)
    await recorder.until("closed")

    process.forget(Leftovers.END_GROUP)

    await eventually(lambda: len(process.tree._child.members()) == 1)
    process.forget(Leftovers.END)
    await eventually(lambda: process.tree.gone)
