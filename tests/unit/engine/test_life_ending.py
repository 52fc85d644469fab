"""How a process ended, from what is known of it."""

from __future__ import annotations

import signal
from collections.abc import Sequence

import pytest

from holdfast import reports
from holdfast.engine.life import LOST, exit_of
from holdfast.host.sandbox.confinement import ConfinedCommand
from holdfast.model import Cause, Chunk, Denied, Exit, Kind, Limits, Outcome, Stream, Usage
from holdfast.reports import News, Report
from holdfast.sandbox import Denial

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
    found = end(reports.LOST, Cause(Kind.TERMINATED, "client"))

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


# In a sandbox.

DENIALS = [Denial("open", "/etc/x", 2), Denial("socket", "AF_INET")]


def confined(*denials: Denial, exact: bool = True) -> ConfinedCommand:
    return ConfinedCommand(denials, exact=exact)


def said(*pieces: tuple[Stream, bytes]) -> list[Chunk]:
    return [Chunk(number, stream, data) for number, (stream, data) in enumerate(pieces, 1)]


def end_in(
    command: ConfinedCommand, report: Report, chunks: Sequence[Chunk] = (), cause: Cause | None = None
) -> Exit:
    return exit_of(report, cause, NONE, out_of_memory=False, confined_command=command, said=chunks)


def test_without_a_sandbox_nothing_is_said_of_one() -> None:
    """Whatever the output says."""
    found = exit_of(
        exited(1),
        None,
        NONE,
        out_of_memory=False,
        said=said((Stream.STDERR, b"Operation not permitted")),
    )

    assert (found.denied, found.outcome.kind) == (None, Kind.EXIT)


def test_a_failure_after_a_denial_is_the_sandboxes() -> None:
    found = end_in(confined(*DENIALS), exited(3))

    assert found.denied == Denied(failed=True, exact=True, denials=tuple(DENIALS))
    assert found.outcome == Outcome(Kind.SANDBOX_DENIED, 3, None, "sandbox", "open /etc/x")
    assert (found.code, found.usage) == (3, USED)


def test_a_signal_after_a_denial_is_the_sandboxes_too() -> None:
    found = end_in(confined(*DENIALS), killed(6))

    assert found.outcome == Outcome(Kind.SANDBOX_DENIED, None, 6, "sandbox", "open /etc/x")


def test_a_command_that_coped_with_its_denials_has_ended_well() -> None:
    """They are told all the same."""
    found = end_in(confined(*DENIALS), exited(0))

    assert found.denied == Denied(failed=False, exact=True, denials=tuple(DENIALS))
    assert found.outcome == Outcome(Kind.EXIT, 0)


def test_a_failure_without_a_denial_is_the_commands_own() -> None:
    """Also if it speaks of permissions: the witness knows better."""
    found = end_in(confined(), exited(1), said((Stream.STDERR, b"permission denied")))

    assert found.denied == Denied(failed=False, exact=True)
    assert found.outcome == Outcome(Kind.EXIT, 1)


def test_whoever_ended_it_counts_before_the_sandbox() -> None:
    found = end_in(confined(*DENIALS), killed(9), cause=Cause(Kind.TIMEOUT, "limit"))

    assert found.outcome == Outcome(Kind.TIMEOUT, None, 9, "limit")
    assert found.denied is not None
    assert found.denied.failed


def test_a_denial_of_something_without_a_name_is_told_by_what_was_tried() -> None:
    assert end_in(confined(Denial("listen", "")), exited(1)).outcome.detail == "listen"


@pytest.mark.parametrize(
    ("report", "pieces", "denied"),
    [
        (exited(1), [(Stream.STDERR, b"bash: x: Operation not permitted\n")], True),
        (exited(1), [(Stream.STDERR, b"x: PERMISSION DENIED")], True),
        (exited(1), [(Stream.STDOUT, b"Read-only file system")], True),
        (exited(127), [(Stream.PTY, b"failed to write file")], True),
        (exited(2), [(Stream.STDOUT, b"seccomp")], True),
        (exited(1), [(Stream.STDERR, b"in a \xff sandbox \xff")], True),
        (
            exited(1),
            [(Stream.STDOUT, b"sand"), (Stream.STDERR, b"x"), (Stream.STDOUT, b"box")],
            True,
        ),
        (exited(1), [(Stream.STDOUT, b"land"), (Stream.STDERR, b"lock")], True),
        (exited(1), [(Stream.STDERR, b"no such file")], False),
        (exited(1), [], False),
        (exited(0), [(Stream.STDERR, b"permission denied")], False),
        (exited(159), [], True),
        (killed(signal.SIGSYS), [], True),
        (killed(signal.SIGKILL), [], False),
    ],
)
def test_without_a_witness_it_is_guessed_as_the_reference_does(
    report: Report, pieces: list[tuple[Stream, bytes]], *, denied: bool
) -> None:
    found = end_in(confined(exact=False), report, said(*pieces))

    assert found.denied == Denied(denied, exact=False)
    assert (found.outcome.kind is Kind.SANDBOX_DENIED) == denied
    if denied:
        assert found.outcome.detail == "guessed from its output"


def test_what_is_lost_is_lost_in_a_sandbox_too() -> None:
    assert end_in(confined(*DENIALS), reports.LOST).outcome.kind is Kind.LOST
