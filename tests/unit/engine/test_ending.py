"""How a process ended, from what is known of it."""

from __future__ import annotations

import signal

import pytest

from holdfast.engine.ending import LOST, exit_of
from holdfast.host import warden
from holdfast.host.warden import News, Report
from holdfast.model import Cause, Exit, Kind, Limits, Outcome, Usage

USED = Usage(user_us=600_000, system_us=500_000, peak_bytes=1)
NONE = Limits()


def exited(code: int) -> Report:
    return Report(News.EXITED, code, 0, 0, USED)


def killed(number: int) -> Report:
    return Report(News.EXITED, number, 1, 0, USED)


def end(report: Report, cause: Cause | None = None, limits: Limits = NONE, *, oom: bool = False) -> Exit:
    return exit_of(report, cause, limits, out_of_memory=oom)


def test_an_exit_is_the_processes_own() -> None:
    assert end(exited(3)) == Exit(3, Outcome(Kind.EXIT, 3), USED)


def test_a_signal_that_was_not_ours() -> None:
    assert end(killed(11)) == Exit(139, Outcome(Kind.SIGNAL, None, 11), USED)


def test_equal_ends_are_one_object() -> None:
    """Thousands of ended processes are kept for a while."""
    assert end(exited(0)).outcome is end(exited(0)).outcome


@pytest.mark.parametrize("kind", [Kind.TIMEOUT, Kind.IDLE_TIMEOUT, Kind.OUTPUT_LIMIT, Kind.TERMINATED])
def test_whoever_ended_it_is_the_reason_whatever_it_made_of_it(kind: Kind) -> None:
    cause = Cause(kind, "client", "words")

    assert end(killed(9), cause).outcome == Outcome(kind, None, 9, "client", "words")
    assert end(exited(0), cause).outcome == Outcome(kind, 0, None, "client", "words")


def test_what_is_lost_has_no_code_and_no_usage() -> None:
    found = end(warden.LOST, Cause(Kind.TERMINATED, "client"))

    assert (found.code, found.outcome.kind, found.usage) == (LOST, Kind.LOST, None)


def test_memory_that_ran_out_is_the_reason_of_a_failure_and_of_nothing_else() -> None:
    """Somebody below may have been killed for it, and the process have coped."""
    limits = Limits(memory=1000)

    assert end(killed(9), None, limits, oom=True).outcome.kind is Kind.OOM
    assert end(exited(1), None, limits, oom=True).outcome.kind is Kind.OOM
    assert end(exited(0), None, limits, oom=True).outcome.kind is Kind.EXIT


@pytest.mark.parametrize(
    ("report", "seconds", "kind"),
    [
        (killed(signal.SIGXCPU), 100, Kind.CPU_LIMIT),
        (killed(signal.SIGKILL), 1, Kind.CPU_LIMIT),
        (exited(152), 1, Kind.CPU_LIMIT),
        (killed(signal.SIGKILL), 2, Kind.SIGNAL),
        (exited(0), 1, Kind.EXIT),
    ],
)
def test_processor_time_that_ran_out(report: Report, seconds: float, kind: Kind) -> None:
    """1.1 seconds were used."""
    assert end(report, None, Limits(cpu=seconds)).outcome.kind is kind


def test_without_a_limit_the_signal_is_just_a_signal() -> None:
    assert end(killed(signal.SIGXCPU)).outcome.kind is Kind.SIGNAL
