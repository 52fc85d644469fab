"""Requests that are traced: each has a span from its receipt to its answer.

A class of its own, so that a server that traces nothing does none of this.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from holdfast.dialects.dialect import Method
from holdfast.tracing import LONGEST, Span, Tracer, current
from holdfast.wire.jsonrpc import Request

from .dispatch import Dispatch


class TracedDispatch(Dispatch):
    """The requests of one connection, with spans.

    The span of a request is the current one wherever something is done for it:
    here, and in its task.
    """

    __slots__ = ("_open", "_tracer")

    def __init__(self, *facts: Any, tracer: Tracer, **more: Any) -> None:
        """``tracer`` makes the spans; the rest is as it always is."""
        super().__init__(*facts, **more)
        self._tracer = tracer
        # Spans of requests that are not answered: True if they go on without the connection.
        self._open: dict[Span, bool] = {}

    def request(self, request: Request, size: int) -> None:
        known = request.method in self._methods
        trace = request.trace
        span = self._tracer.request(
            request.method if known else "unknown",
            None if trace is None else trace.traceparent,
            None if trace is None else trace.tracestate,
        )
        span.set("method", request.method[:LONGEST])
        self._open[span] = False
        token = current.set(span)
        try:
            super().request(request, size)
        finally:
            current.reset(token)

    def _run(self, request: Request, method: Method, params: Any, size: int, received: float) -> None:
        if method.starts:
            self._open[_span()] = True
        super()._run(request, method, params, size, received)

    async def _finish(
        self,
        request: Request,
        method: Method,
        rest: Awaitable[Any],
        size: int,
        received: float,
        started: float,
        starting: str | None,
    ) -> None:
        try:
            await super()._finish(request, method, rest, size, received, started, starting)
        finally:
            self._close(_span())

    def _record(self, name: str, result: str, received: float, started: float) -> float:
        now = super()._record(name, result, received, started)
        span = _span()
        span.set("rpc.dispatch_offset_ns", int((started - received) * 1e9))
        span.set("rpc.response_enqueue_offset_ns", int((now - received) * 1e9))
        span.set("result", result)
        self._close(span)
        return now

    def stop(self) -> None:
        super().stop()
        # Without a result.  Here and not by their tasks: one that has not begun never will.
        for span in [span for span, goes_on in self._open.items() if not goes_on]:
            self._close(span)

    def _close(self, span: Span) -> None:
        if self._open.pop(span, None) is not None:
            span.end()


def _span() -> Span:
    """That of the request in whose course we are."""
    span = current.get()
    assert span is not None
    return span
