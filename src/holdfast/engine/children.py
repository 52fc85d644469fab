"""The interfaces of children and of what starts them, and the wait until a child runs.

This is the whole seam between the engine and the host.  A process that starts, holds and reaps children on
our behalf can implement it as well as ``host``.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Protocol

from holdfast.errors import SpawnFailed
from holdfast.host.outliving import Holding
from holdfast.host.tree import Look
from holdfast.model import Spec, Stream
from holdfast.poller import Poller
from holdfast.reports import NEWS_STARTED, NO_LIMITS, Ends, EnforcedLimits, Load, Pulse, Report
from holdfast.sandbox import Guarantees

if TYPE_CHECKING:
    from holdfast.host.sandbox.confinement import ConfinedCommand, Confinement
    from holdfast.host.sandbox.rules import PolicySearch


class Child(Protocol):
    """A command that was ordered, and the tree of processes that it becomes."""

    @property
    def pid(self) -> int:
        """The pid of the command, known once it runs."""

    @property
    def stdin(self) -> int | None:
        """The descriptor of standard input, for the engine to write and to close; None if there is none."""

    @property
    def outputs(self) -> tuple[tuple[Stream, int], ...]:
        """The descriptors of the outputs, for the engine to read and to close.  They do not block."""

    @property
    def cursor(self) -> int:
        """The descriptor whose offset says how far the output was taken; of one that is held."""

    def hold_input(self, cursor: int) -> None:
        """Have its shim hold the descriptor whose offset says how far the input was written.

        Raises:
            OSError: The system does not have what it takes.
        """

    def drop_input(self) -> None:
        """Have its shim close its copy of standard input."""

    def drop_outputs(self) -> None:
        """Have its shim close its copies of the outputs."""

    @property
    def is_held(self) -> bool:
        """Whether its shim holds its files, so that it outlives this server."""

    @property
    def limits(self) -> EnforcedLimits:
        """The limits of the tree, and who keeps them."""

    @property
    def confined_command(self) -> ConfinedCommand | None:
        """What the sandbox has refused the command, if it runs in one; complete when the exit is reported."""

    def fileno(self) -> int:
        """Return a descriptor that is readable when a report has come."""

    def receive(self) -> Report | None:
        """Return the next report: it runs or not, it has exited, the tree is gone.  None if none has come."""

    def failure(self, report: Report) -> SpawnFailed:
        """Return why the command does not run, given the report of that."""

    def hand_over(self) -> None:
        """Forget ``stdin`` and ``outputs``, which the caller has noted and closes."""

    def signal(self, number: int) -> None:
        """Send a signal to the command's group; only before ``release``."""

    def signal_tree(self, number: int, look: Look | None = None, *, partly: bool = True) -> bool:
        """Send a signal to every process of the tree, as far as ``look`` allows.  Return whether it was sent.

        Without ``partly``, nobody gets it if there are more processes than that.
        """

    def has_ended(self) -> bool:
        """Whether the command has ended.  The report of that may not have come yet."""

    def kill(self) -> None:
        """Kill the whole tree; reports of that follow."""

    def release(self) -> None:
        """Let the command be reaped, after the report of its exit."""

    def kill_leftovers(self) -> None:
        """Kill what is left of the command's group."""

    # Without a ``look`` these take the longer the larger the tree is.  They may be called in a thread, and so
    # may ``signal_tree``.  A call that outlives the tree may be about another one.

    def members(self, look: Look | None = None) -> list[int]:
        """Return the pids of the processes that are in the tree now."""

    def load(self, look: Look | None = None) -> Load:
        """Return what the tree uses now."""

    def holders(self, ends: Ends, look: Look | None = None) -> list[int]:
        """Return the pids of the processes in the tree that hold one of these ends open."""

    def pulse(self, ends: Ends, look: Look | None = None) -> Pulse:
        """Return what the processes in the tree are doing that hold one of these ends open."""

    # These never wait.

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed a process of the tree because its group ran out of memory."""

    def retire(self) -> None:
        """Release everything, now that no process of the tree is left."""

    def close(self) -> None:
        """Release everything.  What is left of the tree is killed."""


class Children(Protocol):
    """Starts children."""

    @property
    def tried_out(self) -> bool:
        """Whether ``guarantees`` would answer at once."""

    @property
    def guarantees(self) -> Guarantees:
        """What sandboxes are worth on this host.  Waits until that is known, a few seconds at the most."""

    def effort(self, spec: Spec) -> int:
        """Return how much work it is to compute the variables of ``spec``, in characters to compare."""

    def settle(self, spec: Spec) -> Spec:
        """Return ``spec`` with its variables in place of their policy.  May be called in a thread."""

    def confine(self, spec: Spec, search: PolicySearch | None = None) -> Confinement | None:
        """Return the confinement that keeps the sandbox of ``spec``; None if it has no sandbox.

        May be called in a thread, and takes as long as ``search`` allows.

        Raises:
            BadRequest: The policy makes no sense.
            LimitReached: There is too much to look for.
            SandboxUnavailable: The sandbox cannot be kept on this host.
        """

    def start(
        self, spec: Spec, confinement: Confinement | None = None, holding: Holding | None = None
    ) -> Child:
        """Order a child, without waiting.  Its first report says whether it runs.

        With ``holding``, it is written down and outlives this server.

        Raises:
            SpawnFailed: The order cannot be given.
        """

    def close(self) -> None:
        """Release everything that starts need.  May be called twice."""


class _NoChild:
    """Stands for the child of a process of which nothing is left.  Implements ``Child``."""

    pid = -1
    stdin = None
    outputs = ()
    is_held = False
    cursor = -1
    limits = NO_LIMITS
    confined_command = None

    def fileno(self) -> int:
        return -1

    def receive(self) -> None:
        return None

    def failure(self, report: Report) -> SpawnFailed:
        raise NotImplementedError

    def hand_over(self) -> None:
        pass

    def hold_input(self, cursor: int) -> None:
        pass

    def drop_input(self) -> None:
        pass

    def drop_outputs(self) -> None:
        pass

    def signal(self, number: int) -> None:
        pass

    def signal_tree(self, number: int, look: Look | None = None, *, partly: bool = True) -> bool:
        return True

    def has_ended(self) -> bool:
        return True

    def kill(self) -> None:
        pass

    def release(self) -> None:
        pass

    def kill_leftovers(self) -> None:
        pass

    def members(self, look: Look | None = None) -> list[int]:
        return []

    def load(self, look: Look | None = None) -> Load:
        return Load(0, 0, 0)

    def holders(self, ends: Ends, look: Look | None = None) -> list[int]:
        return []

    def pulse(self, ends: Ends, look: Look | None = None) -> Pulse:
        return Pulse(at_work=False, switches={}, known=True)

    def ran_out_of_memory(self) -> bool:
        return False

    def retire(self) -> None:
        pass

    def close(self) -> None:
        pass


NO_CHILD = _NoChild()


class PendingStart:
    """A child that was asked for, until somebody has it.  Implements ``poller.Source``."""

    __slots__ = ("_child", "_poller", "_report")

    def __init__(self, child: Child, *, loop: asyncio.AbstractEventLoop, poller: Poller) -> None:
        self._child = child
        self._poller = poller
        self._report: asyncio.Future[Report] = loop.create_future()
        try:
            poller.add(child.fileno(), self)
        except OSError:
            self._discard()
            raise

    def on_ready(self, events: int = 0) -> None:
        # Reports after the first are left to whoever takes the child.
        if not self._report.done():
            report = self._child.receive()
            if report is not None:
                self._report.set_result(report)

    async def child(self) -> Child:
        """The child, once it runs; the poller still watches it, for whoever hands it another source.

        Cancelling leaves nothing behind, though it may take a while until a start
        that is stuck in the system is undone.

        Raises:
            SpawnFailed: It does not run.
        """
        try:
            report = await self._report
            if report.news is not NEWS_STARTED:
                raise self._child.failure(report)
        except asyncio.CancelledError:
            self.give_up()
            raise
        except BaseException:
            self._discard()
            raise
        return self._child

    def give_up(self, error: Exception | None = None) -> None:
        """End the child, whether it runs or not; ``child`` raises ``error``."""
        self._discard()
        if error is not None and not self._report.done():
            self._report.set_exception(error)

    def _discard(self) -> None:
        """Close everything of the child.  May be called twice."""
        if self._child.fileno() < 0:
            return
        self._poller.remove(self._child.fileno())
        files = {fd for _, fd in self._child.outputs}
        for fd in files if self._child.stdin is None else files | {self._child.stdin}:
            self._poller.remove(fd)  # Somebody may have been about to take it.
            os.close(fd)
        self._child.close()
