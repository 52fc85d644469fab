"""Unpacking: whatever an archive says, nothing is made beside the tree.  The whole way is a contract test."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.errors import FileFailed, FileRefused
from holdfast.files import TreeCount
from holdfast.host.files import tar, unpacking
from holdfast.host.files.resolver import Resolver
from holdfast.host.files.tar import ArchiveMember, MemberKind
from holdfast.host.files.unpacking import TreeExtraction
from holdfast.sandbox import Access
from tests.fakes.rules import raw, ruled
from tests.fakes.tree import outline

# The names lead nowhere: no dots, no slashes.  The targets of links lead up at most four times, and the tree
# is five directories below the test's own: a link that was followed by mistake would still end in there.
NAMES = st.lists(st.sampled_from([b"a", b"b", b"l", b"m"]), min_size=1, max_size=3).map(tuple)
TARGETS = st.lists(st.sampled_from([b"..", b".", b"a", b"b", b"l", b"m"]), min_size=1, max_size=4)
MEMBERS = st.one_of(
    st.builds(ArchiveMember, st.just(MemberKind.DIRECTORY), NAMES, st.just(0o755)),
    st.builds(ArchiveMember, st.just(MemberKind.FILE), NAMES, st.just(0o644), st.integers(0, 700)),
    st.builds(
        lambda path, target: ArchiveMember(MemberKind.LINK, path, 0o777, 0, b"/".join(target)),
        NAMES,
        TARGETS,
    ),
)


def archive(*members: ArchiveMember) -> bytes:
    pieces = [tar.header(each) + b"x" * each.size + tar.padding(each.size) for each in members]
    return b"".join(pieces) + tar.END


def unpack(
    path: Path, *members: ArchiveMember, resolver: Resolver | None = None, outside_links: bool = False
) -> None:
    tree = TreeExtraction(resolver or Resolver(), raw(path), outside_links=outside_links)
    try:
        tree.write(0, archive(*members))
        assert tree.count.complete
    finally:
        tree.close()
        tree.close()


def directory(name: bytes, mode: int = 0o755) -> ArchiveMember:
    return ArchiveMember(MemberKind.DIRECTORY, tar.names(name), mode)


def file(name: bytes, size: int = 1, mode: int = 0o644) -> ArchiveMember:
    return ArchiveMember(MemberKind.FILE, tar.names(name), mode, size)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(members=st.lists(MEMBERS, max_size=8), outside_links=st.booleans())
def test_nothing_is_made_beside_the_tree(
    tmp_path: Path, members: list[ArchiveMember], *, outside_links: bool
) -> None:
    root = tmp_path / "own" / "1" / "2" / "3" / "4" / "tree"
    shutil.rmtree(tmp_path / "own", ignore_errors=True)
    root.mkdir(parents=True)

    with contextlib.suppress(FileFailed, FileRefused):
        unpack(root, *members, outside_links=outside_links)

    assert set(outline(tmp_path)) - {
        path.relative_to(tmp_path).as_posix() for path in (root, *root.rglob("*"))
    } == {"own", "own/1", "own/1/2", "own/1/2/3", "own/1/2/3/4"}
    if not outside_links:
        for path in root.rglob("*"):
            # Also links to links: those of a hostile archive together lead no further than each alone.
            assert Path(os.path.realpath(path)).is_relative_to(root)


def test_a_new_directory_gets_its_mode_when_everything_is_in_it(tmp_path: Path) -> None:
    unpack(tmp_path / "new", directory(b".", 0o500), directory(b"a", 0o550), file(b"a/f", mode=0o440))

    assert [(tmp_path / "new" / name).stat().st_mode & 0o777 for name in (".", "a", "a/f")] == [
        0o500,
        0o550,
        0o440,
    ]
    for name in (".", "a"):
        (tmp_path / "new" / name).chmod(0o755)


def test_a_directory_that_was_there_keeps_its_mode(tmp_path: Path) -> None:
    """Whoever unpacks to a shared directory does not open or close it for others."""
    tmp_path.chmod(0o700)
    (tmp_path / "a").mkdir(0o711)

    unpack(tmp_path, directory(b".", 0o777), directory(b"a", 0o777))

    assert [path.stat().st_mode & 0o777 for path in (tmp_path, tmp_path / "a")] == [0o700, 0o711]


def test_directories_that_an_archive_does_not_name_are_made(tmp_path: Path) -> None:
    unpack(tmp_path, file(b"a/b/c"), file(b"a/d"))

    assert outline(tmp_path) == {"a": None, "a/b": None, "a/b/c": b"x", "a/d": b"x"}


def test_modes_that_have_to_wait_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "_CLOSED_MOST", 2)

    with pytest.raises(FileRefused, match="too many directories"):
        unpack(tmp_path, *(directory(b"%d" % number, 0o500) for number in range(3)))


def test_what_was_left_out_is_told(tmp_path: Path) -> None:
    tree = TreeExtraction(Resolver(), raw(tmp_path), outside_links=False)
    tree.write(0, tar.omitted(b"a/pipe") + archive(directory(b".")))
    tree.close()

    assert tree.count == TreeCount(files=0, bytes=0, omitted=("a/pipe",), complete=True)


def test_after_an_error_nothing_more_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    tree = TreeExtraction(Resolver(), raw(tmp_path), outside_links=False)
    data = archive(file(b"a"), file(b"b"))

    for offset in (0, len(data)):
        with pytest.raises(IsADirectoryError):
            tree.write(offset, data)
    tree.close()

    assert outline(tmp_path) == {"a": None}


def test_a_file_under_a_name_that_others_have_taken_is_theirs(tmp_path: Path) -> None:
    tree = TreeExtraction(Resolver(), raw(tmp_path), outside_links=False)
    tree.write(0, tar.header(file(b"f", 1000)))
    (tmp_path / "f").unlink()
    (tmp_path / "f").write_bytes(b"theirs")
    tree.close()

    assert outline(tmp_path) == {"f": b"theirs"}


def test_with_rules_nothing_is_made_where_nothing_may_be_written(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "f").touch()
    resolver = ruled((tmp_path, Access.WRITE), (tmp_path / "kept", Access.READ))

    for member in (file(b"kept/f"), file(b"kept/new"), directory(b"kept/new")):
        with pytest.raises(FileFailed, match="Read-only file system"):
            unpack(tmp_path, member, resolver=resolver)
    unpack(tmp_path, directory(b"kept"), file(b"free", mode=0o755), resolver=resolver)

    assert outline(tmp_path) == {"free": b"x", "kept": None, "kept/f": b""}
