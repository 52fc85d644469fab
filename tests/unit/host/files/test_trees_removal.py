"""Removing files, links and whole trees."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from holdfast.errors import FileRefused, FileUnsupported
from holdfast.host.files import trees
from holdfast.host.files.resolver import Resolver
from holdfast.sandbox import Access
from tests.fakes.rules import fails, raw, ruled
from tests.fakes.tree import grow, outline

ANY, PLAIN = Resolver(), Resolver(follow=False)


def remove(path: Path, resolver: Resolver = ANY, *, recursive: bool = True, force: bool = True) -> None:
    trees.remove(resolver, raw(path), recursive=recursive, force=force)


def test_a_tree_is_removed_and_not_what_its_links_lead_to(tmp_path: Path) -> None:
    grow(tmp_path)
    (tmp_path / "d" / "sub" / "way").symlink_to(tmp_path / "empty")
    for number in range(2500):
        (tmp_path / "d" / "sub" / str(number)).touch()

    remove(tmp_path / "d")
    remove(tmp_path / "ld")

    assert not (tmp_path / "d").exists()
    assert (tmp_path / "empty").is_dir()
    assert (tmp_path / "f").exists()


def test_a_tree_may_be_deeper_than_a_path_may_be_long(tmp_path: Path) -> None:
    fd = os.open(tmp_path, os.O_PATH)
    for _ in range(1500):
        os.mkdir("x" * 9, dir_fd=fd)
        below = os.open("x" * 9, os.O_PATH, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)

    remove(tmp_path / ("x" * 9))

    assert os.listdir(tmp_path) == []


def test_what_is_missing_is_no_matter_with_force(tmp_path: Path) -> None:
    remove(tmp_path / "none")
    remove(tmp_path / "none" / "x")

    with fails(errno.ENOENT):
        remove(tmp_path / "none", force=False)


def test_what_is_refused(tmp_path: Path) -> None:
    grow(tmp_path)
    before = outline(tmp_path)

    with fails(errno.EBUSY):
        remove(Path("/"))
    with fails(errno.ENOTEMPTY):
        remove(tmp_path / "d", recursive=False)
    with pytest.raises(FileUnsupported, match="recursive no-follow removal is unsupported"):
        remove(tmp_path / "f", PLAIN)
    with pytest.raises(FileRefused, match="path contains a symbolic link"):
        remove(tmp_path / "lf", PLAIN, recursive=False)
    assert outline(tmp_path) == before


def test_rules_are_asked_before_anything_is_gone(tmp_path: Path) -> None:
    root = grow(tmp_path).resolve()
    before = outline(root)
    resolver = ruled(("/", Access.READ), (root / "d", Access.WRITE), (root / "d" / "sub", Access.READ))

    for name in ("d", "d/sub", "f", "ld", "ld/sub/b"):
        with fails(errno.EROFS):
            remove(root / name, resolver)
    assert outline(root) == before
    remove(root / "ld" / "a", resolver)
    assert not (root / "d" / "a").exists()


def test_a_tree_that_is_moved_meanwhile_leads_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody moves the directory in which we are to another place: what is above it then is not ours."""
    (tmp_path / "tree" / "a" / "b").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "kept").touch()
    sweep = trees._sweep

    def move_then_sweep(fd: int) -> bytes | None:
        found = sweep(fd)
        if found is None and (tmp_path / "tree" / "a" / "b").exists():
            (tmp_path / "tree" / "a" / "b").rename(tmp_path / "other" / "b")
        return found

    monkeypatch.setattr(trees, "_sweep", move_then_sweep)

    with fails(errno.ESTALE):
        remove(tmp_path / "tree")
    assert sorted(os.listdir(tmp_path / "other")) == ["b", "kept"]
