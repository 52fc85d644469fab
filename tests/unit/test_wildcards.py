"""Patterns of names, beside slow models of what they mean."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.wildcards import STAR, STAR_AND_ONE, STAR_ONE_AND_SETS, Wildcards, fold

NAMES = st.text("abAB*?[]!-.\n", max_size=8)
PATTERNS = st.text("abAB*?[]!-.\n", max_size=6)


def slow(pattern: str, name: str) -> bool:
    """The meaning, word for word: every way to divide the name among the stars is tried."""
    if not pattern:
        return not name
    first, rest = pattern[0], pattern[1:]
    if first == "*":
        return any(slow(rest, name[skipped:]) for skipped in range(len(name) + 1))
    return bool(name) and first in ("?", name[0]) and slow(rest, name[1:])


@given(st.lists(PATTERNS, max_size=3), NAMES)
def test_any_patterns_mean_what_the_slow_model_says(patterns: list[str], name: str) -> None:
    wildcards = Wildcards(patterns)
    expected = [place for place, pattern in enumerate(patterns) if slow(pattern, name)]

    assert wildcards.which(name) == expected
    assert wildcards.matches(name) is bool(expected)


@given(st.lists(PATTERNS, max_size=3), NAMES)
def test_without_regard_to_case_it_is_what_a_regular_expression_without_it_says(
    patterns: list[str], name: str
) -> None:
    words = {"*": ".*", "?": "."}
    texts = ["".join(words.get(char) or re.escape(char) for char in pattern) for pattern in patterns]
    expected = any(re.fullmatch(text, name, re.IGNORECASE | re.DOTALL) for text in texts)

    assert Wildcards(patterns, ignore_case=True).matches(name) is expected


@given(PATTERNS, NAMES)
def test_a_set_means_what_it_means_in_a_shell(pattern: str, name: str) -> None:
    """Python's own reader of such patterns takes ``[b-a!]`` for anything; we take it for ``!``."""
    if not re.search(r"\[[^]]*(.)-(?!\1)[^]]", pattern):
        assert Wildcards([pattern], special=STAR_ONE_AND_SETS).matches(name) is fnmatchcase(name, pattern)


@pytest.mark.parametrize(
    ("pattern", "inside", "outside"),
    [
        ("[a-c]", "abc", "dA-"),
        ("[!a-c]", "dA-", "abc"),
        ("[c-a]", "", "abc-"),
        ("[!c-a]", "abc-", ""),
        ("[a-]", "a-", "b"),
        ("[-a]", "a-", "b"),
        ("[a-c-e]", "abc-e", "d"),
        ("[]a]", "]a", "["),
        ("[^a]", "^a", "b"),
        ("[c-a!]", "!", "abc"),
    ],
)
def test_a_set_has_ranges_and_may_be_turned_round(pattern: str, inside: str, outside: str) -> None:
    wildcards = Wildcards([pattern], special=STAR_ONE_AND_SETS)

    assert [char for char in inside + outside if wildcards.matches(char)] == list(inside)


@pytest.mark.parametrize(
    ("special", "expected"),
    [(STAR, ["a?[b]x"]), (STAR_AND_ONE, ["a?[b]x", "aa[b]x"]), (STAR_ONE_AND_SETS, ["aab"])],
)
def test_what_is_special_is_for_the_caller_to_say(special: str, expected: list[str]) -> None:
    wildcards = Wildcards(["a?[b]*"], special=special)

    assert [name for name in ("a?[b]x", "aa[b]x", "aab") if wildcards.matches(name)] == expected


def test_letters_of_all_alphabets_are_folded_one_for_one() -> None:
    """Or a question mark would mean two characters in one spelling, and one in another."""
    assert [fold(text) for text in ("Straße", "ÉÀ", "\u03c2", "\udcffA")] == [
        "straße",
        "éà",
        "\u03c3",
        "\udcffa",
    ]
    every = [chr(number) for number in range(0x80, 0x3000)]
    assert [char for char in every if len(fold(char)) != 1] == []
    assert [char for char in every if not re.fullmatch(re.escape(char), fold(char), re.IGNORECASE)] == []


def test_no_patterns_are_about_nothing() -> None:
    assert not Wildcards([]).matches("")
    assert Wildcards([]).which("a") == []


@pytest.mark.parametrize("special", [STAR_AND_ONE, STAR_ONE_AND_SETS])
@pytest.mark.parametrize("part", ["*a", "*?", "*a?", "a*"])
def test_a_pattern_that_can_be_divided_in_many_ways_takes_no_longer(part: str, special: str) -> None:
    """It took a regular expression longer than the age of the universe."""
    wildcards = Wildcards([part * 1000 + "c"], special=special, ignore_case=True)

    assert not wildcards.matches("A" * 4000)
    assert wildcards.matches("A" * 4000 + "C")
