"""A child: a command under its warden, with its signals and its end."""

from __future__ import annotations

import contextlib
import os
import signal as signals
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from holdfast.errors import SignalFailed, SpawnFailed
from holdfast.model import Stream

from . import tree
from .groups import Group
from .limits import NO_LIMITS, Kept
from .orders import News, Report
from .warden import NO_WARDEN, Warden

if TYPE_CHECKING:
    from .sandbox.cage import Caged


class Child:
    """A command that was asked for.

    It runs once ``hear`` has told so.  ``stdin`` and ``outputs`` belong to whoever
    took the child and are closed by them; everything else ends with ``close``.
    """

    __slots__ = (
        "_before_us",
        "_explain",
        "_group",
        "_killed",
        "_take_back",
        "_warden",
        "_warden_pid",
        "caged",
        "limits",
        "outputs",
        "pid",
        "released",
        "stdin",
    )

    def __init__(
        self,
        warden: Warden,
        *,
        stdin: int | None,
        outputs: tuple[tuple[Stream, int], ...],
        explain: Callable[[Report], SpawnFailed],
        take_back: Callable[..., None],
        group: Group | None = None,
        limits: Kept = NO_LIMITS,
        caged: Caged | None = None,
    ) -> None:
        """
        Args:
            explain: Says what a failed start was about.
            take_back: Takes the warden, and ``usable``: whether nobody is left of the tree.
        """
        self._warden = warden
        self._take_back: Callable[..., None] | None = take_back
        self._warden_pid = 0
        self._before_us = 0
        self._explain: Callable[[Report], SpawnFailed] | None = explain
        self._group = group
        self.limits = limits
        self.caged = caged
        """What is known of its sandbox, if it is in one."""
        self.pid = 0
        """The command's, once it runs."""
        self.released = False
        self._killed = False
        self.stdin = stdin
        self.outputs = outputs

    def fileno(self) -> int:
        """Readable when there is news."""
        return self._warden.fileno()

    def hand_over(self) -> None:
        """Forget ``stdin`` and ``outputs``: somebody else has noted them."""
        self.stdin, self.outputs = None, ()

    def hear(self) -> Report | None:
        """The next piece of news; None if there is none now."""
        report = self._warden.hear()
        while report is not None and report.news is News.DENIAL:
            if self.caged is not None and report.denial is not None:
                self.caged.denials.append(report.denial)
            report = self._warden.hear()
        if report is not None and report.news is News.STARTED:
            self.pid, self._warden_pid = report.value, report.warden
            if self.limits is not NO_LIMITS:
                self._before_us = tree.waited_us(self._warden_pid)
            self._explain = None
        elif report is not None and report.news is News.LOST:
            self.released = True  # Nobody keeps its number any more.
        return report

    def failure(self, report: Report) -> SpawnFailed:
        """Why it does not run."""
        assert self._explain is not None
        return self._explain(report)

    # While it runs.

    def signal(self, number: int) -> None:
        """Send a signal to the command's group.  Does nothing after ``release``.

        Until then its pid, which names the group, cannot be reused.

        Raises:
            SignalFailed: The system refused.
        """
        if self.released or not self.pid:
            return
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass  # The whole group has ended and waits to be reaped.
        except OSError as error:
            raise SignalFailed(error.strerror or str(error)) from error

    def signal_tree(self, number: int) -> None:
        """Send a signal to everybody in the tree, once."""
        tree.signal_all(self._warden_pid, number)

    def has_ended(self) -> bool:
        """Whether the command has ended, though that may not have been told yet."""
        return self.released or not tree.is_alive(self.pid)

    # The end.

    def kill(self) -> None:
        """End the whole tree; news of it follows.  The command's number is given up with it."""
        self.released = self._killed = True
        self._warden.kill()

    def release(self) -> None:
        """Let the command's number go, after its exit was told."""
        if not self.released:
            self.released = True
            self._warden.release()

    def kill_leftovers(self) -> None:
        """Kill what is left of the command's group.

        While the group has members the kernel keeps its number from being reused; so
        if a process with that number exists, and is not the command that its warden
        has yet to reap, it is somebody else's by now.
        """
        if self.pid and tree.parent(self.pid) in (None, self._warden_pid):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signals.SIGKILL)

    def members(self) -> list[int]:
        """Who is in the tree now."""
        return tree.below(self._warden_pid) if self._warden_pid else []

    def load(self) -> tree.Load:
        """What the tree uses now."""
        return tree.load(self._warden_pid, before_us=self._before_us)

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed anybody of the tree for want of memory."""
        return self._group is not None and self._group.ran_out_of_memory()

    def holders(self, files: Sequence[int]) -> list[int]:
        """Who in the tree holds the other end of one of these descriptors."""
        return tree.holders(self.members(), files)

    def retire(self) -> None:
        """Give everything back, the warden too, now that nobody is left of the tree."""
        if not self.released:
            self.released = True
            self._warden.release(quietly=True)
        self._give_back(usable=not self._killed)

    def close(self) -> None:
        """Give everything back; whatever is left of the tree is ended.  May be called twice."""
        self._give_back(usable=False)

    def _give_back(self, *, usable: bool) -> None:
        take_back, self._take_back = self._take_back, None
        if take_back is None:
            return
        take_back(self._warden, usable=usable)
        self._warden = NO_WARDEN  # By now it may be another command's.
        group, self._group = self._group, None
        if group is not None:
            group.remove()
