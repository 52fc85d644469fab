"""Spans of starts, and of the processes they start."""

from __future__ import annotations

from holdfast.dialects.exec.entries import Entry
from tests.fakes.dialects import FakeProcess
from tests.fakes.exec_talk import START, ready
from tests.fakes.tracing import KeptSpan, traced
from tests.unit.dialects.exec.test_state import Scene


async def test_a_traced_start_has_spans_and_its_process_one_until_the_exit() -> None:
    """What the backend does in between has its own, with the name that is shared."""
    process = FakeProcess()
    scene = await ready(process)
    with traced() as request:
        await scene.call("process/start", START)
    request.child("of the backend")
    snapshot, running, other = request.children
    before = running.told

    process.end(3)

    assert snapshot.told == (
        "codex.exec_server.process_prepare_shell_snapshot",
        {"process.id": "p", "snapshot_requested": False},
        1,
    )
    assert before == ("codex.exec_server.process", {"process.id": "p"}, 0)
    assert running.told == ("codex.exec_server.process", {"process.id": "p", "result": "error"}, 1)
    assert other.attributes == {"process.id": "p"}
    entry = scene.talk.session.find("p")
    assert isinstance(entry, Entry)
    assert entry.span is None


async def test_the_span_of_a_process_ends_with_its_session() -> None:
    scene = Scene()
    talk, _ = await scene.begun()
    entry, _ = scene.run(talk)
    entry.span = span = KeptSpan("process", "internal")

    scene.endpoint.close()

    assert span.told == ("process", {"result": "terminated"}, 1)
