"""Spans of requests: from the receipt to the answer, whoever they wait for."""

from __future__ import annotations

import json
from typing import Any

from holdfast.config import ConnectionLimits
from holdfast.server.connection import Connection
from holdfast.telemetry import Tally
from holdfast.tracing import LONGEST, Value, current
from tests.fakes.endpoint import MemoryChannel, ToyEndpoint, deliver, introduce, request
from tests.fakes.server import eventually
from tests.fakes.tracing import KeptTracer
from tests.unit.server.test_calls import turn


class Talk:
    """A connection in memory whose requests are traced."""

    def __init__(self) -> None:
        self.tracer = KeptTracer()
        self.tally = Tally(self.tracer)
        self.channel = MemoryChannel()
        endpoint = ToyEndpoint()
        self.connection = Connection(
            self.channel,
            endpoint,
            telemetry=self.tally,
            limits=ConnectionLimits(),
            on_end=lambda connection: None,
        )
        self.toy = introduce(self.connection, endpoint)
        self._count = 0

    def ask(self, method: str, params: Any = None, **trace: str) -> None:
        self._count += 1
        message = json.loads(request(self._count, method, params))
        deliver(self.connection, json.dumps({**message, "trace": trace or None}).encode())

    def told(self, name: str) -> tuple[Value | None, int]:
        """The result of the one request of that name, and how often its span was ended."""
        span = self.tracer.span(name)
        return span.attributes.get("result"), span.ends


def test_a_request_is_a_span_with_its_method_its_result_and_its_times() -> None:
    talk = Talk()

    talk.ask("plain", "a", traceparent="parent", tracestate="state")
    talk.ask("refused", "a", traceparent="parent")
    talk.ask("n" * 1000)

    first, second, third = talk.tracer.spans
    assert (first.name, first.kind, first.parent, first.ends) == ("plain", "server", "parent state", 1)
    assert (second.name, second.parent, second.ends) == ("refused", "parent None", 1)
    assert (third.name, third.parent, third.attributes["method"]) == (
        "unknown",
        "None None",
        "n" * LONGEST,
    )
    assert [span.attributes["result"] for span in talk.tracer.spans] == ["success", "error", "error"]
    for span in talk.tracer.spans:
        before, after = (
            span.attributes[key] for key in ("rpc.dispatch_offset_ns", "rpc.response_enqueue_offset_ns")
        )
        assert isinstance(before, int)
        assert isinstance(after, int)
        assert 0 <= before <= after
    assert current.get() is None


async def test_one_that_waits_has_its_span_until_its_own_answer() -> None:
    """Others that are answered meanwhile have theirs."""
    talk = Talk()

    talk.ask("wait", "a")
    await turn()
    talk.ask("plain", "b")
    assert [talk.told("wait"), talk.told("plain")] == [(None, 0), ("success", 1)]
    talk.toy.open("a")
    await turn()

    assert talk.told("wait") == ("success", 1)


async def test_one_behind_a_start_keeps_its_own_span() -> None:
    """Although it is handled in the course of the start's task."""
    talk = Talk()

    talk.ask("start", "p")
    talk.ask("about", "p")
    await turn()
    assert [talk.told("start"), talk.told("about")] == [(None, 0), (None, 0)]
    talk.toy.open("p")
    await turn()

    assert [talk.told("start"), talk.told("about")] == [("success", 1), ("success", 1)]


async def test_the_end_of_the_connection_ends_the_spans_of_what_it_gives_up() -> None:
    """Without a result, and uncounted.  A start goes on and has one."""
    talk = Talk()

    talk.ask("start", "p")
    talk.ask("about", "p")
    talk.ask("wait", "running")
    await turn()
    talk.ask("long", "not even begun")
    talk.connection.lost()

    names = ("about", "wait", "long")
    assert [talk.told(name) for name in names] == [(None, 1)] * 3
    assert talk.told("start") == (None, 0)
    talk.toy.open("p")
    await talk.connection.finished()
    assert talk.told("start") == ("success", 1)
    counted = [key[1] for key in talk.tally.counts if key[0] == "exec_server_requests_total"]
    assert counted == ["start"]
    assert [talk.told(name) for name in names] == [(None, 1)] * 3


async def test_what_a_handler_does_is_below_its_request() -> None:
    """In its task too, after it has waited."""
    talk = Talk()
    seen: list[object] = []
    passed = talk.toy.passed

    async def look(name: str) -> str:
        seen.append(current.get())
        result = await passed(name)
        seen.append(current.get())
        return result

    talk.toy.passed = look  # type: ignore[method-assign]
    talk.ask("wait", "a")
    await turn()
    talk.toy.open("a")
    await eventually(lambda: len(talk.channel.sent) == 1)

    assert seen == [talk.tracer.span("wait")] * 2
