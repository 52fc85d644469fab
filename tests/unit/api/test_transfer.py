"""Copies when connections break.  The whole way is a contract test: ``tests/contract/test_host_files.py``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.api.embedded import files_here
from holdfast.api.transfer import CopySource, CopyTarget, copy, pump
from holdfast.errors import FileRefused, OutcomeUnknown
from holdfast.files import Purpose
from tests.fakes.server import eventually
from tests.fakes.tree import grow, outline
from tests.unit.engine.test_file_trees import open_below


class BreakingFiles:
    """Files of this host over a connection that breaks in the middle of so many archives."""

    def __init__(self, files: Any, breaks: int) -> None:
        self._files = files
        self.breaks = breaks

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    async def archive(self, path: str, **options: Any) -> Any:
        return BreakingTree(await self._files.archive(path, **options), self)


class BreakingTree:
    """An archive that breaks when more than its first block is read, if there are breaks left."""

    def __init__(self, tree: Any, owner: BreakingFiles) -> None:
        self._tree = tree
        self._owner = owner
        self.count = None

    async def read(self, offset: int, length: int) -> Any:
        if offset and self._owner.breaks:
            self._owner.breaks -= 1
            raise OutcomeUnknown("fs/archive")
        return await self._tree.read(offset, length)

    def close(self) -> None:
        self._tree.close()


def large(root: Path) -> Path:
    source = root / "source"
    source.mkdir()
    grow(source)
    (source / "large").write_bytes(bytes(6 << 20))
    return source


async def test_a_tree_is_begun_anew_when_the_connection_breaks(tmp_path: Path) -> None:
    """The same bytes in the same places: doing it twice is doing it once."""
    source = large(tmp_path)
    async with files_here() as here:
        breaking: Any = BreakingFiles(here, 1)

        count = await copy(
            CopySource(breaking, str(source)),
            CopyTarget(here, f"{tmp_path}/target", outside_links=True),
            lambda size: None,
        )

    assert count.complete
    assert breaking.breaks == 0
    assert outline(tmp_path / "target")["large"] == bytes(6 << 20)


async def test_a_connection_that_breaks_every_time_is_told(tmp_path: Path) -> None:
    source = large(tmp_path)
    async with files_here() as here:
        breaking: Any = BreakingFiles(here, 1000)

        with pytest.raises(OutcomeUnknown):
            await copy(
                CopySource(breaking, str(source)), CopyTarget(here, f"{tmp_path}/target"), lambda size: None
            )
        await eventually(lambda: not open_below(tmp_path))


async def test_an_archive_without_an_end_is_no_copy(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()

    class Cut(BreakingFiles):
        async def archive(self, path: str, **options: Any) -> Any:
            tree = await self._files.archive(path, **options)
            return CutTree(tree, self)

    class CutTree(BreakingTree):
        async def read(self, offset: int, length: int) -> Any:
            return (await self._tree.read(offset, length))[:512]

    async with files_here() as here:
        cut: Any = Cut(here, 0)

        with pytest.raises(FileRefused, match="has no end"):
            await copy(
                CopySource(cut, f"{tmp_path}/source"), CopyTarget(here, f"{tmp_path}/x"), lambda size: None
            )


async def test_a_copy_that_fails_leaves_no_part_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(5 << 20))

    def fail(size: int) -> None:
        raise KeyError(size)

    async with files_here() as here:
        source, target = CopySource(here, f"{tmp_path}/file"), CopyTarget(here, f"{tmp_path}/copy")
        with pytest.raises(KeyError):
            await copy(source, target, fail)

    assert outline(tmp_path).keys() == {"file"}


@pytest.mark.parametrize("size", [0, 1, 1 << 20, 4 << 20, (4 << 20) + 1, 9 << 20])
async def test_everything_is_pumped(tmp_path: Path, size: int) -> None:
    (tmp_path / "file").write_bytes(bytes(size))
    moved = list[int]()
    async with files_here() as here:
        source = await here.open(f"{tmp_path}/file", Purpose.READ)
        sink = await here.open(f"{tmp_path}/copy", Purpose.REPLACE)

        assert await pump(source, sink, moved.append) == sum(moved) == size
        source.close()
        sink.close()

    assert (tmp_path / "copy").stat().st_size == size
