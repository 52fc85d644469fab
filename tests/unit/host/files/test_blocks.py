"""Pieces of an open file, by their place in it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.errors import FileRefused
from holdfast.host.files import blocks
from tests.fakes.rules import fails


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path / "f", os.O_CREAT | os.O_RDWR)
    yield opened
    os.close(opened)


def test_what_is_written_is_read(fd: int) -> None:
    blocks.write(fd, 3, b"abc")

    assert blocks.read(fd, 0, 6) == b"\0\0\0abc"
    assert blocks.read(fd, 4, 100) == b"bc"
    assert blocks.read(fd, 100, 1) == b""


def test_a_file_that_gives_less_than_there_is_is_asked_again() -> None:
    """The kernel's own files give a page at a time."""
    fd = os.open("/proc/kallsyms", os.O_RDONLY)

    assert len(blocks.read(fd, 0, 50_000)) == 50_000
    os.close(fd)


def test_places_end_where_the_kernel_cannot_count_further(fd: int) -> None:
    assert blocks.read(fd, 2**63 - 4, 3) == b""
    with fails(errno.EINVAL):
        blocks.read(fd, 2**63 - 3, 3)
    with pytest.raises(FileRefused, match="file write range exceeds the signed 64-bit file offset limit"):
        blocks.write(fd, 2**63 - 2, b"ab")
