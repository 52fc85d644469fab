"""A collector of OpenTelemetry on loopback that keeps what it is sent, or does not even answer."""

from __future__ import annotations

import contextlib
import gzip
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from tests.fakes.server import PATIENCE

DELTA = metrics_pb2.AGGREGATION_TEMPORALITY_DELTA
KINDS = {
    trace_pb2.Span.SPAN_KIND_SERVER: "server",
    trace_pb2.Span.SPAN_KIND_CLIENT: "client",
    trace_pb2.Span.SPAN_KIND_INTERNAL: "internal",
}


@dataclass(frozen=True)
class Seen:
    """A span that has arrived."""

    name: str
    kind: str
    trace: str
    key: str
    parent: str
    state: str
    attributes: dict[str, Any]
    start: int
    end: int


@dataclass(frozen=True)
class Point:
    """One figure that has arrived, with all that says what it means."""

    metric: str
    unit: str
    shape: str
    """``gauge``, ``sum`` or ``histogram``; a sum that can fall would be told as such."""
    delta: bool
    labels: tuple[tuple[str, str], ...]
    value: float
    """Of a histogram: how many."""
    sum: float
    bounds: tuple[float, ...]
    buckets: tuple[int, ...]
    start: int
    end: int


def _values(pairs: Any) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


class Collector:
    """What has arrived so far."""

    def __init__(self) -> None:
        self.spans: list[Seen] = []
        self.points: list[Point] = []
        self.resources: list[dict[str, Any]] = []
        self.requests = 0
        self.status = 200
        self.answering = threading.Event()
        self.answering.set()
        self._news = threading.Condition()
        self.url = ""

    def until(self, condition: Callable[[], object]) -> None:
        """Wait until what has arrived makes it so."""
        with self._news:
            assert self._news.wait_for(condition, PATIENCE), "the collector still waits for it"

    def environment(self, **more: str) -> dict[bytes, bytes]:
        """The variables of a server that reports here, without much delay."""
        proxies = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
        variables = {**dict.fromkeys(proxies, ""), "OTEL_EXPORTER_OTLP_ENDPOINT": self.url}
        variables |= {"OTEL_BSP_SCHEDULE_DELAY": "50", **more}
        return {name.encode(): value.encode() for name, value in variables.items()}

    def counted(self, metric: str) -> dict[tuple[str, ...], float]:
        """All that was told of a metric, by the values of its labels; of histograms how many."""
        found: dict[tuple[str, ...], float] = {}
        for point in self.points:
            if point.metric == metric:
                labels = tuple(value for _, value in point.labels)
                found[labels] = found.get(labels, 0) + point.value
        return found

    def span(self, name: str, **attributes: Any) -> Seen:
        """The one span of that name with these attributes."""
        found = [
            span for span in self.spans if span.name == name and attributes.items() <= span.attributes.items()
        ]
        assert len(found) == 1, f"{len(found)} spans {name} {attributes}: {found}"
        return found[0]

    def take(self, path: str, data: bytes) -> None:
        with self._news:
            self.requests += 1
            if self.status == 200:
                (self._take_spans if path == "/v1/traces" else self._take_figures)(data)
            self._news.notify_all()

    def _take_spans(self, data: bytes) -> None:
        for batch in ExportTraceServiceRequest.FromString(data).resource_spans:
            self.resources.append(_values(batch.resource.attributes))
            for span in (span for scope in batch.scope_spans for span in scope.spans):
                self.spans.append(
                    Seen(
                        span.name,
                        KINDS[span.kind],
                        span.trace_id.hex(),
                        span.span_id.hex(),
                        span.parent_span_id.hex(),
                        span.trace_state,
                        _values(span.attributes),
                        span.start_time_unix_nano,
                        span.end_time_unix_nano,
                    )
                )

    def _take_figures(self, data: bytes) -> None:
        for batch in ExportMetricsServiceRequest.FromString(data).resource_metrics:
            self.resources.append(_values(batch.resource.attributes))
            for metric in (metric for scope in batch.scope_metrics for metric in scope.metrics):
                shape = metric.WhichOneof("data")
                body = getattr(metric, shape)
                if shape == "sum" and not body.is_monotonic:
                    shape = "sum that can fall"
                delta = shape != "gauge" and body.aggregation_temporality == DELTA
                self.points += [_point(metric, shape, point, delta=delta) for point in body.data_points]


def _point(metric: Any, shape: str, point: Any, *, delta: bool) -> Point:
    histogram = shape == "histogram"
    return Point(
        metric.name,
        metric.unit,
        shape,
        delta,
        tuple(sorted(_values(point.attributes).items())),
        point.count if histogram else getattr(point, point.WhichOneof("value")),
        point.sum if histogram else 0.0,
        tuple(point.explicit_bounds) if histogram else (),
        tuple(point.bucket_counts) if histogram else (),
        point.start_time_unix_nano,
        point.time_unix_nano,
    )


@contextlib.contextmanager
def collector() -> Iterator[Collector]:
    """A collector on a free port."""
    kept = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                data = gzip.decompress(data)
            kept.take(self.path, data)
            kept.answering.wait()
            with contextlib.suppress(OSError):
                self.send_response(kept.status)
                self.send_header("content-length", "0")
                self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the base class names it so)
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    kept.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=lambda: server.serve_forever(0.02), daemon=True)
    thread.start()
    try:
        yield kept
    finally:
        kept.answering.set()
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE)
