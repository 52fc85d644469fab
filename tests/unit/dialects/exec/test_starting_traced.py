"""Spans of starts."""

from __future__ import annotations

from tests.fakes.dialects import FakeProcess
from tests.fakes.exec_talk import START, ready
from tests.fakes.tracing import traced


async def test_a_traced_start_has_a_span_and_shares_the_name_of_its_process() -> None:
    """What the backend does has its own spans, with the name that is shared."""
    scene = await ready(FakeProcess())
    with traced() as request:
        await scene.call("process/start", START)
    request.child("of the backend")
    snapshot, other = request.children

    assert snapshot.told == (
        "codex.exec_server.process_prepare_shell_snapshot",
        {"process.id": "p", "snapshot_requested": False},
        1,
    )
    assert other.attributes == {"process.id": "p"}
