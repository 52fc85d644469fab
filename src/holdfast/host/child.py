"""A command under its shim: news of it, signals to it, and its end."""

from __future__ import annotations

import contextlib
import errno
import os
import signal as signals
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.errors import SignalFailed, SpawnFailed
from holdfast.model import Stream
from holdfast.reports import (
    NEWS_DENIAL,
    NEWS_EXITED,
    NEWS_LOST,
    NEWS_STARTED,
    NO_LIMITS,
    Ends,
    EnforcedLimits,
    Load,
    Pulse,
    Report,
)
from holdfast.value import replace

from . import tree
from .holding import holders, pulse
from .limits import Group
from .orders import HeldPlace, StateReport
from .shim import NO_SHIM, Shim
from .tree import Look

if TYPE_CHECKING:
    from .sandbox.confinement import ConfinedCommand

_TO_GROUP = 4
"""``PIDFD_SIGNAL_PROCESS_GROUP``, which the kernel has from Linux 6.9 on."""


class ShimChild:
    """A command under a shim, from the order to start it.  Implements ``engine.children.Child``.

    The command runs once ``receive`` has returned ``STARTED``.  Whoever took the child owns ``stdin`` and
    ``outputs``, and closes them; ``close`` ends everything else.
    """

    __slots__ = (
        "_before_us",
        "_explain",
        "_group",
        "_has_exited",
        "_killed",
        "_shim",
        "_shim_pid",
        "_take_back",
        "confined_command",
        "is_held",
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
        limits: EnforcedLimits = NO_LIMITS,
        confined_command: ConfinedCommand | None = None,
        held: bool = False,
    ) -> None:
        """
        Args:
            explain: Turns the report of a failed start into an error.
            take_back: Gets the shim at the end, and as ``usable`` whether another command may have it.
            group: The control groups of the tree, which are removed at the end.
            limits: The limits of the tree, and who keeps them.
            confined_command: Gets the denials, if the command runs in a sandbox.
            held: Whether the shim holds ``stdin`` and ``outputs`` for the next server.
        """
        self._shim = shim
        self._take_back: Callable[..., None] | None = take_back
        self._shim_pid = 0
        self._before_us = 0
        self._explain: Callable[[Report], SpawnFailed] | None = explain
        self._group = group
        self.limits = limits
        self.confined_command = confined_command
        """What the sandbox has refused the command, if it runs in one."""
        self.pid = 0
        """The pid of the command, once it runs."""
        self.released = False
        """Whether the pid of the command may be another process's by now."""
        self._killed = self._has_exited = False
        self.is_held = held
        """Whether the shim holds the files of the command, which then outlives this server."""
        self.stdin = stdin
        self.outputs = outputs

    def resume(self, state: StateReport) -> None:
        """Go on with a command that another server has ordered, as its shim says."""
        self.pid, self._shim_pid = state.pid, state.shim
        self.released, self._killed = state.released, state.killed
        self._explain = None

    @property
    def cursor(self) -> int:
        """The descriptor whose offset says how far the output was taken.  It belongs to the shim."""
        assert self._shim.cursor is not None
        return self._shim.cursor

    def hold_input(self, cursor: int) -> None:
        """Have the shim hold the descriptor whose offset says how far the input was written."""
        self._shim.hold(HeldPlace.STDIN_CURSOR, cursor)

    def drop_input(self) -> None:
        """Have the shim close its copy of standard input, without which the command sees no end of it."""
        if not self._has_exited:
            self._shim.drop((HeldPlace.STDIN, HeldPlace.STDIN_CURSOR))

    def drop_outputs(self) -> None:
        """Have the shim close its copies of the outputs.  Whoever still writes to them fails from then on."""
        self._shim.drop((HeldPlace.STDOUT, HeldPlace.STDERR))

    def fileno(self) -> int:
        """Return the socket to the shim, which is readable when a report has come."""
        return self._shim.fileno()

    def hand_over(self) -> None:
        """Forget ``stdin`` and ``outputs``, which the caller has noted and will close."""
        self.stdin, self.outputs = None, ()

    def receive(self) -> Report | None:
        """Return the next report; None if none has come.  ``confined_command`` gets the denials instead."""
        report = self._shim.receive()
        while report is not None and report.news is NEWS_DENIAL:
            if self.confined_command is not None and report.denial is not None:
                self.confined_command.denials.append(report.denial)
            report = self._shim.receive()
        if report is not None and report.news is NEWS_STARTED:
            self.pid, self._shim_pid = report.value, report.shim
            if self.limits is not NO_LIMITS:
                self._before_us = tree.waited_us(self._shim_pid)
            self._explain = None
        elif report is not None and report.news is NEWS_EXITED:
            self._has_exited = report.alone  # Otherwise whoever is left may wait for the end of its input.
        elif report is not None and report.news is NEWS_LOST:
            self.released = True  # No shim keeps the pid from others any more.
        return report

    def failure(self, report: Report) -> SpawnFailed:
        """Return why the command does not run, given the report of that."""
        assert self._explain is not None
        return self._explain(report)

    # Signals.

    def signal(self, number: int) -> None:
        """Send a signal to the command's group.  Does nothing after ``release``.

        Until then the shim does not reap the command, so that nobody else gets its pid, which names the
        group.  But somebody may have killed the shim, and the report of that may not have come yet.

        Raises:
            SignalFailed: The system refused.
        """
        if self.released or not self.pid:
            return
        try:
            holder = os.pidfd_open(self.pid)
        except OSError:
            # Most often for want of descriptors.  If there is no such process, there is no shim either.
            self._shim.signal(number)
            return
        try:
            # Only now, after the pid is held: if the shim is there, the pid was the command's.
            if self._shim.is_there():
                self._signal_held(holder, number)
        except ProcessLookupError:
            pass  # Every process of the group has ended and waits to be reaped.
        except OSError as error:
            raise SignalFailed(error.strerror or str(error)) from error
        finally:
            os.close(holder)

    def _signal_held(self, holder: int, number: int) -> None:
        """Send a signal to the group of a process, given a descriptor that holds its pid."""
        try:
            signals.pidfd_send_signal(holder, number, None, _TO_GROUP)
        except OSError as error:
            if error.errno != errno.EINVAL or not 0 <= number < signals.NSIG:
                raise
            # An older kernel cannot signal a group by a descriptor.  The shim sends the signal a bit later;
            # signal 0 finds out whether that is permitted.
            signals.pidfd_send_signal(holder, 0)
            self._shim.signal(number)

    def signal_tree(self, number: int, look: Look | None = None, *, partly: bool = True) -> bool:
        """Send a signal once to every process of the tree, as ``tree.signal_all`` does; return the same."""
        if not self._shim_pid:
            return True
        return tree.signal_all(self._shim_pid, number, self._shim.is_there, look, partly=partly)

    def has_ended(self) -> bool:
        """Whether the command has ended.  The report of that may not have come yet."""
        return self.released or not tree.is_alive(self.pid)

    # The end.

    def kill(self) -> None:
        """Kill the whole tree; reports of that follow.  From now on the pid may be another process's."""
        with contextlib.suppress(SignalFailed):
            # The group at once: the shim, which kills everybody, has to wake up and to look for them first.
            self.signal(signals.SIGKILL)
        self.released = self._killed = True
        self._shim.kill()

    def release(self) -> None:
        """Let the shim reap the command, after the report of its exit."""
        if not self.released:
            self.released = True
            self._shim.release()

    def kill_leftovers(self) -> None:
        """Have the shim kill what is left of the command's group: only the shim knows the group for sure."""
        self._shim.signal(signals.SIGKILL)

    # Questions that take the longer the larger the tree is.  They may be asked in a thread.

    def members(self, look: Look | None = None) -> list[int]:
        """Return the pids of the processes that are in the tree now."""
        found = tree.below(self._shim_pid, look) if self._shim_pid else []
        return found if self._shim.is_there() else []

    def load(self, look: Look | None = None) -> Load:
        """Return what the tree uses now.  Processes that only keep its sandbox are not counted."""
        load = tree.load(self._shim_pid, look, before_us=self._before_us)
        if self.confined_command is None:
            return load
        return replace(load, processes=max(0, load.processes - self.confined_command.enforcers))

    def holders(self, ends: Ends, look: Look | None = None) -> list[int]:
        """Return the pids of the processes in the tree that hold one of these ends open."""
        look = look or Look()
        return holders(self.members(look), ends, look)

    def pulse(self, ends: Ends, look: Look | None = None) -> Pulse:
        """Return what the processes in the tree are doing that hold one of these ends open."""
        return pulse(self._shim_pid, ends, look)

    # The end of the tree.

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel has killed a process of the tree because its group ran out of memory."""
        return self._group is not None and self._group.ran_out_of_memory()

    def retire(self) -> None:
        """Release everything, and give the shim back.  No process of the tree may be left."""
        # A shim that holds files keeps them, after it was released, until it is told once more.
        if self.is_held or not self.released:
            self.released = True
            self._shim.release(quietly=True)
        self._give_back(usable=not self._killed)

    def close(self) -> None:
        """Release everything.  The shim kills what is left of the tree, and ends.  May be called twice."""
        self._give_back(usable=False)

    def _give_back(self, *, usable: bool) -> None:
        take_back, self._take_back = self._take_back, None
        if take_back is None:
            return
        take_back(self._shim, usable=usable)
        self._shim = NO_SHIM  # The shim may have another command by now.
        group, self._group = self._group, None
        if group is not None:
            group.remove()
