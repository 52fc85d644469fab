"""How a process ended, from what is known of it (pure)."""

from __future__ import annotations

import signal as signals
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from holdfast.host.orders import News, Report
from holdfast.model import Cause, Chunk, Denied, Exit, Kind, Limits, Outcome, Stream, Usage

from .ring import Ring

if TYPE_CHECKING:
    from holdfast.host.sandbox.confinement import ConfinedCommand

    from .tree import Tree

LOST = -1
"""The exit code when nobody can tell one."""


_SUSPECT = (
    "operation not permitted",
    "permission denied",
    "read-only file system",
    "seccomp",
    "sandbox",
    "landlock",
    "failed to write file",
)
"""Words of a failed command from which the reference concludes that it was refused something."""

_SIGSYS = 128 + signals.SIGSYS


def exit_of(
    report: Report,
    cause: Cause | None,
    limits: Limits,
    *,
    out_of_memory: bool,
    confined_command: ConfinedCommand | None = None,
    said: Iterable[Chunk] = (),
) -> Exit:
    """The end that ``report`` tells of, as far as it is about the process itself.

    Args:
        cause: Why we ended it, if we did.
        out_of_memory: Whether the kernel has killed anybody of its tree for want of memory.
        confined_command: What its sandbox has refused it, if it is in one.
        said: What is kept of its output.
    """
    if report.news is News.LOST:
        return Exit(LOST, Outcome(Kind.LOST, detail="its warden was killed"))
    code = 128 + report.value if report.by_signal else report.value
    if cause is None:
        cause = _limit_reached(report, limits, out_of_memory=out_of_memory)
    denied = None if confined_command is None else denied_of(code, confined_command, said)
    if denied is not None and denied.failed and cause is None:
        cause = Cause(Kind.SANDBOX_DENIED, "sandbox", _words(denied))
    if report.by_signal:
        outcome = _outcome(cause or Cause(Kind.SIGNAL), None, report.value)
    else:
        outcome = _outcome(cause or _BY_ITSELF, report.value, None)
    return Exit(code, outcome, report.usage, denied=denied)


def end_of(report: Report, cause: Cause | None, tree: Tree, ring: Ring) -> Exit:
    """How a process ended, from the report, its tree and its output."""
    command = tree.confined_command
    said = ring.after(0) if command is not None and not command.exact else ()
    return exit_of(
        report,
        cause,
        tree.limits,
        out_of_memory=tree.ran_out_of_memory(),
        confined_command=command,
        said=said,
    )


def denied_of(code: int, command: ConfinedCommand, said: Iterable[Chunk]) -> Denied:
    """What the sandbox has to do with an exit: seen by a witness, or guessed as the reference does."""
    if command.exact:
        return Denied(bool(code and command.denials), exact=True, denials=tuple(command.denials))
    return Denied(code == _SIGSYS or (code != 0 and _is_suspect(said)), exact=False)


def _is_suspect(said: Iterable[Chunk]) -> bool:
    streams: dict[Stream | None, bytearray] = {}
    for chunk in said:
        # Each stream by itself, and all in their order: words may be torn apart by the other one.
        for stream in (chunk.stream, None):
            streams.setdefault(stream, bytearray()).extend(chunk.data)
    texts = [data.decode(errors="replace").lower() for data in streams.values()]
    return any(word in text for text in texts for word in _SUSPECT)


def _words(denied: Denied) -> str:
    if not denied.denials:
        return "guessed from its output"
    first = denied.denials[0]
    return f"{first.op} {first.subject}".strip()


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
