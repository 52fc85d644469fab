"""Looks at trees, in threads."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from holdfast.engine.children import _NoChild
from holdfast.engine.local import LocalBackend
from holdfast.engine.looking import _THREADS, Looking, Looks
from holdfast.host import spawn
from holdfast.host import tree as trees_of_host
from holdfast.host.child import ShimChild
from holdfast.host.tree import Look
from holdfast.model import Kind, Limits, ProcessTerms
from holdfast.reports import Ends, Load, Pulse
from tests.fakes.gate import Gate
from tests.fakes.process import PATIENCE, eventually, sh, status
from tests.fakes.recorder import record

NOTHING = Ends(frozenset(), frozenset())
ASLEEP = Pulse(at_work=False, switches={1: 5}, known=True)
RAN = Pulse(at_work=False, switches={1: 6}, known=True)
RUNS = Pulse(at_work=True, switches={1: 6}, known=True)
UNSEEN = Pulse(at_work=False, switches={1: 6}, known=False)
NOBODY = Pulse(at_work=False, switches={}, known=True)


class Seen(_NoChild):
    """A child of whom the test says what is seen, and when."""

    def __init__(self, *pulses: Pulse) -> None:
        self._pulses = list(pulses)
        self.sent: list[int] = []
        self.gate = threading.Event()

    def pulse(self, ends: Ends, look: Look | None = None) -> Pulse:
        return self._pulses.pop(0)

    def signal_tree(self, number: int, look: Look | None = None, *, partly: bool = True) -> bool:
        assert self.gate.wait(PATIENCE)
        self.sent.append(number)
        return True


@contextmanager
def looking_at(child: Seen) -> Iterator[Looking]:
    looks = Looks(asyncio.get_running_loop())
    try:
        yield Looking(child, looks)
    finally:
        looks.close()


async def result(looks: Looks) -> tuple[int | None, int]:
    """Where something is done that is asked for, and where it is told."""
    told: asyncio.Future[tuple[int | None, int]] = asyncio.get_running_loop().create_future()
    looks.ask(
        lambda look: threading.get_ident(), lambda found: told.set_result((found, threading.get_ident()))
    )
    return await asyncio.wait_for(told, PATIENCE)


async def test_what_is_asked_for_is_done_in_a_thread_and_told_on_the_loop() -> None:
    looks = Looks(asyncio.get_running_loop())

    done, told = await result(looks)
    looks.close()
    looks.close()

    assert done != told == threading.get_ident()


async def test_where_the_system_has_no_thread_there_is_a_glance(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever uses up all threads must not make the loop look at everything."""

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    looks, told = Looks(asyncio.get_running_loop()), asyncio.get_running_loop().create_future()

    looks.ask(lambda look: look.take(1000), told.set_result)

    assert await asyncio.wait_for(told, PATIENCE) is False
    looks.close()


async def pulses(*seen: Pulse) -> list[bool]:
    """What is told of those who were seen so, one look after the other."""
    told: list[bool] = []
    with looking_at(Seen(*seen)) as looking:
        for count in range(len(seen)):
            looking.pulse(NOTHING, told.append)
            await eventually(lambda count=count: len(told) > count)  # type: ignore[misc]
    return told


@pytest.mark.parametrize(
    ("seen", "at_work"),
    [
        ([ASLEEP, ASLEEP, RAN, RAN], [True, False, True, False]),
        ([RUNS, RUNS, RAN], [True, True, False]),
        ([ASLEEP, UNSEEN, RAN], [True, True, False]),
        ([ASLEEP, NOBODY, NOBODY], [True, False, False]),
    ],
    ids=["run", "runs", "unseen", "nobody"],
)
async def test_who_was_at_work_since_the_last_look_is_told_to_be(
    seen: list[Pulse], at_work: list[bool]
) -> None:
    assert await pulses(*seen) == at_work


