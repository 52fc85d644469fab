"""Spans, without a word of who records them (pure).

A request that is traced has a span, and whatever is done for it may make
children of that: the server puts the span into ``current`` around the handler,
and tasks that the handler starts inherit it.  Nobody traces as a rule; then all
of this costs one look into ``current``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from types import TracebackType
from typing import Final, Protocol

Value = str | int | bool

# The names of the specification.
SERVER = "codex.exec_server"
PREPARE_SANDBOX = "codex.exec_server.process_prepare_sandbox"
PREPARE_SNAPSHOT = "codex.exec_server.process_prepare_shell_snapshot"
SPAWN = "codex.process.spawn"
PROCESS = "codex.exec_server.process"
HTTP_REQUEST = "codex.exec_server.http_request"

LONGEST = 200
"""Characters of a text of the client's in an attribute: it decides neither our memory nor the collector's."""


class Span(Protocol):
    """Something that takes time.  Calls neither wait nor raise."""

    def child(
        self, name: str, attributes: Mapping[str, Value] | None = None, *, client: bool = False
    ) -> Span:
        """Begin a span below this one; ``client`` if it is a request of ours to another server."""

    def share(self, key: str, value: Value) -> None:
        """Put an attribute on every child that is made from now on."""

    def set(self, key: str, value: Value) -> None: ...

    def end(self) -> None:
        """May be called twice; only the first call counts."""


class Tracer(Protocol):
    """Records spans."""

    def request(self, name: str, traceparent: str | None, tracestate: str | None) -> Span:
        """Begin the span of a request that was just received, below the client's own span if it sent one."""


current: Final[ContextVar[Span | None]] = ContextVar("holdfast_span", default=None)
"""The span of the request that is being handled; None if it is not traced."""


def begin(name: str, attributes: Mapping[str, Value] | None = None, *, client: bool = False) -> Span | None:
    """A child of the current span, to be ended by the caller; None if nothing is traced."""
    parent = current.get()
    return None if parent is None else parent.child(name, attributes, client=client)


def share(key: str, value: str) -> None:
    """Put an attribute on every child of the current span, from now on."""
    span = current.get()
    if span is not None:
        span.share(key, value[:LONGEST])


def span(name: str, attributes: Mapping[str, Value] | None = None) -> During:
    """A child of the current span for as long as a ``with`` block lasts.

    It is not the current one meanwhile: a handler may begin outside of the task
    in which it ends, so nothing could be put back.
    """
    parent = current.get()
    return _NOTHING if parent is None else During(parent.child(name, attributes))


class During:
    """Ends a span with a block."""

    __slots__ = ("_span",)

    def __init__(self, span: Span | None) -> None:
        self._span = span

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._span is not None:
            self._span.end()


_NOTHING: Final = During(None)
