"""Files as wholes, as the exec dialect has them."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.config import FileLimits
from holdfast.dialects.dialect import LongResult
from holdfast.dialects.exec.methods import METHODS
from holdfast.errors import FileRefused
from tests.fakes.file_talk import FileScene, file_scene, uri
from tests.fakes.process import eventually
from tests.fakes.tree import grow, outline

LIMITS = FileLimits(at_once_bytes=10, read_bytes=100, entries=20, walk_depth=2, walk_bytes=5000)
WALK = {"maxDepth": 2, "maxDirectories": 9, "maxEntries": 99, "followDirectorySymlinks": False}


@pytest.fixture
async def scene() -> AsyncIterator[FileScene]:
    async with file_scene(LIMITS) as made:
        yield made


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return grow(tmp_path).resolve()


async def long_result(scene: FileScene, path: Path) -> LongResult:
    found = METHODS["fs/readFile"]
    result = await found.handle(scene.talk, found.decode({"path": uri(path)}))
    assert isinstance(result, LongResult)
    return result


async def test_a_short_file_is_an_ordinary_answer(scene: FileScene, tree: Path) -> None:
    assert await scene.call("fs/readFile", {"path": uri(tree / "f")}) == {"dataBase64": "aGVsbG8="}


@pytest.mark.parametrize("size", [11, 18, 19, 100])
async def test_a_longer_one_comes_in_pieces_that_are_one_text(
    scene: FileScene, tree: Path, size: int
) -> None:
    data = os.urandom(size)
    (tree / "long").write_bytes(data)

    result = await long_result(scene, tree / "long")
    pieces = [piece async for piece in result.pieces]
    result.close()

    assert (result.head, b"".join(pieces), result.tail) == (
        b'{"dataBase64":"',
        base64.b64encode(data),
        b'"}',
    )
    assert max(map(len, pieces)) <= 12


async def test_a_file_that_shrinks_ends_where_it_ends(scene: FileScene, tree: Path) -> None:
    (tree / "long").write_bytes(bytes(50))
    result = await long_result(scene, tree / "long")
    first = await anext(result.pieces)
    os.truncate(tree / "long", 9)

    assert base64.b64decode(first) == bytes(9)
    assert [piece async for piece in result.pieces] == []
    result.close()


async def test_a_file_that_grows_over_the_limit_breaks_off(scene: FileScene, tree: Path) -> None:
    """A part of it must not look like all of it."""
    (tree / "long").write_bytes(bytes(50))
    result = await long_result(scene, tree / "long")
    with (tree / "long").open("ab") as file:
        file.write(bytes(51))

    with pytest.raises(FileRefused, match="file is too large to read: limit is 100 bytes"):
        async for _ in result.pieces:
            pass
    result.close()


async def test_a_long_answer_keeps_its_turn_and_its_file_until_it_is_over(
    scene: FileScene, tree: Path
) -> None:
    """What is written behind it must not be read by it."""
    (tree / "long").write_bytes(bytes(50))
    result = await long_result(scene, tree / "long")
    params = {"path": uri(tree / "long"), "dataBase64": ""}
    writing = asyncio.create_task(scene.call("fs/writeFile", params))
    done, _ = await asyncio.wait([writing], timeout=0.02)

    result.close()
    await writing

    assert not done
    links = Path("/proc/self/fd").iterdir()
    await eventually(lambda: all(os.path.realpath(link) != str(tree / "long") for link in links))


async def test_a_file_that_cannot_be_read_gives_its_turn_back(scene: FileScene, tree: Path) -> None:
    for _ in range(LIMITS.connection_calls + 1):
        assert (await scene.refused("fs/readFile", {"path": uri(tree / "none")}))[0] == -32004


async def test_what_is_changed(scene: FileScene, tree: Path) -> None:
    await scene.call("fs/createDirectory", {"path": uri(tree / "n" / "m"), "recursive": None})
    await scene.call("fs/writeFile", {"path": uri(tree / "n" / "x"), "dataBase64": "aGk="})
    copy = {"sourcePath": uri(tree / "n"), "destinationPath": uri(tree / "o"), "recursive": True}
    await scene.call("fs/copy", copy)
    await scene.call("fs/remove", {"path": uri(tree / "n")})

    assert outline(tree / "o") == {"m": None, "x": b"hi"}
    assert not (tree / "n").exists()


async def test_params_are_checked_in_a_fixed_order(scene: FileScene, tree: Path) -> None:
    """The sandbox first, then the bytes, then the host of the path: as the reference does."""
    roots: Any = {"type": "special", "value": {"kind": "project_roots"}}
    file_system = {"type": "restricted", "entries": [{"path": roots, "access": "write"}]}
    permissions = {"type": "managed", "file_system": file_system, "network": "restricted"}
    box = {"permissions": permissions, "windowsSandboxLevel": "disabled"}
    params = {"path": "file://h/x", "dataBase64": "*"}

    assert await scene.refused("fs/writeFile", {**params, "sandbox": box}) == (
        -32602,
        "file system sandbox context with dynamic permissions requires cwd",
    )
    assert await scene.refused("fs/writeFile", params) == (
        -32600,
        "fs/writeFile requires valid base64 dataBase64: Invalid symbol 42, offset 0.",
    )
    assert await scene.refused("fs/writeFile", {**params, "dataBase64": ""}) == (
        -32600,
        "'file://h/x' is invalid on 'linux'",
    )


async def test_metadata(scene: FileScene, tree: Path) -> None:
    os.utime(tree / "f", ns=(0, 1_500_000_000_123_456_789))
    facts = await scene.call("fs/getMetadata", {"path": uri(tree / "lf")})
    os.utime(tree / "f", (-5, -5))
    old = await scene.call("fs/getMetadata", {"path": uri(tree / "f")})

    created = facts.pop("createdAtMs")
    assert facts == {
        "isDirectory": False,
        "isFile": True,
        "isSymlink": True,
        "size": 5,
        "modifiedAtMs": 1_500_000_000_123,
    }
    assert created > 1_500_000_000_123
    assert old["modifiedAtMs"] == 0


async def test_paths_without_links(scene: FileScene, tree: Path) -> None:
    assert await scene.call("fs/canonicalize", {"path": uri(tree / "lf")}) == {"path": uri(tree / "f")}


async def test_a_name_that_is_not_text_has_its_uri(scene: FileScene, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"a\xff")).touch()
    (tmp_path / "é").mkdir()

    listed = await scene.call("fs/readDirectory", {"path": uri(tmp_path)})

    assert sorted(listed["entries"], key=str) == [
        {
            "fileName": "a\ufffd",
            "isDirectory": False,
            "isFile": True,
            "path": f"{uri(tmp_path)}/a%FF",
        },
        {"fileName": "é", "isDirectory": True, "isFile": False},
    ]


async def test_a_directory_with_too_much_in_it(scene: FileScene, tmp_path: Path) -> None:
    for number in range(21):
        (tmp_path / str(number)).touch()

    assert await scene.refused("fs/readDirectory", {"path": uri(tmp_path)}) == (
        -32603,
        "fs/readDirectory returned 21 entries; limit is 20",
    )


async def test_a_walk_tells_uris_and_weighs_them(scene: FileScene, tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    for number in range(60):
        (tmp_path / "a b" / f"%{number:02}").touch()

    found = await scene.call("fs/walk", {"path": uri(tmp_path), "options": WALK})

    assert found["entries"][:2] == [
        {"path": f"{uri(tmp_path)}/a%20b", "kind": "directory"},
        {"path": f"{uri(tmp_path)}/a%20b/%2500", "kind": "file"},
    ]
    weight = sum(64 + len(entry["path"]) for entry in found["entries"])
    assert 5000 - 64 - len(f"{uri(tmp_path)}/a%20b/%2500") < weight <= 5000
    assert found["truncated"]
    assert found["errors"] == []


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("maxDepth", 3, "exceed maximums: depth=2, directories=10000, entries=50000"),
        ("maxDirectories", 0, "must be greater than zero"),
        ("maxEntries", 0, "must be greater than zero"),
    ],
)
async def test_a_walk_has_limits(
    scene: FileScene, tmp_path: Path, option: str, value: int, words: str
) -> None:
    params = {"path": uri(tmp_path), "options": {**WALK, option: value}}

    assert await scene.refused("fs/walk", params) == (-32600, f"filesystem walk limits {words}")
