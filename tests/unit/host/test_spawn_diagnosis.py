"""Which of the things named in a request a failed start was about."""

from __future__ import annotations

import errno
import os

import pytest

from holdfast.errors import Fault, ProgramSearch
from holdfast.host.orders import StartStage
from holdfast.host.spawn import diagnosis, failed, refusal
from holdfast.model import Size
from holdfast.reports import LOST, News, Report
from holdfast.users import User
from holdfast.value import replace
from tests.fakes.process import TERMINAL, command

BOTH = pytest.mark.parametrize("terminal", [None, TERMINAL], ids=["pipe", "pty"])

PROGRAM = (Fault.PROGRAM, "tool", None)
SEARCHED = (Fault.PROGRAM, "tool", ProgramSearch("/a:/b"))
DIRECTORY = (Fault.DIRECTORY, "/there", None)
LIMITS = (Fault.ARGUMENT, "limits", None)
SYSTEM = (Fault.SYSTEM, "tool", None)
USER = (Fault.USER, "bob", None)
TOO_LONG = (Fault.ARGUMENT, "argv and env", None)

Facts = tuple[Fault, str, ProgramSearch | None]

SCARCE = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC)


@BOTH
@pytest.mark.parametrize(
    ("stage", "number", "facts"),
    [
        (StartStage.PROGRAM, errno.ENOENT, PROGRAM),
        (StartStage.PROGRAM, errno.EACCES, PROGRAM),
        (StartStage.PROGRAM, errno.ENOEXEC, PROGRAM),
        (StartStage.PROGRAM, errno.E2BIG, TOO_LONG),
        (StartStage.SEARCH, errno.ENOENT, SEARCHED),
        (StartStage.SEARCH, errno.EACCES, SEARCHED),
        (StartStage.SEARCH, errno.ENAMETOOLONG, SEARCHED),
        (StartStage.DIRECTORY, errno.ENOENT, DIRECTORY),
        (StartStage.DIRECTORY, errno.ENOTDIR, DIRECTORY),
        (StartStage.DIRECTORY, errno.EACCES, DIRECTORY),
        (StartStage.LIMIT, errno.EINVAL, LIMITS),
        (StartStage.LIMIT, errno.EPERM, LIMITS),
        (StartStage.FORK, errno.EBADF, SYSTEM),
        (StartStage.TERMINAL, errno.EIO, SYSTEM),
        (StartStage.TERMINAL, errno.ENOENT, SYSTEM),
        (StartStage.GROUP, errno.ENOENT, SYSTEM),
        (StartStage.GROUP, errno.EBUSY, SYSTEM),
        (StartStage.USER, errno.EPERM, USER),
        (StartStage.USER, errno.EINVAL, USER),
    ],
)
def test_a_stage_and_a_number_name_what_is_at_fault(
    stage: StartStage, number: int, facts: Facts, terminal: Size | None
) -> None:
    """The system has one number for a missing program and a missing directory; a client must not guess."""
    spec = replace(
        command("tool", cwd="/there", terminal=terminal),
        user=User("bob") if stage is StartStage.USER else None,
    )

    error = diagnosis(spec, "/a:/b", Report(News.FAILED, number, stage.value))

    assert (error.fault, error.subject, error.search) == facts
    assert (error.number, error.reason) == (number, os.strerror(number))
    assert error.terminal == (terminal is not None)


@pytest.mark.parametrize("number", SCARCE)
@pytest.mark.parametrize("stage", StartStage)
def test_what_the_host_is_out_of_is_nobodys_fault_but_the_hosts(stage: StartStage, number: int) -> None:
    """The same request may work later, wherever it failed; so nothing of it is to blame."""
    error = diagnosis(command("tool", cwd="/there"), "/a", Report(News.FAILED, number, stage.value))

    assert (error.fault, error.search, error.number) == (Fault.SYSTEM, None, number)


def test_what_is_no_control_group_is_the_hosts_fault() -> None:
    error = diagnosis(command("tool"), "/a", Report(News.FAILED, 0, StartStage.NO_GROUP.value))

    assert (error.fault, error.subject, error.number) == (Fault.SYSTEM, "control group", None)
    assert error.reason == "what was found in its place is none"


@BOTH
@pytest.mark.parametrize(
    ("stage", "number", "said", "subject", "reason"),
    [
        (StartStage.SANDBOX, 0, "bwrap: No permissions", "sandbox", "bwrap: No permissions"),
        (StartStage.SANDBOX, errno.EINVAL, "", "sandbox", "Invalid argument"),
        (StartStage.SANDBOX, 0, "", "sandbox", os.strerror(errno.EIO)),
        (
            StartStage.HIDDEN,
            errno.ENOENT,
            "what the program's own streams have",
            "tool",
            "the sandbox keeps it from being run: No such file or directory",
        ),
    ],
)
def test_a_sandbox_that_stands_in_the_way_is_the_sandboxes_fault(
    stage: StartStage, number: int, said: str, subject: str, reason: str, terminal: Size | None
) -> None:
    """Whoever made it has said why, or the system has."""
    spec = command("tool", terminal=terminal)

    error = diagnosis(spec, "/a", Report(News.FAILED, number, stage.value), said)

    assert (error.fault, error.subject, error.reason) == (Fault.SANDBOX, subject, reason)
    assert (error.number, error.search, error.terminal) == (None, None, terminal is not None)


def test_a_lookup_without_a_path_says_so() -> None:
    """A terminal's child without PATH is looked for nowhere; that is not the same as an empty PATH."""
    error = diagnosis(command("tool"), None, Report(News.FAILED, errno.ENOENT, StartStage.SEARCH.value))

    assert error.search == ProgramSearch(None)


def test_a_failure_without_a_number_is_told_with_one() -> None:
    """Nobody would understand "Success" as a reason."""
    error = diagnosis(command("tool"), None, Report(News.FAILED, 0, StartStage.PROGRAM.value))

    assert (error.number, error.reason) == (errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("report", [LOST, Report(News.EMPTY), Report(News.EXITED)])
@BOTH
def test_a_shim_that_ended_first_is_the_systems_fault(report: Report, terminal: Size | None) -> None:
    """Whoever killed it, the request was in order."""
    error = diagnosis(command("tool", terminal=terminal), "/a", report)

    assert (error.fault, error.subject, error.number, error.search) == (Fault.SYSTEM, "shim", None, None)
    assert error.reason == "it ended before the program ran"
    assert error.terminal == (terminal is not None)


@BOTH
def test_what_we_refuse_ourselves_has_a_reason_and_no_number(terminal: Size | None) -> None:
    error = refusal(command("tool", terminal=terminal), Fault.ARGUMENT, "argv", "no")

    assert str(error) == "cannot start: argument 'argv': no"
    assert (error.number, error.search, error.terminal) == (None, None, terminal is not None)


@BOTH
def test_what_the_system_said_is_told_in_its_words(terminal: Size | None) -> None:
    error = failed(
        command("tool", terminal=terminal), Fault.PROGRAM, "tool", errno.ENOENT, search=ProgramSearch("/x")
    )

    assert str(error) == "cannot start: program 'tool': No such file or directory"
    assert (error.number, error.search) == (errno.ENOENT, ProgramSearch("/x"))
    assert error.terminal == (terminal is not None)
