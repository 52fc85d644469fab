"""The values of sandboxes, and which of several rules counts."""

from __future__ import annotations

from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.sandbox import (
    NO_SANDBOXES,
    Access,
    Guarantees,
    Named,
    Protection,
    Rule,
    Rules,
    Sandbox,
    SandboxEntry,
    Where,
    depth,
)

READ, WRITE, DENY = Access.READ, Access.WRITE, Access.DENY


def rules(**accesses: Access) -> Rules:
    """Rules for paths whose slashes are underscores here."""
    return Rules([Rule(path.replace("_", "/"), access) for path, access in accesses.items()])


def test_more_is_larger() -> None:
    """Two accesses, or two kinds of protection, are compared as numbers."""
    assert sorted(Access) == [DENY, READ, WRITE]
    assert sorted(Protection) == [Protection.NONE, Protection.SOFT, Protection.HARD]
    assert not DENY
    assert READ


# Which rule counts.


@pytest.mark.parametrize(
    ("path", "access"),
    [
        ("/", READ),
        ("/x", READ),
        ("/a", WRITE),
        ("/a/x/y", WRITE),
        ("/ab", READ),
        ("/a/b", DENY),
        ("/a/b/x", DENY),
        ("/a/bc", WRITE),
        ("/a/b/c", WRITE),
        ("/a/b/c/d/e", WRITE),
    ],
)
def test_the_longest_rule_above_a_path_counts(path: str, access: Access) -> None:
    """Write to a tree, deny a part of it, write to a part of that: as it is written."""
    found = rules(_=READ, _a=WRITE, _a_b=DENY, _a_b_c=WRITE)

    assert found.access(path) is access


def test_what_some_rule_is_about_is_covered_and_nothing_else() -> None:
    """Also if the rule denies it."""
    rules = Rules([Rule("/a/b", Access.DENY)])

    assert [path for path in ("/", "/a", "/a/b", "/a/b/c", "/a/bc") if rules.covers(path)] == [
        "/a/b",
        "/a/b/c",
    ]
    assert Rules([Rule("/", Access.READ)]).covers("/x")


def test_what_is_not_listed_is_denied() -> None:
    assert Rules([]).access("/") is DENY
    assert Rules([]).access("/a/b") is DENY
    assert rules(_a=WRITE).access("/b") is DENY


@pytest.mark.parametrize(
    ("path", "above"), [("/", DENY), ("/a", READ), ("/a/b", WRITE), ("/a/b/c", DENY), ("/x", READ)]
)
def test_a_rule_is_seen_against_what_would_hold_without_it(path: str, above: Access) -> None:
    """Only the difference has to be mounted, or cannot be kept."""
    found = rules(_=READ, _a=WRITE, _a_b=DENY, _a_b_c=WRITE)

    assert found.above(Rule(path, READ)) is above


NAMES = st.lists(st.sampled_from(["a", "b", "ab", ".git"]), max_size=4)
PATHS = NAMES.map(lambda names: "/" + "/".join(names))
POLICIES = st.dictionaries(PATHS, st.sampled_from(list(Access)), max_size=8)


def naive(policy: dict[str, Access], path: str) -> Access:
    """The same without any cleverness: of all rules at or above a path the one with the most names."""
    names = [name for name in path.split("/") if name]
    best, access = -1, DENY
    for place, allowed in policy.items():
        parts = [name for name in place.split("/") if name]
        if names[: len(parts)] == parts and len(parts) > best:
            best, access = len(parts), allowed
    return access


@given(POLICIES, PATHS)
def test_any_rules_mean_what_a_naive_reading_of_them_means(policy: dict[str, Access], path: str) -> None:
    found = Rules([Rule(place, access) for place, access in policy.items()])

    assert found.access(path) is naive(policy, path)
    without = {place: access for place, access in policy.items() if place != path}
    parent = path.rpartition("/")[0] or "/"
    assert found.above(Rule(path, READ)) is (DENY if path == "/" else naive(without, parent))


@given(POLICIES)
def test_upper_rules_come_first(policy: dict[str, Access]) -> None:
    """A mount would hide what was mounted below it before."""
    found = Rules([Rule(place, access) for place, access in policy.items()])

    for at, rule in enumerate(found.rules):
        assert not any(rule.path.startswith(later.path.rstrip("/") + "/") for later in found.rules[at + 1 :])


def test_the_order_in_which_rules_were_given_does_not_matter() -> None:
    """Rulesets are kept by their rules."""
    given_rules = [Rule("/", READ), Rule("/b", WRITE), Rule("/a", WRITE), Rule("/a/b", DENY)]

    made = {Rules(list(order)) for order in permutations(given_rules)}

    assert len(made) == 1
    assert [rule.path for rule in made.pop().rules] == ["/", "/a", "/b", "/a/b"]


def test_rules_are_equal_if_each_of_them_is() -> None:
    assert Rules([Rule("/", READ)]) != Rules([Rule("/", WRITE)])
    assert Rules([Rule("/", READ)]) != Rules([Rule("/", READ, file=True)])
    assert Rules([]) != []


@pytest.mark.parametrize(("path", "names"), [("/", 0), ("/a", 1), ("/a/b", 2)])
def test_the_depth_of_a_path_is_its_names(path: str, names: int) -> None:
    assert depth(path) == names


# What is asked for, and what there is.

ALL = SandboxEntry(Named(Where.ROOT), WRITE)


@pytest.mark.parametrize(
    ("entries", "network", "confines"),
    [(None, True, False), (None, False, True), ((), True, True), ((), False, True), ((ALL,), True, True)],
)
def test_a_sandbox_confines_unless_it_allows_all_files_and_the_network(
    entries: tuple[SandboxEntry, ...] | None, *, network: bool, confines: bool
) -> None:
    """Nothing has to be kept from a command that may do everything."""
    assert Sandbox(entries, network, "/").confines is confines


def test_where_there_are_no_sandboxes_they_are_worth_nothing() -> None:
    assert Guarantees(None, Protection.NONE, exact=False, weaknesses=(), reason="") == NO_SANDBOXES


# Two sets of rules.

PLACES = [f"/{'/'.join(names)}" for count in range(4) for names in product("ab", repeat=count)]
SOME_RULES = st.dictionaries(st.sampled_from(PLACES), st.sampled_from(Access), max_size=6).map(
    lambda found: Rules([Rule(path, access) for path, access in found.items()])
)


@given(SOME_RULES, SOME_RULES)
def test_what_is_within_both_is_everywhere_the_less_of_the_two(first: Rules, second: Rules) -> None:
    both = first.within(second)

    for path in [*PLACES, "/a/b/a/b/a", "/ab", "/c/d"]:
        assert both.access(path) == min(first.access(path), second.access(path))
    assert len({rule.path for rule in both.rules}) == len(both.rules)


@given(SOME_RULES)
def test_rules_within_everything_or_nothing(some: Rules) -> None:
    everything, nothing = Rules([Rule("/", WRITE)]), Rules([])

    assert all(some.within(everything).access(path) == some.access(path) for path in PLACES)
    assert all(nothing.within(some).access(path) is DENY for path in PLACES)