async def test_of_a_tree_that_is_gone_nobody_is_at_work() -> None:
    """Whoever waits to be told is told, and nobody else."""
    told: list[bool] = []
    others: list[object] = []
    with looking_at(Seen(RUNS)) as looking:
        looking.ask(lambda look: 1, others.append)
        looking.pulse(NOTHING, told.append)

        looking.end()

        await eventually(lambda: told == [False])
    assert others == []


async def test_signals_go_one_after_the_other_and_one_of_each_waits() -> None:
    """As with those that the kernel keeps for a process: nothing grows however many are sent."""
    child = Seen()
    with looking_at(child) as looking:
        for number in (15, 10, 15, 10, 12):
            looking.signal(number)
        assert looking.is_sending

        child.gate.set()

        await eventually(lambda: child.sent == [15, 10, 12])
        await eventually(lambda: not looking.is_sending)
        looking.signal(15)
        await eventually(lambda: child.sent == [15, 10, 12, 15])


# Trees that are too large for a glance.


@pytest.fixture
def no_glance(monkeypatch: pytest.MonkeyPatch) -> None:
    """A glance shows nothing."""
    monkeypatch.setattr(trees_of_host, "_GLANCE", 0)


@pytest.mark.usefixtures("no_glance")
async def test_the_exit_is_told_before_all_holders_are_known(backend: LocalBackend, gate: Gate) -> None:
    """They are told to whoever asks later."""
    process = await backend.start(sh(f"({gate.shell}) & echo $!; exit 0"))
    recorder = record(process)
    await gate.reached()
    await recorder.until("exited", 0)
    assert recorder.exit is not None
    assert list(recorder.exit.held_by) == []

    holder = int(recorder.said())

    await eventually(lambda: process.exit is not None and list(process.exit.held_by) == [holder])
    page = process.try_read()
    assert page is not None
    assert page.exit == process.exit
    gate.open()


@pytest.mark.usefixtures("no_glance")
async def test_everybody_in_a_large_tree_is_asked_to_end(backend: LocalBackend, gate: Gate) -> None:
    inner = f"trap 'echo inner; exit' TERM; {gate.report}; while :; do sleep 0.01; done"
    script = (
        f"trap 'wait; exit 5' TERM; setsid sh -c \"{inner}\" & {gate.report}; while :; do sleep 0.01; done"
    )
    process = await backend.start(sh(script))
    recorder = record(process)
    await gate.reached(2)

    ended = await process.end(grace=3600)

    assert ended.survivors == ()
    assert b"inner\n" in recorder.said()
    assert process.exit_code == 5


@pytest.mark.usefixtures("no_glance")
async def test_a_signal_that_comes_late_hits_nobody_elses_command(backend: LocalBackend, gate: Gate) -> None:
    """A shim whose tree is gone watches over the next command, unless a signal is on its way."""
    hold = threading.Event()
    first = record(process := await backend.start(sh(gate.shell)))
    await gate.reached()
    for _ in range(_THREADS):
        backend._looks.ask(lambda look: hold.wait(PATIENCE), lambda found: None)
    shim = status(process.pid)["PPid"]
    process.signal_now(signal.SIGTERM, tree=True)
    gate.open()
    await first.until("closed")
    await eventually(lambda: process.tree.gone)

    other = await backend.start(sh(gate.shell))
    await gate.reached()
    hold.set()
    await eventually(lambda: backend._looks.busy == 0)
    gate.open()
    await (second := record(other)).until("closed")

    assert shim != "0"
    assert second.told[-2:] == [("exited", 0), ("closed",)]


LARGE = "for _ in $(seq 24); do sleep 1000 & done"
"""Starts more than a glance shows, of which nothing is changed here: the bounds themselves count."""


