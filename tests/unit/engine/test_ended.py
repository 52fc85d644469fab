"""A process of which nothing can change any more, in one block of memory."""

from __future__ import annotations

import pytest

from holdfast.backend import HostedProcess
from holdfast.engine.ended import PACK_MOST, EndedProcess, pack
from holdfast.engine.local import LocalBackend
from holdfast.engine.process import LocalProcess
from holdfast.engine.ring import PIECE, Budget, Ring
from holdfast.errors import NoTerminal
from holdfast.model import Denied, Ended, Exit, Kind, Leftovers, Outcome, Size, WriteStatus
from holdfast.sandbox import Denial
from tests.fakes.gate import Gate
from tests.fakes.process import TERMINAL, eventually, sh
from tests.fakes.recorder import Recorder, finished, record

SCRIPT = "echo out; echo err >&2; exit 3"


async def settled(backend: LocalBackend, script: str, *, terminal: Size | None = None) -> LocalProcess:
    process = await backend.start(sh(script, terminal=terminal))
    await finished(process)
    await eventually(lambda: not process.has_leftovers)
    return process


async def past(backend: LocalBackend, script: str = SCRIPT, *, terminal: Size | None = None) -> EndedProcess:
    data = (await settled(backend, script, terminal=terminal)).pack()
    assert data is not None
    return backend.unpack(data)


async def test_everything_that_can_be_asked_has_the_same_answer(backend: LocalBackend) -> None:
    process = await settled(backend, SCRIPT)
    data = process.pack()
    assert data is not None
    seen: HostedProcess = backend.unpack(data)

    assert (seen.pid, seen.next_seq, seen.exit, seen.exit_code) == (process.pid, 5, process.exit, 3)
    assert (seen.running, seen.closed, seen.has_leftovers, seen.limits_enforced()) == (False, True, False, {})
    assert seen.retained() == process.retained()
    for after in range(7):
        for limit in (None, 0, 3, 4, 5, 100):
            before = process.try_read(after=after, limit=limit, wait=60)
            assert seen.try_read(after=after, limit=limit, wait=60) == before
            assert await seen.read(after=after, limit=limit, wait=60) == before
    assert await seen.wait(60) == process.exit
    assert await seen.end(grace=60) == await process.end(grace=60) == Ended(running=False)


@pytest.mark.parametrize(
    "denied",
    [
        None,
        Denied(failed=False, exact=False),
        Denied(failed=True, exact=True, denials=(Denial("open", "/a\udcff", 3), Denial("", "", 7))),
    ],
)
async def test_what_its_sandbox_refused_is_kept(backend: LocalBackend, denied: Denied | None) -> None:
    ring = Ring(limit=10, chunks=2, budget=Budget(10))
    end = Exit(1, Outcome(Kind.SANDBOX_DENIED, 1, by="sandbox"), denied=denied)

    data = pack(7, 3, end, ring, terminal=False)

    assert data is not None
    assert EndedProcess(data, Budget(10)).exit == end


async def test_nothing_reaches_it(backend: LocalBackend) -> None:
    seen = await past(backend)

    assert seen.try_write(b"x", write_id="w") is WriteStatus.STDIN_CLOSED
    assert await seen.write(b"x") is WriteStatus.STDIN_CLOSED
    assert seen.close_stdin_now() is WriteStatus.STDIN_CLOSED
    seen.signal_now(9)
    seen.drain()
    seen.retain(0)
    seen.watch(Recorder()).stop()

    assert seen.retained() == 8
    assert seen.pack() is None


async def test_a_terminal_that_is_gone_takes_any_size_and_a_pipe_none(backend: LocalBackend) -> None:
    (await past(backend, terminal=TERMINAL)).resize_now(Size(1, 1))
    with pytest.raises(NoTerminal):
        (await past(backend)).resize_now(Size(1, 1))


async def test_its_output_counts_until_it_is_forgotten(backend: LocalBackend) -> None:
    seen = await past(backend)
    used = backend._budget.used

    seen.forget(Leftovers.END)
    seen.forget()

    assert (used, backend._budget.used) == (8 + 2 * PIECE, 0)


async def test_who_lives_or_left_somebody_behind_is_not_packed(backend: LocalBackend, gate: Gate) -> None:
    # Only one of the two is at the door: it is for the other to be left behind.
    running = await backend.start(sh(f"(exec >&- 2>&-; {gate.report}; exec sleep 1000) & {gate.shell}"))
    recorder = record(running)
    await gate.reached(2)
    assert running.pack() is None

    gate.open()
    await recorder.until("closed")

    assert (running.has_leftovers, running.pack()) == (True, None)


async def test_who_said_much_or_lost_something_or_remembers_writes_is_not_packed(
    backend: LocalBackend, gate: Gate
) -> None:
    assert (await settled(backend, f"head -c {PACK_MOST} /dev/zero")).pack() is not None
    assert (await settled(backend, f"head -c {PACK_MOST + 1} /dev/zero")).pack() is None

    forgetful = await backend.start(sh(f"echo a; {gate.shell}; echo b"))
    forgetful.retain(1)
    await gate.reached()
    gate.open()
    await eventually(lambda: forgetful.closed and not forgetful.has_leftovers)
    assert forgetful.pack() is None

    writer = await backend.start(sh("read x", stdin=True))
    recorder = record(writer)
    writer.try_write(b"x\n", write_id="w")
    await recorder.until("closed")
    await eventually(lambda: not writer.has_leftovers)
    assert writer.pack() is None
