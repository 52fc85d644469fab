"""Figures on their way to a collector, by OpenTelemetry's own exporter.

What must hold:

1. The loop takes a snapshot and hands it over; it never waits for the collector.
2. At most one snapshot waits.  A newer one takes its place, and nothing is lost by that:
   what is told is the difference to the last snapshot that the collector has got.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, Queue
from typing import Any, Protocol

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from holdfast.telemetry import BOUNDS, Durations, Labels, MetricFamily, MetricKind, Tally
from holdfast.value import value

_log = logging.getLogger(__name__)

_DELTA = AggregationTemporality.DELTA
_SCOPE = InstrumentationScope("holdfast")


class LoopTimer(Protocol):
    """As much of an event loop as is needed here."""

    def call_later(self, delay: float, callback: Any, /) -> Any: ...


@value
class Snapshot:
    """All figures at one moment."""

    families: tuple[MetricFamily, ...]
    time: int
    """Nanoseconds since the epoch."""
    last: bool = False


def take(tally: Tally, *, last: bool = False) -> Snapshot:
    return Snapshot(tuple(tally.families()), time.time_ns(), last)


def between(old: Snapshot, new: Snapshot, resource: Resource) -> MetricsData:
    """What happened from one snapshot to the next."""
    before = {family.metric.name: family.figures for family in old.families}
    metrics = [
        metric
        for family in new.families
        if (metric := _metric(family, before.get(family.metric.name, {}), old.time, new.time)) is not None
    ]
    scope = ScopeMetrics(_SCOPE, metrics, schema_url="")
    return MetricsData([ResourceMetrics(resource, [scope], schema_url="")])


Old = Any  # Figures by labels; of the same kind as the new ones.


def _metric(family: MetricFamily, before: Old, start: int, end: int) -> Metric | None:
    facts = family.metric
    data: Gauge | Sum | Histogram
    match facts.kind:
        case MetricKind.GAUGE:
            data = Gauge([_number(family, labels, start, end, now) for labels, now in family.figures.items()])
        case MetricKind.COUNTER:
            data = Sum(list(_sums(family, before, start, end)), _DELTA, is_monotonic=True)
        case MetricKind.HISTOGRAM:
            data = Histogram(list(_histograms(family, before, start, end)), _DELTA)
    if not data.data_points:
        return None
    unit = "s" if facts.name.endswith("_seconds") else ""
    return Metric(facts.name, facts.help, unit, data)


def _sums(family: MetricFamily, before: Old, start: int, end: int) -> Iterator[NumberDataPoint]:
    for labels, now in family.figures.items():
        more = now - before.get(labels, 0)
        if more:
            yield _number(family, labels, start, end, more)


def _number(family: MetricFamily, labels: Labels, start: int, end: int, value: Any) -> NumberDataPoint:
    return NumberDataPoint(_attributes(family, labels), start, end, value)


def _histograms(family: MetricFamily, before: Old, start: int, end: int) -> Iterator[HistogramDataPoint]:
    nothing = Durations((0,) * (len(BOUNDS) + 1), 0.0)
    for labels, now in family.figures.items():
        assert isinstance(now, Durations)
        then = before.get(labels, nothing)
        if now.count == then.count:
            continue
        yield HistogramDataPoint(
            attributes=_attributes(family, labels),
            start_time_unix_nano=start,
            time_unix_nano=end,
            count=now.count - then.count,
            sum=now.sum - then.sum,
            bucket_counts=[new - old for new, old in zip(now.buckets, then.buckets, strict=True)],
            explicit_bounds=BOUNDS,
            # Not kept, and optional on the wire; the class does not know that they are.
            min=None,  # type: ignore[arg-type]
            max=None,  # type: ignore[arg-type]
        )


def _attributes(family: MetricFamily, labels: Labels) -> dict[str, str]:
    return dict(zip(family.metric.labels, labels, strict=True))


class FigureExport:
    """Sends the figures of a tally, again and again, from a thread of its own."""

    def __init__(self, tally: Tally, exporter: MetricExporter, resource: Resource, interval: float) -> None:
        """``interval`` in seconds."""
        self._tally = tally
        self._exporter = exporter
        self._resource = resource
        self._interval = interval
        self._box: Queue[Snapshot] = Queue(maxsize=1)
        self._exported = Snapshot((), time.time_ns())
        # A daemon: a collector that never answers must not keep the server from ending.
        self._thread = threading.Thread(target=self._work, name="holdfast-figures", daemon=True)

    def begin(self, timer: LoopTimer) -> None:
        self._timer = timer
        self._thread.start()
        timer.call_later(self._interval, self._on_time)

    def _on_time(self) -> None:
        self._offer(take(self._tally))
        self._timer.call_later(self._interval, self._on_time)

    def _offer(self, snapshot: Snapshot) -> None:
        with suppress(Empty):
            self._box.get_nowait()
        self._box.put_nowait(snapshot)  # There is room: nobody else puts anything in.

    def _work(self) -> None:
        while True:
            snapshot = self._box.get()
            try:
                result = self._exporter.export(between(self._exported, snapshot, self._resource))
            except Exception:  # noqa: BLE001  (the next snapshot may fare better)
                _log.exception("figures could not be sent")
            else:
                if result is MetricExportResult.SUCCESS:
                    self._exported = snapshot
            if snapshot.last:
                return

    def close(self, patience: float) -> None:
        """Send what was counted last, and wait so many seconds for it at the most."""
        self._offer(take(self._tally, last=True))
        self._thread.join(patience)
        self._exporter.shutdown()
