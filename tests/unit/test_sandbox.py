"""The values of sandboxes, and which of several rules counts."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.sandbox import (
    NO_SANDBOXES,
    Access,
    Guarantees,
    Named,
    Pattern,
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


# Presets.


def test_a_preset_means_the_directory_of_its_command() -> None:
    """Whoever writes ``Sandbox.workspace()`` need not say the directory twice."""
    placed = Sandbox.workspace(write=["out", PurePosixPath("/var/cache")], deny=["**/*.pem"]).at("/repo")

    assert placed == Sandbox(
        (
            SandboxEntry(Named(Where.ROOT), READ),
            SandboxEntry(Named(Where.PROJECT_ROOTS), WRITE),
            SandboxEntry("/repo/out", WRITE),
            SandboxEntry("/var/cache", WRITE),
            SandboxEntry(Named(Where.SLASH_TMP), WRITE),
            SandboxEntry(Named(Where.TMPDIR), WRITE),
            SandboxEntry(Pattern("**/*.pem"), DENY),
        ),
        network=False,
        cwd="/repo",
        roots=("/repo",),
    )


def test_temporary_directories_can_be_left_out_of_a_workspace() -> None:
    assert Sandbox.workspace(tmp=False, network=True).at("/repo") == Sandbox(
        (SandboxEntry(Named(Where.ROOT), READ), SandboxEntry(Named(Where.PROJECT_ROOTS), WRITE)),
        network=True,
        cwd="/repo",
        roots=("/repo",),
    )


def test_what_is_read_only_has_no_writable_place() -> None:
    assert Sandbox.read_only(deny=["/etc/shadow"]).at("/repo") == Sandbox(
        (SandboxEntry(Named(Where.ROOT), READ), SandboxEntry(Pattern("/etc/shadow"), DENY)),
        network=False,
        cwd="/repo",
    )


def test_full_access_forbids_nothing_but_the_network_if_that_is_asked() -> None:
    assert not Sandbox.full_access().confines
    assert Sandbox.full_access(network=False).confines


def test_a_policy_with_absolute_paths_is_not_changed_by_a_directory() -> None:
    """Raw policies mean what they meant before there were presets."""
    policy = Sandbox(
        (SandboxEntry("/a/b", WRITE), SandboxEntry(Pattern("*.pem"), DENY)), False, "/a", roots=("/r",)
    )

    assert policy.at("/elsewhere") == policy


@pytest.mark.parametrize(
    ("sandbox", "is_placed"),
    [
        (Sandbox.workspace(), False),
        (Sandbox.workspace().at("/repo"), True),
        (Sandbox.read_only(), True),
        (Sandbox.read_only(deny=["/a/*"]), True),
        (Sandbox.read_only(deny=["a/*"]), False),
        (Sandbox.read_only(deny=["a/*"]).at("/repo"), True),
        (Sandbox((SandboxEntry("a", WRITE),), network=False, cwd="/repo"), False),
        (Sandbox.full_access(), True),
    ],
)
def test_it_is_known_whether_a_directory_is_still_needed(sandbox: Sandbox, is_placed: bool) -> None:  # noqa: FBT001
    assert sandbox.is_placed is is_placed


@pytest.mark.parametrize("wrong", ["/out", PurePosixPath("/out")])
def test_one_path_is_no_sequence_of_paths(wrong: Any) -> None:
    """Otherwise every directory on the way could be written: ``/`` is the first character of each path."""
    with pytest.raises(TypeError, match=r"write is a sequence of paths, like \['/out'\]"):
        Sandbox.workspace(write=wrong)
    with pytest.raises(TypeError, match="deny is a sequence"):
        Sandbox.read_only(deny=wrong)


def test_an_empty_path_is_refused() -> None:
    """A variable that is not set must not make the working directory writable."""
    with pytest.raises(ValueError, match="write has an empty path"):
        Sandbox.workspace(write=[""])
