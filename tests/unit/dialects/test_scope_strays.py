"""What ended processes have left behind."""

from __future__ import annotations

from holdfast.dialects.scope import Strays
from holdfast.model import Leftovers
from tests.fakes.dialects import FakeProcess

ENDED = [("forget", Leftovers.END)]


def process(*, leftovers: bool = True) -> FakeProcess:
    made = FakeProcess()
    made.has_leftovers = leftovers
    return made


def test_what_was_left_behind_is_ended_once() -> None:
    strays, kept = Strays(), [process(), process()]
    for each in kept:
        strays.keep(each)
    before = [each.calls[:] for each in kept]

    strays.end()
    strays.end()

    assert before == [[], []]
    assert [each.calls for each in kept] == [ENDED, ENDED]


def test_a_process_that_left_nobody_behind_is_not_kept() -> None:
    strays, alone = Strays(), process(leftovers=False)

    strays.keep(alone)
    strays.end()

    assert alone.calls == []


def test_what_comes_after_the_end_is_kept_for_the_next_one() -> None:
    """Nobody may be lost because somebody has cleaned up too early."""
    strays, late = Strays(), process()
    strays.end()

    strays.keep(late)
    strays.end()

    assert late.calls == ENDED


def test_those_whose_leftovers_have_ended_meanwhile_are_dropped() -> None:
    """A session that starts a daemon every second, each of which ends, must not grow for ever."""
    strays, kept = Strays(), [process() for _ in range(1000)]

    for each in kept:
        strays.keep(each)
        each.has_leftovers = False
    strays.end()

    ended = [each for each in kept if each.calls]
    assert 0 < len(ended) <= 32


def test_those_whose_leftovers_live_are_never_dropped() -> None:
    strays, kept = Strays(), [process() for _ in range(1000)]

    for index, each in enumerate(kept):
        strays.keep(each)
        each.has_leftovers = index % 2 == 0
    strays.end()

    assert all(each.calls == ENDED for each in kept[::2])
    # A look at all of them whenever their number has doubled: cheap, and half of them live at least.
    assert sum(bool(each.calls) for each in kept[1::2]) <= 250 + 16
