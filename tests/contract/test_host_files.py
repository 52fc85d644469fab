"""The files of a host as programs use them: like ``pathlib``, the same on this host and on another one."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import cast

import pytest

from holdfast.api.host import Host, connect
from holdfast.client.remote import RemoteBackend
from holdfast.errors import FileFailed, FileRefused, Unsupported
from holdfast.files import TreeCount
from tests.contract.test_file_trees import modes
from tests.fakes.tree import grow, outline

ODD = os.fsdecode(b"odd \xff%41\n\xe2\x98\x83")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A tree without special files, with an executable script in it."""
    made = tmp_path / "source"
    made.mkdir()
    grow(made)
    (made / "fifo").unlink()
    (made / "sock").unlink()
    (made / "d" / "a").chmod(0o755)
    (made / ODD).write_bytes(b"x" * 100_000)
    return made


# Whole files.


async def test_text_and_bytes_are_written_and_read(host: Host, tmp_path: Path) -> None:
    path = tmp_path / ODD

    assert await host.files.write_text(path, "line\r\nsnow ☃\n") == 13
    assert await host.files.read_text(path) == "line\r\nsnow ☃\n"
    assert path.read_bytes() == "line\r\nsnow ☃\n".encode()
    assert await host.files.write_bytes(str(path), b"\xff\xfe") == 2
    assert await host.files.read_bytes(path) == b"\xff\xfe"
    assert await host.files.read_text(path, encoding="latin-1") == "ÿþ"
    with pytest.raises(UnicodeDecodeError):
        await host.files.read_text(path)


async def test_a_large_file_is_read_as_a_whole(host: Host, tmp_path: Path) -> None:
    data = os.urandom(9 << 20)

    await host.files.write_bytes(tmp_path / "large", data)

    assert await host.files.read_bytes(tmp_path / "large") == data


