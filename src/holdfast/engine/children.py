"""What the engine needs of a child, and of whoever starts it.

This is the whole seam between the engine and the host.  A process that starts,
holds and reaps children on our behalf can stand behind it as well as ``host``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from holdfast.errors import SpawnFailed
from holdfast.host.limits import NO_LIMITS, Kept
from holdfast.host.orders import Report
from holdfast.host.tree import Load
from holdfast.model import Spec, Stream
from holdfast.sandbox import Guarantees

if TYPE_CHECKING:
    from holdfast.host.sandbox.cage import Cage, Caged


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
        """What is known of its sandbox, if it is in one; complete with the news of its exit."""

    def fileno(self) -> int:
        """Readable when there is news."""

    def hear(self) -> Report | None:
        """The next piece of news: it runs or does not, it has exited, the tree is gone."""

    def failure(self, report: Report) -> SpawnFailed:
        """Why it does not run, after the news of that."""

    def hand_over(self) -> None:
        """Forget ``stdin`` and ``outputs``, which the caller has noted."""

    def signal(self, number: int) -> None:
        """Send a signal to the command's group; only before ``release``."""

    def signal_tree(self, number: int) -> None:
        """Send a signal to everybody in the tree."""

    def has_ended(self) -> bool:
        """Whether the command has ended, though that may not have been told yet."""

    def kill(self) -> None:
        """End the whole tree; the news of it follows."""

    def release(self) -> None:
        """Let the command's number go, after the news of its exit."""

    def kill_leftovers(self) -> None:
        """Kill what is left of the command's group."""

    def members(self) -> list[int]:
        """Who is in the tree now."""

    def load(self) -> Load:
        """What the tree uses now."""

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed anybody of the tree for want of memory."""

    def holders(self, files: Sequence[int]) -> list[int]:
        """Who in the tree holds the other end of one of these descriptors."""

    def retire(self) -> None:
        """Give everything back, now that nobody is left of the tree."""

    def close(self) -> None:
        """Give everything back; whatever is left of the tree is ended."""


class Children(Protocol):
    """Where children come from."""

    @property
    def guarantees(self) -> Guarantees:
        """What sandboxes are worth."""

    def cage(self, spec: Spec) -> Cage | None:
        """Make its sandbox ready.  May be called in a thread, and takes as long as the disk does.

        Raises:
            BadRequest: The policy makes no sense.
            SandboxUnavailable: It cannot be kept on this host.
        """

    def start(self, spec: Spec, cage: Cage | None = None) -> Child:
        """Ask for one.  Never waits; whether it runs is the child's first news.

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

    def hear(self) -> None:
        return None

    def failure(self, report: Report) -> SpawnFailed:
        raise NotImplementedError

    def hand_over(self) -> None:
        pass

    def signal(self, number: int) -> None:
        pass

    def signal_tree(self, number: int) -> None:
        pass

    def has_ended(self) -> bool:
        return True

    def kill(self) -> None:
        pass

    def release(self) -> None:
        pass

    def kill_leftovers(self) -> None:
        pass

    def members(self) -> list[int]:
        return []

    def load(self) -> Load:
        return Load(0, 0, 0)

    def ran_out_of_memory(self) -> bool:
        return False

    def holders(self, files: Sequence[int]) -> list[int]:
        return []

    def retire(self) -> None:
        pass

    def close(self) -> None:
        pass


NO_CHILD = _NoChild()
