"""The two sides of a copy, in the same words."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.api.host import local
from holdfast.cli.sides import Far, Kind, Near, Side


@pytest.fixture(params=["near", "far"])
async def side(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Side]:
    if request.param == "near":
        yield Near()
        return
    async with local() as host:
        yield Far(host.files, str(tmp_path))


async def test_what_is_there_is_told_in_the_same_words(side: Side, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("folder")

    kinds = {name: await side.kind(str(tmp_path / name)) for name in ("file", "folder", "pipe", "link", "no")}

    assert kinds == {
        "file": Kind.FILE,
        "folder": Kind.DIRECTORY,
        "pipe": Kind.OTHER,
        "link": Kind.DIRECTORY,
        "no": Kind.MISSING,
    }
    assert await side.kind(str(tmp_path / "file" / "below")) == Kind.MISSING
    assert await side.size(str(tmp_path / "file")) == 5
    assert [await side.is_link(str(tmp_path / name)) for name in ("link", "folder")] == [True, False]
    assert await side.names(str(tmp_path)) == ["file", "folder", "link", "pipe"]


async def test_a_file_is_written_and_read_in_blocks(side: Side, tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "file")
    await side.make_directory(str(tmp_path / "new"))
    await side.make_directory(str(tmp_path / "new"))
    writer = await side.writer(path)
    await writer.write(3, b"def")
    await writer.write(0, b"abc")
    await writer.complete()
    reader = await side.reader(path)
    blocks = [await reader.read(0, 4), await reader.read(4, 4)]
    reader.close()
    reader.close()

    assert blocks == [b"abcd", b"ef"]
    assert os.listdir(tmp_path / "new") == ["file"]


async def test_a_file_that_is_given_up_leaves_nothing(side: Side, tmp_path: Path) -> None:
    writer = await side.writer(str(tmp_path / "file"))
    await writer.write(0, b"half")
    await writer.give_up()

    assert os.listdir(tmp_path) == []


async def test_here_a_file_that_was_there_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o751)
    given_up = await Near().writer(str(path))
    await given_up.write(0, b"new")
    await given_up.give_up()
    between = path.read_bytes()
    writer = await Near().writer(str(path))
    await writer.write(0, b"new")
    await writer.complete()

    assert (between, path.read_bytes()) == (b"old", b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


async def test_here_a_link_is_written_through_and_a_device_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "target").write_bytes(b"old")
    for path in (str(tmp_path / "link"), os.devnull):
        writer = await Near().writer(path)
        await writer.write(0, b"new")
        await writer.complete()

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_paths_are_relative_to_where_the_side_is(tmp_path: Path) -> None:
    far = Far(files=None, cwd="/srv")  # type: ignore[arg-type]

    assert [far.absolute(path) for path in ("a/../b", "/c/", "")] == ["/srv/b", "/c", "/srv"]
    assert Near().absolute("x") == os.path.join(os.getcwd(), "x")


async def test_here_a_new_file_gets_the_mode_it_is_given_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    """A program that was copied is to be run."""
    near = Near()
    (tmp_path / "old").touch(0o600)
    before = os.umask(0o022)
    try:
        for name, mode in (("program", 0o6775), ("plain", None), ("old", 0o755)):
            writer = await near.writer(str(tmp_path / name), mode)
            await writer.complete()
    finally:
        os.umask(before)

    modes = {name: await near.mode(str(tmp_path / name)) for name in ("program", "plain", "old")}
    assert modes == {"program": 0o755, "plain": 0o644, "old": 0o600}


async def test_far_away_there_are_no_modes(tmp_path: Path) -> None:
    async with local() as host:
        assert await Far(host.files, str(tmp_path)).mode(str(tmp_path)) is None
