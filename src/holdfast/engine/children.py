"""What the engine needs of a child, and of whoever starts it.

This is the whole seam between the engine and the host.  A process that starts,
holds and reaps children on our behalf can stand behind it as well as ``host``.
"""

from __future__ import annotations

from typing import Protocol

from holdfast.model import Spec, Stream


class Child(Protocol):
    """A started program."""

    @property
    def pid(self) -> int: ...

    @property
    def exit_fd(self) -> int:
        """Readable once the child has ended."""

    @property
    def stdin(self) -> int | None:
        """Ours to write and to close."""

    @property
    def outputs(self) -> tuple[tuple[Stream, int], ...]:
        """Ours to read and to close; they do not block."""

    def hand_over(self) -> None:
        """Forget ``stdin`` and ``outputs``, which the caller has noted."""

    def signal(self, number: int) -> None:
        """Send a signal to the child's group; only before ``reap`` has given a code."""

    def has_ended(self) -> bool:
        """Whether ``reap`` would give a code."""

    def reap(self) -> int | None:
        """The exit code, once; None while the child runs."""

    def has_leftovers(self) -> bool:
        """Whether anybody of the group is left after ``reap``."""

    def kill_leftovers(self) -> None:
        """Kill what is left of the group after ``reap``."""

    def release(self) -> None:
        """Give back ``exit_fd`` and whatever else is held; after ``reap``."""


class Children(Protocol):
    """Where children come from."""

    async def start(self, spec: Spec) -> Child:
        """Start one.  Cancelling leaves nothing behind.

        Raises:
            SpawnFailed: It could not be started.
        """

    def discard(self, child: Child) -> None:
        """End a child that nobody wants, and give back everything of it.  Never waits."""

    def close(self) -> None:
        """Start nothing any more.  May be called twice."""


class _NoChild:
    """What a process has in place of its child once nothing of it is left.  Implements ``Child``."""

    pid = exit_fd = -1
    stdin = None
    outputs = ()

    def hand_over(self) -> None:
        pass

    def signal(self, number: int) -> None:
        pass

    def has_ended(self) -> bool:
        return True

    def reap(self) -> int | None:
        return None

    def has_leftovers(self) -> bool:
        return False

    def kill_leftovers(self) -> None:
        pass

    def release(self) -> None:
        pass


NO_CHILD = _NoChild()
