"""Who waits for which news of files: one inotify for everybody, because a host has few of them."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.host.files.watch import APPEARS, IN_IGNORED, IN_Q_OVERFLOW, Event, Inotify, Plan
from holdfast.poller import Poller


class LocalWatch:
    """Somebody who waits.  Implements ``files.FileWatch``."""

    __slots__ = ("_told", "_watching", "interests")

    def __init__(self, watching: Watching, told: Callable[[], None]) -> None:
        self._watching = watching
        self._told: Callable[[], None] | None = told
        self.interests: dict[int, tuple[int, frozenset[bytes]]] = {}
        """By the kernel's number: what may happen, and the names that may appear."""

    def fire(self) -> None:
        told = self._told
        self.stop()
        if told is not None:
            told()

    def stop(self) -> None:
        self._told = None
        self._watching.drop(self)


class Watching:
    """All watches of a backend."""

    def __init__(self, poller: Poller) -> None:
        self._poller = poller
        self._inotify: Inotify | None = None
        self._waiting: dict[int, set[LocalWatch]] = {}

    def add(self, plan: Plan, told: Callable[[], None]) -> LocalWatch:
        """Watch what the plan says, which is closed.  ``told`` is called once at the most.

        Raises:
            OSError: The kernel has no more watches.
        """
        watch = LocalWatch(self, told)
        try:
            inotify = self._inotify or self._open()
            for target in plan.targets.values():
                number = inotify.add(target.fd, target.mask)
                self._waiting.setdefault(number, set()).add(watch)
                mask, names = watch.interests.get(number, (0, frozenset()))
                watch.interests[number] = (mask | target.mask, names | target.names)
        except BaseException:
            watch.stop()
            raise
        finally:
            plan.close()
        return watch

    def _open(self) -> Inotify:
        self._inotify = inotify = Inotify()
        self._poller.add(inotify.fd, self)
        return inotify

    def on_ready(self, events: int) -> None:
        """Implements ``poller.Source``."""
        if self._inotify is not None:
            for event in self._inotify.read():
                self._on_event(event)

    def _on_event(self, event: Event) -> None:
        if event.mask & IN_Q_OVERFLOW:
            for watch in {watch for waiting in self._waiting.values() for watch in waiting}:
                watch.fire()
            return
        for watch in list(self._waiting.get(event.watch, ())):
            mask, names = watch.interests[event.watch]
            if event.name in names if event.mask & APPEARS else event.mask & (mask | IN_IGNORED):
                watch.fire()

    def drop(self, watch: LocalWatch) -> None:
        """Watch no longer what only this one waited for."""
        interests, watch.interests = watch.interests, {}
        for number in interests:
            waiting = self._waiting[number]
            waiting.discard(watch)
            if not waiting:
                del self._waiting[number]
                if self._inotify is not None:
                    self._inotify.remove(number)

    def close(self) -> None:
        """Tell nobody anything any more."""
        inotify, self._inotify = self._inotify, None
        if inotify is not None:
            self._poller.remove(inotify.fd)
            inotify.close()
        for watch in {watch for waiting in self._waiting.values() for watch in waiting}:
            watch.stop()
