"""What the host reports of a command and its tree: the values between engine and host (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

from .model import UNLIMITED, Enforcer, Limits, Usage
from .sandbox import Denial
from .value import value


class News(Enum):
    """What a shim can report."""

    LOST = 0
    """Never sent: the socket closed, and how the command ended is not known."""
    STARTED = 1
    """The command runs: ``value`` is its pid, ``shim`` that of the shim."""
    FAILED = 2
    """It does not: ``value`` is the number of an error, ``detail`` a StartStage."""
    EXITED = 3
    """It has exited: ``value`` is a code or a signal, ``detail`` has ExitFlag."""
    EMPTY = 4
    """Nobody is left of the tree."""
    SURVIVORS = 5
    """Some were killed and are still there: ``value`` of them, whose pids follow as int32_t."""
    DENIAL = 6
    """The sandbox refused something ``value`` times: what, a NUL, and on what follow.

    All denials come just before EXITED.
    """
    STATE = 7
    """Answers ASK: ``value`` is the pid of the command, ``detail`` has a bit for each place in use."""


# Looked up once: a report is compared with them several times.
NEWS_LOST: Final = News.LOST
NEWS_STARTED: Final = News.STARTED
NEWS_EXITED: Final = News.EXITED
NEWS_DENIAL: Final = News.DENIAL
NEWS_STATE: Final = News.STATE


class ExitFlag:
    """How a command ended."""

    BY_SIGNAL = 1
    """It was killed by a signal."""
    ALONE = 2
    """It has left nobody behind."""


@value
class Report:
    """A report of a shim, read from its bytes."""

    news: News
    value: int = 0
    """A pid, an error number, an exit code or the number of a signal; ``news`` says which."""
    detail: int = 0
    """A ``StartStage`` with ``FAILED``, the bits of ``ExitFlag`` with ``EXITED``, places with ``STATE``."""
    shim: int = 0
    """The pid of the shim, with ``STARTED`` and ``STATE``."""
    usage: Usage | None = None
    pids: Sequence[int] = ()
    """The survivors of a kill, with ``SURVIVORS``."""
    denial: Denial | None = None

    @property
    def by_signal(self) -> bool:
        """Whether a signal has ended the command, with ``EXITED``."""
        return bool(self.detail & ExitFlag.BY_SIGNAL)

    @property
    def alone(self) -> bool:
        """Whether the command has left no process behind, with ``EXITED``."""
        return bool(self.detail & ExitFlag.ALONE)


LOST = Report(News.LOST)
"""That of every shim that has ended without a word."""


# What a look at a tree shows.


@value
class Load:
    """The resources that a tree of processes uses at one moment."""

    processes: int
    memory: int
    """Resident memory in bytes."""
    cpu_us: int
    """Processor time since the tree began, that of ended processes included."""


@value
class Ends:
    """The other ends of some of our pipes and terminals, as the kernel names them."""

    names: frozenset[str]
    """What ``readlink`` returns for a descriptor of such an end."""
    terminals: frozenset[int]
    """Device numbers of terminals: who has one as its own terminal may have it open as ``/dev/tty``."""


@value
class Pulse:
    """What the processes that hold an output open were doing at one moment."""

    at_work: bool
    """Whether a thread of them runs, or waits for a processor or a disk."""
    switches: dict[int, int]
    """How often each of their threads was taken from a processor; it grows with any work."""
    known: bool
    """Whether all of them were looked at, within the bounds of the look."""

    def is_quiet_since(self, before: Pulse | None) -> bool:
        """Whether none of the processes is at work, or was at work since ``before``."""
        if not self.known or self.at_work:
            return False
        return not self.switches or (before is not None and self.switches == before.switches)


# Limits.


@value
class EnforcedLimits:
    """The limits of one tree, and what enforces each of them."""

    limits: Limits
    controllers: frozenset[str]
    """The controllers of the tree's control group, which keep their limits for the whole tree."""

    def enforcers(self) -> dict[str, str]:
        """Return what enforces each limit that is set, by the name of the limit in ``Limits``."""
        found: dict[str, str] = {}
        if self.limits.memory is not None:
            found["memory"] = Enforcer.CGROUP if "memory" in self.controllers else Enforcer.SAMPLED
        if self.limits.cpu is not None:
            found["cpu"] = Enforcer.RLIMIT
        if self.limits.processes is not None:
            found["processes"] = Enforcer.CGROUP if "pids" in self.controllers else Enforcer.SAMPLED
        if self.limits.files is not None:
            found["files"] = Enforcer.RLIMIT
        return found

    def ours(self) -> Limits:
        """Return the limits that no control group keeps, so that the server has to sample the tree.

        Processor time is among them, because the kernel limits it for each process and not for the tree.
        """
        return Limits(
            memory=None if "memory" in self.controllers else self.limits.memory,
            cpu=self.limits.cpu,
            processes=None if "pids" in self.controllers else self.limits.processes,
        )


NO_LIMITS = EnforcedLimits(UNLIMITED, frozenset())
