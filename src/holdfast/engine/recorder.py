"""The facts of one process, written down before they take effect, for a server that goes on after this one.

A process in the memory of its server ends with that server, so nothing is written down: ``NO_RECORDER``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Protocol

from holdfast.backend import Ledger, RecoveredProcess
from holdfast.config import MIB, EngineLimits
from holdfast.host.orders import StateReport
from holdfast.host.outliving import Holding, HostFacts
from holdfast.host.shim import Shim
from holdfast.model import Cause, Exit, Limits, Spec
from holdfast.poller import Poller
from holdfast.principal import Identity
from holdfast.value import value

from .children import Child
from .life import Owner
from .looking import Looks
from .output import Taker
from .ring import Budget, Ring
from .screen import Screens
from .stdin import Stdin


@value
class EngineParts:
    """What all processes of one backend use."""

    loop: asyncio.AbstractEventLoop
    poller: Poller
    looks: Looks
    limits: EngineLimits
    screens: Screens = Screens.NONE


class Regainer(Protocol):
    """Makes children of commands that another server has ordered."""

    def resume(
        self, shim: Shim, state: StateReport, files: Mapping[int, int], facts: HostFacts, limits: Limits
    ) -> Child: ...

    def regain(self, shim: Shim, *, busy: bool) -> None:
        """Take a shim of the server before, which has a command if it is ``busy``."""


class AccountOf(Protocol):
    """Whoever keeps account of the processes of one principal."""

    def __call__(self, identity: Identity) -> tuple[Owner, Budget]: ...


class Store(Protocol):
    """Writes processes down that outlive this server."""

    @property
    def ledger(self) -> Ledger:
        """Small facts of others."""

    @property
    def used_bytes(self) -> int:
        """Memory of everything that is written down."""

    @property
    def used_cells(self) -> int:
        """Pieces into which that memory is cut, as far as they are in use; none once all is forgotten."""

    def recorder(self, spec: Spec, identity: Identity, audit: str | None) -> Recorder:
        """Return what writes a process of that principal down; ``audit`` is its name in the audit log."""

    def recover(
        self, shims: Iterable[Shim], regainer: Regainer, parts: EngineParts, account_of: AccountOf
    ) -> list[RecoveredProcess]:
        """Return the processes of the server before, which go on here.  Waits for their shims."""


class Recorder(Protocol):
    """Where the facts of one process are written down.  Nothing waits, and after ``open`` nothing raises."""

    @property
    def holding(self) -> Holding | None:
        """What writes the command down before it is ordered; None if it ends with its server."""

    def open(self, child: Child, *, chunks: int, budget: Budget, now: float) -> Ring:
        """The command runs, and nobody was told: return what retains its output.

        Raises:
            LimitReached: There is no room for it.
            OSError: The system does not have what it takes.
        """

    def discard(self) -> None:
        """Forget it: the command was not started.  May be called twice."""

    @property
    def taker(self) -> Taker | None:
        """What takes the output of the process, if it is not to be read into our memory."""

    def open_stdin(self, fd: int | None, parts: EngineParts) -> Stdin:
        """Return what writes to the child's stdin; ``fd`` is None for one that was closed earlier."""

    def ending(self, cause: Cause | None, kill_at: float, *, asked: bool = False) -> None:
        """The process is about to be ended, or was ``asked``; if it still runs then, it is killed."""

    def exited(self, seq: int, end: Exit, drain: float | None) -> None:
        """The process has ended; nobody was told.  Its output is waited for so many seconds, if it is."""

    def amended(self, end: Exit) -> None:
        """More is known of how it ended."""

    def closed(self, seq: int) -> None:
        """Its output has ended; nobody was told."""

    def audited(self) -> None:
        """Its end is in the audit log."""

    def active(self, now: float) -> None:
        """It has said something, and is ended when it says nothing for a while."""

    def dropped(self, total: int) -> None:
        """So many bytes of its output, beyond the limit, were not kept."""

    def acknowledged(self, seq: int) -> None:
        """Its client has everything up to this number."""

    def forgotten(self) -> None:
        """Nobody asks for it any more; somebody of its tree may be left."""

    def gone(self) -> None:
        """Nobody is left of its tree."""


class _NoRecorder:
    """Implements ``Recorder``."""

    holding = None
    taker = None

    def open(self, child: Child, *, chunks: int, budget: Budget, now: float) -> Ring:
        return Ring(limit=MIB, chunks=chunks, budget=budget)

    def discard(self) -> None:
        pass

    def open_stdin(self, fd: int | None, parts: EngineParts) -> Stdin:
        return Stdin(fd, loop=parts.loop, poller=parts.poller, limits=parts.limits)

    def ending(self, cause: Cause | None, kill_at: float, *, asked: bool = False) -> None:
        pass

    def exited(self, seq: int, end: Exit, drain: float | None) -> None:
        pass

    def amended(self, end: Exit) -> None:
        pass

    def closed(self, seq: int) -> None:
        pass

    def audited(self) -> None:
        pass

    def active(self, now: float) -> None:
        pass

    def dropped(self, total: int) -> None:
        pass

    def acknowledged(self, seq: int) -> None:
        pass

    def forgotten(self) -> None:
        pass

    def gone(self) -> None:
        pass


NO_RECORDER = _NoRecorder()
"""Of every process that ends with its server."""
