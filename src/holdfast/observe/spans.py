"""Spans, recorded by OpenTelemetry.  Implements ``holdfast.tracing``."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from holdfast.tracing import LONGEST, Value

_log = logging.getLogger(__name__)

_NOTHING = Context()
"""No parent: what goes on in the program elsewhere is not one."""


class OtelSpan:
    """Implements ``tracing.Span``."""

    __slots__ = ("_context", "_shared", "_span", "_tracer")

    def __init__(self, tracer: trace.Tracer, span: trace.Span) -> None:
        self._tracer = tracer
        self._span = span
        # Made when first needed: most requests have no children.
        self._context: Context | None = None
        self._shared: dict[str, Value] | None = None

    def child(
        self, name: str, attributes: Mapping[str, Value] | None = None, *, client: bool = False
    ) -> OtelSpan:
        if self._context is None:
            self._context = trace.set_span_in_context(self._span, _NOTHING)
        if self._shared is not None:
            attributes = {**self._shared, **(attributes or {})}
        kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
        span = self._tracer.start_span(name, self._context, kind, attributes)
        return OtelSpan(self._tracer, span)

    def share(self, key: str, value: Value) -> None:
        self._shared = {**(self._shared or {}), key: value}

    def set(self, key: str, value: Value) -> None:
        self._span.set_attribute(key, value)

    def end(self) -> None:
        if self._span.is_recording():
            self._span.end()


class OtelTracer:
    """Implements ``tracing.Tracer``."""

    def __init__(self, tracer: trace.Tracer) -> None:
        self._tracer = tracer
        self._propagator = TraceContextTextMapPropagator()
        self._complained = False

    def request(self, name: str, traceparent: str | None, tracestate: str | None) -> OtelSpan:
        context = _NOTHING if traceparent is None else self._parent(traceparent, tracestate)
        return OtelSpan(self._tracer, self._tracer.start_span(name, context, SpanKind.SERVER))

    def whole(self, name: str) -> OtelSpan:
        """Begin a span without a parent that is not a request."""
        return OtelSpan(self._tracer, self._tracer.start_span(name, _NOTHING))

    def _parent(self, traceparent: str, tracestate: str | None) -> Context:
        carrier = {"traceparent": traceparent}
        if tracestate is not None:
            carrier["tracestate"] = tracestate
        context = self._propagator.extract(carrier, _NOTHING)
        if not trace.get_current_span(context).get_span_context().is_valid:
            self._complain(traceparent)
        return context

    def _complain(self, traceparent: str) -> None:
        # Loudly once: clients must not decide how long our log gets.
        level = logging.DEBUG if self._complained else logging.WARNING
        self._complained = True
        _log.log(level, "a client sent a traceparent that is none: %r", traceparent[:LONGEST])
