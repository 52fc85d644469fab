"""Rules as arguments of bubblewrap: what is mounted, and in which order."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.host.sandbox.bubblewrap import arguments, masks, pinned
from holdfast.sandbox import Access, Rule, Rules

READ, WRITE, DENY = Access.READ, Access.WRITE, Access.DENY
HEAD = ["--die-with-parent", "--as-pid-1", "--unshare-user", "--unshare-pid", "--unshare-ipc"]
OWN = ["--dev", "/dev", "--proc", "/proc"]
TAIL = ["--cap-drop", "ALL"]


def told(*rules: Rule, network: bool = True) -> list[str]:
    return arguments(Rules(rules), network=network, hidden="/hidden")


def mounts(*rules: Rule) -> str:
    """What is between the head and the tail, which are always the same."""
    words = told(*rules)
    assert words[: len(HEAD)] == HEAD
    assert words[-len(TAIL) :] == TAIL
    return " ".join(words[len(HEAD) : -len(TAIL)])


def test_reading_everything_is_one_mount() -> None:
    assert told(Rule("/", READ)) == [*HEAD, "--ro-bind", "/", "/", *OWN, *TAIL]


def test_writing_everything_is_one_mount() -> None:
    assert told(Rule("/", WRITE)) == [*HEAD, "--bind", "/", "/", *OWN, *TAIL]


def test_a_command_without_network_has_its_own() -> None:
    assert told(Rule("/", READ), network=False) == [
        *HEAD, "--unshare-net", "--ro-bind", "/", "/", *OWN, *TAIL
    ]  # fmt: skip


def test_a_command_that_may_see_nothing_sees_nothing() -> None:
    """Nor can it put anything there."""
    assert mounts() == "--tmpfs / --dev /dev --proc /proc --remount-ro /"


def test_places_that_can_be_read_are_put_into_an_empty_root() -> None:
    """It is shut when everything is in its place."""
    assert mounts(Rule("/usr", READ), Rule("/w", WRITE), Rule("/etc/x", READ, file=True)) == (
        "--tmpfs / --dev /dev --proc /proc"
        " --ro-bind /usr /usr --bind /w /w --ro-bind /etc/x /etc/x --remount-ro /"
    )


def test_a_workspace_is_laid_over_what_can_be_read() -> None:
    """Names that are not there are covered by empty directories, those that are there by themselves."""
    found = mounts(
        Rule("/", READ),
        Rule("/w", WRITE),
        Rule("/w/.git", READ),
        Rule("/w/.aws", READ, file=True),
        Rule("/w/.codex", READ, missing=True),
    )

    assert found == (
        "--ro-bind / / --dev /dev --proc /proc --bind /w /w"
        " --ro-bind /w/.aws /w/.aws --perms 0555 --tmpfs /w/.codex --ro-bind /w/.git /w/.git"
        " --remount-ro /w/.codex"
    )


def test_what_is_denied_is_covered() -> None:
    """A directory by an empty one, a file by a file that nobody may read."""
    assert mounts(Rule("/", READ), Rule("/d", DENY), Rule("/f", DENY, file=True)) == (
        "--ro-bind / / --dev /dev --proc /proc --perms 0000 --tmpfs /d --ro-bind /hidden /f --remount-ro /d"
    )


def test_what_is_denied_and_not_there_cannot_be_made() -> None:
    assert mounts(Rule("/", READ), Rule("/w", WRITE), Rule("/w/n", DENY, missing=True)) == (
        "--ro-bind / / --dev /dev --proc /proc --bind /w /w --perms 0000 --tmpfs /w/n --remount-ro /w/n"
    )


def test_what_is_allowed_inside_of_what_is_denied_can_be_reached() -> None:
    """Its name must be known: the directory can be gone through, but not listed."""
    assert mounts(Rule("/", READ), Rule("/d", DENY), Rule("/d/w", WRITE), Rule("/d/w/d", DENY)) == (
        "--ro-bind / / --dev /dev --proc /proc --perms 0111 --tmpfs /d --bind /d/w /d/w"
        " --perms 0000 --tmpfs /d/w/d --remount-ro /d/w/d --remount-ro /d"
    )


def test_a_denied_name_that_only_begins_alike_is_another_one() -> None:
    assert "--perms 0000 --tmpfs /d" in mounts(Rule("/", READ), Rule("/d", DENY), Rule("/dd", WRITE))


def test_what_nobody_can_see_needs_no_cover() -> None:
    assert mounts(Rule("/usr", READ), Rule("/d", DENY), Rule("/f", DENY, file=True)) == (
        "--tmpfs / --dev /dev --proc /proc --ro-bind /usr /usr --remount-ro /"
    )


def test_what_changes_nothing_is_not_mounted() -> None:
    """A policy may say the same thing twice."""
    assert mounts(Rule("/", READ), Rule("/usr", READ), Rule("/w", WRITE), Rule("/w/sub", WRITE)) == (
        "--ro-bind / / --dev /dev --proc /proc --bind /w /w"
    )


def test_a_link_is_not_mounted_on() -> None:
    """The mount would cover what it leads to."""
    assert mounts(Rule("/", READ), Rule("/w", WRITE), Rule("/w/.git", READ, file=True, link=True)) == (
        "--ro-bind / / --dev /dev --proc /proc --bind /w /w"
    )


def test_the_other_name_of_a_place_is_there_too_where_only_some_places_are() -> None:
    """``/bin`` is a link on most hosts; where everything can be seen it is there anyway."""
    place = Rule("/usr/bin", READ, aliases=("/bin",))

    assert mounts(Rule("/usr", READ), place) == (
        "--tmpfs / --dev /dev --proc /proc --ro-bind /usr /usr --symlink /usr/bin /bin --remount-ro /"
    )
    assert "/bin" not in mounts(Rule("/", READ), place)


def test_the_other_name_of_what_is_denied_is_not_there() -> None:
    assert "/bin" not in mounts(Rule("/usr", READ), Rule("/usr/bin", DENY, aliases=("/bin",))).split()


@pytest.mark.parametrize("path", ["/with blank", "/--bind", "/\udcff", "/new\nline"])
def test_any_path_is_one_argument(path: str) -> None:
    """They are handed over with NUL bytes between them."""
    words = told(Rule("/", READ), Rule(path, WRITE))

    assert words[-5:-2] == ["--bind", path, path]


def test_every_other_name_of_a_place_is_there() -> None:
    """By a link: what is mounted below the place has to be there by every name."""
    found = mounts(Rule("/w", WRITE, aliases=("/a", "/b")))

    assert "--bind /w /w --symlink /w /a --symlink /w /b" in found


def test_a_name_that_another_name_leads_to_already_needs_no_link() -> None:
    found = mounts(Rule("/w", WRITE, aliases=("/a",)), Rule("/w/x", READ, aliases=("/a/x",)))

    assert "--symlink /w /a" in found
    assert "/a/x" not in found


def test_what_is_the_hosts_in_proc_can_only_be_read() -> None:
    """Root may write to some of it also without any power."""
    words = arguments(Rules([Rule("/", READ)]), network=True, hidden="", proc=["/proc/sys", "/proc/bus"])

    assert " ".join(words[len(HEAD) : -len(TAIL)]) == (
        "--ro-bind / / --dev /dev --proc /proc --ro-bind /proc/sys /proc/sys --ro-bind /proc/bus /proc/bus"
    )


@pytest.mark.parametrize(
    ("rules", "paths"),
    [
        ([Rule("/", READ), Rule("/w", WRITE), Rule("/w/.git", READ)], set()),
        ([Rule("/", READ), Rule("/w", WRITE), Rule("/w/a/b/d", DENY)], {"/w/a", "/w/a/b"}),
        ([Rule("/", READ), Rule("/w", WRITE), Rule("/w/a/d", DENY, missing=True)], {"/w/a"}),
        ([Rule("/", WRITE), Rule("/a/b", READ)], {"/a"}),
        ([Rule("/", WRITE), Rule("/a/b", WRITE)], set()),
        ([Rule("/", READ), Rule("/a/b", DENY)], set()),
        ([Rule("/w", WRITE), Rule("/w/a", READ), Rule("/w/a/b/d", DENY)], set()),
    ],
)
def test_what_is_above_a_protected_place_cannot_be_moved_away(rules: list[Rule], paths: set[str]) -> None:
    """Or somebody could put another one there; a mount point cannot be renamed."""
    assert pinned(Rules(rules)) == paths


def test_a_directory_is_pinned_before_what_is_below_it_is_mounted() -> None:
    assert mounts(Rule("/", READ), Rule("/w", WRITE), Rule("/w/a/d", DENY)) == (
        "--ro-bind / / --dev /dev --proc /proc --bind /w /w --bind /w/a /w/a"
        " --perms 0000 --tmpfs /w/a/d --remount-ro /w/a/d"
    )


def test_many_rules_take_no_longer_than_their_number() -> None:
    """Each was once compared with all others: 20,000 of them took minutes."""
    files = [Rule(f"/w/{number % 100}/{number}", DENY, file=True) for number in range(10_000)]
    rooms = [Rule(f"/w/d{number}", DENY) for number in range(10_000)]

    found = told(Rule("/", READ), Rule("/w", WRITE), *files, *rooms)

    assert (found.count("--ro-bind"), found.count("0000"), found.count("--bind")) == (10_001, 10_000, 101)


def test_masks_are_the_names_that_are_not_there() -> None:
    rules = [Rule("/", READ), Rule("/w/.git", READ, missing=True), Rule("/w", WRITE), Rule("/a", DENY)]

    assert masks(Rules(rules)) == ["/w/.git"]


# Any rules at all.

PATHS = st.lists(st.sampled_from("abc"), max_size=4).map(lambda names: "/" + "/".join(names))
POLICIES = st.dictionaries(PATHS, st.sampled_from(list(Access)), max_size=6)


def seen(words: list[str], path: str) -> Access:
    """What a command may do at a path, from the mounts alone: the last one above it counts."""
    access = DENY
    at = len(HEAD)
    while at < len(words) - len(TAIL):
        word = words[at]
        if word in ("--ro-bind", "--bind"):
            place, allowed = words[at + 2], WRITE if word == "--bind" else READ
            at += 3
        else:
            place, allowed = words[at + 1], DENY
            at += 2
        if word in ("--ro-bind", "--bind", "--tmpfs") and (path + "/").startswith(place.rstrip("/") + "/"):
            access = allowed
    return access


@given(POLICIES, PATHS)
def test_the_mounts_of_any_rules_mean_what_the_rules_mean(policy: dict[str, Access], path: str) -> None:
    """Upper mounts come first, or they would hide the lower ones."""
    rules = Rules([Rule(place, access) for place, access in policy.items()])

    assert seen(arguments(rules, network=True, hidden="/hidden"), path) is rules.access(path)
