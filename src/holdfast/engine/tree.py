"""A command and everything it has started: news of them, signals to them, their end.

What must hold:

1. The end of the tree is told once, after the exit of the command.
2. After the first order to kill, and after the exit was heard, no signal goes to
   the command's number: it may be another's.
3. Nothing here takes longer because a tree is large: ``looking.py`` has the threads for that.
"""

from __future__ import annotations

import asyncio
import signal as signals
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from holdfast.host.holding import ends_of
from holdfast.host.tree import glance
from holdfast.model import Limits, Usage
from holdfast.reports import NEWS_EXITED, NEWS_LOST, Ends, Load, News, Report

from .children import NO_CHILD, Child
from .looking import Looking
from .recorder import EngineParts
from .watches import Waiting

if TYPE_CHECKING:
    from holdfast.host.input import InputEnd
    from holdfast.host.sandbox.confinement import ConfinedCommand

_PATIENCE = 3.0
"""Seconds for a shim to say who survived; it takes a third of them to be sure.  As many for a look."""


class File(Protocol):
    """One of our files."""

    def fileno(self) -> int: ...


class Root(Protocol):
    """The process that a tree belongs to."""

    @property
    def outputs(self) -> Iterable[File]:
        """Its outputs that are not at their end."""

    def must_wait(self) -> bool:
        """Whether the news of its exit has to wait; then ``Tree.resume`` is called later."""

    def exited(self, report: Report) -> None:
        """The command has ended, or is lost from sight."""

    def used(self, usage: Usage) -> None:
        """What the whole tree has used."""

    def survived(self) -> None:
        """It is known who cannot be ended."""

    def gone(self) -> None:
        """Nobody is left of the tree."""


