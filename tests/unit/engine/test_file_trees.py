"""Archives in threads: one piece after the other, and closed when nobody uses them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.engine.file_trees import LocalTree
from holdfast.engine.workers import Workers
from holdfast.errors import FileFailed
from holdfast.host.files.packing import TreeArchive
from holdfast.host.files.resolver import Resolver
from tests.fakes.rules import raw
from tests.fakes.server import eventually


@pytest.fixture
async def workers() -> AsyncIterator[Workers]:
    made = Workers(4, asyncio.get_running_loop(), "test")
    yield made
    made.close()


def open_below(path: Path) -> list[str]:
    """The open files of this process that are at or below a path."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
        except OSError:
            continue
    return [each for each in found if each.startswith(str(path))]


async def test_a_piece_that_nobody_waits_for_any_more_is_over_before_the_next(
    tmp_path: Path, workers: Workers
) -> None:
    """A thread cannot be stopped: two of them at once would mix the archive up."""
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    tree = LocalTree(TreeArchive(Resolver(), raw(tmp_path)), workers)
    given_up = asyncio.ensure_future(tree.read(0, 1 << 20))
    await asyncio.sleep(0)
    given_up.cancel()

    following = await asyncio.gather(tree.read(1 << 20, 1 << 20), return_exceptions=True)
    tree.close()

    # What was given up has been read, or was never begun.
    assert all(isinstance(found, (bytes, FileFailed)) for found in following)
    await eventually(lambda: not open_below(tmp_path))


async def test_it_is_closed_when_the_last_piece_is_read(tmp_path: Path, workers: Workers) -> None:
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    tree = LocalTree(TreeArchive(Resolver(), raw(tmp_path)), workers)
    reading = asyncio.ensure_future(tree.read(0, 1 << 20))
    await asyncio.sleep(0)

    tree.close()
    tree.close()

    assert len(await reading) == 1 << 20
    await eventually(lambda: not open_below(tmp_path))
    with pytest.raises(FileFailed):
        await tree.read(1 << 20, 1)
