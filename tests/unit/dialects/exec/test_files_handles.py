"""Open files of one connection."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.config import FileLimits
from tests.fakes.file_talk import FileScene, file_scene, uri
from tests.fakes.process import eventually


@pytest.fixture
async def scene() -> AsyncIterator[FileScene]:
    async with file_scene(FileLimits(handles=2, block_bytes=4, handle_bytes=3)) as made:
        yield made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path.resolve() / "f"
    path.write_bytes(b"hello")
    return path


def is_open(path: Path) -> bool:
    return any(os.path.realpath(link) == str(path) for link in Path("/proc/self/fd").iterdir())


async def test_a_file_is_opened_read_and_closed(scene: FileScene, file: Path) -> None:
    opened = await scene.call("fs/open", {"handleId": "h", "path": uri(file)})
    blocks = [
        await scene.call("fs/readBlock", {"handleId": "h", "offset": offset, "len": 3}) for offset in (0, 3)
    ]
    closed = [await scene.call("fs/close", {"handleId": "h"}) for _ in range(2)]

    assert opened == {"handleId": "h"}
    assert blocks == [{"chunk": "aGVs", "eof": False}, {"chunk": "bG8=", "eof": True}]
    assert closed == [{}, {}]
    await eventually(lambda: not is_open(file))


async def test_a_file_is_replaced_block_by_block(scene: FileScene, file: Path) -> None:
    await scene.call("fs/open", {"handleId": "h", "path": uri(file), "mode": "replace"})
    await scene.call("fs/writeBlock", {"handleId": "h", "offset": 1, "chunk": "aGk="})

    assert file.read_bytes() == b"\0hi"


async def test_names_and_sizes_have_limits(scene: FileScene, file: Path) -> None:
    for name in "ab":
        await scene.call("fs/open", {"handleId": name, "path": uri(file)})
    opening = {"path": uri(file)}

    assert await scene.refused("fs/open", {**opening, "handleId": "a"}) == (
        -32600,
        "file handle `a` already exists",
    )
    assert await scene.refused("fs/open", {**opening, "handleId": "c"}) == (
        -32600,
        "at most 2 file handles may be open per connection",
    )
    for method, params in (
        ("fs/open", opening),
        ("fs/readBlock", {"offset": 0, "len": 1}),
        ("fs/writeBlock", {"offset": 0, "chunk": ""}),
        ("fs/close", {}),
    ):
        long = (-32600, "file handle ID must not exceed 3 bytes")
        assert await scene.refused(method, {**params, "handleId": "éé"}) == long
    read = (-32600, "file read block length must be between 1 and 4")
    write = (-32600, "file write block length must be between 1 and 4")
    assert await scene.refused("fs/readBlock", {"handleId": "x", "offset": 0, "len": 5}) == read
    assert await scene.refused("fs/writeBlock", {"handleId": "x", "offset": 0, "chunk": ""}) == write
    assert await scene.refused("fs/readBlock", {"handleId": "x", "offset": 0, "len": 1}) == (
        -32004,
        "unknown file handle `x`",
    )


async def test_a_file_that_cannot_be_opened_leaves_its_name_free(scene: FileScene, file: Path) -> None:
    missing = {"handleId": "h", "path": uri(file.parent / "none")}

    assert (await scene.refused("fs/open", missing))[0] == -32004
    assert await scene.call("fs/open", {**missing, "path": uri(file)}) == {"handleId": "h"}


async def test_a_read_that_fails_closes_the_file(scene: FileScene, file: Path) -> None:
    await scene.call("fs/open", {"handleId": "h", "path": uri(file), "mode": "replace"})
    block = {"handleId": "h", "offset": 0, "len": 1}

    assert await scene.refused("fs/readBlock", block) == (-32603, "Bad file descriptor (os error 9)")
    assert await scene.refused("fs/readBlock", block) == (-32004, "unknown file handle `h`")


async def test_files_are_closed_with_the_connection_also_one_that_is_being_opened(
    scene: FileScene, file: Path
) -> None:
    await scene.call("fs/open", {"handleId": "a", "path": uri(file)})
    opening = asyncio.create_task(scene.call("fs/open", {"handleId": "b", "path": uri(file)}))
    await asyncio.sleep(0)

    scene.talk.ended()
    opening.cancel()
    await asyncio.wait([opening])

    await eventually(lambda: not is_open(file))