class Tree:
    """A command and everything it has started, wherever that has gone.  Implements ``poller.Source``."""

    __slots__ = (
        "_child",
        "_heard_exit",
        "_looking",
        "_looks",
        "_loop",
        "_poller",
        "_root",
        "_timer",
        "_watched",
        "is_empty",
        "survivors",
    )

    def __init__(
        self,
        child: Child,
        root: Root,
        parts: EngineParts,
        *,
        heard_exit: bool = False,
    ) -> None:
        """``child`` runs, and the poller watches it; ``heard_exit`` if its exit was told before."""
        self._child: Child = child
        self._root = root
        self._loop = parts.loop
        self._poller = parts.poller
        self._looks = parts.looks
        self._looking: Looking | None = None
        self._heard_exit = heard_exit
        self.is_empty = False
        """Whether nobody is left, and its shim is still needed for what it holds."""
        self._watched = True
        self._timer: asyncio.TimerHandle | None = None
        self.survivors: Sequence[int] | None = None
        """Who could not be ended; None until that is known."""
        parts.poller.hand_over(child.fileno(), self)

    # News.

    def on_ready(self, events: int = 0) -> None:
        if not self._heard_exit and self._root.must_wait():
            self._unwatch()
            return
        report = self._child.receive()
        if report is None:
            return  # The poller spoke of a descriptor that had this number before.
        lost = report.news is NEWS_LOST
        if report.news is NEWS_EXITED or (lost and not self._heard_exit):
            # First, because what is written down of the exit must be there before the shim may forget it.
            if not self._heard_exit:
                self._heard_exit = True
                self._root.exited(report)
            # Here again if the shim has said it again, to a server that goes on after another.
            if lost or report.alone:
                self._let_go(lost=lost)
            else:
                self._child.release()
        elif report.news is News.SURVIVORS:
            self.survivors = report.pids
            self._root.survived()
        elif lost or report.news is News.EMPTY:
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

    def drop_outputs(self) -> None:
        """Nothing is read any more of what those who are left may write."""
        if self._child.is_held:
            self._child.drop_outputs()

    def outputs_ended(self) -> None:
        """Nothing of what its shim holds is needed any more, once nobody is left."""
        if self.is_empty:
            self._let_go(lost=False)

    def _let_go(self, *, lost: bool) -> None:
        """Nobody is left.  What ``Root.gone`` sees is the last news."""
        if not lost and self._child.is_held and any(True for _ in self._root.outputs):
            # The shim holds what was written and is not read yet, for a server that goes on after this one.
            self.is_empty, self.survivors = True, ()
            self._cancel()
            self._root.survived()
            return
        self._unwatch()
        self._cancel()
        sending = False
        if self._looking is not None:
            sending = self._looking.is_sending
            self._looking.end()
            self._looking = None
        if lost or sending:
            self._child.close()
        else:
            self._child.retire()
        self._child = NO_CHILD
        self.survivors = ()
        self._root.gone()

    # Written down, and read again.

    @property
    def killed_at(self) -> float | None:
        """When its grace is over, if it has one."""
        return None if self._timer is None else self._timer.when()

    def let_go(self) -> None:
        """Forget the child without ending it."""
        self._unwatch()
        self._cancel()
        if self._looking is not None:
            self._looking.end()
            self._looking = None
        self._child = NO_CHILD

    def kill_at(self, when: float, on_over: Callable[[], None], *, ask: bool) -> None:
        """Go on with a grace that began earlier; ``ask`` everybody to end if that was not done."""
        if ask:
            self._signal_all(signals.SIGTERM)
        self._timer = self._loop.call_at(when, on_over)

    # What is known of it.

    @property
    def gone(self) -> bool:
        """Whether nobody is left of it."""
        return self.is_empty or self._child is NO_CHILD

    @property
    def limits(self) -> Limits:
        return self._child.limits.limits

    @property
    def limits_to_watch(self) -> Limits:
        """What nobody but us sees to."""
        return self._child.limits.ours()

    def enforcers(self) -> dict[str, str]:
        """Who keeps which limit."""
        return self._child.limits.enforcers()

    def has_ended(self) -> bool:
        """Whether the command has ended."""
        return self._child.has_ended()

    def ran_out_of_memory(self) -> bool:
        return self._child.ran_out_of_memory()

    @property
    def confined_command(self) -> ConfinedCommand | None:
        return self._child.confined_command

    # What it takes time to find out.

    def _look(self) -> Looking:
        if self._looking is None:
            self._looking = Looking(self._child, self._looks)
        return self._looking

    def load(self, tell: Callable[[Load, float], None]) -> None:
        """Tell what it uses now, and how many seconds it took to find out; nothing once it is gone."""
        if not self.gone:
            self._look().ask(lambda look: (self._child.load(look), look.took), lambda found: tell(*found))

    def usage(self, tell: Callable[[Load | None, float], None]) -> None:
        """Tell what it uses, and how many seconds ago that was seen; None if nobody is left of it."""
        if self.gone:
            tell(None, 0.0)
        else:
            self._look().usage(tell)

    def holders(self, files: Iterable[File], tell: Callable[[Sequence[int]], None]) -> Sequence[int]:
        """Those who hold the other end of one of these files, as far as a glance shows.

        If there is more to look at, all of them are told later.
        """
        look_for, look = partial(self._child.holders, _ends(files)), glance()
        found = look_for(look)
        if look.cut and not self.gone:
            self._look().ask(look_for, tell)
        return found

    def pulse(self, files: Iterable[File], tell: Callable[[bool], None]) -> None:
        """Tell whether those who hold them are at work, or were since this was last asked.

        Of a tree that is gone it is told that they are not.
        """
        if self.gone:
            tell(False)
        else:
            self._look().pulse(_ends(files), tell)

    def input(self, end: InputEnd, tell: Callable[[bool | None], None]) -> None:
        """Tell whether anybody of it waits for input at ``end``; None if that is not known.

        Of a tree that has gone meanwhile it is told that nobody does.
        """
        self._look().input(end, tell)

    # Its end.

    def signal(self, number: int, *, all_of_it: bool) -> None:
        """Send a signal to the command's group, or to everybody."""
        if all_of_it and number == signals.SIGKILL:
            self._child.kill()  # Whoever is born meanwhile is not missed.
        elif all_of_it:
            self._signal_all(number)
        elif not self._heard_exit:
            self._child.signal(number)

    def _signal_all(self, number: int) -> None:
        sending = self._looking is not None and self._looking.is_sending
        if not self.gone and (sending or not self._child.signal_tree(number, glance(), partly=False)):
            self._look().signal(number)

    def stop(self, grace: float, on_over: Callable[[], None]) -> None:
        """Ask everybody to end, and call ``on_over`` after that many seconds unless nobody is left by then.

        A second call can only shorten the time.
        """
        if self.gone:
            return
        when = self._loop.time() + grace
        if self._timer is None:
            self._signal_all(signals.SIGTERM)
        elif when >= self._timer.when():
            return
        self._cancel()
        self._timer = self._loop.call_at(when, on_over)

    async def outlive(self, waiting: Waiting, killed: float) -> Sequence[int]:
        """Wait for the end of everybody; return who is left, as the shim says, or else by a look.

        Args:
            waiting: Those who are woken when ``Root.survived`` or ``Root.gone`` is called.
            killed: When everybody is killed at the latest.
        """
        deadline = killed + _PATIENCE
        await waiting.until(lambda: self.survivors is not None, deadline)
        seen: list[int] = []
        if self.survivors is None:

            def see(members: Sequence[int]) -> None:
                seen.extend(members)
                waiting.wake()

            self._look().ask(self._child.members, see)
            await waiting.until(lambda: bool(seen) or self.survivors is not None, deadline + _PATIENCE)
        return seen if self.survivors is None else self.survivors

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


def _ends(files: Iterable[File]) -> Ends:
    return ends_of([file.fileno() for file in files])


def _gone() -> Tree:
    tree = Tree.__new__(Tree)
    tree._child = NO_CHILD
    tree._heard_exit = True
    tree.is_empty = False
    tree._looking = None
    tree._timer = None
    tree._watched = False
    tree.survivors = ()
    return tree


GONE = _gone()
"""The tree of everybody of whom nobody is left."""
