"""Events of a real server, for clients that read them and for those that do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.fakes.client import Client, client
from tests.fakes.server import program_at

COUNT = 60
LONG = "x" * 300_000
"""The rest of an identifier.  It is in both events of its process, so that few of them fill every buffer."""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with program_at() as (_, found):
        yield found


def told(listening: Client) -> list[Any]:
    return [each["params"] for each in listening.messages if each.get("method") == "events/event"]


async def test_what_another_client_does_is_told(url: str) -> None:
    async with client(url) as listening, client(url) as other:
        await listening.call("events/subscribe", {})
        await other.start("p", "sh", "-c", "exit 3")
        await other.closed("p")
        await listening.until(lambda: told(listening)[-1:] and told(listening)[-1]["kind"] == "exited")

        first, *_, last = told(listening)
        assert (first["kind"], first["processId"], first["argv"]) == ("started", "p", ["sh", "-c", "exit 3"])
        assert (last["exitCode"], last["outcome"]["kind"]) == (3, "exit")
        assert listening.tale("p").kinds == []


@pytest.mark.slow
@pytest.mark.timeout(60)
async def test_a_client_that_does_not_read_holds_nobody_up_and_learns_how_much_it_missed(url: str) -> None:
    """No number is told twice or left out in silence."""
    async with client(url) as listening, client(url) as other:
        first = (await listening.call("events/subscribe", {}))["nextSeq"]
        listening.stop_listening()
        for number in range(COUNT):
            await other.start(f"{number}{LONG}", "true")
            await other.closed(f"{number}{LONG}")
        listening.listen_again()
        await listening.until(lambda: any(each["kind"] == "gap" for each in told(listening)))
        await other.start("last", "true")
        await listening.until(lambda: told(listening)[-1].get("processId") == "last")

    expected = first
    for event in told(listening):
        expected += event.get("lost", 1)
        assert event["seq"] == expected - 1
    assert sum(event.get("lost", 0) for event in told(listening)) > 0
