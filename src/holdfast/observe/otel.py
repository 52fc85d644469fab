"""OpenTelemetry: what the standard variables ask for, set up and taken down.

Its packages are imported only if they ask for something.  They read the variables themselves.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from holdfast.telemetry import Tally
from holdfast.tracing import SERVER
from holdfast.value import record

from .logs import Sparse

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    from .figures import FigureExport, LoopTimer
    from .spans import OtelSpan

_log = logging.getLogger(__name__)

_PATIENCE = 3.0
"""Seconds at the end for what is still to be sent: longer than a collector takes, shorter than one waits."""

_INTERVAL = 60.0
"""Seconds between two reports of figures, if nobody says otherwise: OpenTelemetry's own default."""

_SIGNALS = ("traces", "metrics")


def wanted(environment: Mapping[str, str]) -> frozenset[str]:
    """Which of ``traces`` and ``metrics`` the variables ask for; complains about what cannot be had."""
    disabled = environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return frozenset(signal for signal in _SIGNALS if not disabled and _is_wanted(signal, environment))


def _is_wanted(signal: str, environment: Mapping[str, str]) -> bool:
    upper = signal.upper()
    exporter = environment.get(f"OTEL_{upper}_EXPORTER", "").strip().lower()
    if exporter == "none":
        return False
    if exporter not in ("", "otlp"):
        _log.warning("OTEL_%s_EXPORTER: %r is not supported, only otlp and none", upper, exporter)
        return False
    named = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{upper}_ENDPOINT")
    if not exporter and not any(environment.get(name) for name in named):
        return False
    own, common = f"OTEL_EXPORTER_OTLP_{upper}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"
    protocol = environment.get(own) or environment.get(common) or "http/protobuf"
    if protocol != "http/protobuf":
        _log.warning(
            "no %s are exported: the protocol %r is not supported; pip install 'holdfast[otel]'"
            " gives http/protobuf, which %s=http/protobuf chooses",
            signal,
            protocol,
            common,
        )
        return False
    return True


@record
class Export:
    """The exporters of OpenTelemetry that run in this server."""

    provider: TracerProvider | None
    run: OtelSpan | None
    """The span of the whole run."""
    figures: FigureExport | None

    def begin(self, timer: LoopTimer) -> None:
        """Send figures from time to time."""
        if self.figures is not None:
            self.figures.begin(timer)

    def close(self) -> None:
        """Send what is left.  Waits a few seconds at the most, whatever the collector does."""
        if self.run is not None:
            self.run.end()
        figures, ends = self.figures, list[Callable[[], object]]()
        if self.provider is not None:
            ends.append(self.provider.shutdown)
        if figures is not None:
            ends.append(lambda: figures.close(_PATIENCE))
        # Side by side, and daemons: neither may hold up the other, or the end of the program.
        threads = [threading.Thread(target=end, name="holdfast-flush", daemon=True) for end in ends]
        deadline = time.monotonic() + _PATIENCE
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            _log.warning("not everything could be sent to the collector within %g s", _PATIENCE)


def export(
    tally: Tally, signals: frozenset[str], environment: Mapping[str, str], version: str
) -> Export | None:
    """Set up what is wanted, with the tally's tracer; None if it cannot be had, which is logged."""
    try:
        made = _export(tally, signals, environment, version)
    except ImportError as error:
        _log.warning(
            "OpenTelemetry is configured but not installed (%s): nothing is exported;"
            " pip install 'holdfast[otel]'",
            error,
        )
        return None
    return made


def _export(tally: Tally, signals: frozenset[str], environment: Mapping[str, str], version: str) -> Export:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    from .figures import FigureExport

    for exporter in (OTLPMetricExporter, OTLPSpanExporter):
        logging.getLogger(exporter.__module__).addFilter(Sparse())
    resource = _resource(version)
    made = Export(None, None, None)
    if "traces" in signals:
        _trace(made, tally, resource, OTLPSpanExporter())
    if "metrics" in signals:
        interval = _interval(environment)
        made.figures = FigureExport(tally, OTLPMetricExporter(), resource, interval)
    return made


def _trace(made: Export, tally: Tally, resource: Resource, exporter: Any) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    from .spans import OtelTracer

    # Not at the exit of the interpreter: that would wait for as long as the collector likes.
    made.provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    made.provider.add_span_processor(BatchSpanProcessor(exporter))
    tally.tracer = tracer = OtelTracer(made.provider.get_tracer("holdfast"))
    made.run = tracer.whole(SERVER)


def _resource(version: str) -> Resource:
    import platform

    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    try:
        system = platform.freedesktop_os_release()
    except OSError:
        system = {}
    ours = {
        "service.name": "codex-exec-server",
        "service.version": version,
        "env": "dev",
        "os": system.get("NAME", "Linux"),
        "os_version": system.get("VERSION_ID", platform.release()),
    }
    # What the variables say goes before what we say; the library has it the other way round.
    said = OTELResourceDetector().detect().attributes
    return Resource.create({key: value for key, value in ours.items() if key not in said})


def _interval(environment: Mapping[str, str]) -> float:
    text = environment.get("OTEL_METRIC_EXPORT_INTERVAL", "")
    try:
        milliseconds = float(text or _INTERVAL * 1000)
    except ValueError:
        milliseconds = 0.0
    if not 0 < milliseconds < float("inf"):
        _log.warning("OTEL_METRIC_EXPORT_INTERVAL: %r is not a number of milliseconds", text)
        return _INTERVAL
    return milliseconds / 1000
