"""How long, and how far, may be looked on the disk for what a policy means."""

from __future__ import annotations

import pytest

from holdfast.config import SandboxLimits
from holdfast.errors import LimitReached
from holdfast.host.sandbox.rules import GivenUp, PolicySearch
from holdfast.sandbox import Access, Named, Pattern, Sandbox, SandboxEntry, Where

READ = Access.READ
LIMITS = SandboxLimits(entries=3, path_bytes=10, patterns=2, matches=2, names=2, lookup_seconds=100.0)


def policy(*places: str | Named | Pattern, roots: tuple[str, ...] = (), cwd: str = "/") -> Sandbox:
    return Sandbox(tuple(SandboxEntry(place, READ) for place in places), network=False, cwd=cwd, roots=roots)


ROOTS = Named(Where.PROJECT_ROOTS)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (policy("/a", "/b", "/c", "/d"), "entries"),
        (policy("/a", ROOTS, roots=("/a", "/b", "/c")), "entries"),
        (policy(ROOTS, ROOTS, roots=("/a", "/b")), "entries"),
        (policy(Pattern("a"), Pattern("b"), Pattern("c")), "patterns"),
        (policy("/" + "a" * 10), "path_bytes"),
        (policy("/" + "é" * 5), "path_bytes"),
        (policy(Pattern("*" * 11)), "path_bytes"),
        (policy(Named(Where.PROJECT_ROOTS, "b" * 11)), "path_bytes"),
        (policy(roots=("/" + "a" * 10,)), "path_bytes"),
        (policy(cwd="/" + "a" * 10), "path_bytes"),
    ],
)
def test_a_policy_that_is_too_large_is_refused_before_anything_is_looked_for(
    asked: Sandbox, name: str
) -> None:
    with pytest.raises(LimitReached) as caught:
        PolicySearch(LIMITS).begin(asked)

    assert (caught.value.name, caught.value.value) == (f"sandbox.{name}", getattr(LIMITS, name))


@pytest.mark.parametrize(
    "asked",
    [
        policy(),
        policy("/" + "a" * 9, Pattern("é" * 5), Pattern("b")),
        policy("/a", ROOTS, roots=("/a", "/b")),
        policy(roots=("/a", "/b", "/c", "/d")),
    ],
)
def test_a_policy_of_the_largest_size_is_not(asked: Sandbox) -> None:
    search = PolicySearch(LIMITS)
    search.begin(asked)
    search.check()


def test_names_and_matches_are_counted_over_all_patterns() -> None:
    search = PolicySearch(LIMITS)
    for _ in range(2):
        search.look()
        search.match()

    with pytest.raises(LimitReached, match=r"names looked at for a sandbox \(2\)"):
        search.look()
    with pytest.raises(LimitReached, match=r"paths that match a sandbox's patterns \(2\)"):
        search.match()


def test_time_counts_from_the_first_look_and_not_before() -> None:
    """It may have waited for a thread."""
    search = PolicySearch(SandboxLimits(lookup_seconds=0.0))
    search.check()

    search.begin(policy())

    with pytest.raises(LimitReached, match="seconds to look for"):
        search.check()


def test_what_nobody_waits_for_ends() -> None:
    search = PolicySearch(LIMITS)
    search.begin(policy())
    search.look()

    search.give_up()
    search.give_up()

    for ask in (search.check, search.look):
        with pytest.raises(GivenUp):
            ask()
