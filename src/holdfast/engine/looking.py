"""Looks at trees of processes, in threads: how large a tree is, is for its command to decide.

What must hold:

1. The event loop never looks at more than a glance shows.
2. Of a tree that is gone nothing is told: its shim may watch over another one by then.
3. While a signal is on its way in a thread the tree's shim is not used again.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from holdfast.host.tree import Look, glance
from holdfast.reports import Ends, Load, Pulse

if TYPE_CHECKING:
    from holdfast.host.input import InputEnd

    from .children import Child
    from .workers import Workers

T = TypeVar("T")

LoadTaker = Callable[[Load | None, float], None]
"""Is given what a tree uses, and how many seconds ago that was seen; None if nobody is left."""

_FRESH = 0.1
"""Seconds for which a look at what a tree uses is good enough for whoever asks next."""

_SHARE = 20
"""A look at a large tree is good enough for longer: for so many times what it has taken."""

_THREADS = 4
"""Looks at once: a large tree takes a second, and others should not have to wait for it."""


class Looks:
    """The threads that look, for all trees of a backend."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._workers: Workers | None = None
        self._closed = False

    @property
    def now(self) -> float:
        """The time by the clock of the loop."""
        return self._loop.time()

    @property
    def busy(self) -> int:
        """Looks that were asked for and are not over."""
        return 0 if self._workers is None else self._workers.busy

    def ask(self, work: Callable[[Look], T], tell: Callable[[T | None], object]) -> Look:
        """Have ``work`` done in a thread, and ``tell`` called on the loop; with None if it was given up."""
        if self._workers is None:
            from .workers import Workers

            self._workers = Workers(_THREADS, self._loop, "holdfast-look")
        look, asker = Look(), threading.get_ident()

        def call() -> None:
            # Where the system has no thread for us this is called on the loop.
            found = work(look if threading.get_ident() != asker else glance())
            with suppress(RuntimeError):  # The loop is gone, and so is everybody who would be told.
                self._loop.call_soon_threadsafe(_tell, look, tell, found)

        self._workers.post(call)
        return look

    def close(self) -> None:
        """End the threads, each when its look is over.  May be called twice."""
        if self._workers is not None and not self._closed:
            self._closed = True
            self._workers.close()


def _tell(look: Look, tell: Callable[[T | None], object], found: T) -> None:
    tell(None if look.given_up else found)


class Looking:
    """Looks at one tree."""

    __slots__ = ("_asked", "_before", "_child", "_load", "_load_takers", "_looks", "_signals")

    def __init__(self, child: Child, looks: Looks) -> None:
        self._child = child
        self._looks = looks
        self._asked: set[Look] = set()
        self._before: Pulse | None = None
        self._load: tuple[Load, float, float] | None = None
        self._load_takers: list[LoadTaker] = []
        self._signals: list[int] = []

    def ask(self, work: Callable[[Look], T], tell: Callable[[T], object]) -> None:
        """Have ``work`` done in a thread, and ``tell`` given its result unless the tree is gone by then."""
        self._ask(work, lambda found: None if found is None else tell(found))

    def _ask(self, work: Callable[[Look], T], tell: Callable[[T | None], object]) -> None:
        def over(found: T | None) -> None:
            self._asked.discard(look)
            tell(found)

        look = self._looks.ask(work, over)
        self._asked.add(look)

    def pulse(self, ends: Ends, tell: Callable[[bool], None]) -> None:
        """Tell whether those are at work who hold one of ``ends``, or were since this was last asked."""

        def compare(pulse: Pulse | None) -> None:
            before, self._before = self._before, pulse
            tell(pulse is not None and not pulse.is_quiet_since(before))

        self._ask(partial(self._child.pulse, ends), compare)

    def usage(self, tell: LoadTaker) -> None:
        """Tell what the tree uses.  Whoever asks during a look, or soon after it, is told what it has shown.

        So clients that ask without end take one part in ``_SHARE`` of a thread for each tree, and no more.
        """
        if self._load is not None:
            load, seen, until = self._load
            if (now := self._looks.now) < until:
                tell(load, now - seen)
                return
        self._load_takers.append(tell)
        if len(self._load_takers) == 1:
            self._ask(lambda look: (self._child.load(look), look.took), self._loaded)

    def _loaded(self, found: tuple[Load, float] | None) -> None:
        takers, self._load_takers = self._load_takers, []
        if found is not None:
            now = self._looks.now
            self._load = found[0], now, now + max(_FRESH, _SHARE * found[1])
        for tell in takers:
            tell(None if found is None else found[0], 0.0)

    def input(self, end: InputEnd, tell: Callable[[bool | None], None]) -> None:
        """Tell whether anybody waits for input at ``end``; that nobody does once the tree is gone."""

        from holdfast.host.input import waits_for_input  # Most servers are never asked.

        def look_for(look: Look) -> tuple[bool | None]:
            return (waits_for_input(self._child.members(look), end, look),)

        self._ask(look_for, lambda found: tell(False if found is None else found[0]))

    def signal(self, number: int) -> None:
        """Send a signal to everybody, after those that are on their way.

        As with those that the kernel keeps for a process, there is one of each.
        """
        if number not in self._signals:
            self._signals.append(number)
            if len(self._signals) == 1:
                self._send()

    def _send(self) -> None:
        number = self._signals[0]
        self.ask(lambda look: self._child.signal_tree(number, look), self._sent)

    def _sent(self, done: bool) -> None:  # noqa: FBT001
        del self._signals[0]
        if self._signals:
            self._send()

    @property
    def is_sending(self) -> bool:
        """Whether a signal is on its way."""
        return bool(self._signals)

    def end(self) -> None:
        """Tell nothing any more."""
        for look in self._asked:
            look.give_up()
        self._asked.clear()
