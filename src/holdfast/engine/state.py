"""Where a process is in its life, and who keeps account of it."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .process import LocalProcess


class State(Enum):
    """Where a process is in its life; it only moves down this list."""

    RUNNING = 1
    STOPPING = 2
    """Asked by us to end, and given time for it."""
    TERMINATING = 3
    """Killed by us and not gone yet: its outputs are not waited for."""
    EXITED = 4
    CLOSED = 5


class Owner(Protocol):
    """Whoever keeps account of the processes of a backend."""

    def exited(self, process: LocalProcess) -> None:
        """It has ended; its output may be held open."""

    def closed(self, process: LocalProcess) -> None:
        """Nothing more will be told of it."""

    def gone(self, process: LocalProcess) -> None:
        """Nobody is left of its tree."""
