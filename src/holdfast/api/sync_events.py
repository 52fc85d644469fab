"""The synchronous twin of ``events``."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING

from holdfast.process_events import ProcessEvent

if TYPE_CHECKING:
    from . import events as asynchronous
    from .thread import LoopThread


class ProcessEvents(Iterator[ProcessEvent]):
    """Iterates over the events of a host.  The synchronous ``holdfast.api.events.ProcessEvents``."""

    def __init__(self, events: asynchronous.ProcessEvents, thread: LoopThread) -> None:
        self._events = events
        self._thread = thread

    def open(self) -> ProcessEvents:
        """Begin to listen; return these events.  What happens from now on is not missed."""
        self._thread.call(self._events.open())
        return self

    def close(self) -> None:
        """Listen no longer; an iteration ends after the events that it has.  May be called twice."""
        self._thread.call(self._events.aclose())

    def __enter__(self) -> ProcessEvents:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __next__(self) -> ProcessEvent:
        event = self._thread.call(_next(self._events, None))
        if event is None:
            raise StopIteration
        return event

    def next(self, *, timeout: float | None = None) -> ProcessEvent:
        """Wait for the next event.

        Args:
            timeout: Seconds; None is no bound.

        Raises:
            TimeoutError: There was none in time.
            StopIteration: These events, or their host, were closed.
            LinkLost: The server cannot be reached any more.
        """
        event = self._thread.call(_next(self._events, timeout))
        if event is None:
            raise StopIteration
        return event


async def _next(events: asynchronous.ProcessEvents, timeout: float | None) -> ProcessEvent | None:  # noqa: ASYNC109
    try:
        return await events.next(timeout=timeout)
    except StopAsyncIteration:
        return None
