"""Directories: making them, with all above them."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from holdfast.errors import FileUnsupported
from holdfast.host.files import making
from holdfast.host.files.resolver import Resolver
from holdfast.sandbox import Access
from tests.fakes.rules import fails, raw, ruled
from tests.fakes.tree import grow

ANY, PLAIN = Resolver(), Resolver(follow=False)


def make(path: Path, resolver: Resolver = ANY, *, recursive: bool = True) -> None:
    making.make_directory(resolver, raw(path), recursive=recursive)


def test_directories_are_made_with_all_above_them(tmp_path: Path) -> None:
    grow(tmp_path)

    make(tmp_path / "n" / "a" / "b")
    make(tmp_path / "ld" / "c")
    make(tmp_path / "p" / "q", PLAIN)
    make(tmp_path / "one", recursive=False)

    assert all((tmp_path / name).is_dir() for name in ("n/a/b", "d/c", "p/q", "one"))
    make(Path("/"))


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("f", errno.EEXIST),
        ("loop", errno.EEXIST),
        ("dang", errno.EEXIST),
        ("dang/x", errno.EEXIST),
        ("f/x", errno.ENOTDIR),
        ("loop/x", errno.ELOOP),
    ],
)
def test_what_is_in_the_way_is_said(tmp_path: Path, name: str, number: int) -> None:
    grow(tmp_path)

    with fails(number):
        make(tmp_path / name)


def test_a_link_is_no_directory_without_following(tmp_path: Path) -> None:
    grow(tmp_path)

    for name in ("ld", "ld/n", "f"):
        with fails(errno.ENOTDIR):
            make(tmp_path / name, PLAIN)
    with fails(errno.EEXIST):
        make(Path("/"), recursive=False)
    with pytest.raises(FileUnsupported, match="directory already exists"):
        make(Path("/"), PLAIN, recursive=False)


def test_rules_are_kept(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "in").mkdir()
    (root / "in" / "out").symlink_to(root)
    resolver = ruled(("/", Access.READ), (root / "in", Access.WRITE))

    make(root / "in" / "a" / "b", resolver)
    make(root / "in" / "c", resolver, recursive=False)
    make(root, resolver)

    for recursive in (True, False):
        with fails(errno.EROFS):
            make(root / "in" / "out" / "n", resolver, recursive=recursive)
    with fails(errno.EEXIST):
        make(root, resolver, recursive=False)
    with fails(errno.EACCES):
        make(root / "in" / "x", ruled((root, Access.DENY)))
    assert os.listdir(root) == ["in"]


@pytest.mark.slow
def test_two_who_make_the_same_at_once_both_have_it(tmp_path: Path) -> None:
    failed: list[BaseException] = []

    def make_all() -> None:
        for number in range(300):
            try:
                make(tmp_path / str(number) / "a" / "b")
            except OSError as error:
                failed.append(error)

    threads = [threading.Thread(target=make_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failed == []
