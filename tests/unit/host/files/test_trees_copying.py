"""Copying files, links and whole trees."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from holdfast.errors import FileRefused
from holdfast.host.files import trees
from holdfast.host.files.resolver import Resolver
from holdfast.sandbox import Access
from tests.fakes.rules import fails, raw, ruled
from tests.fakes.tree import grow, outline

ANY = Resolver()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return grow(tmp_path).resolve()


def copy(source: Path, target: Path, resolver: Resolver = ANY, *, recursive: bool = True) -> None:
    trees.copy(resolver, raw(source), raw(target), recursive=recursive)


def test_a_file_has_its_mode_also_over_another(tree: Path) -> None:
    (tree / "f").chmod(0o6750)
    (tree / "n").write_bytes(b"longer than that")

    copy(tree / "f", tree / "n")

    assert (tree / "n").read_bytes() == b"hello"
    assert (tree / "n").stat().st_mode & 0o7777 == 0o6750


def test_a_file_copied_onto_itself_stays(tree: Path) -> None:
    os.link(tree / "f", tree / "same")

    for name in ("f", "lf", "same"):
        copy(tree / "f", tree / name)

    assert (tree / "f").read_bytes() == b"hello"


@pytest.mark.parametrize("existing", [False, True])
@pytest.mark.parametrize(
    ("owner", "group", "mode"),
    [(0, 0, 0o7751), (1234, 0, 0o751), (0, 1234, 0o751), (1234, 1234, 0o751)],
)
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_copy_of_another_owner_makes_nobody_that_owner(
    tree: Path, owner: int, group: int, mode: int, *, existing: bool
) -> None:
    """Or a program that bob has left as his own would be root's, with bob's bytes in it."""
    for name in ("f", "d/a"):
        os.chown(tree / name, owner, group)
        (tree / name).chmod(0o7751)
    if existing:
        (tree / "n").mkdir()
        (tree / "n" / "a").touch(0o6777)
        (tree / "g").touch(0o6777)

    copy(tree / "f", tree / "g")
    copy(tree / "d", tree / "n")

    assert [(tree / name).stat().st_mode & 0o7777 for name in ("g", "n/a")] == [mode, mode]
    assert (tree / "g").read_bytes() == b"hello"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_copy_over_a_file_of_the_same_owner_is_like_its_source(tree: Path) -> None:
    for name in ("f", "d/a"):
        os.chown(tree / name, 1234, 1234)
    (tree / "f").chmod(0o4755)

    copy(tree / "f", tree / "d" / "a")

    facts = (tree / "d" / "a").stat()
    assert (facts.st_uid, facts.st_mode & 0o7777) == (1234, 0o4755)


@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o7755])
def test_under_rules_no_copy_runs_as_its_owner(tree: Path, mode: int) -> None:
    """A command in the same sandbox could not make one either; and somebody may be writing to it already."""
    (tree / "f").chmod(mode)
    (tree / "d" / "a").chmod(mode)
    resolver = ruled(("/", Access.READ), (tree, Access.WRITE))

    copy(tree / "f", tree / "g", resolver)
    copy(tree / "d", tree / "n", resolver)

    assert [(tree / name).stat().st_mode & 0o7777 for name in ("g", "n/a")] == [0o755, 0o755]


def test_a_tree_is_merged_into_what_is_there(tree: Path) -> None:
    (tree / "n" / "sub").mkdir(parents=True)
    (tree / "n" / "a").write_bytes(b"old")
    (tree / "n" / "z").touch()
    os.mkfifo(tree / "d" / "pipe")

    copy(tree / "d", tree / "n")

    assert outline(tree / "n") == {"a": b"A", "sub": None, "sub/b": b"BB", "up": "../f", "z": b""}


@pytest.mark.parametrize(
    ("name", "number"), [("a", errno.EISDIR), ("up", errno.EEXIST), ("sub", errno.EEXIST)]
)
def test_what_is_in_the_way_of_a_tree_is_said(tree: Path, name: str, number: int) -> None:
    (tree / "n").mkdir()
    if name == "a":
        (tree / "n" / name).mkdir()
    else:
        (tree / "n" / name).symlink_to(tree / "empty")

    with fails(number):
        copy(tree / "d", tree / "n")
    assert os.listdir(tree / "empty") == []


@pytest.mark.parametrize("target", ["d", "d/x", "ld", "ld/x/y", "d/sub/b/none"])
def test_a_tree_is_not_copied_into_itself(tree: Path, target: str) -> None:
    before = outline(tree)

    with pytest.raises(FileRefused, match="itself or one of its descendants"):
        copy(tree / "d", tree / target)
    assert outline(tree) == before


def test_what_is_refused(tree: Path) -> None:
    with pytest.raises(FileRefused, match="requires recursive: true"):
        copy(tree / "d", tree / "n", recursive=False)
    with pytest.raises(FileRefused, match="only supports regular files"):
        copy(tree / "fifo", tree / "n")
    for target in (tree / "fifo", Path("/dev/null")):
        with pytest.raises(FileRefused, match=f"path `{target}` is not a file"):
            copy(tree / "f", target)
    os.mkfifo(tree / "empty" / "a")
    with pytest.raises(FileRefused, match="path `a` is not a file"):
        copy(tree / "d", tree / "empty")
    with fails(errno.ENXIO):
        copy(tree / "f", tree / "sock")


def test_rules_are_kept_for_everything_in_a_tree(tree: Path) -> None:
    resolver = ruled((tree, Access.READ), (tree / "n", Access.WRITE), (tree / "d" / "sub" / "b", Access.DENY))
    (tree / "n").mkdir()

    with fails(errno.EACCES):
        copy(tree / "d", tree / "n", resolver)
    with fails(errno.EROFS):
        copy(tree / "f", tree / "g", resolver)
    with fails(errno.EROFS):
        copy(tree / "lf", tree / "g", resolver)
    with fails(errno.EEXIST):
        copy(tree / "lf", tree / "f", resolver)
    assert not (tree / "n" / "sub" / "b").exists()
    copy(tree / "lf", tree / "n" / "link", resolver)
    assert os.readlink(tree / "n" / "link") == "f"


@pytest.mark.parametrize("source", ["/proc/self/status", "large"])
def test_bytes_get_over_whoever_moves_them(tmp_path: Path, source: str) -> None:
    """The kernel does not copy its own files, and says that they are empty."""
    (tmp_path / "large").write_bytes(os.urandom(3_000_000))

    copy(tmp_path / source, tmp_path / "n")

    if source == "large":
        assert (tmp_path / "n").read_bytes() == (tmp_path / "large").read_bytes()
    else:
        assert (tmp_path / "n").read_bytes().startswith(b"Name:")


def test_a_kernel_that_cannot_copy_leaves_it_to_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "f").write_bytes(b"x" * 3_000_000)
    numbers = [errno.EXDEV, errno.EIO]

    def refuse(*_: object) -> int:
        raise OSError(numbers[0], "")

    monkeypatch.setattr(os, "copy_file_range", refuse)

    copy(tmp_path / "f", tmp_path / "n")
    assert (tmp_path / "n").read_bytes() == b"x" * 3_000_000
    numbers.pop(0)
    with fails(errno.EIO):
        copy(tmp_path / "f", tmp_path / "n")
