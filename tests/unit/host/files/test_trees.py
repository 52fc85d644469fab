"""What is in a directory, and below it."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.errors import TooManyEntries
from holdfast.files import DirEntry, Walk, WalkEntry, WalkTerms
from holdfast.host.files import paths, trees
from holdfast.host.files.resolver import Resolver
from holdfast.sandbox import Access
from tests.fakes.rules import raw, ruled
from tests.fakes.tree import grow

ANY = Resolver()
TERMS = WalkTerms(depth=9, directories=99, entries=999, follow=False, prune=False, budget=10**6, spell=str)


def names(walk: Walk, root: Path) -> list[str]:
    return [str(Path(entry.path).relative_to(root)) for entry in walk.entries]


def test_a_listing_is_in_the_order_of_the_directory(tmp_path: Path) -> None:
    grow(tmp_path)
    (tmp_path / os.fsdecode(b"\xff")).touch()

    entries = trees.listed(ANY, raw(tmp_path), limit=100)

    shown = [name for name in os.listdir(tmp_path) if name not in ("dang", "loop")]
    assert [entry.name for entry in entries] == shown
    assert DirEntry("ld", directory=True, file=False) in entries
    assert DirEntry("fifo", directory=False, file=False) in entries


def test_with_rules_no_process_is_listed_and_nothing_else_that_is_private() -> None:
    resolver = ruled(("/", Access.READ))

    found = {entry.name for entry in trees.listed(resolver, b"/proc", limit=10_000)}
    walk = trees.walk(resolver, b"/proc", TERMS)

    assert found == {os.fsdecode(name) for name in paths.PROCFS_READABLE}
    assert {entry.path for entry in walk.entries} == {f"/proc/{name}" for name in found}
    assert str(os.getpid()) in {entry.name for entry in trees.listed(ANY, b"/proc", limit=100_000)}


def test_a_link_into_a_process_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("/proc/self/environ")
    (tmp_path / "b").symlink_to("/proc/self/root/etc")
    (tmp_path / "c").symlink_to("/etc")

    assert [entry.name for entry in trees.listed(ruled(("/", Access.READ)), raw(tmp_path), limit=9)] == ["c"]


def test_more_than_the_limit_is_counted(tmp_path: Path) -> None:
    for number in range(7):
        (tmp_path / str(number)).touch()

    with pytest.raises(TooManyEntries) as refused:
        trees.listed(ANY, raw(tmp_path), limit=5)

    assert (refused.value.count, refused.value.limit) == (7, 5)


def test_rules_hide_what_is_in_a_directory_and_where_links_lead(tmp_path: Path) -> None:
    root = grow(tmp_path).resolve()
    resolver = ruled((root, Access.READ), (root / "d", Access.DENY))

    entries = trees.listed(resolver, raw(root), limit=100)

    assert {entry.name for entry in entries} == {"f", "lf", "empty", "fifo", "sock"}


def test_a_walk_keeps_to_the_rules(tmp_path: Path) -> None:
    root = grow(tmp_path).resolve()
    resolver = ruled((root, Access.READ), (root / "d" / "sub", Access.DENY))

    walk = trees.walk(resolver, raw(root), replace(TERMS, follow=True))

    assert names(walk, root) == ["d", "empty", "f", "ld", "d/a"]


def test_an_unfollowed_link_has_nothing_below(tmp_path: Path) -> None:
    grow(tmp_path)

    assert trees.walk(ANY, raw(tmp_path / "ld"), TERMS) == Walk([], [], truncated=False)
    assert trees.walk(ANY, raw(tmp_path / "f"), TERMS) == Walk([], [], truncated=False)
    followed = trees.walk(ANY, raw(tmp_path / "ld"), replace(TERMS, follow=True))
    assert names(followed, tmp_path / "ld") == ["a", "sub", "sub/b"]


def test_so_many_directories_are_entered(tmp_path: Path) -> None:
    (tmp_path / "x" / "y").mkdir(parents=True)

    cut = trees.walk(ANY, raw(tmp_path), replace(TERMS, directories=2))
    whole = trees.walk(ANY, raw(tmp_path), replace(TERMS, directories=3))

    assert (names(cut, tmp_path), cut.truncated) == (["x", "x/y"], True)
    assert (names(whole, tmp_path), whole.truncated) == (["x", "x/y"], False)


def test_what_is_found_has_a_weight(tmp_path: Path) -> None:
    for name in ("a", "bb", "ccc"):
        (tmp_path / name).touch()
    each = [64 + len(f"{tmp_path}/{name}") for name in ("a", "bb", "ccc")]

    fits = trees.walk(ANY, raw(tmp_path), replace(TERMS, budget=sum(each)))
    cut = trees.walk(ANY, raw(tmp_path), replace(TERMS, budget=sum(each) - 1))

    assert (names(fits, tmp_path), fits.truncated) == (["a", "bb", "ccc"], False)
    assert (names(cut, tmp_path), cut.truncated) == (["a", "bb"], True)


class Shifting(Resolver):
    """Directories that are gone when they are looked into; tests are run by somebody who may read all."""

    __slots__ = ()

    def take(self, path: bytes, need: Access = Access.READ, *, last: bool = True) -> int:
        if os.path.basename(path) in (b"gone", b"gone too"):
            raise PermissionError(13, "Permission denied")
        return super().take(path, need, last=last)


@pytest.mark.parametrize("follow", [False, True])
def test_what_cannot_be_looked_into_is_told(tmp_path: Path, *, follow: bool) -> None:
    for name in ("gone", "gone too", "there"):
        (tmp_path / name).mkdir()
    terms = replace(TERMS, follow=follow)

    walk = trees.walk(Shifting(), raw(tmp_path), terms)
    small = trees.walk(Shifting(), raw(tmp_path), replace(terms, budget=400))

    assert names(walk, tmp_path) == ["gone", "gone too", "there"]
    assert [(os.path.basename(error.path), error.number) for error in walk.errors] == [
        ("gone", 13),
        ("gone too", 13),
    ]
    assert not walk.truncated
    assert small.truncated
    assert len(small.errors) < 2


def test_the_kinds_of_entries() -> None:
    walk = trees.walk(ANY, b"/proc/self/task", replace(TERMS, depth=0))

    # One of several, and not always the first, where other threads run.
    assert WalkEntry(f"/proc/self/task/{os.getpid()}", directory=True) in walk.entries
