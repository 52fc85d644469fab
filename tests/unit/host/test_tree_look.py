"""How far one look may go."""

from __future__ import annotations

import errno

import pytest

from holdfast.host.tree import Look, glance


def test_so_many_entries_are_looked_at_and_no_more() -> None:
    look = Look(3)

    assert [look.take(), look.take(2), look.cut] == [True, True, False]
    assert [look.take(0), look.take(), look.cut] == [True, False, True]
    assert not look.take(0)


def test_a_look_ends_when_its_time_is_over() -> None:
    """The time begins with the first entry: until then it may have waited for a thread."""
    look = Look(seconds=0.0)

    assert look.took == 0.0
    assert not look.take()
    assert look.cut
    assert look.took >= 0.0


def test_a_look_that_nobody_wants_any_more_ends() -> None:
    look = Look()
    assert look.take()

    look.give_up()
    look.give_up()

    assert not look.take()
    assert look.given_up


@pytest.mark.parametrize(
    ("number", "cut"),
    [(errno.ENOENT, False), (errno.ESRCH, False), (errno.EACCES, False), (errno.EMFILE, True)],
)
def test_a_look_that_the_system_has_no_room_for_is_cut(number: int, *, cut: bool) -> None:
    """Who has ended, or is another user's, is not there; nobody knows who else was not seen."""
    look = Look()

    look.failed(OSError(number, "no"))

    assert look.cut is cut


@pytest.mark.parametrize(("entries", "fits"), [(10, True), (1000, False)])
def test_a_glance_is_short(entries: int, *, fits: bool) -> None:
    assert glance().take(entries) is fits
