"""The errors of waiting until something is so."""

from __future__ import annotations

import copy

import pytest

from holdfast.api.waiting import ProcessEnded, WaitTimedOut
from holdfast.conditions import Condition
from holdfast.model import Exit, Kind, Outcome

PORT = Condition(port=80)
KILLED = Exit(137, Outcome(Kind.TIMEOUT, signal=9, by="limit", detail="after 3 seconds"))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (WaitTimedOut("web", PORT, 1), "port 80 of process 'web' was not there after 1 second"),
        (
            WaitTimedOut("web", PORT, 2.5, "no"),
            "port 80 of process 'web' was not there after 2.5 seconds: no",
        ),
        (
            ProcessEnded("web", PORT, KILLED),
            "process 'web' has ended with exit code 137 (after 3 seconds) before port 80 was there; "
            "its output may say why",
        ),
    ],
)
def test_an_error_says_what_was_waited_for(error: Exception, words: str) -> None:
    """Also as a copy, which is how another program gets it."""
    assert str(error) == words
    assert str(copy.copy(error)) == words
