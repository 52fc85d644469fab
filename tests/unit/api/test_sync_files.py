"""Files of a host, without an event loop."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast import sync
from holdfast.api.sync_files import OpenFile
from holdfast.files import FileMetadata, Purpose, TreeCount, WalkTerms


def umask() -> int:
    """The umask, which can only be known by setting it."""
    os.umask(found := os.umask(0))
    return found


def test_everything_that_can_be_asked_of_files_is_done(tmp_path: Path) -> None:
    terms = WalkTerms(
        depth=9, directories=9, entries=9, follow=False, prune=False, budget=9999, spell=lambda path: path
    )
    with sync.local() as host:
        files = host.files
        folder, file = str(tmp_path / "a" / "b"), str(tmp_path / "a" / "b" / "file")

        files.make_directory(folder, recursive=True)
        files.write(file, b"content")
        files.copy(file, f"{folder}/copy", recursive=False)
        whole, long = files.read(file, at_once=100), files.read(file, at_once=2)
        opened = files.open(f"{folder}/new", Purpose.REPLACE)
        opened.write(0, b"piece")
        opened.close()
        opened.close()
        names = sorted(entry.name for entry in files.list(folder))
        walked = files.walk(str(tmp_path), terms)
        files.remove(f"{folder}/copy", recursive=False, force=False)

        assert whole == b"content"
        assert isinstance(long, OpenFile)
        assert long.read(3, 100) == b"tent"
        long.close()
        assert names == ["copy", "file", "new"]
        assert len(walked.entries) == 5
        assert files.canonical(f"{tmp_path}/a/../a") == str(tmp_path / "a")
        found = files.metadata(f"{folder}/new")
        assert found == FileMetadata(
            directory=False,
            file=True,
            link=False,
            size=5,
            created=found.created,
            modified=found.modified,
            permissions=0o666 & ~umask(),
        )


def test_files_are_used_as_with_pathlib(tmp_path: Path) -> None:
    with sync.local() as host:
        files, tree = host.files, tmp_path / "tree"

        files.mkdir(tree)
        assert files.write_text(tree / "a" / "text", "snow ☃", parents=True, permissions=0o700) == 6
        assert files.write_bytes(tree / "bytes", b"bytes") == 5
        assert files.read_text(tree / "a" / "text") == "snow ☃"
        assert files.read_bytes(tree / "bytes") == b"bytes"
        assert (files.exists(tree), files.is_dir(tree), files.is_file(tree)) == (True, True, False)
        assert list(files.walk(tree)) == [
            (str(tree), ["a"], ["bytes"]),
            (str(tree / "a"), [], ["text"]),
        ]
        with pytest.raises(FileNotFoundError):
            files.read_text(tree / "none")


def test_trees_are_copied(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "file").write_bytes(b"x")
    with sync.local() as host:
        files = host.files

        up = files.upload(tmp_path / "tree", tmp_path / "up")
        down = files.download(tmp_path / "up", tmp_path / "down")
        files.rename(tmp_path / "down", tmp_path / "moved")
        archive, sink = files.archive(tmp_path / "moved"), files.extract(tmp_path / "last")
        sink.write(0, archive.read(0, 1 << 20))
        archive.close()
        sink.close()

        assert up == down == archive.count == sink.count == TreeCount(1, 1, (), complete=True)
        assert (tmp_path / "last" / "file").read_bytes() == b"x"
