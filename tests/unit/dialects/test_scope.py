"""Names that a client gave its processes."""

from __future__ import annotations

import pytest

from holdfast.dialects.scope import Scope, Starting
from holdfast.errors import LimitReached, NameTaken


def test_a_name_is_first_starting_then_what_it_stands_for_then_free() -> None:
    scope: Scope[str] = Scope(limit=2)

    starting = scope.reserve("p")
    assert scope.find("p") is starting
    scope.settle(starting, "process")
    assert scope.find("p") == "process"
    scope.release("p")
    assert scope.find("p") is None


@pytest.mark.parametrize("settled", [False, True])
def test_a_name_in_use_cannot_be_taken(*, settled: bool) -> None:
    scope: Scope[str] = Scope(limit=2)
    starting = scope.reserve("p")
    if settled:
        scope.settle(starting, "process")

    with pytest.raises(NameTaken) as caught:
        scope.reserve("p")

    assert caught.value.name == "p"


def test_any_text_is_a_name_of_its_own() -> None:
    scope: Scope[str] = Scope(limit=9)
    names = ["", " ", "a", "A", 'a\n"é', "x" * 10_000]

    for name in names:
        scope.settle(scope.reserve(name), name)

    assert [scope.find(name) for name in names] == names


def test_the_number_of_names_is_bounded_and_a_taken_name_is_told_first() -> None:
    scope: Scope[str] = Scope(limit=1)
    scope.reserve("a")

    with pytest.raises(LimitReached) as caught:
        scope.reserve("b")
    with pytest.raises(NameTaken):
        scope.reserve("a")

    assert (caught.value.limit, caught.value.value) == ("processes of one client", 1)
    scope.release("a")
    assert isinstance(scope.reserve("b"), Starting)


def test_the_names_that_are_bounded_are_called_by_what_they_are() -> None:
    scope: Scope[str] = Scope(limit=0, what="kept processes")

    with pytest.raises(LimitReached) as caught:
        scope.reserve("a")

    assert (caught.value.limit, caught.value.value) == ("kept processes", 0)


def test_the_bytes_of_all_names_are_bounded_too() -> None:
    """A name may be as long as a message; counted as they are sent, and free again with the name."""
    scope: Scope[str] = Scope(limit=9, most_bytes=5, name="session.names")
    scope.reserve("aé")

    with pytest.raises(LimitReached) as caught:
        scope.reserve("bcd")
    scope.settle(scope.reserve("bc"), "entry")
    full = scope.size
    scope.release("aé")

    assert (caught.value.name, caught.value.value) == ("session.name_bytes", 5)
    assert (full, scope.size) == (5, 2)
    assert isinstance(scope.reserve("bcd"), Starting)


def test_a_start_is_given_up_once() -> None:
    calls: list[str] = []
    starting = Starting("p")
    starting.cancel_with(lambda: calls.append("cancel"))

    before = starting.cancelled
    starting.cancel()
    starting.cancel()

    assert (before, starting.cancelled, calls) == (False, True, ["cancel"])


def test_a_start_may_be_given_up_before_it_is_known_how() -> None:
    """Whoever starts the process then finds it out."""
    starting = Starting("p")

    starting.cancel()

    assert starting.cancelled


def test_a_name_carries_the_request_it_was_taken_for() -> None:
    """A second request of the same name is held against it."""
    scope: Scope[str] = Scope(limit=2)
    request = object()

    assert scope.reserve("p", request).request is request
    assert scope.reserve("q").request is None


@pytest.mark.parametrize("runs", [False, True])
def test_who_waits_for_a_start_is_told_once_when_it_is_settled_either_way(*, runs: bool) -> None:
    """And finds then what became of it."""
    scope: Scope[str] = Scope(limit=2)
    starting = scope.reserve("p")
    found: list[object] = []
    for _ in range(2):
        starting.when_settled(lambda: found.append(scope.find("p")))
    before = list(found)

    if runs:
        scope.settle(starting, "process")
    scope.release("p")
    starting.settled()

    assert (before, found) == ([], ["process" if runs else None] * 2)


def test_who_waits_for_a_start_may_take_its_name_at_once() -> None:
    """The name is free before anybody is told, or a second try would find it taken."""
    scope: Scope[str] = Scope(limit=1)
    starting = scope.reserve("p")
    again: list[Starting] = []
    starting.when_settled(lambda: again.append(scope.reserve("p")))

    scope.release("p")

    assert again == [scope.find("p")]


def test_entries_may_be_released_while_they_are_walked() -> None:
    """The end of a session does just that."""
    scope: Scope[str] = Scope(limit=9)
    for name in "abc":
        scope.settle(scope.reserve(name), name)

    for entry in scope:
        assert isinstance(entry, str)
        scope.release(entry)

    assert list(scope) == []
