"""Why a start failed, in terms of what was asked for."""

from __future__ import annotations

import errno
import os

from holdfast.errors import Fault, ProgramSearch, SpawnFailed
from holdfast.model import Spec

from .orders import News, Report, StartStage

_SYSTEM = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC)


def refusal(spec: Spec, fault: Fault, subject: str, reason: str) -> SpawnFailed:
    """What we can see ourselves, before the system is asked."""
    return SpawnFailed(fault, subject, reason, terminal=spec.terminal is not None)


def diagnosis(spec: Spec, path: str | None, report: Report, said: str = "") -> SpawnFailed:
    """Say which of the things named in ``spec`` the system's error was about.

    Args:
        path: The child's PATH, if it has one.
        said: What was said on its standard error.
    """
    if report.news is not News.FAILED:
        return refusal(spec, Fault.SYSTEM, "warden", "it ended before the program ran")
    number, search = report.value or errno.EIO, None
    if report.stage in (StartStage.SANDBOX, StartStage.HIDDEN) and number not in _SYSTEM:
        return _of_sandbox(spec, report.stage, number, said)
    if report.stage is StartStage.NO_GROUP and number not in _SYSTEM:
        return refusal(spec, Fault.SYSTEM, "control group", "what was found in its place is none")
    fault, subject = Fault.PROGRAM, spec.argv[0]
    match report.stage:
        case StartStage.DIRECTORY:
            fault, subject = Fault.DIRECTORY, spec.cwd
        case StartStage.FORK | StartStage.TERMINAL | StartStage.GROUP:
            fault = Fault.SYSTEM
        case StartStage.LIMIT:
            fault, subject = Fault.ARGUMENT, "limits"
        case StartStage.SEARCH:
            search = ProgramSearch(path)
    if number in _SYSTEM:
        fault, search = Fault.SYSTEM, None
    elif number == errno.E2BIG:
        fault, subject = Fault.ARGUMENT, "argv and env"
    return failed(spec, fault, subject, number, search=search)


def _of_sandbox(spec: Spec, stage: StartStage, number: int, said: str) -> SpawnFailed:
    if stage is StartStage.SANDBOX:
        return refusal(spec, Fault.SANDBOX, "sandbox", said or os.strerror(number))
    reason = f"the sandbox keeps it from being run: {os.strerror(number)}"
    return refusal(spec, Fault.SANDBOX, spec.argv[0], reason)


def failed(
    spec: Spec, fault: Fault, subject: str, number: int, *, search: ProgramSearch | None = None
) -> SpawnFailed:
    """What the system said."""
    return SpawnFailed(
        fault,
        subject,
        os.strerror(number),
        number=number,
        terminal=spec.terminal is not None,
        search=search,
    )
