"""Ends a process that takes too long, says too much or uses too much."""

from __future__ import annotations

import asyncio
import gc

import pytest

from holdfast.backend import Valve
from holdfast.engine.local import LocalBackend
from holdfast.engine.output import READ_SIZE
from holdfast.engine.watchdog import Watchdog, over
from holdfast.host import tree
from holdfast.model import Cause, Kind, Limits, Outcome, ProcessTerms
from holdfast.reports import Load
from tests.fakes.gate import Gate
from tests.fakes.process import eventually, python, sh
from tests.fakes.recorder import Recorder, record


def outcome(recorder: Recorder) -> Outcome:
    assert recorder.exit is not None
    return recorder.exit.outcome


async def test_time_that_is_over_ends_the_tree_and_keeps_what_was_said(
    backend: LocalBackend, gate: Gate
) -> None:
    spec = sh(f"echo said; (setsid {gate.shell}) & {gate.shell}", terms=ProcessTerms(timeout=0.3))
    recorder = record(process := await backend.start(spec))

    await recorder.until("closed")

    assert recorder.said() == b"said\n"
    assert (outcome(recorder).kind, outcome(recorder).by) == (Kind.TIMEOUT, "limit")
    assert (await process.end()).survivors == ()


async def test_who_ends_in_time_has_an_ordinary_end(backend: LocalBackend) -> None:
    recorder = record(await backend.start(sh("exit 3", terms=ProcessTerms(timeout=3600, idle_timeout=3600))))

    await recorder.until("closed")

    assert outcome(recorder) == Outcome(Kind.EXIT, 3)


async def test_nothing_is_left_of_a_process_that_is_forgotten_before_its_time(backend: LocalBackend) -> None:
    """Its clocks would hold it, with all that it has said, for as long as it was allowed to take."""

    def is_gone() -> bool:
        gc.collect()
        return not any(type(each) is Watchdog for each in gc.get_objects())

    assert is_gone()
    terms = ProcessTerms(timeout=3600, idle_timeout=3600)
    (await backend.start(sh("exec sleep 1000", terms=terms))).forget()

    await eventually(is_gone)


async def test_a_process_that_ended_in_time_is_not_late_because_its_client_is(
    backend: LocalBackend, gate: Gate
) -> None:
    """The news of its exit waits for a client that is behind."""
    process = await backend.start(sh(f"{gate.shell}; exit 3", terms=ProcessTerms(timeout=0.2)))
    valve, recorder = Valve(), Recorder()
    process.watch(recorder, valve)
    await gate.reached()
    valve.shut()
    gate.open()
    later = record(await backend.start(sh("sleep 1000", terms=ProcessTerms(timeout=0.4))))
    await later.until("closed")

    valve.open()

    await recorder.until("closed")
    assert outcome(recorder).kind is Kind.EXIT


async def test_silence_ends_it_and_words_and_input_do_not(backend: LocalBackend, gate: Gate) -> None:
    script = "for i in 1 2 3 4 5 6; do sleep 0.1; echo $i; done; while read x; do :; done"
    terms = ProcessTerms(idle_timeout=0.4)
    recorder = record(process := await backend.start(sh(script, stdin=True, terms=terms)))
    await recorder.until_said(b"6")
    for _ in range(6):
        await asyncio.sleep(0.1)
        process.try_write(b"x\n")
    assert process.exit is None

    await recorder.until("closed")

    assert outcome(recorder).kind is Kind.IDLE_TIMEOUT


async def test_a_client_that_is_behind_makes_nobody_idle(backend: LocalBackend, gate: Gate) -> None:
    process = await backend.start(sh(f"yes & {gate.shell}", terms=ProcessTerms(idle_timeout=0.1)))
    valve, recorder = Valve(), Recorder()
    process.watch(recorder, valve)
    await gate.reached()
    valve.shut()
    other = record(await backend.start(sh("sleep 1000", terms=ProcessTerms(idle_timeout=0.5))))
    await other.until("closed")

    assert process.exit is None


