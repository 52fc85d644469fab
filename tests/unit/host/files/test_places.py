"""Paths as the kernel has them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from holdfast.host.files.places import failure, join, real_path, split
from tests.fakes.rules import fails, raw


@pytest.mark.parametrize(
    ("path", "directory", "name"), [(b"/a/b", b"/a", b"b"), (b"/a", b"/", b"a"), (b"/", b"/", b"")]
)
def test_a_path_is_a_directory_and_a_name(path: bytes, directory: bytes, name: bytes) -> None:
    assert split(path) == (directory, name)
    assert join(directory, name) == path


def test_an_open_file_knows_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    fd = os.open(tmp_path / "f", os.O_PATH)
    (tmp_path / "f").rename(tmp_path / "g")

    assert real_path(fd) == raw(tmp_path.resolve() / "g")

    (tmp_path / "g").unlink()
    with fails(errno.ENOENT):
        real_path(fd)
    os.close(fd)


def test_a_failure_is_the_systems() -> None:
    with fails(errno.EROFS):
        raise failure(errno.EROFS)
