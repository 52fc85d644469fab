"""What happens to processes, told to whoever follows all of them (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

from .model import Listing, Outcome, Usage
from .value import value


class EventKind(StrEnum):
    """What has happened."""

    STARTED = "started"
    """It runs."""
    WAITING = "waiting"
    """It waits for input.  Told again when it has said something and waits once more."""
    RESUMED = "resumed"
    """It no longer waits for input."""
    EXITED = "exited"
    """It has ended.  The last event of a process."""
    FORGOTTEN = "forgotten"
    """Its session is over, and it is being ended: how it ends is not told.  The last event of a process."""
    GAP = "gap"
    """Events were not told."""


@value
class ProcessEvent:
    """Something that has happened to a process; or that events are missing."""

    seq: int
    """Counts the events of a principal, or of a local host; of a gap, it is that of the last missing one."""
    kind: EventKind
    time: float
    """When it was noticed, in seconds since 1970."""
    identifier: str = ""
    """Of the process; empty for a gap, as are all further members about a process."""
    name: str = ""
    """What people call it."""
    pid: int | None = None
    argv: Sequence[str] = ()
    """Told of a start; a long one is cut, with ``...`` as the last element."""
    terminal: bool | None = None
    """Told of a start: whether it has a terminal."""
    kept: bool | None = None
    """Told of a start: whether it outlives the client that asked for it."""
    exit_code: int | None = None
    """Told of an end: 128 + n after death by signal n."""
    outcome: Outcome | None = None
    """Told of an end: how it ended, and why."""
    usage: Usage | None = None
    """Told of an end: what it used."""
    lost: int | None = None
    """Told of a gap: how many events are missing; None if nobody knows."""
    processes: Sequence[Listing] | None = None
    """Told of a gap: the processes as they are now, with what events after it tell, too.  None if unknown."""


class EventSink(Protocol):
    """An object that takes events."""

    def told(self, event: ProcessEvent) -> None:
        """Take an event: neither waits nor raises."""

    def over(self, error: Exception | None) -> None:
        """Take note that nothing more is told, because of an error or because its host was closed."""
