"""Spans of what is done for requests about files and HTTP.  Without a tracer there are none."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit

from holdfast.errors import HoldfastError, HttpFailed, HttpFault
from holdfast.model import HttpRequest
from holdfast.protocol.sandbox import Disabled
from holdfast.tracing import HTTP_REQUEST, LONGEST, Span, Value, begin, current

Handle = Callable[[Any, Any], Coroutine[Any, Any, Any]]

_PORTS = {"http": 80, "https": 443}

_FAULTS = {HttpFault.SENDING: "request", HttpFault.BODY_TIMEOUT: "timeout", HttpFault.NO_TIME: "timeout"}
"""Where the reference has another word for it."""


def span_name(method: str) -> str:
    """``fs/readFile`` as ``fs.read_file``."""
    return re.sub(r"([A-Z])", r"_\1", method).lower().replace("/", ".")


def in_span(method: str, handle: Handle) -> Handle:
    """A handler whose work is a span of its own."""
    name = span_name(method)

    def run(talk: Any, params: Any) -> Coroutine[Any, Any, Any]:
        parent = current.get()
        if parent is None:
            return handle(talk, params)
        return _ending(parent.child(name, {"sandboxed": _is_sandboxed(params)}), handle(talk, params))

    run.__doc__ = handle.__doc__
    return run


async def _ending(span: Span, work: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await work
    finally:
        span.end()


def _is_sandboxed(params: Any) -> bool:
    context = getattr(getattr(params, "params", params), "sandbox", None)
    return context is not None and not isinstance(context.permissions, Disabled)


class HttpSpan:
    """The span of one HTTP request, to be ended once; without a tracer it is nothing."""

    __slots__ = ("_span",)

    def __init__(self, request: HttpRequest) -> None:
        self._span: Span | None = None
        if current.get() is None:
            return
        url = urlsplit(request.url)
        attributes: dict[str, Value] = {
            "http.request.method": request.method[:LONGEST],
            "server.address": (url.hostname or "")[:LONGEST],
            "server.port": url.port or _PORTS[url.scheme],
        }
        self._span = begin(HTTP_REQUEST, attributes, client=True)

    def answered(self, status: int) -> None:
        """There is a response; one that reports a failure counts as one, as OpenTelemetry has it."""
        if self._span is not None:
            self._span.set("http.response.status_code", status)
            if status >= 400:
                self._span.set("error.type", str(status))

    def failed(self, error: BaseException) -> None:
        if self._span is None:
            return
        if isinstance(error, HttpFailed):
            self._span.set("error.type", _FAULTS.get(error.fault, error.fault.value))
        elif isinstance(error, HoldfastError):
            self._span.set("error.type", type(error).__name__)

    def end(self) -> None:
        if self._span is not None:
            self._span.end()
