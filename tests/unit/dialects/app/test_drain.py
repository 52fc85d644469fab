"""When the output of a process that has exited is complete.  The time is whatever the test says."""

from __future__ import annotations

import pytest

from holdfast.dialects.app.drain import Drain
from holdfast.model import Stream

OUT, ERR = Stream.STDOUT, Stream.STDERR


def drain(*, quiet: float | None = 50, hard: float = 2000, exited: float | None = 0) -> Drain:
    made = Drain((OUT, ERR), quiet=quiet, hard=hard)
    if exited is not None:
        made.exited(exited)
    return made


def test_before_the_exit_it_is_never_over() -> None:
    """A process may close its output, or reach its caps, long before it ends."""
    made = drain(exited=None)

    made.heard(0)
    made.ended(OUT)
    made.all_ended()

    assert not made.is_over(10**9)
    assert not made.timed_out


def test_at_the_exit_it_is_over_if_every_stream_has_ended() -> None:
    made = drain(exited=None)
    made.ended(OUT)
    made.ended(ERR)

    made.exited(7)

    assert made.is_over(7)
    assert not made.timed_out


def test_after_the_exit_it_is_over_when_the_last_stream_ends() -> None:
    """One that nobody holds open says nothing about the other."""
    made = drain()

    made.ended(ERR)
    made.ended(ERR)
    between = made.is_over(1)
    made.ended(OUT)

    assert (between, made.is_over(1)) == (False, True)
    assert not made.timed_out


def test_the_end_of_everything_needs_no_names() -> None:
    made = drain()

    made.all_ended()

    assert made.is_over(0)


def test_silence_ends_the_wait() -> None:
    made = drain(exited=100)

    assert made.deadline == 150
    assert (made.is_over(149), made.is_over(150)) == (False, True)
    assert not made.timed_out


def test_every_byte_starts_the_silence_anew() -> None:
    made = drain()

    for now in (49, 98, 147):
        made.heard(now)
        assert made.deadline == now + 50
        assert not made.is_over(now + 49)

    assert made.is_over(197)
    assert not made.timed_out


def test_what_was_heard_before_the_exit_starts_no_silence() -> None:
    """A process that said something long ago and exits now gets the whole window."""
    made = drain(exited=None)
    made.heard(0)

    made.exited(1000)

    assert made.deadline == 1050


@pytest.mark.parametrize("quiet", [None, 50, 5000])
def test_at_the_hard_deadline_it_is_over_whoever_goes_on_talking(quiet: float | None) -> None:
    made = drain(quiet=quiet, exited=10)

    for now in range(10, 2010, 40):
        made.heard(now)
        assert not made.is_over(now)

    assert made.deadline == 2010
    assert made.is_over(2010)
    assert made.timed_out


def test_without_a_window_of_silence_only_the_end_or_the_hard_deadline_counts() -> None:
    made = drain(quiet=None)

    assert made.deadline == 2000
    assert not made.is_over(1999)
    assert made.is_over(2000)


def test_no_time_at_all_is_a_deadline_too() -> None:
    made = drain(hard=0, exited=5)

    assert made.is_over(5)
    assert made.timed_out


def test_a_terminal_has_one_stream() -> None:
    made = Drain((OUT,), quiet=None, hard=9)
    made.exited(0)

    made.ended(OUT)

    assert made.is_over(0)


def test_who_looks_late_finds_the_reason_that_came_first() -> None:
    """A server that was held up cuts nobody off whose silence, or end, came before the hard deadline."""
    silent, ended = drain(), drain(quiet=None)

    assert silent.is_over(5000)
    assert ended.is_over(5000)
    ended.all_ended()
    assert ended.is_over(5000)

    assert (silent.timed_out, ended.timed_out) == (False, False)
