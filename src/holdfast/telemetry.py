"""What is counted and timed, as an object that is handed in.

The names are those of the specification; figures that it does not have begin
with ``holdfast_``.  Exporters live elsewhere; the server only knows this interface.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from itertools import chain
from typing import Protocol

from .model import Exit, Spec
from .principal import Principal
from .stalls import Stalls
from .tracing import Tracer
from .value import value

_log = logging.getLogger(__name__)


class Telemetry(Protocol):
    """Is told of connections, requests and processes as they come and go.

    Durations are in seconds.  Calls neither wait nor raise.
    """

    recording: bool
    """False when nobody listens: then nothing needs to be timed."""
    tracer: Tracer | None
    """Makes the spans of requests; None if they have none."""
    stalls: Stalls
    """Told which method is being worked on, whoever listens: it is for the log too."""

    def connection_opened(self, transport: str) -> None:
        """``transport`` is ``websocket`` or ``stdio``."""

    def connection_closed(self, transport: str) -> None: ...

    def request_done(self, method: str, result: str, *, queued: float, handled: float) -> None:
        """``method`` is ``unknown`` for one we do not have; ``result`` is ``success``,
        ``error`` or ``disconnected``.  The request's total is the sum of both times."""

    def process_started(self) -> None: ...

    def process_finished(self, result: str, seconds: float) -> None:
        """``result`` is ``success`` (exit code 0), ``error``, ``terminated`` or ``unknown``."""

    def limit_reached(self, limit: str) -> None:
        """Count a refusal because of a limit; ``limit`` is a name of ours, never text of a client."""

    def authenticated(self, result: str) -> None:
        """Count a client that asked to connect; ``result`` is ``accepted``, or why it was refused."""

    def audit_failed(self) -> None:
        """Count an entry that could not be written to the audit log."""

    def webhook_done(self, result: str) -> None:
        """Count what became of an end for a webhook; ``result`` is as in ``WEBHOOKS``."""


class Silent:
    """A telemetry that records nothing, for servers without metrics and traces.  Implements ``Telemetry``."""

    recording = False
    tracer: Tracer | None = None

    def __init__(self, stalls: Stalls | None = None) -> None:
        self.stalls = stalls or Stalls()

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

    def limit_reached(self, limit: str) -> None:
        pass

    def authenticated(self, result: str) -> None:
        pass

    def audit_failed(self) -> None:
        pass

    def webhook_done(self, result: str) -> None:
        pass


# What there is.


class MetricKind(Enum):
    """What the figures of a metric mean."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@value
class Metric:
    """One figure, or one for every combination of its labels."""

    name: str
    kind: MetricKind
    labels: tuple[str, ...]
    help: str


CONNECTIONS_ACTIVE = Metric(
    "exec_server_connections_active", MetricKind.GAUGE, ("transport",), "Connections that are open."
)
CONNECTIONS = Metric(
    "exec_server_connections_total", MetricKind.COUNTER, ("transport",), "Connections that were accepted."
)
REQUESTS = Metric(
    "exec_server_requests_total", MetricKind.COUNTER, ("method", "result"), "Requests that were answered."
)
REQUEST_SECONDS = Metric(
    "exec_server_request_duration_seconds",
    MetricKind.HISTOGRAM,
    ("method", "result"),
    "Time from the start of a request's handler until the answer was queued.",
)
QUEUE_SECONDS = Metric(
    "exec_server_request_queue_duration_seconds",
    MetricKind.HISTOGRAM,
    ("method",),
    "Time from the receipt of a request to the start of its handler.",
)
TOTAL_SECONDS = Metric(
    "exec_server_request_total_duration_seconds",
    MetricKind.HISTOGRAM,
    ("method", "result"),
    "Time from the receipt of a request until the answer was queued.",
)
PROCESSES_ACTIVE = Metric("exec_server_processes_active", MetricKind.GAUGE, (), "Processes that run.")
PROCESSES = Metric(
    "exec_server_processes_finished_total", MetricKind.COUNTER, ("result",), "Processes that have ended."
)
PROCESS_SECONDS = Metric(
    "exec_server_process_duration_seconds",
    MetricKind.HISTOGRAM,
    ("result",),
    "How long ended processes have run.",
)
REFUSALS = Metric(
    "holdfast_limit_refusals_total", MetricKind.COUNTER, ("limit",), "Refusals because a limit was reached."
)
AUTHENTICATIONS = Metric(
    "holdfast_auth_total", MetricKind.COUNTER, ("result",), "Attempts to get in: accepted, or why not."
)
AUDIT_FAILURES = Metric(
    "holdfast_audit_failures_total",
    MetricKind.COUNTER,
    (),
    "Records of the audit log that could not be written.",
)
WEBHOOKS = Metric(
    "holdfast_webhooks_total",
    MetricKind.COUNTER,
    ("result",),
    "Ends of processes for webhooks: delivered, retried, failed (for good) or dropped (too many waited).",
)
LOOP_LONGEST = Metric(
    "holdfast_loop_longest_seconds",
    MetricKind.GAUGE,
    (),
    "The longest time that one callback held the event loop since these figures were last read.",
)

METRICS = (
    CONNECTIONS_ACTIVE,
    CONNECTIONS,
    REQUESTS,
    REQUEST_SECONDS,
    QUEUE_SECONDS,
    TOTAL_SECONDS,
    PROCESSES_ACTIVE,
    PROCESSES,
    PROCESS_SECONDS,
    REFUSALS,
    AUTHENTICATIONS,
    AUDIT_FAILURES,
    WEBHOOKS,
    LOOP_LONGEST,
)
"""What every tally has; observed figures come on top."""

BOUNDS = (
    0.0, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0,
    2.5, 5.0, 7.5, 10.0, 12.0, 15.0, 20.0, 30.0, 60.0, 120.0,
)  # fmt: skip
"""Upper bounds of the buckets of every duration."""


# The register.


@value
class Durations:
    """How often something took how long."""

    buckets: tuple[int, ...]
    """A count per bound, not summed up; one more for what is beyond the last."""
    sum: float

    @property
    def count(self) -> int:
        return sum(self.buckets)


Labels = tuple[str, ...]
"""Values of labels, in the order of the metric's."""

