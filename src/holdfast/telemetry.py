"""What is counted and timed, as an object that is handed in (pure).

The names are those of the specification.  Exporters live elsewhere; the server
only knows this interface.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol


class Telemetry(Protocol):
    """Told of connections, requests and processes as they come and go.

    Durations are in seconds.  Calls neither wait nor raise.
    """

    recording: bool
    """False when nobody listens: then nothing needs to be timed."""

    def connection_opened(self, transport: str) -> None:
        """``transport`` is ``websocket`` or ``stdio``."""

    def connection_closed(self, transport: str) -> None: ...

    def request_done(self, method: str, result: str, *, queued: float, handled: float) -> None:
        """``method`` is ``unknown`` for one we do not have; ``result`` is ``success``,
        ``error`` or ``disconnected``.  The request's total is the sum of both times."""

    def process_started(self) -> None: ...

    def process_finished(self, result: str, seconds: float) -> None:
        """``result`` is ``success`` (exit code 0), ``error``, ``terminated`` or ``unknown``."""


class Silent:
    """Nobody listens."""

    recording = False

    def connection_opened(self, transport: str) -> None:
        pass

    def connection_closed(self, transport: str) -> None:
        pass

    def request_done(self, method: str, result: str, *, queued: float, handled: float) -> None:
        pass

    def process_started(self) -> None:
        pass

    def process_finished(self, result: str, seconds: float) -> None:
        pass


BOUNDS = (
    0.0, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0,
    2.5, 5.0, 7.5, 10.0, 12.0, 15.0, 20.0, 30.0, 60.0, 120.0,
)  # fmt: skip
"""Upper bounds of the buckets of every duration."""


class Tally:
    """Keeps the figures in memory, under the names and labels of the specification."""

    recording = True

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, ...]] = Counter()
        """Counters and gauges: (metric, label values...) -> value."""
        self.durations: dict[tuple[str, ...], list[int]] = {}
        """Histograms: (metric, label values...) -> a count per bucket, the last unbounded."""
        for transport in ("websocket", "stdio", "relay"):
            self.counts["exec_server_connections_active", transport] = 0
        self.counts["exec_server_processes_active",] = 0

    def connection_opened(self, transport: str) -> None:
        self.counts["exec_server_connections_active", transport] += 1
        self.counts["exec_server_connections_total", transport] += 1

    def connection_closed(self, transport: str) -> None:
        self.counts["exec_server_connections_active", transport] -= 1

    def request_done(self, method: str, result: str, *, queued: float, handled: float) -> None:
        self.counts["exec_server_requests_total", method, result] += 1
        self._time(handled, "exec_server_request_duration_seconds", method, result)
        self._time(queued, "exec_server_request_queue_duration_seconds", method)
        self._time(queued + handled, "exec_server_request_total_duration_seconds", method, result)

    def process_started(self) -> None:
        self.counts["exec_server_processes_active",] += 1

    def process_finished(self, result: str, seconds: float) -> None:
        self.counts["exec_server_processes_active",] -= 1
        self.counts["exec_server_processes_finished_total", result] += 1
        self._time(seconds, "exec_server_process_duration_seconds", result)

    def _time(self, seconds: float, *key: str) -> None:
        buckets = self.durations.setdefault(key, [0] * (len(BOUNDS) + 1))
        for index, bound in enumerate(BOUNDS):
            if seconds <= bound:
                buckets[index] += 1
                return
        buckets[-1] += 1
