"""Waits until a process has brought something about, to the wire and back."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.conditions import Condition, Waited, WaitEnd
from holdfast.model import Exit, Kind, Outcome, Usage
from holdfast.protocol.waiting import WAIT_FOR, WaitForParams, read_waited, wait_for_params, waited

ENDED = Exit(137, Outcome(Kind.TIMEOUT, signal=9, by="limit"), Usage(1000, 2000, 3))


@pytest.mark.parametrize(
    "found",
    [
        Waited(WaitEnd.MET, line="ready", seq=3, missed=True),
        Waited(WaitEnd.MET, status=200),
        Waited(WaitEnd.EXITED, exit=ENDED, trouble="Connection refused"),
        Waited(WaitEnd.TIMEOUT),
    ],
)
def test_what_was_found_gets_to_the_client_as_it_is(found: Waited) -> None:
    assert read_waited(WAIT_FOR.read(msgspec.json.encode(waited(found)))) == found


def test_a_way_to_end_that_is_not_known_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="bored"):
        read_waited(WAIT_FOR.read(b'{"end":"bored"}'))


def test_a_condition_is_asked_for_in_milliseconds_and_uris() -> None:
    assert wait_for_params("p", Condition(file="/a b"), 1.5) == WaitForParams(
        "p", file="file:///a%20b", wait_ms=1500
    )
    assert wait_for_params("p", Condition(port=80), -1) == WaitForParams("p", port=80, wait_ms=0)