async def test_more_output_than_allowed_ends_it(backend: LocalBackend) -> None:
    recorder = record(await backend.start(sh("yes", terms=ProcessTerms(output=100_000))))

    await recorder.until("closed")

    assert outcome(recorder).kind is Kind.OUTPUT_LIMIT
    # The chunk that went over the limit is told, and nothing after it.
    assert 100_000 < len(recorder.said()) <= 100_000 + READ_SIZE


async def test_exactly_as_much_output_as_allowed_is_allowed(backend: LocalBackend) -> None:
    recorder = record(await backend.start(sh("head -c 100000 /dev/zero", terms=ProcessTerms(output=100_000))))

    await recorder.until("closed")

    assert outcome(recorder).kind is Kind.EXIT


async def test_output_beyond_the_limit_is_dropped_and_counted_if_that_is_wanted(
    backend: LocalBackend,
) -> None:
    """Over both streams together, and nobody waits or fails."""
    script = "head -c 300000 /dev/zero; head -c 100000 /dev/zero >&2; exit 3"
    recorder = record(await backend.start(sh(script, terms=ProcessTerms(output=100_000, truncate=True))))

    await recorder.until("closed")

    assert outcome(recorder) == Outcome(Kind.EXIT, 3)
    said = len(recorder.said())
    # The chunk that reaches the limit is told whole, and nothing after it.
    assert 100_000 <= said <= 100_000 + READ_SIZE
    assert recorder.exit is not None
    assert recorder.exit.dropped == 400_000 - said


async def test_exactly_as_much_output_as_is_kept_is_whole(backend: LocalBackend) -> None:
    terms = ProcessTerms(output=100_000, truncate=True)
    recorder = record(await backend.start(sh("head -c 100000 /dev/zero", terms=terms)))

    await recorder.until("closed")

    assert recorder.exit is not None
    assert (len(recorder.said()), recorder.exit.dropped) == (100_000, 0)


async def test_whoever_talks_is_not_idle_although_nobody_hears_it(backend: LocalBackend) -> None:
    script = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 0.1; done; exec sleep 1000"
    terms = ProcessTerms(idle_timeout=0.5, output=1, truncate=True)
    recorder = record(await backend.start(sh(script, terms=terms)))

    await recorder.until("closed")

    assert outcome(recorder).kind is Kind.IDLE_TIMEOUT
    assert recorder.exit is not None
    assert (recorder.said(), recorder.exit.dropped) == (b"1\n", 14)


async def test_a_client_that_is_behind_holds_up_nothing_that_is_dropped(
    backend: LocalBackend, gate: Gate
) -> None:
    script = f"echo x; read line; head -c 1000000 /dev/zero; head -c 1000000 /dev/zero >&2; {gate.shell}"
    process = await backend.start(sh(script, stdin=True, terms=ProcessTerms(output=1, truncate=True)))
    valve, recorder = Valve(), Recorder()
    process.watch(recorder, valve)
    await recorder.until_said(b"x")
    valve.shut()

    process.try_write(b"go on\n")

    await gate.reached()
    gate.open()
    valve.open()
    await recorder.until("closed")
    assert recorder.exit is not None
    assert (recorder.said(), recorder.exit.dropped) == (b"x\n", 2_000_000)


async def test_memory_of_the_tree_is_looked_at(backend: LocalBackend) -> None:
    source = "import os; os.fork(); x = bytearray(60_000_000); input()"
    limits = Limits(memory=100_000_000)
    recorder = record(
        process := await backend.start(python(source, stdin=True, terms=ProcessTerms(limits=limits)))
    )
    assert process.limits_enforced() == {"memory": "sampled"}

    await recorder.until("closed")

    assert outcome(recorder).kind is Kind.OOM


