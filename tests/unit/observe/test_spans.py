"""Spans, as OpenTelemetry keeps them."""

from __future__ import annotations

import logging

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, get_current_span

from holdfast.observe.spans import OtelTracer

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


class Scene:
    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = OtelTracer(provider.get_tracer("x"))

    @property
    def ended(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._exporter.get_finished_spans()}


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent is not None else None


def key_of(span: ReadableSpan) -> int:
    context = span.get_span_context()
    assert context is not None
    return context.span_id


def test_a_request_has_the_parent_that_its_client_names() -> None:
    scene = Scene()

    scene.tracer.request("far", f"00-{TRACE}-{PARENT}-01", "vendor=1").end()
    scene.tracer.request("plain", None, "vendor=1").end()

    far, plain = scene.ended["far"], scene.ended["plain"]
    assert far.context is not None
    assert (far.context.trace_id, parent_of(far)) == (int(TRACE, 16), int(PARENT, 16))
    assert far.context.trace_state.to_header() == "vendor=1"
    assert (far.kind, plain.kind, plain.parent) == (SpanKind.SERVER, SpanKind.SERVER, None)


@pytest.mark.parametrize("text", ["", "nonsense", f"00-{'0' * 32}-{PARENT}-01", f"ff-{TRACE}-{PARENT}-01"])
def test_a_parent_that_is_none_is_ignored_and_said_loudly_once(
    text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Clients must not decide how long our log gets."""
    caplog.set_level(logging.DEBUG, logger="holdfast")
    scene = Scene()

    scene.tracer.request("a", text, None).end()
    scene.tracer.request("b", text, None).end()

    assert [span.parent for span in scene.ended.values()] == [None, None]
    assert [each.levelname for each in caplog.records] == ["WARNING", "DEBUG"]


def test_a_client_that_does_not_want_to_be_traced_is_not() -> None:
    scene = Scene()

    span = scene.tracer.request("a", f"00-{TRACE}-{PARENT}-00", None)
    span.child("b").end()
    span.end()

    assert scene.ended == {}


def test_children_have_what_is_shared_and_their_own() -> None:
    scene = Scene()

    request = scene.tracer.request("request", None, None)
    request.share("process.id", "p")
    request.child("child", {"x": 1}).end()
    request.child("call", client=True).end()
    request.set("result", "success")
    request.end()
    request.end()

    ended = scene.ended
    assert len(ended) == 3
    assert dict(ended["child"].attributes or {}) == {"process.id": "p", "x": 1}
    assert dict(ended["request"].attributes or {}) == {"result": "success"}
    assert (ended["child"].kind, ended["call"].kind) == (SpanKind.INTERNAL, SpanKind.CLIENT)
    assert {parent_of(ended[name]) for name in ("child", "call")} == {key_of(ended["request"])}


def test_the_run_is_nobodys_child_and_nobodys_parent() -> None:
    scene = Scene()

    run = scene.tracer.whole("run")
    scene.tracer.request("request", None, None).end()
    run.end()

    assert [span.parent for span in scene.ended.values()] == [None, None]
    assert not get_current_span().get_span_context().is_valid


def test_what_is_not_sampled_costs_nothing_and_ends_quietly() -> None:
    tracer = OtelTracer(TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False).get_tracer("x"))

    span = tracer.request("a", None, None)
    span.set("x", 1)
    span.child("b").end()
    span.end()
