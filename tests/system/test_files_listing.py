"""Listings and walks, against the real program: order, limits, and names that are not UTF-8."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.client import Client, Refusal, client
from tests.fakes.file_talk import uri
from tests.fakes.server import program_at
from tests.fakes.tree import grow

ODD = b"a\xffb\n%41"
"""A name that is not UTF-8, and that a careless encoding would change."""

WIDE = {"maxDepth": 64, "maxDirectories": 10_000, "maxEntries": 50_000, "followDirectorySymlinks": False}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with program_at("--endpoint", "exec") as (_, where):
        yield where


async def walk(talking: Client, path: Path, **options: Any) -> tuple[list[str], bool]:
    """Paths relative to the root, directories with a slash, and whether there was more."""
    found = await talking.call("fs/walk", {"path": uri(path), "options": {**WIDE, **options}})
    assert found["errors"] == []
    prefix = len(uri(path)) + 1
    entries = [
        entry["path"][prefix:] + ("/" if entry["kind"] == "directory" else "") for entry in found["entries"]
    ]
    return entries, found["truncated"]


async def test_links_are_listed_as_what_they_lead_to(url: str, tmp_path: Path) -> None:
    grow(tmp_path)
    async with client(url) as talking:
        found = await talking.call("fs/readDirectory", {"path": uri(tmp_path)})

    kinds = {each["fileName"]: (each["isDirectory"], each["isFile"]) for each in found["entries"]}
    assert [each["fileName"] for each in found["entries"]] == [
        name for name in os.listdir(tmp_path) if name not in ("dang", "loop")
    ]
    assert (kinds["lf"], kinds["ld"], kinds["fifo"]) == ((False, True), (True, False), (False, False))


@pytest.mark.parametrize(
    ("name", "code"), [("f", -32603), ("nope", -32004), ("dang", -32004), ("fifo", -32603)]
)
async def test_only_directories_are_listed(url: str, tmp_path: Path, name: str, code: int) -> None:
    grow(tmp_path)
    async with client(url) as talking:
        with pytest.raises(Refusal) as refused:
            await talking.call("fs/readDirectory", {"path": uri(tmp_path / name)})

    assert refused.value.code == code


async def test_a_name_that_is_not_utf8_can_be_used_from_a_listing(url: str, tmp_path: Path) -> None:
    """The reference shows such a name and cannot open it."""
    (tmp_path / os.fsdecode(ODD)).write_bytes(b"found")
    async with client(url) as talking:
        listed = await talking.call("fs/readDirectory", {"path": uri(tmp_path)})
        walked, _ = await walk(talking, tmp_path)
        from_list = await talking.call("fs/readFile", {"path": listed["entries"][0]["path"]})
        from_walk = await talking.call("fs/readFile", {"path": f"{uri(tmp_path)}/{walked[0]}"})
        canonical = await talking.call("fs/canonicalize", {"path": listed["entries"][0]["path"]})

    assert listed["entries"][0]["fileName"] == "a\ufffdb\n%41"
    assert from_list == from_walk == {"dataBase64": "Zm91bmQ="}
    assert canonical == {"path": listed["entries"][0]["path"]}


async def test_a_walk_goes_level_by_level_in_the_order_of_the_names(url: str, tmp_path: Path) -> None:
    for name in ("b/2", "a/deep/er/3", "a/1", ".h/x", "B"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("B")
    os.mkfifo(tmp_path / "pipe")
    async with client(url) as talking:
        whole = await walk(talking, tmp_path)
        pruned = await walk(talking, tmp_path, pruneHiddenDirectories=True)
        shallow = await walk(talking, tmp_path, maxDepth=0)
        of_a_file = await walk(talking, tmp_path / "B")

    top = [".h/", "B", "a/", "b/"]
    assert whole == ([*top, ".h/x", "a/1", "a/deep/", "b/2", "a/deep/er/", "a/deep/er/3"], False)
    assert pruned == ([*top, "a/1", "a/deep/", "b/2", "a/deep/er/", "a/deep/er/3"], False)
    assert shallow == (top, False)
    assert of_a_file == ([], False)


@pytest.mark.parametrize(
    ("options", "entries", "truncated"),
    [
        ({"maxDirectories": 1}, ["x/"], True),
        ({"maxDirectories": 3}, ["x/", "x/y/"], False),
        ({"maxEntries": 1}, ["x/"], True),
        ({"maxEntries": 2}, ["x/", "x/y/"], False),
        ({"maxDepth": 0}, ["x/"], False),
    ],
)
async def test_a_walk_says_when_it_was_cut_short(
    url: str, tmp_path: Path, options: dict[str, int], entries: list[str], *, truncated: bool
) -> None:
    (tmp_path / "x" / "y").mkdir(parents=True)
    async with client(url) as talking:
        assert await walk(talking, tmp_path, **options) == (entries, truncated)


async def test_a_walk_through_links_enters_each_directory_once(url: str, tmp_path: Path) -> None:
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "f").touch()
    (tmp_path / "d" / "up").symlink_to("..")
    (tmp_path / "alias").symlink_to("d")
    async with client(url) as talking:
        followed = await walk(talking, tmp_path, followDirectorySymlinks=True)
        from_link = await walk(talking, tmp_path / "alias")

    assert followed == (["alias/", "d/", "alias/e/", "alias/up/", "alias/e/f"], False)
    assert from_link == ([], False)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"maxDepth": 65}, "exceed maximums: depth=64, directories=10000, entries=50000"),
        ({"maxDirectories": 10_001}, "exceed maximums: depth=64, directories=10000, entries=50000"),
        ({"maxEntries": 2**63}, "exceed maximums: depth=64, directories=10000, entries=50000"),
        ({"maxDirectories": 0}, "must be greater than zero"),
        ({"maxEntries": 0}, "must be greater than zero"),
    ],
)
async def test_the_limits_of_a_walk_have_limits(
    url: str, tmp_path: Path, options: dict[str, int], text: str
) -> None:
    async with client(url) as talking:
        with pytest.raises(Refusal) as refused:
            await walk(talking, tmp_path, **options)

    assert (refused.value.code, refused.value.text) == (-32600, f"filesystem walk limits {text}")


@pytest.mark.slow
@pytest.mark.timeout(120)
async def test_huge_directories_are_bounded(url: str, tmp_path: Path) -> None:
    """50,000 names are an answer; one more is an error that says how many there are."""
    for number in range(50_000):
        os.close(os.open(tmp_path / f"{'n' * 60}{number:05}", os.O_CREAT | os.O_WRONLY))
    async with client(url) as talking:
        listed = await talking.call("fs/readDirectory", {"path": uri(tmp_path)})
        walked, truncated = await walk(talking, tmp_path)
        (tmp_path / "one more").touch()
        with pytest.raises(Refusal) as refused:
            await talking.call("fs/readDirectory", {"path": uri(tmp_path)})

    assert len(listed["entries"]) == 50_000
    assert (refused.value.code, refused.value.text) == (
        -32603,
        "fs/readDirectory returned 50001 entries; limit is 50000",
    )
    # An entry counts 64 bytes and its path, and all of them 4 MiB.
    assert truncated
    assert len(walked) == (4 << 20) // (64 + len(uri(tmp_path)) + 1 + 65)
