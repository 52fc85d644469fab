"""Tells who owns a descriptor when it is ready: one epoll for pipes, terminals, ends and sockets.

An event loop's own way costs two objects per descriptor and a trip through its
queue per event.  Here a descriptor costs one dictionary entry and an event one
call, and what a batch of events leads to, like bytes for the same socket, is
done once at the end of the batch.

A poller either sits behind any event loop as a single descriptor (``attach``),
or has a loop made for it (``new_loop``), which has no turn between two batches of
events unless one of them gave it something to do.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import select
import selectors
from collections.abc import Callable, Mapping
from contextvars import Context
from time import monotonic
from typing import Any, Protocol, TypeVarTuple

from .stalls import Stalls

_log = logging.getLogger(__name__)

READABLE = select.EPOLLIN
WRITABLE = select.EPOLLOUT
NEWS_ONLY = select.EPOLLET
"""Tell each thing once, and not for as long as it is so."""

_RETRY = 0.05
"""Seconds until it is tried again to watch what the system had no room for."""

_BATCH = 256
"""Events taken per round, so that floods leave room for everybody else."""


class Source(Protocol):
    """The owner of a descriptor that the poller watches."""

    def on_ready(self, events: int) -> None:
        """The descriptor is ready, or it was a moment ago: do not block."""


class Poller:
    """Watches descriptors with one epoll, and calls the source of each that is ready (level-triggered)."""

    def __init__(self) -> None:
        self.epoll = select.epoll()
        self._sources: dict[int, Source] = {}
        self._postponed: dict[int, tuple[Source, int]] = {}
        self._deferred: list[Callable[[], None]] = []
        self._dispatching = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self.stalls = Stalls()
        """Told who took how long."""
        self.dispatched_at = 0.0
        """When the last batch of events was over, by the clock that never goes back."""

    # Descriptors.

    def add(self, fd: int, source: Source, events: int = READABLE) -> None:
        """Watch a descriptor.

        Raises:
            OSError: The system has no room for it.
        """
        self.epoll.register(fd, events)
        self._sources[fd] = source

    def add_again(self, fd: int, source: Source, events: int = READABLE) -> None:
        """Watch one that was watched before, as soon as the system has room for it."""
        try:
            self.add(fd, source, events)
        except OSError:
            if not self._postponed:
                asyncio.get_running_loop().call_later(_RETRY, self._add_postponed)
            self._postponed[fd] = source, events

    def _add_postponed(self) -> None:
        postponed, self._postponed = self._postponed, {}
        for fd, (source, events) in postponed.items():
            self.add_again(fd, source, events)

    def modify(self, fd: int, events: int) -> None:
        if fd in self._postponed:
            self._postponed[fd] = self._postponed[fd][0], events
        else:
            self.epoll.modify(fd, events)

    def hand_over(self, fd: int, source: Source) -> None:
        """Call ``source`` for this descriptor from now on, instead of the source before."""
        self._sources[fd] = source

    def remove(self, fd: int) -> None:
        """Stop watching, if it is watched.  Must come before the descriptor is closed."""
        if self._postponed.pop(fd, None) is None and self._sources.pop(fd, None) is not None:
            with contextlib.suppress(OSError):  # What is told of it nobody hears any more.
                self.epoll.unregister(fd)

    # Events.

    def defer(self, work: Callable[[], None]) -> None:
        """Do ``work`` at the end of this batch of events, or soon if there is none."""
        if not self._dispatching and not self._deferred:
            asyncio.get_running_loop().call_soon(self._finish)
        self._deferred.append(work)

    def dispatch(self, events: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Call the sources of events; return the events of descriptors that have no source."""
        others = []
        sources, stalls = self._sources, self.stalls
        self._dispatching = True
        before = monotonic()
        for fd, event in events:
            # A source called earlier in this batch may have removed this one, and a
            # new one may have got its number: that one then finds nothing to do.
            source = sources.get(fd)
            if source is None:
                others.append((fd, event))
                continue
            stalls.doing = ""
            try:
                source.on_ready(event)
            except Exception:  # noqa: BLE001  (one source's failure must not end the loop of all)
                _log.exception("a source failed")
            after = monotonic()
            if after - before > stalls.bar:
                stalls.saw(after - before, source)
            before = after
        self.dispatched_at = before
        self._dispatching = False
        if self._deferred:
            self._finish()
        return others

    def _finish(self) -> None:
        deferred, self._deferred = self._deferred, []
        stalls, before = self.stalls, monotonic()
        for work in deferred:
            stalls.doing = ""
            try:
                work()
            except Exception:  # noqa: BLE001  (the same)
                _log.exception("deferred work failed")
            after = monotonic()
            if after - before > stalls.bar:
                stalls.saw(after - before, work)
            before = after
        self.dispatched_at = before

    # Where events come from.

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Be one descriptor among others of ``loop``, whatever loop it is."""
        self._loop = loop
        loop.add_reader(self.epoll.fileno(), self._poll)

    def _poll(self) -> None:
        self.dispatch(self.epoll.poll(0, _BATCH))

    def new_loop(self) -> PollerLoop:
        """Make an event loop that has this poller for its selector."""
        return PollerLoop(self)

    def close(self) -> None:
        """Watch nothing any more."""
        if self._loop is not None:
            self._loop.remove_reader(self.epoll.fileno())
            self.epoll.close()


Ts = TypeVarTuple("Ts")


class PollerLoop(asyncio.SelectorEventLoop):
    """An event loop with a poller.

    A turn of a loop costs a sixth of what a short request costs, and most events are no business of the
    loop: they give it neither a callback to call nor a timer to wait for.  Its selector is told here of both,
    and goes on by itself until there is one.
    """

    def __init__(self, poller: Poller) -> None:
        self._sources = LoopSelector(poller)
        super().__init__(self._sources)

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        self._sources.is_wanted = True
        return _call_soon(self, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        self._sources.is_wanted = True
        return _call_at(self, when, callback, *args, context=context)

    def stop(self) -> None:
        self._sources.is_wanted = True
        super().stop()


_call_soon = asyncio.SelectorEventLoop.call_soon
_call_at = asyncio.SelectorEventLoop.call_at


class LoopSelector(selectors.BaseSelector):
    """An event loop's selector that serves a poller's sources on the way."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self._epoll = poller.epoll
        self._keys: dict[int, selectors.SelectorKey] = {}
        self._since = math.inf  # There was no turn yet.
        self.is_wanted = False
        """Whether the loop was given something to do since it last looked for events."""

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, _number(fileobj), events, data)
        self._epoll.register(key.fd, _to_epoll(events))
        self._keys[key.fd] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        key = self._keys.pop(_number(fileobj))
        self._epoll.unregister(key.fd)
        return key

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, _number(fileobj), events, data)
        self._epoll.modify(key.fd, _to_epoll(events))
        self._keys[key.fd] = key
        return key

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        poller, now = self._poller, monotonic()
        stalls, took = poller.stalls, now - self._since
        if took > stalls.bar:
            stalls.saw(took, "tasks and timers of one turn")
        end = math.inf if timeout is None else now + timeout
        self.is_wanted = False
        while True:
            # Rounded up to what epoll knows, or this would turn until the time has come.
            left = end - now
            wait = -1.0 if left == math.inf else math.ceil(left * 1e3) * 1e-3 if left > 0.0 else 0.0
            events = self._epoll.poll(wait, _BATCH)
            others = poller.dispatch(events)
            now = poller.dispatched_at
            if others or self.is_wanted or not events or now >= end:
                break
        stalls.doing = ""
        self._since = now
        return [
            (key, _from_epoll(event) & key.events)
            for fd, event in others
            if (key := self._keys.get(fd)) is not None
        ]

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._keys

    def get_key(self, fileobj: Any) -> selectors.SelectorKey:
        return self._keys[_number(fileobj)]

    def close(self) -> None:
        self._keys.clear()
        self._epoll.close()


def _number(fileobj: Any) -> int:
    return fileobj if isinstance(fileobj, int) else int(fileobj.fileno())


def _to_epoll(events: int) -> int:
    return (READABLE if events & selectors.EVENT_READ else 0) | (
        WRITABLE if events & selectors.EVENT_WRITE else 0
    )


def _from_epoll(events: int) -> int:
    # An error or a hang-up is for whoever waits, in whichever direction.
    return (selectors.EVENT_READ if events & ~WRITABLE else 0) | (
        selectors.EVENT_WRITE if events & ~READABLE else 0
    )
