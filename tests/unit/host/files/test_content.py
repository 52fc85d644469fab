"""What is in files, as a whole or piece by piece, and what is known of them."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.errors import FileRefused
from holdfast.files import Purpose
from holdfast.host.files import content
from holdfast.host.files.resolver import Resolver
from holdfast.sandbox import Access
from tests.fakes.rules import fails, raw, ruled
from tests.fakes.tree import grow

ANY, PLAIN = Resolver(), Resolver(follow=False)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return grow(tmp_path)


def read(path: Path | str, *, at_once: int = 100, limit: int = 1000) -> bytes | int:
    return content.read(ANY, os.fsencode(path), at_once=at_once, limit=limit)


def test_a_small_file_is_read_at_once(tree: Path) -> None:
    assert read(tree / "f") == b"hello"
    assert read(tree / "f", at_once=5) == b"hello"


def test_a_file_that_does_not_tell_its_size_is_read_to_its_end() -> None:
    found = read("/proc/self/status", at_once=100_000)

    assert isinstance(found, bytes)
    assert found.startswith(b"Name:")


@pytest.mark.parametrize("path", ["f", "/proc/self/status"])
def test_a_large_file_is_given_open(tree: Path, path: str) -> None:
    fd = read(tree / path, at_once=4)

    assert isinstance(fd, int)
    assert os.pread(fd, 4, 0) in (b"hell", b"Name")
    os.close(fd)


def test_a_file_over_the_limit_is_refused(tree: Path) -> None:
    with pytest.raises(FileRefused, match="file is too large to read: limit is 4 bytes"):
        read(tree / "f", at_once=2, limit=4)


@pytest.mark.parametrize("name", ["d", "fifo"])
def test_what_is_no_file_is_not_read(tree: Path, name: str) -> None:
    with pytest.raises(FileRefused, match=f"path `{tree}/{name}` is not a file"):
        read(tree / name)
    with pytest.raises(FileRefused, match="path is not a regular file"):
        content.open_regular(PLAIN, raw(tree / name))


def test_a_name_that_is_not_text_is_shown_as_far_as_it_is(tree: Path) -> None:
    (tree / os.fsdecode(b"\xff")).mkdir()

    with pytest.raises(FileRefused, match="/\ufffd` is not a file"):
        read(tree / os.fsdecode(b"\xff"))


def test_the_system_s_own_words_for_the_rest(tree: Path) -> None:
    with fails(errno.ENXIO):
        read(tree / "sock")
    with fails(errno.ELOOP):
        content.open_regular(PLAIN, raw(tree / "lf"))
    for purpose in Purpose:
        with pytest.raises(FileRefused, match="path must name an entry"):
            content.open_for(PLAIN, b"/", purpose)


def test_bytes_are_written_in_place(tree: Path) -> None:
    content.write(ANY, raw(tree / "lf"), b"x")
    content.write(PLAIN, raw(tree / "new"), b"y" * 100_000)

    assert (tree / "f").read_bytes() == b"x"
    assert (tree / "new").stat().st_size == 100_000


def test_a_file_to_be_replaced_is_empty_and_regular(tree: Path) -> None:
    fd = content.open_for(ANY, raw(tree / "f"), Purpose.REPLACE)
    os.close(fd)

    assert (tree / "f").read_bytes() == b""
    with pytest.raises(FileRefused, match="path `/dev/null` is not a file"):
        content.open_for(ANY, b"/dev/null", Purpose.REPLACE)
    with pytest.raises(FileRefused, match=f"path `{tree}/fifo` is not a file"):
        content.write(ANY, raw(tree / "fifo"), b"x")
    with pytest.raises(FileRefused, match="path is not a regular file"):
        content.write(PLAIN, b"/dev/null", b"x")


def test_the_memory_of_a_process_is_never_opened() -> None:
    for purpose in Purpose:
        with fails(errno.EACCES):
            content.open_for(ANY, b"/proc/self/mem", purpose)
    with fails(errno.EACCES):
        read("/proc/self/mem")


def test_rules_are_kept(tree: Path) -> None:
    resolver = ruled((tree, Access.READ))

    with fails(errno.EROFS):
        content.write(resolver, raw(tree / "f"), b"")
    assert content.read(resolver, raw(tree / "lf"), at_once=9, limit=9) == b"hello"


def test_metadata_of_a_link_is_that_of_its_target(tree: Path) -> None:
    link = content.metadata(ANY, raw(tree / "lf"))
    file = content.metadata(PLAIN, raw(tree / "f"))

    assert (link.link, link.file, link.directory, link.size) == (True, True, False, 5)
    assert (file.link, file.modified) == (False, (tree / "f").stat().st_mtime_ns)
    assert file.created > 0
    with pytest.raises(FileRefused, match="path contains a symbolic link"):
        content.metadata(PLAIN, raw(tree / "lf"))
    with fails(errno.ENOENT):
        content.metadata(ANY, raw(tree / "dang"))


def test_a_canonical_path_has_no_links(tree: Path) -> None:
    assert content.canonical(ANY, raw(tree / "ld" / "up")) == raw(tree.resolve() / "f")


# Pieces.


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path / "f", os.O_CREAT | os.O_RDWR)
    yield opened
    os.close(opened)


def test_what_is_written_is_read(fd: int) -> None:
    content.write_block(fd, 3, b"abc")

    assert content.read_block(fd, 0, 6) == b"\0\0\0abc"
    assert content.read_block(fd, 4, 100) == b"bc"
    assert content.read_block(fd, 100, 1) == b""


def test_a_file_that_gives_less_than_there_is_is_asked_again() -> None:
    """The kernel's own files give a page at a time."""
    fd = os.open("/proc/kallsyms", os.O_RDONLY)

    assert len(content.read_block(fd, 0, 50_000)) == 50_000
    os.close(fd)


def test_places_end_where_the_kernel_cannot_count_further(fd: int) -> None:
    assert content.read_block(fd, 2**63 - 4, 3) == b""
    with fails(errno.EINVAL):
        content.read_block(fd, 2**63 - 3, 3)
    with pytest.raises(FileRefused, match="file write range exceeds the signed 64-bit file offset limit"):
        content.write_block(fd, 2**63 - 2, b"ab")


# Times.


def test_a_file_has_a_time_of_birth(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    os.utime(tmp_path / "f", (1, 1))
    fd = os.open(tmp_path / "f", os.O_PATH)

    assert abs(content.birth_time(fd) - time.time_ns()) < 60 * 10**9
    os.close(fd)


def test_what_is_nowhere_has_none() -> None:
    assert content.birth_time(-1) == 0
