"""What is granted of what may be held."""

from __future__ import annotations

from holdfast.allowance import Allowance

TOTAL = 64 << 20
MOST = 4 << 20


def test_the_first_get_all_they_want() -> None:
    """Most programs have few processes, and those are to be as fast as the line is."""
    allowance = Allowance(TOTAL)
    granted = [allowance.grant(MOST) for _ in range(8)]

    assert [grant.size for grant in granted] == [MOST] * 8


def test_all_together_get_no_more_than_there_is_but_for_a_byte_each() -> None:
    allowance = Allowance(TOTAL)
    granted = [allowance.grant(MOST) for _ in range(10_000)]
    sizes = [grant.size for grant in granted]

    assert sum(sizes) <= TOTAL + len(sizes)
    assert min(sizes) == sizes[-1] == 1
    assert sizes == sorted(sizes, reverse=True)


def test_what_goes_back_is_granted_again() -> None:
    allowance = Allowance(TOTAL)
    granted = [allowance.grant(MOST) for _ in range(1000)]
    assert allowance.grant(MOST).size == 1

    for grant in granted:
        grant.resize(0)

    assert allowance.grant(MOST).size == MOST


def test_what_is_forgotten_goes_back() -> None:
    """Who drops a process does not have to say so."""
    allowance = Allowance(TOTAL)
    granted = [allowance.grant(MOST) for _ in range(1000)]
    assert allowance.grant(MOST).size == 1

    granted.clear()

    assert allowance.grant(MOST).size == MOST


def test_what_is_held_counts_however_much_it_is() -> None:
    allowance = Allowance(TOTAL)
    held = allowance.grant(0)
    found = []
    for size in (TOTAL - 1, 2 * TOTAL, 0):
        held.resize(size)
        found.append((allowance.is_used_up, held.is_too_much, allowance.grant(MOST).size))

    assert found == [(False, False, 1), (True, True, 1), (False, False, MOST)]


def test_a_grant_is_renewed_from_what_is_left_without_it() -> None:
    allowance = Allowance(TOTAL)
    grant = allowance.grant(MOST)

    assert [grant.renew(MOST) for _ in range(100)] == [MOST] * 100
    assert (grant.renew(0), grant.size) == (0, 0)


def test_an_allowance_of_nothing_is_one_byte_each() -> None:
    assert Allowance(0).grant(MOST).size == 1