@pytest.fixture
def whole_looks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """What trees were looked at for, and where, whenever a look went on until everything was seen."""
    noted: list[tuple[str, str]] = []
    loop_thread = threading.get_ident()

    def note(what: str, look: Look) -> None:
        if not look.cut:
            noted.append((what, "loop" if threading.get_ident() == loop_thread else "thread"))

    class Noting(ShimChild):
        """A child that notes in which threads it is looked at."""

        __slots__ = ()

        def load(self, look: Look | None = None) -> Load:
            found = super().load(look := look or Look())
            note("load", look)
            return found

        def signal_tree(self, number: int, look: Look | None = None, *, partly: bool = True) -> bool:
            sent = super().signal_tree(number, look := look or Look(), partly=partly)
            note("signal", look)
            return sent

    monkeypatch.setattr(spawn, "ShimChild", Noting)
    return noted


async def test_what_a_large_tree_uses_is_never_found_out_on_the_loop(
    backend: LocalBackend, whole_looks: list[tuple[str, str]]
) -> None:
    """Twenty times a second everybody else would wait.  A glance does not do: it misses who is too many."""
    terms = ProcessTerms(limits=Limits(processes=20))
    recorder = record(process := await backend.start(sh(f"{LARGE}; wait", terms=terms)))
    assert process.limits_enforced() == {"processes": "sampled"}

    await recorder.until("closed")
    await eventually(lambda: backend._looks.busy == 0)

    assert recorder.exit is not None
    assert (recorder.exit.outcome.kind, recorder.exit.outcome.by) == (Kind.TERMINATED, "limit")
    assert set(whole_looks) == {("load", "thread")}


async def test_a_large_tree_is_never_asked_to_end_on_the_loop(
    backend: LocalBackend, gate: Gate, whole_looks: list[tuple[str, str]]
) -> None:
    """Each process takes several calls of the system, and how many there are is for the command to decide."""
    process = await backend.start(sh(f"{LARGE}; {gate.report}; wait"))
    await gate.reached()

    ended = await process.end(grace=3600)
    await eventually(lambda: backend._looks.busy == 0)

    assert (ended.survivors, process.exit_code) == ((), 128 + signal.SIGTERM)
    assert whole_looks == [("signal", "thread")]


class Weighed(Seen):
    """A child whose tree uses more each time it is looked at, which may wait for the test."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def load(self, look: Look | None = None) -> Load:
        assert self.gate.wait(PATIENCE)
        self.looks += 1
        return Load(self.looks, 10 * self.looks, 100 * self.looks)


Told = list[tuple[Load | None, float]]


async def test_those_who_ask_during_a_look_at_what_is_used_share_it() -> None:
    """However many clients look on, a tree is looked at once."""
    child, told = Weighed(), Told()
    with looking_at(child) as looking:
        for _ in range(5):
            looking.usage(lambda load, age: told.append((load, age)))
        child.gate.set()
        await eventually(lambda: len(told) == 5)

    assert told == [(Load(1, 10, 100), 0.0)] * 5
    assert child.looks == 1


async def test_a_look_is_good_enough_for_a_moment_and_then_there_is_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who compares two figures is told how old each is."""
    child, told, now = Weighed(), Told(), 50.0
    child.gate.set()
    monkeypatch.setattr(Looks, "now", property(lambda self: now))
    with looking_at(child) as looking:
        for count, now in enumerate((50.0, 50.05, 60.0), 1):  # noqa: B007  (the clock of the test)
            looking.usage(lambda load, age: told.append((load, age)))
            await eventually(lambda count=count: len(told) == count)  # type: ignore[misc]

    assert told == [
        (Load(1, 10, 100), 0.0),
        (Load(1, 10, 100), pytest.approx(0.05)),
        (Load(2, 20, 200), 0.0),
    ]


async def test_of_a_tree_that_goes_away_during_the_look_nothing_is_told_but_that() -> None:
    """Its shim may watch over another one by then, whose figures these would be."""
    child, told = Weighed(), Told()
    with looking_at(child) as looking:
        looking.usage(lambda load, age: told.append((load, age)))
        looking.end()
        child.gate.set()
        await eventually(lambda: bool(told))

    assert told == [(None, 0.0)]
