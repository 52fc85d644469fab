"""Where a process is in its life, what is written down of it, and who keeps account of it (pure)."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

from holdfast.model import Cause, Exit, ProcessTerms, Stream
from holdfast.value import value

from .ring import RingSnapshot

if TYPE_CHECKING:
    from .process import LocalProcess


class State(Enum):
    """Where a process is in its life; it only moves down this list."""

    RUNNING = 1
    STOPPING = 2
    """Asked by us to end, and given time for it."""
    KILLED = 3
    """Killed by us and not gone yet: its outputs are not waited for."""
    EXITED = 4
    CLOSED = 5


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


@value
class Suspended:
    """A process that was written down, and the descriptors that go with it."""

    snapshot: ProcessSnapshot
    stdin: int | None
    outputs: tuple[tuple[Stream, int], ...]


class Owner(Protocol):
    """Whoever keeps account of the processes of a backend."""

    def exited(self, process: LocalProcess) -> None:
        """It has ended; its output may be held open."""

    def closed(self, process: LocalProcess) -> None:
        """No event of it follows."""

    def gone(self, process: LocalProcess) -> None:
        """Nobody is left of its tree."""
