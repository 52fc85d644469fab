"""The life of a process: its states, how it ended, what is written down of it (pure)."""

from __future__ import annotations

import signal as signals
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from holdfast.model import Cause, Chunk, Denied, Exit, Kind, Limits, Outcome, ProcessTerms, Stream, Usage
from holdfast.reports import NEWS_LOST, Report
from holdfast.value import replace, value
from holdfast.wording import counted

from .ring import Ring, RingSnapshot

if TYPE_CHECKING:
    from holdfast.host.sandbox.confinement import ConfinedCommand

    from .process import LocalProcess
    from .tree import Tree


class State(Enum):
    """Where a process is in its life; it only moves down this list."""

    RUNNING = 1
    STOPPING = 2
    """Asked by us to end, and given time for it."""
    KILLED = 3
    """Killed by us and not gone yet: its outputs are not waited for."""
    EXITED = 4
    CLOSED = 5


# Looked up once: in the life of each process they are needed a dozen times.
RUNNING: Final = State.RUNNING
STOPPING: Final = State.STOPPING
KILLED: Final = State.KILLED
EXITED: Final = State.EXITED
CLOSED: Final = State.CLOSED

_NEXT = {
    State.RUNNING: (State.STOPPING, State.KILLED, State.EXITED),
    State.STOPPING: (State.KILLED, State.EXITED),
    State.KILLED: (State.EXITED,),
    State.EXITED: (State.CLOSED,),
    State.CLOSED: (),
}


def may_become(state: State, following: State) -> bool:
    """Whether a process in one state may be in the other one next."""
    return following in _NEXT[state]


@value
class StdinSnapshot:
    """A child's stdin, written down.  Calls that wait for room are not part of it: they were not accepted."""

    queue: tuple[bytes, ...]
    """What was accepted and not written, in order."""
    write_ids: tuple[str, ...]
    """The identifiers that are remembered, oldest first."""
    is_finished: bool
    """Whether it is closed once the queue is written."""


@value
class WatchdogSnapshot:
    """What a watchdog knows of its process, written down.  Times are of the event loop."""

    started: float
    active: float
    """When the process last said something, or was seen to have been given something."""
    was_given: bool
    """Whether it was given something since that was last looked at."""
    said: int
    """Bytes of output."""
    dropped: int = 0
    """Bytes of output beyond the limit, which were not kept."""


@value
class ProcessSnapshot:
    """A process, written down: all there is to know of it but its child and its descriptors."""

    pid: int
    terminal: bool
    state: State
    seq: int
    """The last number that was given."""
    exit: Exit | None
    cause: Cause | None
    """Why we end it, if we do."""
    kill_at: float | None
    """When the grace of its tree is over."""
    drain_at: float | None
    """When its output is no longer waited for."""
    terms: ProcessTerms
    ring: RingSnapshot
    stdin: StdinSnapshot | None
    watchdog: WatchdogSnapshot | None
    was_asked: bool = True
    """Whether its tree was asked to end, if it has a grace."""


@value
class Descriptors:
    """The descriptors of a process that its object has let go of: whoever has them closes them."""

    stdin: int | None
    outputs: tuple[tuple[Stream, int], ...]


class Owner(Protocol):
    """Whoever keeps account of the processes of a backend."""

    def adopted(self, process: LocalProcess, audit: str | None) -> None:
        """Another server has started it, and it goes on here; it may have ended.

        ``audit`` is its reference in the audit log, if its end is still to be recorded there.
        """

    def exited(self, process: LocalProcess) -> None:
        """It has ended; its output may be held open."""

    def closed(self, process: LocalProcess) -> None:
        """No event of it follows."""

    def gone(self, process: LocalProcess) -> None:
        """Nobody is left of its tree."""


FORGOTTEN = Cause(Kind.TERMINATED, "client", "nobody is left to serve it to")
"""Why a process is ended with its session or its connection."""

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
    if report.news is NEWS_LOST:
        return Exit(LOST, Outcome(Kind.LOST, detail="its shim was killed"))
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


def result_of(end: Exit) -> str:
    """An end in the word under which it is counted."""
    if end.outcome.kind is Kind.LOST:
        return "unknown"
    if end.outcome.kind is Kind.TERMINATED:
        return "terminated"
    return "error" if end.code else "success"


def end_of(report: Report, cause: Cause | None, tree: Tree, ring: Ring, dropped: int = 0) -> Exit:
    """How a process ended, from the report, its tree and its output, of which so much was ``dropped``."""
    command = tree.confined_command
    said = ring.after(0) if command is not None and not command.exact else ()
    end = exit_of(
        report,
        cause,
        tree.limits,
        out_of_memory=tree.ran_out_of_memory(),
        confined_command=command,
        said=said,
    )
    return replace(end, dropped=dropped) if dropped else end


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
        return Cause(Kind.OOM, "limit", f"more than {counted(limits.memory or 0, 'byte')} of memory")
    if limits.cpu is not None and (
        (report.by_signal and report.value == signals.SIGXCPU)
        or (report.usage is not None and _seconds(report.usage) >= limits.cpu)
    ):
        return Cause(Kind.CPU_LIMIT, "limit", f"more than {counted(limits.cpu, 'second')} of processor time")
    return None


def _seconds(usage: Usage) -> float:
    return (usage.user_us + usage.system_us) / 1e6
