"""A child: its pid, the descriptor that tells its end, its signals, its exit code."""

from __future__ import annotations

import contextlib
import os
import signal as signals
from collections.abc import Callable

from holdfast.errors import SignalFailed
from holdfast.model import Stream

LOST = -1
"""The exit code when the system cannot tell one: somebody else reaped the child."""


class Child:
    """A started program.

    ``stdin`` and ``outputs`` belong to whoever took the child and are closed by
    them; everything else is given back with ``release``.
    """

    __slots__ = ("_before_reap", "exit_fd", "outputs", "pid", "stdin")

    def __init__(
        self,
        pid: int,
        *,
        stdin: int | None,
        outputs: tuple[tuple[Stream, int], ...],
        before_reap: Callable[[int], None] | None = None,
    ) -> None:
        self.pid = pid
        self.exit_fd = os.pidfd_open(pid)
        """Readable once the child has ended."""
        self.stdin = stdin
        self.outputs = outputs
        self._before_reap = before_reap

    def hand_over(self) -> None:
        """Forget ``stdin`` and ``outputs``: somebody else has noted them."""
        self.stdin, self.outputs = None, ()

    def signal(self, number: int) -> None:
        """Send a signal to the child's group.  Only for a child that was not reaped.

        Until it is reaped its pid, which names the group, cannot be reused.

        Raises:
            SignalFailed: The system refused.
        """
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass  # The whole group has ended and waits to be reaped.
        except OSError as error:
            raise SignalFailed(error.strerror or str(error)) from error

    def has_ended(self) -> bool:
        """Whether the child has ended, though it may not have been reaped."""
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def reap(self) -> int | None:
        """The exit code, or None if the child still runs.  128 + n after death by signal n."""
        try:
            state = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if state is None:
                return None
            if self._before_reap is not None:
                self._before_reap(self.pid)
            _, status = os.waitpid(self.pid, 0)
        except ChildProcessError:
            return LOST
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code

    def has_leftovers(self) -> bool:
        """Whether anybody of the group of this child, which was reaped, is still there."""
        try:
            os.killpg(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            pass
        return True

    def kill_leftovers(self) -> None:
        """Kill what is left of the group of this child, which was reaped.

        While the group has members the kernel keeps its number from being reused;
        so if a process with that number exists, it is somebody else's by now.
        """
        if not os.path.exists(f"/proc/{self.pid}"):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signals.SIGKILL)

    def release(self) -> None:
        """Give back what is left once the child was reaped."""
        os.close(self.exit_fd)
