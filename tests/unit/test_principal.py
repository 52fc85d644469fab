"""Who a client is, and what it may do."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.principal import ANYBODY, EVERYTHING, Grant, Principal, is_below, matches, variable_name


def test_without_a_bound_everything_is_allowed() -> None:
    assert Grant() == EVERYTHING
    assert EVERYTHING.allows_method("x/y")
    assert EVERYTHING.allows_variable("X")
    assert EVERYTHING.allows_path("/x")


def test_with_an_empty_bound_nothing_is() -> None:
    """None and nothing are two things: a list that somebody has emptied must not open everything."""
    grant = Grant(methods=(), roots=(), variables=())

    assert not grant.allows_method("x/y")
    assert not grant.allows_method("")
    assert not grant.allows_variable("X")
    assert not grant.allows_path("/")


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("process/read", "process/read", True),
        ("process/read", "process/readX", False),
        ("process/read", "Xprocess/read", False),
        ("process/read", "Process/read", False),
        ("process/*", "process/read", True),
        ("process/*", "process/", True),
        ("process/*", "process", False),
        ("*", "", True),
        ("*", "anything\nat all", True),
        ("*/read*", "fs/readFile", True),
        ("*/read*", "fs/writeFile", False),
        ("", "", True),
        ("", "x", False),
        ("a.c", "abc", False),
        ("a?c", "abc", False),
        ("[ab]", "a", False),
        ("(a", "(a", True),
        ("**", "x", True),
        ("LC_*", "LC_ALL", True),
        ("LC_*", "lc_all", False),
        ("a", "a\n", False),
    ],
)
def test_a_pattern_is_about_whole_names_and_only_a_star_is_special(
    pattern: str, name: str, *, expected: bool
) -> None:
    assert matches(name, (pattern,)) is expected
    assert matches(name, ("nobody", pattern)) is expected


@given(st.text(max_size=12), st.lists(st.text(max_size=5), max_size=4))
def test_patterns_without_a_star_mean_themselves(name: str, patterns: list[str]) -> None:
    plain = tuple(pattern for pattern in patterns if "*" not in pattern)

    assert matches(name, plain) is (name in plain)


@pytest.mark.parametrize(
    ("path", "root", "expected"),
    [
        ("/a", "/a", True),
        ("/a/b", "/a", True),
        ("/ab", "/a", False),
        ("/", "/a", False),
        ("/a", "/a/b", False),
        ("/x", "/", True),
        ("/", "/", True),
        ("a", "/a", False),
        ("", "/", False),
    ],
)
def test_what_is_below_a_directory_has_its_whole_name(path: str, root: str, *, expected: bool) -> None:
    assert is_below(path, root) is expected
    assert Grant(roots=(root,)).allows_path(path) is expected
    assert Grant(roots=("/nowhere", root)).allows_path(path) is expected


def test_a_principal_stays_the_same_when_its_token_allows_something_else() -> None:
    assert Principal("a", "i", Grant(processes=1)).identity == Principal("a", "i").identity


@pytest.mark.parametrize("other", [Principal("b", "i"), Principal("a", "j"), Principal("i", "a"), ANYBODY])
def test_another_name_or_issuer_is_another_principal(other: Principal) -> None:
    assert Principal("a", "i").identity != other.identity


def test_a_token_without_a_name_names_nobody_who_came_without_one() -> None:
    """Whoever comes through a unix socket is asked for no token, and shares nothing with those who were."""
    assert Principal("").identity != ANYBODY.identity


@pytest.mark.parametrize(
    ("name", "expected"), [("A", "A"), ("A=b", "A"), ("A=b=c", "A"), ("=A", ""), ("", ""), ("A=", "A")]
)
def test_the_name_of_a_variable_ends_where_a_program_sees_its_end(name: str, expected: str) -> None:
    """Or ``LD_PRELOAD=/tmp/x_OK`` would pass for a name that ends with ``_OK``."""
    grant = Grant(variables=("*_OK", "A", ""))

    assert variable_name(name) == expected
    assert grant.allows_variable(name)
    assert not grant.allows_variable(f"LD_PRELOAD=/tmp/x{name}_OK")


def test_the_first_name_that_is_not_allowed_is_told() -> None:
    grant = Grant(variables=("A*",))

    assert grant.first_forbidden(["A", "AB", "BA=A", "C"]) == "BA=A"
    assert grant.first_forbidden(["A", "AB=C"]) is None
    assert Grant().first_forbidden(["anything"]) is None
