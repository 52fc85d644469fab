"""Who is told what a process does."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from holdfast.backend import Valve, Watcher
from holdfast.model import Chunk, Exit, Stream

if TYPE_CHECKING:
    from .process import LocalProcess

_log = logging.getLogger(__name__)


class LocalWatch:
    """One watcher's hold on one process.  Implements ``backend.Watch``."""

    __slots__ = ("_process", "valve", "watcher")

    def __init__(self, process: LocalProcess, watcher: Watcher, valve: Valve | None) -> None:
        self._process: LocalProcess | None = process
        self.watcher = watcher
        self.valve = valve

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.drop(self)
            # A watcher usually holds its watch: what knows each other in a circle is
            # not freed when it is no longer needed, but when somebody looks for it.
            self.watcher = _NOBODY

    def fail(self) -> None:
        if self._process is not None:
            _log.exception("a watcher of process %d failed and is removed", self._process.pid)
        self.stop()


class _Nobody:
    """The watcher of a watch that was stopped."""

    def output(self, chunk: Chunk) -> None:
        pass

    def ended(self, stream: Stream) -> None:
        pass

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        pass

    def closed(self, seq: int) -> None:
        pass


_NOBODY = _Nobody()
