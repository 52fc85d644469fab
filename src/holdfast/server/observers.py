"""Observers of requests: one counts and times them, one traces them."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import copy_context
from time import perf_counter

from holdfast.telemetry import Telemetry
from holdfast.tracing import LONGEST, Tracer, current

from .calls import Call, CallObserver


def observers_of(telemetry: Telemetry) -> Sequence[CallObserver]:
    """The observers that this telemetry needs; none where nothing is recorded."""
    if not telemetry.recording:
        return ()
    # Spans first, so that they end with the answer and not with the counting.
    traces = () if telemetry.tracer is None else (RequestTraces(telemetry.tracer),)
    return (*traces, RequestMetrics(telemetry))


class RequestMetrics:
    """Counts requests and measures how long they took.  Implements ``CallObserver``."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry

    def received(self, call: Call) -> None:
        pass

    def answered(self, call: Call, result: str) -> None:
        name = "unknown" if call.method is None else call.request.method
        handled = perf_counter() - call.started
        self._telemetry.request_done(name, result, queued=call.started - call.received, handled=handled)

    def dropped(self, call: Call) -> None:
        pass


class RequestTraces:
    """Gives each request a span, from its receipt to its answer.  Implements ``CallObserver``.

    The span is the current one wherever something is done for the request: in its
    handler, and in the task of its handler.
    """

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def received(self, call: Call) -> None:
        request, trace = call.request, call.request.trace
        span = self._tracer.request(
            request.method if call.method is not None else "unknown",
            None if trace is None else trace.traceparent,
            None if trace is None else trace.tracestate,
        )
        span.set("method", request.method[:LONGEST])
        call.span = span
        call.context = copy_context()
        call.context.run(current.set, span)

    def answered(self, call: Call, result: str) -> None:
        span = call.span
        if span is not None:
            span.set("rpc.dispatch_offset_ns", int((call.started - call.received) * 1e9))
            span.set("rpc.response_enqueue_offset_ns", int((perf_counter() - call.received) * 1e9))
            span.set("result", result)
            self.dropped(call)

    def dropped(self, call: Call) -> None:
        span, call.span = call.span, None
        if span is not None:
            span.end()
