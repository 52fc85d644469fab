"""A child: a command under its shim, with its signals and its end."""

from __future__ import annotations

import errno
import os
import signal as signals
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.errors import SignalFailed, SpawnFailed
from holdfast.model import Stream
from holdfast.value import replace

from . import tree
from .holding import Ends, Pulse, holders, pulse
from .limits import NO_LIMITS, Group, Kept
from .orders import News, Report
from .shim import NO_SHIM, Shim
from .tree import Look

if TYPE_CHECKING:
    from .sandbox.confinement import ConfinedCommand

_TO_GROUP = 4
"""The kernel's PIDFD_SIGNAL_PROCESS_GROUP, from Linux 6.9 on."""


class ShimChild:
    """A command under a shim, from the order to start it on.  Implements ``engine.children.Child``.

    It runs once ``receive`` has returned ``STARTED``.  ``stdin`` and ``outputs`` belong to
    whoever took the child and are closed by them; ``close`` ends everything else.
    """

    __slots__ = (
        "_before_us",
        "_explain",
        "_group",
        "_killed",
        "_shim",
        "_shim_pid",
        "_take_back",
        "confined_command",
        "limits",
        "outputs",
        "pid",
        "released",
        "stdin",
    )

    def __init__(
        self,
        shim: Shim,
        *,
        stdin: int | None,
        outputs: tuple[tuple[Stream, int], ...],
        explain: Callable[[Report], SpawnFailed],
        take_back: Callable[..., None],
        group: Group | None = None,
        limits: Kept = NO_LIMITS,
        confined_command: ConfinedCommand | None = None,
    ) -> None:
        """
        Args:
            explain: Says what a failed start was about.
            take_back: Takes the shim, and ``usable``: whether nobody is left of the tree.
        """
        self._shim = shim
        self._take_back: Callable[..., None] | None = take_back
        self._shim_pid = 0
        self._before_us = 0
        self._explain: Callable[[Report], SpawnFailed] | None = explain
        self._group = group
        self.limits = limits
        self.confined_command = confined_command
        """What is known of its sandbox, if it is in one."""
        self.pid = 0
        """The command's, once it runs."""
        self.released = False
        self._killed = False
        self.stdin = stdin
        self.outputs = outputs

    def fileno(self) -> int:
        """The socket to the shim, which is readable when a report has come."""
        return self._shim.fileno()

    def hand_over(self) -> None:
        """Forget ``stdin`` and ``outputs``: the caller has noted them, and closes them."""
        self.stdin, self.outputs = None, ()

    def receive(self) -> Report | None:
        """Return the next report; None if none has come.  ``confined_command`` gets the denials instead."""
        report = self._shim.receive()
        while report is not None and report.news is News.DENIAL:
            if self.confined_command is not None and report.denial is not None:
                self.confined_command.denials.append(report.denial)
            report = self._shim.receive()
        if report is not None and report.news is News.STARTED:
            self.pid, self._shim_pid = report.value, report.shim
            if self.limits is not NO_LIMITS:
                self._before_us = tree.waited_us(self._shim_pid)
            self._explain = None
        elif report is not None and report.news is News.LOST:
            self.released = True  # Nobody keeps its pid from others any more.
        return report

    def failure(self, report: Report) -> SpawnFailed:
        """Why the command does not run, from the report of that."""
        assert self._explain is not None
        return self._explain(report)

    # While it runs.

    def signal(self, number: int) -> None:
        """Send a signal to the command's group.  Does nothing after ``release``.

        Until then the shim keeps the pid, which names the group, from others; but somebody
        may have killed the shim, and that may not have been reported yet.

        Raises:
            SignalFailed: The system refused.
        """
        if self.released or not self.pid:
            return
        try:
            holder = os.pidfd_open(self.pid)
        except (
            OSError
        ):  # For want of descriptors, say.  If there is no such process, there is no shim either.
            self._shim.signal(number)
            return
        try:
            # In this sequence: what is held is the command if the shim was there to keep its number.
            if self._shim.is_there():
                self._signal_held(holder, number)
        except ProcessLookupError:
            pass  # The whole group has ended and waits to be reaped.
        except OSError as error:
            raise SignalFailed(error.strerror or str(error)) from error
        finally:
            os.close(holder)

    def _signal_held(self, holder: int, number: int) -> None:
        try:
            signals.pidfd_send_signal(holder, number, None, _TO_GROUP)
        except OSError as error:
            if error.errno != errno.EINVAL or not 0 <= number < signals.NSIG:
                raise
            # An older kernel.  The shim can do it as well, a moment later; here is seen whether it may.
            signals.pidfd_send_signal(holder, 0)
            self._shim.signal(number)

    def signal_tree(self, number: int, look: Look | None = None, *, partly: bool = True) -> bool:
        """Send a signal to everybody in the tree, once; see ``tree.signal_all``."""
        if not self._shim_pid:
            return True
        return tree.signal_all(self._shim_pid, number, self._shim.is_there, look, partly=partly)

    def has_ended(self) -> bool:
        """Whether the command has ended, though that may not have been reported yet."""
        return self.released or not tree.is_alive(self.pid)

    # The end.

    def kill(self) -> None:
        """Kill the whole tree; reports of that follow.  From now on the command's pid may be another's."""
        self.released = self._killed = True
        self._shim.kill()

    def release(self) -> None:
        """Let the command be reaped, after its exit was reported."""
        if not self.released:
            self.released = True
            self._shim.release()

    def kill_leftovers(self) -> None:
        """Kill what is left of the command's group.  Only its shim knows which group that is."""
        self._shim.signal(signals.SIGKILL)

    # Questions that take as long as the tree is large.  They may be asked in a thread.

    def members(self, look: Look | None = None) -> list[int]:
        """The pids of those who are in the tree now."""
        found = tree.below(self._shim_pid, look) if self._shim_pid else []
        return found if self._shim.is_there() else []

    def load(self, look: Look | None = None) -> tree.Load:
        """What the tree uses now; processes that only keep its sandbox are not counted."""
        load = tree.load(self._shim_pid, look, before_us=self._before_us)
        if self.confined_command is None:
            return load
        return replace(load, processes=max(0, load.processes - self.confined_command.keepers))

    def holders(self, ends: Ends, look: Look | None = None) -> list[int]:
        """The pids of those in the tree who hold one of these ends open."""
        look = look or Look()
        return holders(self.members(look), ends, look)

    def pulse(self, ends: Ends, look: Look | None = None) -> Pulse:
        """What those in the tree are doing who hold one of these ends open."""
        return pulse(self._shim_pid, ends, look)

    # The rest of its end.

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed anybody of the tree for want of memory."""
        return self._group is not None and self._group.ran_out_of_memory()

    def retire(self) -> None:
        """Release everything, and return the shim for another command: nobody is left of the tree."""
        if not self.released:
            self.released = True
            self._shim.release(quietly=True)
        self._give_back(usable=not self._killed)

    def close(self) -> None:
        """Release everything; the shim kills whatever is left of the tree.  May be called twice."""
        self._give_back(usable=False)

    def _give_back(self, *, usable: bool) -> None:
        take_back, self._take_back = self._take_back, None
        if take_back is None:
            return
        take_back(self._shim, usable=usable)
        self._shim = NO_SHIM  # By now it may be another command's.
        group, self._group = self._group, None
        if group is not None:
            group.remove()
