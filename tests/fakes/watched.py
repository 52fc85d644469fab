"""A stand-in for a process that several watch, each with a valve of its own."""

from __future__ import annotations

from holdfast.backend import Valve, Watcher
from holdfast.model import Chunk, Exit, Leftovers, Stream
from tests.fakes.dialects import FakeProcess, exited


class OneOfMany:
    """Implements ``backend.Watch``."""

    def __init__(self, process: Watched, watcher: Watcher, valve: Valve | None) -> None:
        self._process = process
        self._watcher: Watcher | None = watcher
        self.valve = valve

    @property
    def watcher(self) -> Watcher:
        assert self._watcher is not None
        return self._watcher

    def stop(self) -> None:
        self._watcher = None  # Watchers hold their watches.
        self._process.watches = [watch for watch in self._process.watches if watch is not self]


class Watched(FakeProcess):
    """Tells everybody who watches, as a real process does."""

    def __init__(self) -> None:
        super().__init__()
        self.watches: list[OneOfMany] = []

    def watch(self, watcher: Watcher, valve: Valve | None = None) -> OneOfMany:  # type: ignore[override]
        watch = OneOfMany(self, watcher, valve)
        self.watches.append(watch)
        return watch

    @property
    def is_read(self) -> bool:
        """Whether no valve is shut."""
        return all(watch.valve is None or watch.valve.is_open for watch in self.watches)

    def say(self, data: bytes, stream: Stream = Stream.STDOUT) -> None:
        chunk = Chunk(self._number(), stream, data)
        for watch in list(self.watches):
            watch.watcher.output(chunk)

    def exit_with(self, code: int = 0, end: Exit | None = None) -> None:
        self.exit = end or exited(code)
        number = self._number()
        for watch in list(self.watches):
            watch.watcher.exited(number, self.exit)

    def close(self) -> None:
        self.closed = True
        number = self._number()
        for watch in list(self.watches):
            watch.watcher.closed(number)
        self.watches.clear()

    def forget(self, leftovers: Leftovers = Leftovers.SPARE) -> None:
        super().forget(leftovers)
        self.watches.clear()
