"""The two sides of a copy, in the same words."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.api.host import local
from holdfast.cli.copy_sides import CopySide, HostSide, LocalSide, PathKind
from holdfast.cli.report import Failure


@pytest.fixture(params=["near", "far"])
async def side(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CopySide]:
    if request.param == "near":
        yield LocalSide()
        return
    async with local() as host:
        yield HostSide(host.files, str(tmp_path))


async def test_what_is_there_is_told_in_the_same_words(side: CopySide, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("folder")

    kinds = {name: await side.kind(str(tmp_path / name)) for name in ("file", "folder", "pipe", "link", "no")}

    assert kinds == {
        "file": PathKind.FILE,
        "folder": PathKind.DIRECTORY,
        "pipe": PathKind.OTHER,
        "link": PathKind.DIRECTORY,
        "no": PathKind.MISSING,
    }
    assert await side.kind(str(tmp_path / "file" / "below")) == PathKind.MISSING
    assert [await side.is_link(str(tmp_path / name)) for name in ("link", "folder")] == [True, False]
    assert await side.names(str(tmp_path)) == ["file", "folder", "link", "pipe"]


async def test_a_file_is_written_and_read_in_blocks(side: CopySide, tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "file")
    await side.make_directory(str(tmp_path / "new"))
    await side.make_directory(str(tmp_path / "new"))
    writer = await side.writer(path)
    await writer.write(3, b"def")
    await writer.write(0, b"abc")
    await writer.complete(6)
    reader = await side.reader(path)
    size, *blocks = await reader.size(), await reader.read(0, 4), await reader.read(4, 4)
    reader.close()
    reader.close()

    assert (size, blocks) == (6, [b"abcd", b"ef"])
    assert os.listdir(tmp_path / "new") == ["file"]


async def test_a_file_that_is_given_up_leaves_nothing(side: CopySide, tmp_path: Path) -> None:
    writer = await side.writer(str(tmp_path / "file"))
    await writer.write(0, b"half")
    await writer.discard()

    assert os.listdir(tmp_path) == []


async def test_a_file_of_another_length_is_not_complete(side: CopySide, tmp_path: Path) -> None:
    """Bytes that were taken and have not arrived are not passed over in silence."""
    writer = await side.writer(str(tmp_path / "file"))
    await writer.write(0, b"abc")

    with pytest.raises(Failure, match="3 of 4 bytes arrived"):
        await writer.complete(4)
    await writer.discard()

    assert os.listdir(tmp_path) == []


async def test_here_a_file_that_was_there_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o751)
    given_up = await LocalSide().writer(str(path))
    await given_up.write(0, b"new")
    await given_up.discard()
    between = path.read_bytes()
    writer = await LocalSide().writer(str(path))
    await writer.write(0, b"new")
    await writer.complete(3)

    assert (between, path.read_bytes()) == (b"old", b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


async def test_here_a_link_is_written_through_and_a_device_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    (tmp_path / "target").write_bytes(b"old")
    for path in (str(tmp_path / "link"), os.devnull):
        writer = await LocalSide().writer(path)
        await writer.write(0, b"new")
        await writer.complete(3)

    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_bytes() == b"new"
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_paths_are_relative_to_where_the_side_is(tmp_path: Path) -> None:
    far = HostSide(files=None, cwd="/srv")  # type: ignore[arg-type]

    assert [far.absolute(path) for path in ("a/../b", "/c/", "")] == ["/srv/b", "/c", "/srv"]
    assert LocalSide().absolute("x") == os.path.join(os.getcwd(), "x")


async def test_here_a_new_file_gets_the_mode_it_is_given_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    """A program that was copied is to be run."""
    near = LocalSide()
    (tmp_path / "old").touch(0o600)
    before = os.umask(0o022)
    try:
        for name, mode in (("program", 0o6775), ("plain", None), ("old", 0o755)):
            writer = await near.writer(str(tmp_path / name), mode)
            await writer.complete(0)
    finally:
        os.umask(before)

    modes = {name: await near.mode(str(tmp_path / name)) for name in ("program", "plain", "old")}
    assert modes == {"program": 0o775, "plain": 0o644, "old": 0o600}


async def test_far_away_a_new_file_gets_the_mode_it_is_given_too(tmp_path: Path) -> None:
    async with local() as host:
        far = HostSide(host.files, str(tmp_path))
        (tmp_path / "old").touch(0o600)
        for name, mode in (("program", 0o6775), ("old", 0o755)):
            writer = await far.writer(str(tmp_path / name), mode)
            await writer.complete(0)

        modes = {name: await far.mode(str(tmp_path / name)) for name in ("program", "old")}

    assert modes == {"program": 0o775, "old": 0o600}


# Directories where others write, too.


async def test_here_a_planted_link_is_not_written_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may write in a directory may put a link there under the name of a file to be."""
    (tmp_path / "victim").write_text("precious")
    planted = tmp_path / ".holdfast-00.part"
    planted.symlink_to(tmp_path / "victim")
    monkeypatch.setattr("holdfast.cli.copy_sides.token_hex", lambda size: "00")

    with pytest.raises(FileExistsError):
        await LocalSide().writer(str(tmp_path / "new"))

    assert (tmp_path / "victim").read_text() == "precious"
    assert planted.is_symlink()


async def test_here_the_name_of_an_unfinished_file_cannot_be_guessed(tmp_path: Path) -> None:
    names = set()
    for _ in range(2):
        writer = await LocalSide().writer(str(tmp_path / "new"))
        names |= set(os.listdir(tmp_path))
        await writer.discard()

    assert len(names) == 2
    assert not any(str(os.getpid()) in name for name in names)


async def test_here_a_name_as_long_as_names_may_be_can_be_copied(tmp_path: Path) -> None:
    """The name of the unfinished file is not made of it."""
    path = tmp_path / ("n" * 255)
    writer = await LocalSide().writer(str(path))
    await writer.complete(0)

    assert path.exists()


async def test_here_nobody_reads_the_new_content_who_may_not_read_the_old(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.touch(0o600)
    writer = await LocalSide().writer(str(path), 0o644)
    (part,) = set(os.listdir(tmp_path)) - {"secret"}

    assert await LocalSide().mode(str(tmp_path / part)) == 0o600
    await writer.discard()


async def test_here_a_link_that_leads_nowhere_is_not_written_through(tmp_path: Path) -> None:
    """As with cp: somebody may wait for a file to be made there."""
    (tmp_path / "link").symlink_to("nowhere")

    with pytest.raises(Failure, match="a link that leads nowhere"):
        await LocalSide().writer(str(tmp_path / "link"))

    assert os.listdir(tmp_path) == ["link"]


def _protects() -> bool:
    try:
        return Path("/proc/sys/fs/protected_symlinks").read_text().strip() == "1"
    except OSError:
        return False


@pytest.mark.skipif(os.geteuid() != 0 or not _protects(), reason="needs two users and a kernel that cares")
async def test_here_a_link_that_the_kernel_would_not_follow_is_not_followed(tmp_path: Path) -> None:
    """In a directory such as /tmp the kernel follows no links of strangers; neither do we, by another way."""
    (tmp_path / "victim").write_text("precious")
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "link").symlink_to(tmp_path / "victim")
    os.chown(shared / "link", 12345, 12345, follow_symlinks=False)

    with pytest.raises(PermissionError):
        await LocalSide().writer(str(shared / "link"))

    assert (tmp_path / "victim").read_text() == "precious"
