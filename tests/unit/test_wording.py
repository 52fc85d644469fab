"""Numbers with words, and ends of processes in words."""

from __future__ import annotations

import signal

import pytest

from holdfast.model import Kind, Outcome
from holdfast.wording import counted, signal_name


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0 seconds"),
        (1, "1 second"),
        (1.0, "1 second"),
        (0.03, "0.03 seconds"),
        (1.5, "1.5 seconds"),
        (2, "2 seconds"),
        (12_345_678_901, "12345678901 seconds"),
    ],
)
def test_one_of_a_thing_is_one(number: float, words: str) -> None:
    assert counted(number, "second") == words


def test_every_signal_has_a_name() -> None:
    names = [signal_name(number) for number in (15, signal.SIGRTMIN + 1, 33)]

    assert names == ["SIGTERM", "SIGRTMIN+1", "SIG33"]


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome(Kind.EXIT, 0), "exit 0"),
        (Outcome(Kind.SIGNAL, signal=9), "SIGKILL"),
        (Outcome(Kind.TIMEOUT, signal=9, detail="more than 4 seconds"), "timeout: more than 4 seconds"),
        (Outcome(Kind.TERMINATED, 0, by="client"), "terminated"),
        (Outcome(Kind.SIGNAL), "signal"),
    ],
)
def test_an_outcome_prints_as_words(outcome: Outcome, words: str) -> None:
    """A harness, an agent and a log show it to somebody: the fields are for programs."""
    assert str(outcome) == words
