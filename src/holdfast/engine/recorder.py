"""The facts of one process, written down before they take effect, for a server that goes on after this one.

A process in the memory of its server ends with that server, so nothing is written down: ``NO_RECORDER``.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from holdfast.config import EngineLimits
from holdfast.model import Cause, Exit
from holdfast.poller import Poller
from holdfast.value import value

from .looking import Looks
from .output import Take, read
from .stdin import Stdin


@value
class EngineParts:
    """What all processes of one backend use."""

    loop: asyncio.AbstractEventLoop
    poller: Poller
    looks: Looks
    limits: EngineLimits


class Recorder(Protocol):
    """Where the facts of one process are written down.  Nothing here waits or raises."""

    @property
    def take(self) -> Take:
        """What takes the output of the process from its pipes or its terminal."""

    def open_stdin(self, fd: int | None, parts: EngineParts) -> Stdin:
        """Return what writes to the child's stdin; ``fd`` is None for one that was closed earlier."""

    def ending(self, cause: Cause | None, kill_at: float) -> None:
        """The process is about to be ended, and is killed at that time of the loop if it still runs."""

    def exited(self, seq: int, end: Exit, drain: float | None) -> None:
        """The process has ended; nobody was told.  Its output is waited for so many seconds, if it is."""

    def amended(self, end: Exit) -> None:
        """More is known of how it ended."""

    def closed(self, seq: int) -> None:
        """Its output has ended; nobody was told."""

    def active(self, now: float) -> None:
        """It has said something, and is ended when it says nothing for a while."""

    def acknowledged(self, seq: int) -> None:
        """Its client has everything up to this number."""

    def forgotten(self) -> None:
        """Nobody asks for it any more; somebody of its tree may be left."""

    def gone(self) -> None:
        """Nobody is left of its tree."""


class _NoRecorder:
    """Implements ``Recorder``."""

    take = staticmethod(read)

    def open_stdin(self, fd: int | None, parts: EngineParts) -> Stdin:
        return Stdin(fd, loop=parts.loop, poller=parts.poller, limits=parts.limits)

    def ending(self, cause: Cause | None, kill_at: float) -> None:
        pass

    def exited(self, seq: int, end: Exit, drain: float | None) -> None:
        pass

    def amended(self, end: Exit) -> None:
        pass

    def closed(self, seq: int) -> None:
        pass

    def active(self, now: float) -> None:
        pass

    def acknowledged(self, seq: int) -> None:
        pass

    def forgotten(self) -> None:
        pass

    def gone(self) -> None:
        pass


NO_RECORDER = _NoRecorder()
"""Of every process that ends with its server."""