async def test_processor_time_of_the_tree_is_summed_up(backend: LocalBackend) -> None:
    """Each of them stays below what one process may use."""
    burn = "sh -c 'while :; do :; done' & "
    recorder = record(await backend.start(sh(f"{burn * 4} wait", terms=ProcessTerms(limits=Limits(cpu=1)))))

    await recorder.until("closed")

    assert outcome(recorder).kind is Kind.CPU_LIMIT


async def test_processor_time_of_earlier_commands_is_not_counted(backend: LocalBackend) -> None:
    """Shims are used again, and the kernel adds up for each of them whom it has waited for."""
    waste = "import time\nwhile time.process_time() < 0.4: pass"
    limited = ProcessTerms(limits=Limits(cpu=0.3))
    for _ in range(3):
        await record(await backend.start(python(waste))).until("closed")

    recorders = [record(await backend.start(sh("sleep 0.2", terms=limited))) for _ in range(3)]

    for recorder in recorders:
        await recorder.until("closed")
        assert outcome(recorder) == Outcome(Kind.EXIT, 0)


async def test_too_many_processes_end_it(backend: LocalBackend) -> None:
    script = "sleep 1000 & sleep 1000 & sleep 1000 & wait"
    recorder = record(await backend.start(sh(script, terms=ProcessTerms(limits=Limits(processes=3)))))

    await recorder.until("closed")

    assert (outcome(recorder).kind, outcome(recorder).by) == (Kind.TERMINATED, "limit")


async def test_limits_are_kept_and_graces_given_where_the_kernel_does_not_list_children(
    backend: LocalBackend, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then everybody is found by parents, in a thread."""
    monkeypatch.setattr(tree, "_is_told_children", lambda: False)
    script = "sleep 1000 & sleep 1000 & sleep 1000 & wait"
    many = record(await backend.start(sh(script, terms=ProcessTerms(limits=Limits(processes=3)))))
    asked = await backend.start(sh(f"trap 'exit 5' TERM; {gate.report}; while :; do sleep 0.01; done"))
    await gate.reached()

    await many.until("closed")
    await asked.end(grace=3600)

    assert (outcome(many).kind, outcome(many).by) == (Kind.TERMINATED, "limit")
    assert asked.exit_code == 5


async def test_output_that_others_hold_open_is_closed_in_time(backend: LocalBackend, gate: Gate) -> None:
    """What was said before is told; who holds it lives on."""
    script = f"(printf late; {gate.shell}) & {gate.shell}"
    process = await backend.start(sh(script, terms=ProcessTerms(drain=0.1)))
    recorder = record(process)
    await gate.reached(2)
    gate.open()
    gate.open()
    await recorder.until("exited", 0)

    await recorder.until("closed")

    assert recorder.said() == b"late"


async def test_a_look_that_is_over_after_the_exit_ends_nobody(backend: LocalBackend, gate: Gate) -> None:
    """What is left of a process has no limits of its own."""
    process = await backend.start(sh(f"(exec >&- 2>&-; {gate.shell}) & read _", stdin=True))
    recorder = record(process)
    terms = ProcessTerms(limits=Limits(processes=3))
    watchdog = Watchdog(process, terms, asyncio.get_running_loop())
    await gate.reached()
    await process.write(b"\n")
    await recorder.until("closed")

    watchdog._on_looked(Load(processes=4, memory=0, cpu_us=0), 0.0)

    assert process.has_leftovers
    gate.open()


@pytest.mark.parametrize(
    ("limits", "cause"),
    [
        (Limits(), None),
        (Limits(memory=10, cpu=1.0, processes=2), None),
        (Limits(memory=9), Kind.OOM),
        (Limits(cpu=0.9), Kind.CPU_LIMIT),
        (Limits(processes=1), Kind.TERMINATED),
    ],
)
def test_a_limit_is_passed_when_there_is_more_than_it(limits: Limits, cause: Kind | None) -> None:
    found = over(Load(processes=2, memory=10, cpu_us=1_000_000), limits)

    assert (None if found is None else found.kind) == cause
    assert found is None or isinstance(found, Cause)