Read = Callable[[], Mapping[Labels, float]]


@value
class MetricFamily:
    """A metric and its figures at one moment."""

    metric: Metric
    figures: Mapping[Labels, float | Durations]


_SUM = len(BOUNDS) + 1

_Times = list[float]
"""Durations as they are counted: a count per bucket, then their sum.  Nothing is faster to add to."""


def _times() -> _Times:
    return [*[0] * _SUM, 0.0]


def _add(times: _Times, seconds: float) -> None:
    times[bisect_left(BOUNDS, seconds)] += 1
    times[_SUM] += seconds


def _now(times: _Times) -> Durations:
    return Durations(tuple(map(int, times[:_SUM])), times[_SUM])


class Tally:
    """Keeps the figures in memory, under the names and labels of the specification.

    The one source of all exporters.  What is called for every request looks up
    and adds; what is asked for once in a while is worked out then.
    """

    recording = True

    def __init__(self, tracer: Tracer | None = None, stalls: Stalls | None = None) -> None:
        self.tracer = tracer
        self.stalls = stalls or Stalls()
        self._connections = dict.fromkeys(("websocket", "stdio", "relay"), 0)
        self._accepted = dict.fromkeys(self._connections, 0)
        # (method, result) -> handled, queued, total.  How often is in the first.
        self._requests: dict[tuple[str, str], tuple[_Times, _Times, _Times]] = {}
        self._queued: dict[str, _Times] = {}
        self._processes = 0
        self._ended = {result: _times() for result in ("success", "error", "terminated", "unknown")}
        self._refusals: dict[str, int] = {}
        self._authentications: dict[str, int] = {}
        self._audit_failures = 0
        self._webhooks: dict[str, int] = {}
        self._observed: dict[str, tuple[Metric, list[Read]]] = {}

    # The hot path.

    def request_done(self, method: str, result: str, *, queued: float, handled: float) -> None:
        times = self._requests.get((method, result))
        if times is None:
            queue = self._queued.setdefault(method, _times())
            times = self._requests[method, result] = (_times(), queue, _times())
        own, queue, total = times
        # Without a call for each: this is half of what it costs to count.
        own[bisect_left(BOUNDS, handled)] += 1
        own[_SUM] += handled
        queue[bisect_left(BOUNDS, queued)] += 1
        queue[_SUM] += queued
        both = queued + handled
        total[bisect_left(BOUNDS, both)] += 1
        total[_SUM] += both

    # What is rarer.

    def connection_opened(self, transport: str) -> None:
        self._connections[transport] += 1
        self._accepted[transport] += 1

    def connection_closed(self, transport: str) -> None:
        self._connections[transport] -= 1

    def process_started(self) -> None:
        self._processes += 1

    def process_finished(self, result: str, seconds: float) -> None:
        self._processes -= 1
        _add(self._ended[result], seconds)

    def limit_reached(self, limit: str) -> None:
        self._refusals[limit] = self._refusals.get(limit, 0) + 1

    def authenticated(self, result: str) -> None:
        self._authentications[result] = self._authentications.get(result, 0) + 1

    def audit_failed(self) -> None:
        self._audit_failures += 1

    def webhook_done(self, result: str) -> None:
        self._webhooks[result] = self._webhooks.get(result, 0) + 1

    # What others know.

    def observe(self, metric: Metric, read: Read) -> None:
        """Ask ``read`` whenever the figures are wanted, on the thread that wants them: the loop's.

        A metric may be observed in several places; each gives other labels.
        """
        self._observed.setdefault(metric.name, (metric, []))[1].append(read)

    def families(self) -> Iterator[MetricFamily]:
        """All figures, at this moment.  The longest hold of the loop is measured anew from here on."""
        requests = {key: (_now(own), _now(total)) for key, (own, _, total) in self._requests.items()}
        ended = {(result,): _now(times) for result, times in self._ended.items()}
        yield MetricFamily(CONNECTIONS_ACTIVE, _labelled(self._connections))
        yield MetricFamily(CONNECTIONS, _labelled(self._accepted))
        yield MetricFamily(REQUESTS, {key: own.count for key, (own, _) in requests.items()})
        yield MetricFamily(REQUEST_SECONDS, {key: own for key, (own, _) in requests.items()})
        yield MetricFamily(QUEUE_SECONDS, {(method,): _now(times) for method, times in self._queued.items()})
        yield MetricFamily(TOTAL_SECONDS, {key: total for key, (_, total) in requests.items()})
        yield MetricFamily(PROCESSES_ACTIVE, {(): self._processes})
        yield MetricFamily(PROCESSES, {labels: times.count for labels, times in ended.items()})
        yield MetricFamily(PROCESS_SECONDS, {labels: times for labels, times in ended.items() if times.count})
        yield MetricFamily(REFUSALS, _labelled(self._refusals))
        yield MetricFamily(AUTHENTICATIONS, _labelled(self._authentications))
        yield MetricFamily(AUDIT_FAILURES, {(): self._audit_failures})
        yield MetricFamily(WEBHOOKS, _labelled(self._webhooks))
        yield MetricFamily(LOOP_LONGEST, {(): self.stalls.take()})
        for metric, reads in self._observed.values():
            yield MetricFamily(metric, dict(chain.from_iterable(map(_ask, reads))))

    @property
    def counts(self) -> Counter[tuple[str, ...]]:
        """Gauges, and counters that have counted: (metric, label values...) -> value; 0 for others."""
        found: Counter[tuple[str, ...]] = Counter()
        for family in self.families():
            for labels, figure in family.figures.items():
                if family.metric.kind is MetricKind.GAUGE or (
                    family.metric.kind is MetricKind.COUNTER and figure
                ):
                    assert not isinstance(figure, Durations)
                    found[family.metric.name, *labels] = int(figure)
        return found

    @property
    def durations(self) -> dict[tuple[str, ...], list[int]]:
        """Histograms: (metric, label values...) -> a count per bucket, the last unbounded."""
        return {
            (family.metric.name, *labels): list(figure.buckets)
            for family in self.families()
            for labels, figure in family.figures.items()
            if isinstance(figure, Durations)
        }