async def test_missing_directories_are_made_if_that_is_wanted(host: Host, tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "c"

    with pytest.raises(FileNotFoundError):
        await host.files.write_text(path, "x")
    await host.files.write_text(path, "x", parents=True, permissions=0o750)

    assert path.read_text() == "x"
    assert path.stat().st_mode & 0o777 == 0o750


async def test_a_relative_path_begins_where_processes_start(host: Host) -> None:
    assert await host.files.canonical(".") == os.path.realpath(
        (await host.run(["pwd"], capture_output=True, text=True)).stdout.strip()
    )


# Errors.


async def test_an_error_is_the_one_that_python_has_and_names_the_path(host: Host, tmp_path: Path) -> None:
    files, file = host.files, tmp_path / "file"
    file.touch()

    for call, kind, number, path in (
        (files.read_text(tmp_path / "none"), FileNotFoundError, errno.ENOENT, tmp_path / "none"),
        (files.read_bytes(tmp_path), IsADirectoryError, errno.EISDIR, tmp_path),
        (files.write_bytes(tmp_path, b""), IsADirectoryError, errno.EISDIR, tmp_path),
        (files.list(file), NotADirectoryError, errno.ENOTDIR, file),
        (files.mkdir(tmp_path), FileExistsError, errno.EEXIST, tmp_path),
        (files.remove(file / "x"), NotADirectoryError, errno.ENOTDIR, file / "x"),
        (files.rename(tmp_path / "no", file), FileNotFoundError, errno.ENOENT, tmp_path / "no"),
    ):
        with pytest.raises(kind) as caught:
            await call
        assert isinstance(caught.value, FileFailed)
        assert (caught.value.errno, caught.value.filename) == (number, str(path))
        assert str(caught.value).endswith(f": {str(path)!r}")


async def test_what_is_refused_names_the_path_too(host: Host, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(FileRefused) as caught:
        await host.files.read_bytes(tmp_path / "pipe")

    assert (caught.value.errno, caught.value.filename) == (errno.EINVAL, f"{tmp_path}/pipe")


# What is there.


async def test_what_is_there_is_told(host: Host, tmp_path: Path) -> None:
    grow(tmp_path)
    files = host.files

    found = {
        name: (
            await files.exists(tmp_path / name),
            await files.is_file(tmp_path / name),
            await files.is_dir(tmp_path / name),
        )
        for name in ("f", "lf", "d", "ld", "fifo", "dang", "loop", "none", "f/x")
    }

    there, file, directory, nothing = (
        (True, False, False),
        (True, True, False),
        (True, False, True),
        (False,) * 3,
    )
    assert found == {
        "f": file,
        "lf": file,
        "d": directory,
        "ld": directory,
        "fifo": there,
        "dang": nothing,
        "loop": nothing,
        "none": nothing,
        "f/x": nothing,
    }


async def test_directories_are_made_as_with_pathlib(host: Host, tmp_path: Path) -> None:
    mkdir, path = host.files.mkdir, tmp_path / "a" / "b"

    with pytest.raises(FileNotFoundError):
        await mkdir(path)
    await mkdir(path, parents=True)
    with pytest.raises(FileExistsError):
        await mkdir(path, parents=True)
    await mkdir(path, exist_ok=True)
    await mkdir(path, parents=True, exist_ok=True)
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        await mkdir(tmp_path / "file", exist_ok=True)

    assert path.is_dir()


async def test_things_are_removed_renamed_and_copied(host: Host, tmp_path: Path) -> None:
    grow(tmp_path)
    files = host.files

    await files.rename(tmp_path / "f", tmp_path / "g")
    await files.copy(tmp_path / "d", tmp_path / "e", recursive=True)
    with pytest.raises(OSError, match="Directory not empty"):
        await files.remove(tmp_path / "e")
    await files.remove(tmp_path / "d", recursive=True)
    await files.remove(tmp_path / "dang")
    with pytest.raises(FileNotFoundError):
        await files.remove(tmp_path / "dang")
    await files.remove(tmp_path / "dang", force=True)

    below = outline(tmp_path)
    assert below["g"] == b"hello"
    assert below["e/sub/b"] == b"BB"
    assert not {"f", "d", "dang"} & set(below)


# Walks.


async def test_a_walk_is_that_of_the_system(host: Host, tmp_path: Path) -> None:
    """Also of links that lead nowhere."""
    grow(tmp_path)
    (tmp_path / "d" / ODD).mkdir()

    found = [level async for level in host.files.walk(tmp_path)]

    expected = [(path, sorted(dirs), sorted(files)) for path, dirs, files in os.walk(tmp_path)]
    assert sorted(found) == sorted(expected)
    assert found[0][0] == str(tmp_path)
    assert {"dang", "loop", "fifo"} <= set(found[0][2])


async def test_a_walk_goes_where_its_caller_lets_it(host: Host, tmp_path: Path) -> None:
    grow(tmp_path)
    (tmp_path / "d" / "round").symlink_to("..")

    pruned = []
    async for path, directories, _ in host.files.walk(tmp_path):
        pruned.append(os.path.relpath(path, tmp_path))
        directories[:] = [name for name in directories if name != "d"]
    followed = [path async for path, _, _ in host.files.walk(tmp_path, follow=True)]

    assert sorted(pruned) == [".", "empty"]
    assert len({os.path.realpath(path) for path in followed}) == len(followed) == 4


async def test_a_walk_tells_what_it_cannot_read(host: Host, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        async for _ in host.files.walk(tmp_path / "none"):
            pass
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    seen, errors = [], list[OSError]()
    async for path, _, _ in host.files.walk(tmp_path, on_error=errors.append):
        seen.append(Path(path).name)
        if path == str(tmp_path):
            (tmp_path / "a").rmdir()
            (tmp_path / "a").touch()

    assert seen == [tmp_path.name, "b"]
    assert [(error.errno, error.filename) for error in errors] == [(errno.ENOTDIR, f"{tmp_path}/a")]


# Uploads and downloads.


@pytest.mark.parametrize("way", ["upload", "download"])
async def test_a_tree_is_copied_as_it_is(host: Host, tmp_path: Path, source: Path, way: str) -> None:
    target = tmp_path / "new" / "target"
    progress: list[int] = []

    copying = host.files.upload if way == "upload" else host.files.download
    count = await copying(source, target, outside_links=True, on_progress=progress.append)

    assert outline(target) == outline(source)
    assert modes(target) == modes(source)
    assert count == TreeCount(files=4, bytes=100_008, omitted=(), complete=True)
    assert sum(progress) > 100_000


@pytest.mark.parametrize("way", ["upload", "download"])
async def test_a_file_is_copied_with_its_mode(host: Host, tmp_path: Path, way: str) -> None:
    (tmp_path / "script").write_bytes(os.urandom(5_000_000))
    (tmp_path / "script").chmod(0o755)

    copying = host.files.upload if way == "upload" else host.files.download
    count = await copying(tmp_path / "script", tmp_path / "copy")

    assert (tmp_path / "copy").read_bytes() == (tmp_path / "script").read_bytes()
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o755
    assert (count.files, count.bytes) == (1, 5_000_000)


async def test_a_download_keeps_links_that_stay_inside_and_refuses_others(
    host: Host, tmp_path: Path, source: Path
) -> None:
    count = await host.files.download(source, tmp_path / "fine")
    (source / "python").symlink_to("/usr/bin/python3")

    with pytest.raises(
        FileRefused, match="'python' is a link that leads out of the tree, to '/usr/bin/python3'"
    ):
        await host.files.download(source, tmp_path / "target")
    await host.files.upload(source, tmp_path / "up")

    assert count.files == 4
    assert os.readlink(tmp_path / "up" / "python") == "/usr/bin/python3"


async def test_what_is_no_file_is_left_out_and_said_to_be(host: Host, tmp_path: Path, source: Path) -> None:
    os.mkfifo(source / "d" / "pipe")

    for copying in (host.files.upload, host.files.download):
        assert (await copying(source, tmp_path / "target")).omitted == ("d/pipe",)


async def test_what_cannot_be_copied_is_named(host: Host, tmp_path: Path, source: Path) -> None:
    (tmp_path / "target" / "f").mkdir(parents=True)

    for copying in (host.files.upload, host.files.download):
        with pytest.raises(IsADirectoryError) as caught:
            await copying(source, tmp_path / "target")
        assert caught.value.filename == f"{tmp_path}/target/f"
        with pytest.raises(FileNotFoundError):
            await copying(tmp_path / "none", tmp_path / "target")
        with pytest.raises(FileRefused, match="neither a file nor a directory"):
            await copying("/dev/null", tmp_path / "x")


async def test_a_server_without_archives_is_served_file_by_file(
    servers: dict[str, str], tmp_path: Path, source: Path
) -> None:
    """Without what such a server does not take: modes, and links to directories."""
    for name in ("dang", "loop"):
        (source / name).unlink()
    async with connect(servers["ws"]) as host:
        # What it announces is all that is ever asked of it.
        cast("RemoteBackend", host.place)._link.features = frozenset()

        up = await host.files.upload(source, tmp_path / "up")
        down = await host.files.download(source, tmp_path / "down")
        with pytest.raises(Unsupported, match="fs/rename"):
            await host.files.rename(tmp_path / "up", tmp_path / "x")
        levels = [level async for level in host.files.walk(source)]

    expected = outline(source) | {"lf": b"hello", "d/up": b"hello"}
    del expected["ld"]
    assert outline(tmp_path / "up") == outline(tmp_path / "down") == expected
    assert up == down == TreeCount(files=6, bytes=100_018, omitted=("ld",), complete=True)
    assert len(levels) == 4
