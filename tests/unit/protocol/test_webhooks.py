"""What a webhook is told."""

from __future__ import annotations

import json

from holdfast.model import Exit, Kind, Outcome, Usage
from holdfast.protocol.webhooks import end_notice

TIMEOUT = Exit(137, Outcome(Kind.TIMEOUT, signal=9, by="limit"), Usage(1000, 2000, 3))


def test_an_end_has_all_that_a_client_is_told_of_it() -> None:
    assert json.loads(end_notice("d", 1.5, "p", "web", 7, TIMEOUT)) == {
        "deliveryId": "d",
        "kind": "exited",
        "atMs": 1500,
        "processId": "p",
        "name": "web",
        "pid": 7,
        "exitCode": 137,
        "outcome": {"kind": "timeout", "exitCode": None, "signal": "SIGKILL", "by": "limit", "detail": None},
        "usage": {"userMs": 1, "systemMs": 2, "maxRssBytes": 3},
    }


def test_of_an_end_that_nobody_knows_it_is_told_that() -> None:
    told = json.loads(end_notice("d", 1.5, "p", "", 7, None))

    assert told == {"deliveryId": "d", "kind": "forgotten", "atMs": 1500, "processId": "p", "pid": 7}
