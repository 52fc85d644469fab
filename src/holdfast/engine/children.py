"""What the engine needs of a child and of whoever starts it, and the wait until a child runs.

This is the whole seam between the engine and the host.  A process that starts,
holds and reaps children on our behalf can stand behind it as well as ``host``.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Protocol

from holdfast.errors import SpawnFailed
from holdfast.host.holding import Ends, Pulse
from holdfast.host.limits import NO_LIMITS, Kept
from holdfast.host.look import Look
from holdfast.host.orders import News, Report
from holdfast.host.tree import Load
from holdfast.model import Spec, Stream
from holdfast.poller import Poller
from holdfast.sandbox import Guarantees

if TYPE_CHECKING:
    from holdfast.host.sandbox.cage import Cage, Caged
    from holdfast.host.sandbox.search import Search


class Child(Protocol):
    """A command that was asked for, and the tree of processes it may become."""

    @property
    def pid(self) -> int:
        """The command's; known once it runs."""

    @property
    def stdin(self) -> int | None:
        """Ours to write and to close."""

    @property
    def outputs(self) -> tuple[tuple[Stream, int], ...]:
        """Ours to read and to close; they do not block."""

    @property
    def limits(self) -> Kept:
        """What the tree may use, and who sees to it."""

    @property
    def caged(self) -> Caged | None:
        """What is known of its sandbox, if it is in one; complete when its exit is reported."""

    def fileno(self) -> int:
        """A descriptor that is readable when a report has come."""

    def receive(self) -> Report | None:
        """The next report: it runs or does not, it has exited, the tree is gone.  None if none has come."""

    def failure(self, report: Report) -> SpawnFailed:
        """Why it does not run, from the report of that."""

    def hand_over(self) -> None:
        """Forget ``stdin`` and ``outputs``, which the caller has noted and closes."""

    def signal(self, number: int) -> None:
        """Send a signal to the command's group; only before ``release``."""

    def signal_tree(self, number: int, look: Look | None = None, *, partly: bool = True) -> bool:
        """Send a signal to everybody in the tree, as far as ``look`` goes; return whether that was done.

        Without ``partly``, to nobody if there are more.
        """

    def has_ended(self) -> bool:
        """Whether the command has ended, though that may not have been reported yet."""

    def kill(self) -> None:
        """Kill the whole tree; reports of that follow."""

    def release(self) -> None:
        """Let the command be reaped, after the report of its exit."""

    def kill_leftovers(self) -> None:
        """Kill what is left of the command's group."""

    # These take as long as the tree is large, but for a ``look``.  They may be called in a thread, and so may
    # ``signal_tree``; one that outlives the tree speaks of another one.

    def members(self, look: Look | None = None) -> list[int]:
        """The pids of those who are in the tree now."""

    def load(self, look: Look | None = None) -> Load:
        """What the tree uses now."""

    def holders(self, ends: Ends, look: Look | None = None) -> list[int]:
        """The pids of those in the tree who hold one of these ends open."""

    def pulse(self, ends: Ends, look: Look | None = None) -> Pulse:
        """What those in the tree are doing who hold one of these ends open."""

    # These never wait.

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed anybody of the tree for want of memory."""

    def retire(self) -> None:
        """Release everything, now that nobody is left of the tree."""

    def close(self) -> None:
        """Release everything; whatever is left of the tree is killed."""


class Children(Protocol):
    """Where children come from."""

    @property
    def tried_out(self) -> bool:
        """Whether it is known what sandboxes are worth."""

    @property
    def guarantees(self) -> Guarantees:
        """What sandboxes are worth.  Waits a few seconds at the most, unless that is known."""

    def effort(self, spec: Spec) -> int:
        """How much there is to compare until its variables are known, in characters."""

    def settle(self, spec: Spec) -> Spec:
        """Replace the policy of a spec by the variables that it comes to.  May be called in a thread."""

    def cage(self, spec: Spec, search: Search | None = None) -> Cage | None:
        """Make its sandbox ready.  May be called in a thread, and takes as long as ``search`` allows.

        Raises:
            BadRequest: The policy makes no sense.
            LimitReached: There is too much to look for.
            SandboxUnavailable: It cannot be kept on this host.
        """

    def start(self, spec: Spec, cage: Cage | None = None) -> Child:
        """Ask for a child.  Never waits; the child's first report says whether it runs.

        Raises:
            SpawnFailed: It cannot be started.
        """

    def close(self) -> None:
        """Start nothing any more.  May be called twice."""


class _NoChild:
    """What a process has in place of its child once nothing of it is left.  Implements ``Child``."""

    pid = -1
    stdin = None
    outputs = ()
    limits = NO_LIMITS
    caged = None

    def fileno(self) -> int:
        return -1

    def receive(self) -> None:
        return None

    def failure(self, report: Report) -> SpawnFailed:
        raise NotImplementedError

    def hand_over(self) -> None:
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
            if report.news is not News.STARTED:
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
