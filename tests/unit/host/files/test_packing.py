"""What is in the archive of a tree, and what if that changes.  The whole way is a contract test."""

from __future__ import annotations

import errno
import io
import os
import tarfile
from pathlib import Path

import pytest

from holdfast.errors import FileFailed, FileRefused
from holdfast.host.files import packing, tar
from holdfast.host.files.packing import TreeArchive
from holdfast.host.files.resolver import Resolver
from holdfast.sandbox import Access
from tests.fakes.rules import raw, ruled
from tests.fakes.tree import grow


def archive_of(path: Path, resolver: Resolver | None = None, *, step: int = 4096) -> tuple[bytes, list[str]]:
    """The whole archive, and what it leaves out."""
    archive = TreeArchive(resolver or Resolver(), raw(path))
    try:
        pieces: list[bytes] = []
        while data := archive.read(sum(map(len, pieces)), step):
            pieces.append(data)
    finally:
        archive.close()
        archive.close()
    return b"".join(pieces), list(archive.count.omitted)


def names_in(data: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(data)) as opened:
        return sorted(opened.getnames())


def test_what_is_no_file_directory_or_link_is_left_out_and_said_to_be(tmp_path: Path) -> None:
    grow(tmp_path)

    data, omitted = archive_of(tmp_path)

    assert sorted(omitted) == ["fifo", "sock"]
    assert not {"fifo", "sock"} & set(names_in(data))
    found = [each.name for each in tar.TarReader().feed(data) if isinstance(each, tar.OmittedMember)]
    assert sorted(found) == [b"fifo", b"sock"]


def test_a_directory_of_nothing_but_a_pipe_is_an_archive_that_others_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert names_in(archive_of(tmp_path)[0]) == [".", "."]


def test_a_block_is_full_unless_it_is_the_last(tmp_path: Path) -> None:
    """Whoever reads knows the end by that."""
    for number in range(20):
        (tmp_path / str(number)).write_bytes(b"x" * number)
    archive = TreeArchive(Resolver(), raw(tmp_path))

    sizes, offset = [], 0
    while data := archive.read(offset, 1000):
        sizes.append(len(data))
        offset += len(data)
    archive.close()

    assert set(sizes[:-1]) == {1000}
    assert archive.read(offset, 10) == archive.read(offset + 10, 10) == b""


def test_a_file_that_becomes_shorter_is_told_and_the_archive_is_over(tmp_path: Path) -> None:
    """Its length has been written, so there is nothing that could follow."""
    (tmp_path / "log").write_bytes(bytes(packing._PIECE * 2))
    archive = TreeArchive(Resolver(), raw(tmp_path))
    archive.read(0, 4096)
    (tmp_path / "log").write_bytes(b"")

    for _ in range(2):
        with pytest.raises(FileRefused, match="log' became shorter while it was read"):
            archive.read(4096, 10 * packing._PIECE)
    archive.close()


def test_an_error_names_the_path(tmp_path: Path) -> None:
    (tmp_path / "dir").mkdir()
    archive = TreeArchive(Resolver(), raw(tmp_path))
    archive.read(0, 1024)
    (tmp_path / "dir").rmdir()
    (tmp_path / "dir").symlink_to("/")  # What was a directory leads elsewhere now.

    with pytest.raises(NotADirectoryError) as caught:
        archive.read(1024, 4096)
    archive.close()

    assert isinstance(caught.value, FileFailed)
    assert caught.value.path == f"{tmp_path}/dir"


def test_too_many_directories_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their names are all that grows with a tree."""
    monkeypatch.setattr(packing, "_WAITING_MOST", 8)
    for number in range(10):
        (tmp_path / str(number)).mkdir()

    with pytest.raises(FileRefused, match="too many directories"):
        archive_of(tmp_path)


def test_with_rules_there_is_what_a_list_shows(tmp_path: Path) -> None:
    grow(tmp_path)
    resolver = ruled((tmp_path / "d", Access.READ), (tmp_path / "d" / "sub", Access.DENY))

    assert names_in(archive_of(tmp_path, resolver)[0]) == [".", "d", "d/a", "d/up"]


def test_a_name_that_no_archive_takes_is_an_error_of_the_system(tmp_path: Path) -> None:
    here = os.open(tmp_path, os.O_RDONLY)
    try:
        for _ in range(17):
            os.mkdir("x" * 250, dir_fd=here)
            below = os.open("x" * 250, os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
    finally:
        os.close(here)

    with pytest.raises(FileFailed) as caught:
        archive_of(tmp_path)

    assert caught.value.number == errno.ENAMETOOLONG
