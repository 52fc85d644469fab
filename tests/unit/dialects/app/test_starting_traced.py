"""Spans of processes of the app dialects."""

from __future__ import annotations

import pytest

from tests.fakes.tracing import traced
from tests.unit.dialects.app.test_starting import spawned


@pytest.mark.parametrize(("left", "result"), [(False, "success"), (True, "terminated")])
async def test_a_process_of_a_traced_request_has_a_span_until_its_end(*, left: bool, result: str) -> None:
    with traced() as request:
        scene, process = await spawned()
    [span] = request.children
    before = span.told

    if left:
        scene.talk.ended()
    else:
        process.end(0)
        process.close()

    name = span.attributes["process.id"]
    assert before == ("codex.exec_server.process", {"process.id": name}, 0)
    assert span.told == ("codex.exec_server.process", {"process.id": name, "result": result}, 1)
