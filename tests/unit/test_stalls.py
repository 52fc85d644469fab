"""The longest time that one callback held the event loop, and what the log says of it."""

from __future__ import annotations

import logging
from functools import partial

import pytest

from holdfast.stalls import QUIET, WORTH_A_WARNING, Stalls


class Slow:
    """What holds the loop."""

    def work(self, *given: str) -> None: ...


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records]


def test_the_longest_since_the_last_look_is_told() -> None:
    """A scrape shows the worst of its own interval, not of the whole life of a server."""
    stalls = Stalls()
    for seconds in (0.01, 0.03, 0.02):
        stalls.saw(seconds, "something")

    first, second = stalls.take(), stalls.take()
    stalls.saw(0.005, "something")

    assert (first, second, stalls.take()) == (0.03, 0.0, 0.005)


def test_only_what_could_matter_needs_to_be_told() -> None:
    """The hot path compares with the bar and calls nobody; a warning is due however long another took."""
    stalls = Stalls()

    bars = [stalls.bar]
    for seconds in (0.1, WORTH_A_WARNING * 8):
        stalls.saw(seconds, "something")
        bars.append(stalls.bar)
    stalls.take()

    assert [*bars, stalls.bar] == [0.0, 0.1, WORTH_A_WARNING, 0.0]


@pytest.mark.parametrize(
    ("what", "name"),
    [
        (Slow(), "Slow"),
        (Slow().work, "Slow.work"),
        (partial(Slow().work, "a secret"), "Slow.work"),
        ("tasks of a turn", "tasks of a turn"),
    ],
)
def test_the_log_names_what_it_was(what: object, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """By its name in the source: what it was called with is the client's."""
    stalls = Stalls()

    stalls.saw(1.5, what)

    assert told(caplog) == [f"the event loop was held for 1.500 s by {name}"]
    assert caplog.records[0].levelno == logging.WARNING


def test_the_log_names_the_method_that_was_worked_on(caplog: pytest.LogCaptureFixture) -> None:
    stalls = Stalls()
    stalls.doing = "process/list"

    stalls.saw(0.5, Slow())

    assert told(caplog) == ["the event loop was held for 0.500 s by Slow, last for process/list"]
    assert vars(caplog.records[0])["method"] == "process/list"


def test_what_is_short_enough_is_not_worth_a_line(caplog: pytest.LogCaptureFixture) -> None:
    Stalls().saw(WORTH_A_WARNING, Slow())

    assert told(caplog) == []


def test_a_client_that_stalls_us_again_and_again_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Those that were left out are counted in the next line."""
    clock = Clock()
    stalls = Stalls(clock)
    for _ in range(5):
        stalls.saw(1.0, "x")
    clock.now += QUIET
    stalls.saw(1.0, "x")
    clock.now += QUIET
    stalls.saw(1.0, "x")

    line = "the event loop was held for 1.000 s by x"
    assert told(caplog) == [line, f"{line}; 4 more since the last such line", line]
