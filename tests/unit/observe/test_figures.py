"""Figures on their way to a collector: differences, and what becomes of those that did not arrive."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry.sdk.metrics.export import MetricExporter, MetricExportResult, MetricsData
from opentelemetry.sdk.resources import Resource

from holdfast.observe.figures import FigureExport, between, take
from holdfast.telemetry import BOUNDS, Tally
from tests.fakes.server import PATIENCE

RESOURCE = Resource({"service.name": "x"})
OK, FAILED = MetricExportResult.SUCCESS, MetricExportResult.FAILURE


def points(data: MetricsData, name: str) -> list[Any]:
    [batch] = data.resource_metrics
    metrics = [metric for scope in batch.scope_metrics for metric in scope.metrics if metric.name == name]
    return [point for metric in metrics for point in metric.data.data_points]


def sums(data: MetricsData, name: str) -> dict[tuple[Any, ...], Any]:
    return {tuple((each.attributes or {}).values()): each.value for each in points(data, name)}


# Differences.


def test_what_has_not_changed_is_not_told_but_a_gauge_always_is() -> None:
    tally = Tally()
    tally.connection_opened("stdio")
    first = take(tally)
    tally.connection_opened("websocket")
    second = take(tally)

    data = between(first, second, RESOURCE)

    assert sums(data, "exec_server_connections_total") == {("websocket",): 1}
    active = {("websocket",): 1, ("stdio",): 1, ("relay",): 0}
    assert sums(data, "exec_server_connections_active") == active
    assert points(data, "exec_server_requests_total") == []
    [point] = points(data, "exec_server_connections_total")
    assert (point.start_time_unix_nano, point.time_unix_nano) == (first.time, second.time)


def test_durations_are_told_by_bucket() -> None:
    tally = Tally()
    tally.process_finished("success", 0.02)
    first = take(tally)
    tally.process_finished("success", 500.0)
    tally.process_finished("error", 0.0)

    found = points(between(first, take(tally), RESOURCE), "exec_server_process_duration_seconds")

    told = {point.attributes["result"]: (point.count, point.sum, point.bucket_counts) for point in found}
    rest = [0] * len(BOUNDS)
    assert told == {"success": (1, 500.0, [*rest, 1]), "error": (1, 0.0, [1, *rest])}
    assert {point.explicit_bounds for point in found} == {BOUNDS}


# The way.


class HandTimer:
    """Calls when the test says so."""

    def __init__(self) -> None:
        self.due: list[tuple[float, Callable[[], None]]] = []

    def call_later(self, delay: float, callback: Any, /) -> None:
        self.due.append((delay, callback))

    def ring(self) -> None:
        due, self.due = self.due, []
        for _, callback in due:
            callback()


class Receiver(MetricExporter):
    """An exporter whose collector does what the test wants."""

    def __init__(self, *results: MetricExportResult | Exception) -> None:
        super().__init__()
        self.results = list(results)
        self.told: list[dict[tuple[Any, ...], Any]] = []
        self.busy = threading.Semaphore(0)
        self.open = threading.Event()
        self.open.set()
        self.ended = False

    def export(self, metrics_data: MetricsData, timeout_millis: float = 0, **more: Any) -> MetricExportResult:
        self.told.append(sums(metrics_data, "exec_server_connections_total"))
        self.busy.release()
        assert self.open.wait(PATIENCE)
        result = self.results.pop(0) if self.results else OK
        if isinstance(result, Exception):
            raise result
        return result

    def force_flush(self, timeout_millis: float = 0) -> bool:
        return True

    def shutdown(self, timeout_millis: float = 0, **more: Any) -> None:
        self.ended = True


class Scene:
    def __init__(self, *results: MetricExportResult | Exception) -> None:
        self.tally = Tally()
        self.timer = HandTimer()
        self.receiver = Receiver(*results)
        self.export = FigureExport(self.tally, self.receiver, RESOURCE, 5.0)
        self.export.begin(self.timer)

    def report(self) -> None:
        """Let a report be made, and be under way."""
        self.timer.ring()
        assert self.receiver.busy.acquire(timeout=PATIENCE)


def test_each_report_tells_what_is_new_and_the_last_one_the_rest() -> None:
    scene = Scene()

    scene.tally.connection_opened("stdio")
    scene.report()
    scene.tally.connection_opened("stdio")
    scene.export.close(PATIENCE)

    assert scene.receiver.told == [{("stdio",): 1}, {("stdio",): 1}]
    assert scene.receiver.ended
    assert [delay for delay, _ in scene.timer.due] == [5.0]


@pytest.mark.parametrize("failure", [FAILED, OSError("gone")])
def test_what_did_not_arrive_is_told_again(
    failure: MetricExportResult | Exception, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(failure)

    scene.tally.connection_opened("stdio")
    scene.report()
    scene.tally.connection_opened("stdio")
    scene.export.close(PATIENCE)

    assert scene.receiver.told == [{("stdio",): 1}, {("stdio",): 2}]
    assert ("could not be sent" in caplog.text) == isinstance(failure, Exception)


def test_behind_a_report_that_takes_long_only_the_newest_waits() -> None:
    """However long that is: memory does not grow, and nothing is lost."""
    scene = Scene()
    scene.receiver.open.clear()
    scene.report()

    for _ in range(100):
        scene.tally.connection_opened("stdio")
        scene.timer.ring()
    scene.receiver.open.set()
    assert scene.receiver.busy.acquire(timeout=PATIENCE)
    scene.export.close(PATIENCE)

    assert scene.receiver.told[:2] == [{}, {("stdio",): 100}]
    assert len(scene.receiver.told) <= 3


def test_a_collector_that_never_answers_is_left_behind() -> None:
    scene = Scene()
    scene.receiver.open.clear()
    scene.report()

    scene.export.close(0.0)

    assert scene.receiver.ended
    scene.receiver.open.set()


def test_durations_that_have_not_changed_are_not_told() -> None:
    tally = Tally()
    tally.process_finished("success", 0.02)
    first = take(tally)

    found = points(between(first, take(tally), RESOURCE), "exec_server_process_duration_seconds")

    assert found == []
