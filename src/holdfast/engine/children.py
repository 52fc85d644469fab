"""What the engine needs of a child, and of whoever starts it.

This is the whole seam between the engine and the host.  A process that starts,
holds and reaps children on our behalf can stand behind it as well as ``host``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from holdfast.errors import SpawnFailed
from holdfast.host.holding import Ends, Pulse
from holdfast.host.limits import NO_LIMITS, Kept
from holdfast.host.orders import Report
from holdfast.host.tree import Load, Look
from holdfast.model import Spec, Stream
from holdfast.sandbox import Guarantees

if TYPE_CHECKING:
    from holdfast.host.sandbox.confinement import ConfinedCommand, Confinement
    from holdfast.host.sandbox.search import PolicySearch


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
    def confined_command(self) -> ConfinedCommand | None:
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

    def confine(self, spec: Spec, search: PolicySearch | None = None) -> Confinement | None:
        """Make its sandbox ready.  May be called in a thread, and takes as long as ``search`` allows.

        Raises:
            BadRequest: The policy makes no sense.
            LimitReached: There is too much to look for.
            SandboxUnavailable: It cannot be kept on this host.
        """

    def start(self, spec: Spec, confinement: Confinement | None = None) -> Child:
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
    confined_command = None

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
