"""How a process ended, from what is known of it (pure)."""

from __future__ import annotations

import signal as signals
from functools import lru_cache

from holdfast.host.warden import News, Report
from holdfast.model import Cause, Exit, Kind, Limits, Outcome, Usage

LOST = -1
"""The exit code when nobody can tell one."""


def exit_of(report: Report, cause: Cause | None, limits: Limits, *, out_of_memory: bool) -> Exit:
    """The end that ``report`` tells of, as far as it is about the process itself.

    Args:
        cause: Why we ended it, if we did.
        out_of_memory: Whether the kernel has killed anybody of its tree for want of memory.
    """
    if report.news is News.LOST:
        return Exit(LOST, Outcome(Kind.LOST, detail="its warden was killed"))
    code = 128 + report.value if report.by_signal else report.value
    if cause is None:
        cause = _limit_reached(report, limits, out_of_memory=out_of_memory)
    if report.by_signal:
        outcome = _outcome(cause or Cause(Kind.SIGNAL), None, report.value)
    else:
        outcome = _outcome(cause or _BY_ITSELF, report.value, None)
    return Exit(code, outcome, report.usage)


@lru_cache(maxsize=512)
def _outcome(cause: Cause, code: int | None, signal: int | None) -> Outcome:
    """Most processes end in one of a few ways: one object for each."""
    return Outcome(cause.kind, code, signal, cause.by, cause.detail)


_BY_ITSELF = Cause(Kind.EXIT)


def _limit_reached(report: Report, limits: Limits, *, out_of_memory: bool) -> Cause | None:
    """The limit that the kernel kept, if it was one.

    It may have hit somebody below the process, which then failed for want of it.
    """
    if report.value == 0:
        return None
    if out_of_memory:
        return Cause(Kind.OOM, "limit", f"more than {limits.memory} bytes of memory")
    if limits.cpu is not None and (
        (report.by_signal and report.value == signals.SIGXCPU)
        or (report.usage is not None and _seconds(report.usage) >= limits.cpu)
    ):
        return Cause(Kind.CPU_LIMIT, "limit", f"more than {limits.cpu:g} seconds of processor time")
    return None


def _seconds(usage: Usage) -> float:
    return (usage.user_us + usage.system_us) / 1e6
