"""The server dies: whoever listens to events is told that some are missing, and hears what follows."""

from __future__ import annotations

import pytest

import holdfast
from holdfast import EventKind, ProcessEvent
from holdfast.api.events import ProcessEvents
from tests.fakes.mortal import kill_server, mortal_at

pytestmark = pytest.mark.slow


async def until(events: ProcessEvents, kind: EventKind) -> ProcessEvent:
    while (event := await events.next()).kind is not kind:
        pass
    return event


async def test_events_go_on_with_the_next_server_behind_a_gap() -> None:
    with mortal_at() as (program, url):
        async with holdfast.connect(url) as host, host.events() as events:
            asks = ["sh", "-c", "read code; exit $code"]
            process = await host.start(asks, name="asks", keep=True, stdin=holdfast.PIPE)
            assert process.stdin is not None
            before = await events.next()

            kill_server(program)
            gap = await until(events, EventKind.GAP)
            listed = {each.name: each.state for each in gap.processes or ()}
            process.stdin.write(b"5\n")
            exited = await until(events, EventKind.EXITED)

    assert before.kind is EventKind.STARTED
    assert listed == {"asks": "running"}
    assert (exited.name, exited.exit_code) == ("asks", 5)
