"""Directories, with all above them, and files that were not there."""

from __future__ import annotations

import errno
import os
import stat
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


# Files.


def test_a_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o777)
    try:
        made = making.make_file(ANY, raw(tmp_path / "new"))
    finally:
        os.umask(before)

    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o600
    made.close()
    made.close()


@pytest.mark.parametrize("name", ["f", "d", "lf", "dangling"])
def test_a_file_is_made_only_where_there_is_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "f").write_text("precious")
    (tmp_path / "d").mkdir()
    (tmp_path / "lf").symlink_to("f")
    (tmp_path / "dangling").symlink_to("nowhere")

    with fails(errno.EEXIST):
        making.make_file(ANY, raw(tmp_path / name))

    assert (tmp_path / "f").read_text() == "precious"
    assert not (tmp_path / "nowhere").exists()


def test_a_file_is_made_where_the_rules_allow_it(tmp_path: Path) -> None:
    root = tmp_path.resolve()
    (root / "in").mkdir()
    (root / "in" / "out").symlink_to(root)
    resolver = ruled(("/", Access.READ), (root / "in", Access.WRITE))

    making.make_file(resolver, raw(root / "in" / "new")).close()
    with fails(errno.EROFS):
        making.make_file(resolver, raw(root / "in" / "out" / "new"))
    with fails(errno.EBUSY):
        making.make_file(ANY, b"/")

    assert sorted(os.listdir(root)) == ["in"]


def test_a_file_that_is_not_wanted_is_removed_unless_it_is_another_by_now(tmp_path: Path) -> None:
    gone, kept = (making.make_file(ANY, raw(tmp_path / name)) for name in ("gone", "kept"))
    (tmp_path / "kept").unlink()
    (tmp_path / "kept").write_text("another")

    gone.discard()
    kept.discard()

    assert os.listdir(tmp_path) == ["kept"]
    assert (gone.fd, kept.fd) == (-1, -1)
