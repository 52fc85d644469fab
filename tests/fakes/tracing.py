"""A tracer that keeps its spans, to see who makes which."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from holdfast.tracing import Value, current


class KeptSpan:
    """Implements ``tracing.Span``."""

    def __init__(
        self, name: str, kind: str, attributes: Mapping[str, Value] | None = None, parent: str = ""
    ) -> None:
        self.name = name
        self.kind = kind
        self.parent = parent
        self.attributes = dict(attributes or {})
        self.children: list[KeptSpan] = []
        self.ends = 0
        self._shared: dict[str, Value] = {}

    def child(
        self, name: str, attributes: Mapping[str, Value] | None = None, *, client: bool = False
    ) -> KeptSpan:
        made = KeptSpan(name, "client" if client else "internal", {**self._shared, **(attributes or {})})
        self.children.append(made)
        return made

    def share(self, key: str, value: Value) -> None:
        self._shared[key] = value

    def set(self, key: str, value: Value) -> None:
        self.attributes[key] = value

    def end(self) -> None:
        self.ends += 1

    @property
    def told(self) -> tuple[str, dict[str, Value], int]:
        """Name, attributes, and how often it was ended, as of now."""
        return self.name, dict(self.attributes), self.ends


class KeptTracer:
    """Implements ``tracing.Tracer``."""

    def __init__(self) -> None:
        self.spans: list[KeptSpan] = []

    def request(self, name: str, traceparent: str | None, tracestate: str | None) -> KeptSpan:
        made = KeptSpan(name, "server", parent=f"{traceparent} {tracestate}")
        self.spans.append(made)
        return made

    def span(self, name: str) -> KeptSpan:
        """The one request of that name."""
        [found] = [span for span in self.spans if span.name == name]
        return found


@contextmanager
def traced() -> Iterator[KeptSpan]:
    """A request that is being handled in the block."""
    span = KeptSpan("request", "server")
    token = current.set(span)
    try:
        yield span
    finally:
        current.reset(token)
