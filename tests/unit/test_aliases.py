"""Aliases: which process one means, through starts, ends and failures."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.aliases import LONGEST, Aliases, coin, coin_identifier, complaint


def test_an_alias_means_the_process_that_got_it_last() -> None:
    aliases = Aliases()
    for identifier in ("1", "2"):
        aliases.reserve("web", identifier)
        aliases.settle(identifier)

    assert aliases.find("web") == "2"


def test_while_a_process_starts_its_alias_means_it() -> None:
    aliases = Aliases()
    aliases.reserve("web", "1")
    aliases.settle("1")
    aliases.reserve("web", "2")

    assert aliases.find("web") == "2"


def test_a_start_that_fails_gives_the_alias_back_to_the_one_before() -> None:
    aliases = Aliases()
    aliases.reserve("web", "1")
    aliases.settle("1")
    aliases.reserve("web", "2")
    aliases.release("2")

    assert aliases.find("web") == "1"


def test_a_process_that_is_forgotten_late_takes_no_alias_away() -> None:
    aliases = Aliases()
    for identifier in ("1", "2"):
        aliases.reserve("web", identifier)
        aliases.settle(identifier)
    aliases.release("1")

    assert aliases.find("web") == "2"
    aliases.release("2")
    assert aliases.find("web") is None


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5), st.sampled_from("rsx"))))
def test_nothing_is_left_of_processes_that_are_forgotten(steps: list[tuple[str, int, str]]) -> None:
    """A server runs for months."""
    aliases, known = Aliases(), set[str]()
    for alias, number, step in steps:
        identifier = str(number)
        if step == "r" and identifier not in known:
            aliases.reserve(alias, identifier)
            known.add(identifier)
        elif step == "s":
            aliases.settle(identifier)
        elif step == "x":
            aliases.release(identifier)
            known.discard(identifier)
    assert all(aliases.find(alias) in {None, *known} for alias in "ab")
    for identifier in known:
        aliases.release(identifier)

    assert [*aliases._held, *aliases._reserved, *aliases._aliases] == []


@pytest.mark.parametrize("alias", ["", "x" * (LONGEST + 1), "a\nb", "\x1b[2J"])
def test_an_alias_that_nobody_can_type_is_complained_about(alias: str) -> None:
    assert complaint(alias) is not None


@pytest.mark.parametrize("alias", ["x" * LONGEST, "Müller 7", "brisk-otter", "-x"])
def test_other_aliases_are_taken(alias: str) -> None:
    assert complaint(alias) is None


def test_coined_names_can_be_typed_and_differ() -> None:
    names = {coin() for _ in range(50)}

    for name in names:
        assert complaint(name) is None
        assert name.isascii()
        assert name.count("-") == 1
    assert len(names) > 25
    assert len({coin_identifier() for _ in range(50)}) == 50
