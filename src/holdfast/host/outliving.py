"""What a shim holds, and what is written down, of a command that outlives the server that ordered it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Protocol

from holdfast.errors import Fault, SpawnFailed
from holdfast.model import UNLIMITED, Limits, Stream
from holdfast.reports import NO_LIMITS, EnforcedLimits, Report
from holdfast.value import value

from .orders import HeldPlace
from .shim import Shim


@value
class HostFacts:
    """What the host knows of a command, for a server that goes on after the one that ordered it."""

    groups: tuple[str, ...] = ()
    """The directories of its control groups."""
    controllers: tuple[str, ...] = ()
    """The controllers of these groups."""
    confined: tuple[bool, int] | None = None
    """Whether a witness sees every denial, and how many processes only keep its sandbox; None without one."""

    def limits(self, limits: Limits) -> EnforcedLimits:
        """Return these limits, and who keeps them."""
        return NO_LIMITS if limits is UNLIMITED else EnforcedLimits(limits, frozenset(self.controllers))


class Holding(Protocol):
    """Writes down a command that outlives this server."""

    def begin(self, facts: HostFacts) -> int:
        """Write the command down, which is ordered next; return its key.

        Raises:
            LimitReached: There is no room for it.
        """

    def open_cursor(self) -> int:
        """Open another descriptor whose offset says how far output was taken."""


def places_of(
    shim: Shim, stdin: int | None, outputs: tuple[tuple[Stream, int], ...], holding: Holding
) -> dict[int, int]:
    """Return what a shim is to hold for the next server, by ``HeldPlace``."""
    holds = {
        (HeldPlace.STDERR if stream is Stream.STDERR else HeldPlace.STDOUT): fd for stream, fd in outputs
    }
    if stdin is not None and outputs[0][0] is not Stream.PTY:  # A terminal is held once for both ways.
        holds[HeldPlace.STDIN] = stdin
    if shim.cursor is None:
        shim.cursor = holding.open_cursor()
        holds[HeldPlace.CURSOR] = shim.cursor
    return holds


def files_of(files: Mapping[int, int]) -> tuple[int | None, tuple[tuple[Stream, int], ...]]:
    """Return our ends of the child's stdin and outputs, from what its shim holds."""
    out, err = files.get(HeldPlace.STDOUT), files.get(HeldPlace.STDERR)
    stdin = files.get(HeldPlace.STDIN)
    if out is not None and os.isatty(out):
        return os.dup(out), ((Stream.PTY, out),)
    found = ((Stream.STDOUT, out), (Stream.STDERR, err))
    return stdin, tuple((stream, fd) for stream, fd in found if fd is not None)


def unexplained(report: Report) -> SpawnFailed:
    """Return why a command does not run that another server has ordered: nobody waits for that any more."""
    return SpawnFailed(Fault.SYSTEM, "shim", f"the start failed with {report.news.name}", terminal=False)
