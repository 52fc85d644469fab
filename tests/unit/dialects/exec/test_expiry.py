"""Things that end a fixed time after they were put somewhere."""

from __future__ import annotations

from holdfast.dialects.exec.expiry import Expiry


def test_nothing_is_due_before_its_time() -> None:
    expiry: Expiry[str] = Expiry(30.0)
    expiry.add("a", 100.0)

    assert list(expiry.due(129.999)) == []
    assert expiry.next_deadline == 130.0


def test_what_is_due_is_taken_out_in_order() -> None:
    expiry: Expiry[str] = Expiry(30.0)
    expiry.add("a", 100.0)
    expiry.add("b", 101.0)
    expiry.add("c", 102.0)

    assert list(expiry.due(131.0)) == ["a", "b"]
    assert list(expiry.due(131.0)) == []
    assert expiry.next_deadline == 132.0


def test_an_empty_one_has_no_deadline() -> None:
    expiry: Expiry[str] = Expiry(30.0)

    assert expiry.next_deadline is None
    assert list(expiry.due(1e9)) == []


def test_what_is_added_while_others_are_taken_out_waits_its_own_time() -> None:
    expiry: Expiry[str] = Expiry(30.0)
    expiry.add("a", 100.0)

    for item in expiry.due(130.0):
        expiry.add(item, 130.0)

    assert expiry.next_deadline == 160.0


def test_with_no_delay_all_is_due_at_once() -> None:
    """Such a limit means that nothing is kept."""
    expiry: Expiry[str] = Expiry(0.0)
    expiry.add("a", 5.0)

    assert list(expiry.due(5.0)) == ["a"]


def test_what_comes_close_together_ends_together_and_nothing_before_its_time() -> None:
    """Thousands of processes that close within a moment cost one deadline."""
    expiry: Expiry[int] = Expiry(30.0)
    for number in range(1000):
        expiry.add(number, 100.0 + number / 10_000)

    assert list(expiry.due(130.0)) == []
    assert list(expiry.due(130.0999)) == list(range(1000))
    assert expiry.next_deadline is None


def test_what_is_put_back_while_it_is_taken_out_is_not_taken_out_again() -> None:
    expiry: Expiry[str] = Expiry(30.0)
    expiry.add("a", 100.0)
    expiry.add("b", 100.1)

    taken = []
    for item in expiry.due(130.1):
        taken.append(item)
        expiry.add(item, 130.1)

    assert taken == ["a", "b"]
