"""A command and everything it has started: news of them, signals to them, their end.

What must hold:

1. The end of the tree is told once, after the exit of the command.
2. After the first order to kill, and after the exit was heard, no signal goes to
   the command's number: it may be another's.
"""

from __future__ import annotations

import asyncio
import signal as signals
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from holdfast.host.orders import News, Report
from holdfast.host.tree import Load
from holdfast.model import Limits, Usage
from holdfast.poller import Poller

from .children import NO_CHILD, Child

if TYPE_CHECKING:
    from holdfast.host.sandbox.cage import Caged


class Root(Protocol):
    """The process that a tree belongs to."""

    def must_wait(self) -> bool:
        """Whether the news of its exit has to wait; then ``Tree.resume`` is called later."""

    def exited(self, report: Report) -> None:
        """The command has ended, or is lost from sight."""

    def used(self, usage: Usage) -> None:
        """What the whole tree has used."""

    def changed(self) -> None:
        """Nobody is left of the tree, or it is known who cannot be ended."""


class Tree:
    """Implements ``poller.Source``."""

    __slots__ = ("_child", "_heard_exit", "_loop", "_poller", "_root", "_timer", "_watched", "survivors")

    def __init__(self, child: Child, root: Root, *, loop: asyncio.AbstractEventLoop, poller: Poller) -> None:
        """``child`` runs, and the poller watches it."""
        self._child: Child = child
        self._root = root
        self._loop = loop
        self._poller = poller
        self._heard_exit = False
        self._watched = True
        self._timer: asyncio.TimerHandle | None = None
        self.survivors: Sequence[int] | None = None
        """Who could not be ended; None until that is known."""
        poller.hand_over(child.fileno(), self)

    # News.

    def on_ready(self, events: int = 0) -> None:
        if not self._heard_exit and self._root.must_wait():
            self._unwatch()
            return
        report = self._child.hear()
        if report is None:
            return  # The poller spoke of a descriptor that had this number before.
        lost = report.news is News.LOST
        if report.news is News.EXITED or (lost and not self._heard_exit):
            self._heard_exit = True
            gone = lost or report.alone
            if not gone:
                # First: somebody of the tree may wait for the command to be reaped.
                self._child.release()
            self._root.exited(report)
            if gone:
                self._let_go(lost=lost)
        elif report.news is News.SURVIVORS:
            self.survivors = report.pids
            self._root.changed()
        else:
            if report.usage is not None:
                self._root.used(report.usage)
            self._let_go(lost=lost)

    def resume(self) -> None:
        """Hear the news again, whatever held it up."""
        if not self._watched and self._child is not NO_CHILD:
            self._watched = True
            self._poller.add_again(self._child.fileno(), self)

    def _unwatch(self) -> None:
        if self._watched:
            self._watched = False
            self._poller.remove(self._child.fileno())

    def _let_go(self, *, lost: bool) -> None:
        """Nobody is left.  What ``Root.changed`` sees is the last news."""
        self._unwatch()
        self._cancel()
        if lost:
            self._child.close()
        else:
            self._child.retire()
        self._child = NO_CHILD
        self.survivors = ()
        self._root.changed()

    # What is known of it.

    @property
    def gone(self) -> bool:
        return self._child is NO_CHILD

    @property
    def limits(self) -> Limits:
        return self._child.limits.limits

    @property
    def limits_to_watch(self) -> Limits:
        """What nobody but us sees to."""
        return self._child.limits.ours()

    def keepers(self) -> dict[str, str]:
        """Who keeps which limit."""
        return self._child.limits.keepers()

    def has_ended(self) -> bool:
        """Whether the command has ended."""
        return self._child.has_ended()

    def ran_out_of_memory(self) -> bool:
        return self._child.ran_out_of_memory()

    @property
    def caged(self) -> Caged | None:
        return self._child.caged

    def load(self) -> Load:
        return self._child.load()

    def members(self) -> list[int]:
        return self._child.members()

    def holders(self, files: Sequence[int]) -> list[int]:
        """Who in the tree holds the other end of one of these descriptors."""
        return self._child.holders(files)

    # Its end.

    def signal(self, number: int, *, all_of_it: bool) -> None:
        """Send a signal to the command's group, or to everybody."""
        if all_of_it and number == signals.SIGKILL:
            self._child.kill()  # Whoever is born meanwhile is not missed.
        elif all_of_it:
            self._child.signal_tree(number)
        elif not self._heard_exit:
            self._child.signal(number)

    def stop(self, grace: float, on_over: Callable[[], None]) -> None:
        """Ask everybody to end, and call ``on_over`` after that many seconds unless nobody is left by then.

        A second call can only shorten the time.
        """
        if self.gone:
            return
        when = self._loop.time() + grace
        if self._timer is None:
            self._child.signal_tree(signals.SIGTERM)
        elif when >= self._timer.when():
            return
        self._cancel()
        self._timer = self._loop.call_at(when, on_over)

    def kill(self) -> None:
        """End everybody now."""
        self._cancel()
        self._child.kill()

    def kill_group(self) -> None:
        """End those who stayed in the group of the command, after its exit."""
        self._child.kill_leftovers()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _gone() -> Tree:
    tree = Tree.__new__(Tree)
    tree._child = NO_CHILD
    tree._heard_exit = True
    tree._timer = None
    tree._watched = False
    tree.survivors = ()
    return tree


GONE = _gone()
"""The tree of everybody of whom nobody is left."""