def _labelled(counts: Mapping[str, int]) -> dict[Labels, float]:
    return {(label,): count for label, count in counts.items()}


def _ask(read: Read) -> list[tuple[Labels, float]]:
    try:
        return list(read().items())
    except Exception:  # noqa: BLE001  (one figure that cannot be had must not hide the others)
        _log.exception("a figure could not be read")
        return []


class AuditRecord(Protocol):
    """One process in the audit log, from the request for it to its end."""

    @property
    def ref(self) -> str:
        """By which its lines are known to be about one process."""

    def running(self, pid: int) -> None:
        """Record that the process was started."""

    def failed(self, reason: str) -> None:
        """Record that the process could not be started, and why."""

    def ended(self, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        """Record how the process ended."""


class Audit(Protocol):
    """Records who did what.  No call waits, and only one may raise."""

    def refused(self, peer: str, reason: str) -> None:
        """A client was not let in."""

    def connected(self, principal: Principal, peer: str) -> None: ...

    def gone(self, principal: Principal, peer: str) -> None:
        """A client that was let in has gone, or was sent away."""

    def forbidden(self, principal: Principal, peer: str, what: str, subject: str) -> None:
        """A client asked for something that its token does not allow."""

    def start(self, principal: Principal, peer: str, spec: Spec) -> AuditRecord:
        """A process was asked for.

        Raises:
            AuditFailed: It could not be written down, and is not to be started.
        """

    def resume(self, ref: str, pid: int) -> AuditRecord:
        """The record of a process that another server has started."""
