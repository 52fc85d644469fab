"""When the output of a process that has exited is complete.  The time is whatever the test says."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from holdfast.dialects.app.output import Drain
from holdfast.model import Stream

OUT, ERR = Stream.STDOUT, Stream.STDERR


def drain(*, quiet: float | None = 50, hard: float = 2000, exited: float | None = 0) -> Drain:
    made = Drain((OUT, ERR), quiet=quiet, hard=hard)
    if exited is not None:
        made.exited(exited)
    return made


def ends_at(made: Drain, now: float, *, busy: Iterable[float] = ()) -> float:
    """When it is over if nothing more is heard; ``busy`` is when somebody is at work."""
    looked, late = now, set(busy)
    while not made.is_over(now):
        now = max(now, made.deadline)
        if made.is_to_look(now):
            made.looked(now, at_work=any(looked < at <= now for at in late))
            looked = now
    return now


def test_before_the_exit_it_is_never_over() -> None:
    """A process may close its output, or reach its caps, long before it ends."""
    made = drain(exited=None)

    made.on_output(0)
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

    assert ends_at(made, 100) == 150
    assert not made.timed_out


def test_silence_ends_nothing_before_somebody_has_looked() -> None:
    """Who would break it may wait for a processor."""
    made = drain()

    assert (made.is_over(50), made.is_over(1999)) == (False, False)


def test_the_first_look_is_at_the_exit_and_others_follow_within_the_window() -> None:
    """Later ones are compared with it; one look is under way at most."""
    made = drain()
    assert made.deadline == 0

    asked = made.is_to_look(0), made.is_to_look(0)
    waiting = made.deadline
    made.looked(1, at_work=False)

    assert asked == (True, False)
    assert waiting == 2000
    assert made.deadline == 11
    assert (made.is_to_look(10), made.is_to_look(11)) == (False, True)


@pytest.mark.parametrize("at", [1, 9, 37, 50])
def test_who_is_at_work_starts_the_silence_anew(at: float) -> None:
    """A writer that got no processor for a while says its last words late."""
    made = drain()

    end = ends_at(made, 0, busy=[at])

    assert at + 50 <= end <= at + 50 + 10
    assert not made.timed_out


def test_who_never_rests_is_cut_off_at_the_hard_deadline() -> None:
    made = drain()

    assert ends_at(made, 0, busy=range(3000)) == 2000
    assert made.timed_out


def test_a_look_that_began_before_the_silence_was_over_does_not_end_it() -> None:
    """Whoever it saw asleep may have woken since."""
    made = drain()
    assert made.is_to_look(49)

    made.looked(60, at_work=False)

    assert not made.is_over(60)
    assert made.is_to_look(60)
    made.looked(61, at_work=False)
    assert made.is_over(61)


def test_words_that_come_while_somebody_looks_count_more_than_what_is_seen() -> None:
    made = drain()
    assert made.is_to_look(50)

    made.on_output(51)
    made.looked(52, at_work=False)

    assert not made.is_over(52)
    assert ends_at(made, 52) == 101


def test_a_look_without_an_end_ends_at_the_hard_deadline() -> None:
    made = drain()
    assert made.is_to_look(0)

    assert made.deadline == 2000
    assert made.is_over(2000)


def test_where_silence_is_no_end_nobody_is_looked_at() -> None:
    made = drain(quiet=None)

    assert not made.is_to_look(1999)


def test_every_byte_starts_the_silence_anew() -> None:
    made = drain()

    for now in (49, 98, 147):
        made.on_output(now)

    assert ends_at(made, 147) == 197
    assert not made.timed_out


def test_what_was_heard_before_the_exit_starts_no_silence() -> None:
    """A process that said something long ago and exits now gets the whole window."""
    made = drain(exited=None)
    made.on_output(0)

    made.exited(1000)

    assert ends_at(made, 1000) == 1050


@pytest.mark.parametrize("quiet", [None, 50, 5000])
def test_at_the_hard_deadline_it_is_over_whoever_goes_on_talking(quiet: float | None) -> None:
    made = drain(quiet=quiet, exited=10)

    for now in range(10, 2010, 40):
        made.on_output(now)
        assert not made.is_over(now)

    made.is_to_look(2009)
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
