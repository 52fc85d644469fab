"""Files: the same on this host and on another one."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Awaitable
from pathlib import Path

import pytest

from holdfast.backend import Backend
from holdfast.config import MIB
from holdfast.errors import FileFailed, FileRefused, FileUnsupported
from holdfast.files import DirEntry, FileMetadata, OpenFile, Purpose, WalkEntry, WalkTerms
from holdfast.sandbox import Access, Sandbox, SandboxEntry

ODD = os.fsdecode(b"odd \xff%41\n\xe2\x98\x83")
"""A name that is no text."""

TERMS = WalkTerms(
    depth=9, directories=100, entries=1000, follow=False, prune=False, budget=MIB, spell=lambda path: path
)


async def number_of(call: Awaitable[object]) -> int:
    with pytest.raises(FileFailed) as caught:
        await call
    return caught.value.number


async def reason_of(call: Awaitable[object]) -> str:
    with pytest.raises(FileRefused) as caught:
        await call
    return caught.value.reason


def only_read(path: Path) -> Sandbox:
    return Sandbox(
        (SandboxEntry("/", Access.READ), SandboxEntry(str(path), Access.READ)), network=True, cwd="/"
    )


# Whole files.


@pytest.mark.parametrize("size", [0, 1, 1000, 5 * MIB + 7], ids=["none", "one", "some", "many"])
async def test_what_is_written_is_read(backend: Backend, tmp_path: Path, size: int) -> None:
    data, path = os.urandom(size), tmp_path / ODD

    await backend.files.write(str(path), data)

    assert path.read_bytes() == data
    assert await backend.files.read(str(path), at_once=10 * MIB) == data


async def test_a_file_is_written_in_place_and_shortened(backend: Backend, tmp_path: Path) -> None:
    path = tmp_path / "x"
    for size in (6 * MIB, 3, 0):
        await backend.files.write(str(path), b"y" * size)

        assert path.stat().st_size == size


async def test_a_file_that_is_longer_comes_open(backend: Backend, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"0123456789")

    assert await backend.files.read(str(path), at_once=10) == b"0123456789"
    found = await backend.files.read(str(path), at_once=9)

    assert not isinstance(found, bytes)
    assert (await found.read(0, 4), await found.read(8, 9), await found.read(99, 9)) == (b"0123", b"89", b"")
    found.close()


async def test_what_is_no_file_is_not_read(backend: Backend, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    read = backend.files.read

    assert await number_of(read(f"{tmp_path}/none", at_once=9)) == errno.ENOENT
    assert await reason_of(read(str(tmp_path), at_once=9)) == f"path `{tmp_path}` is not a file"
    assert await reason_of(read(f"{tmp_path}/pipe", at_once=9)) == f"path `{tmp_path}/pipe` is not a file"


async def test_links_are_followed_or_refused(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 20)
    (tmp_path / "link").symlink_to("file")
    files, path = backend.files, f"{tmp_path}/link"

    assert await files.read(path, at_once=99) == b"x" * 20
    assert await number_of(files.read(path, at_once=9, follow=False)) == errno.ELOOP
    assert await number_of(files.write(path, b"y", follow=False)) == errno.ELOOP
    assert await reason_of(files.metadata(path, follow=False)) == "path contains a symbolic link"
    straight = await files.read(f"{tmp_path}/file", at_once=9, follow=False)
    assert not isinstance(straight, bytes)
    assert await straight.read(0, 99) == b"x" * 20
    straight.close()


# Names.


async def test_what_is_known_of_a_file(backend: Backend, tmp_path: Path) -> None:
    path = tmp_path / ODD
    path.write_bytes(b"12345")
    path.chmod(0o640)
    os.utime(path, ns=(0, 1_700_000_000_123_000_000))
    (tmp_path / "link").symlink_to(path)

    found = await backend.files.metadata(str(path))
    through = await backend.files.metadata(f"{tmp_path}/link")

    assert (found.directory, found.file, found.link, found.size) == (False, True, False, 5)
    assert found.modified == 1_700_000_000_123_000_000
    assert found.created > found.modified or found.created == 0
    assert through == FileMetadata(
        directory=False,
        file=True,
        link=True,
        size=5,
        created=found.created,
        modified=found.modified,
        permissions=0o640,
    )
    assert (await backend.files.metadata(str(tmp_path))).directory
    assert await number_of(backend.files.metadata(f"{path}x")) == errno.ENOENT


async def test_directories_are_made_once_or_as_often_as_wanted(backend: Backend, tmp_path: Path) -> None:
    make, path = backend.files.make_directory, f"{tmp_path}/a/{ODD}"

    assert await number_of(make(path, recursive=False)) == errno.ENOENT
    await make(path, recursive=True)
    await make(path, recursive=True)

    assert os.path.isdir(path)
    assert await number_of(make(path, recursive=False)) == errno.EEXIST


async def test_the_real_path_has_no_links(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / ODD).mkdir()
    (tmp_path / "link").symlink_to(ODD)

    assert await backend.files.canonical(f"{tmp_path}/link") == os.path.realpath(tmp_path / ODD)
    assert await number_of(backend.files.canonical(f"{tmp_path}/no")) == errno.ENOENT


async def test_a_directory_is_listed_with_exact_names(backend: Backend, tmp_path: Path) -> None:
    """Bytes outside UTF-8 can be told and used again."""
    (tmp_path / ODD).write_bytes(b"x")
    (tmp_path / "☃").mkdir()
    (tmp_path / "nowhere").symlink_to("gone")

    found = await backend.files.list(str(tmp_path), dangling=False)

    assert sorted(found, key=lambda entry: entry.name) == [
        DirEntry(ODD, directory=False, file=True),
        DirEntry("☃", directory=True, file=False),
    ]
    for entry in found:
        await backend.files.metadata(f"{tmp_path}/{entry.name}")
    assert await number_of(backend.files.list(f"{tmp_path}/{ODD}")) == errno.ENOTDIR


async def test_links_are_listed_wherever_they_lead(backend: Backend, tmp_path: Path) -> None:
    """Whoever cleans up a directory has to know of them."""
    (tmp_path / "file").touch()
    for name, target in (("nowhere", "gone"), ("loop", "loop"), ("there", "file"), (ODD, ".")):
        (tmp_path / name).symlink_to(target)

    found = await backend.files.list(str(tmp_path))

    assert sorted(found, key=lambda entry: entry.name) == [
        DirEntry("file", directory=False, file=True, link=False),
        DirEntry("loop", directory=False, file=False, link=True),
        DirEntry("nowhere", directory=False, file=False, link=True),
        DirEntry(ODD, directory=True, file=False, link=True),
        DirEntry("there", directory=False, file=True, link=True),
    ]


async def test_a_new_file_gets_its_permissions_whatever_the_umask(backend: Backend, tmp_path: Path) -> None:
    """A script stays one, and a secret stays one."""
    script, secret = tmp_path / "script", tmp_path / "secret"

    await backend.files.write(str(script), b"#!", permissions=0o777)
    file = await backend.files.open(str(secret), Purpose.REPLACE, permissions=0o600)
    file.close()
    await backend.files.write(str(script), b"#!", permissions=0o600)

    assert (await backend.files.metadata(str(secret))).permissions == 0o600
    assert (await backend.files.metadata(str(script))).permissions == 0o777
    assert [path.stat().st_mode & 0o7777 for path in (script, secret)] == [0o777, 0o600]


async def test_something_gets_another_path(backend: Backend, tmp_path: Path) -> None:
    rename = backend.files.rename
    (tmp_path / "dir").mkdir()
    (tmp_path / "dir" / ODD).write_bytes(b"x")
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "link").symlink_to("old")

    await rename(f"{tmp_path}/dir/{ODD}", f"{tmp_path}/old")
    await rename(f"{tmp_path}/link", f"{tmp_path}/dir/link")
    await rename(f"{tmp_path}/dir", f"{tmp_path}/other")

    assert (tmp_path / "old").read_bytes() == b"x"
    assert os.readlink(tmp_path / "other" / "link") == "old"
    assert await number_of(rename(f"{tmp_path}/gone", f"{tmp_path}/x")) == errno.ENOENT
    assert await number_of(rename(f"{tmp_path}/old", f"{tmp_path}/other")) == errno.EISDIR


async def test_a_sandbox_keeps_things_where_they_are(backend: Backend, tmp_path: Path) -> None:
    """Neither out of a place that can only be read nor into one, nor a directory with such a place in it."""
    for name in ("in/kept", "in/free", "out"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "in/kept/file").touch()
    sandbox = Sandbox(
        (
            SandboxEntry("/", Access.READ),
            SandboxEntry(f"{tmp_path}/in", Access.WRITE),
            SandboxEntry(f"{tmp_path}/in/kept", Access.READ),
        ),
        network=True,
        cwd="/",
    )

    for source, target in (
        ("in/kept", "in/moved"),
        ("in/kept/file", "in/file"),
        ("in", "moved"),
        ("in/free", "out/free"),
        ("out", "in/out"),
        ("in/free", "in/kept"),
    ):
        moving = backend.files.rename(f"{tmp_path}/{source}", f"{tmp_path}/{target}", sandbox=sandbox)
        assert await number_of(moving) == errno.EROFS
    await backend.files.rename(f"{tmp_path}/in/free", f"{tmp_path}/in/new", sandbox=sandbox)


async def test_a_walk_goes_level_by_level(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "a" / ODD).mkdir(parents=True)
    (tmp_path / "a" / ODD / "deep").write_bytes(b"")
    (tmp_path / "b").write_bytes(b"")

    found = await backend.files.walk(str(tmp_path), TERMS)

    assert found.entries == [
        WalkEntry(f"{tmp_path}/a", directory=True),
        WalkEntry(f"{tmp_path}/b", directory=False),
        WalkEntry(f"{tmp_path}/a/{ODD}", directory=True),
        WalkEntry(f"{tmp_path}/a/{ODD}/deep", directory=False),
    ]
    assert (found.errors, found.truncated) == ([], False)


async def test_a_walk_ends_with_its_budget(backend: Backend, tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(b"")
    room = 2 * (64 + len(f"{tmp_path}/a"))
    terms = WalkTerms(9, 100, 1000, follow=False, prune=False, budget=room, spell=str)

    found = await backend.files.walk(str(tmp_path), terms)

    assert [entry.path for entry in found.entries] == [f"{tmp_path}/a", f"{tmp_path}/b"]
    assert found.truncated


async def test_a_walk_of_what_is_no_directory_finds_nothing(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"")

    assert (await backend.files.walk(f"{tmp_path}/x", TERMS)).entries == []
    assert await number_of(backend.files.walk(f"{tmp_path}/none", TERMS)) == errno.ENOENT


async def test_things_are_removed(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / ODD).write_bytes(b"")
    remove, path = backend.files.remove, f"{tmp_path}/d"

    assert await number_of(remove(path, recursive=False, force=False)) == errno.ENOTEMPTY
    await remove(path, recursive=True, force=False)

    assert not os.path.exists(path)
    assert await number_of(remove(path, recursive=True, force=False)) == errno.ENOENT
    await remove(path, recursive=True, force=True)
    with pytest.raises(FileUnsupported):
        await remove(str(tmp_path), recursive=True, force=True, follow=False)


async def test_things_are_copied(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / ODD).write_bytes(b"x")
    copy = backend.files.copy

    reason = await reason_of(copy(f"{tmp_path}/d", f"{tmp_path}/e", recursive=False))
    await copy(f"{tmp_path}/d", f"{tmp_path}/e", recursive=True)

    assert reason == "fs/copy requires recursive: true when sourcePath is a directory"
    assert (tmp_path / "e" / ODD).read_bytes() == b"x"
    assert await number_of(copy(f"{tmp_path}/no", f"{tmp_path}/f", recursive=False)) == errno.ENOENT


# Open files.


async def test_a_file_is_read_and_written_piece_by_piece(backend: Backend, tmp_path: Path) -> None:
    path = str(tmp_path / ODD)
    file: OpenFile = await backend.files.open(path, Purpose.REPLACE)
    data = os.urandom(2 * MIB + 5)
    await file.write(3, data)
    await file.write(0, b"abc")
    await file.write(7, b"")
    file.close()
    file.close()

    file = await backend.files.open(path, Purpose.READ)
    whole = await file.read(0, 4 * MIB)
    part = await file.read(MIB, 10)
    file.close()

    assert whole == b"abc" + data
    assert part == whole[MIB : MIB + 10]
    assert await number_of(file.read(0, 1)) == errno.EBADF


async def test_a_file_is_used_for_what_it_was_opened_for(backend: Backend, tmp_path: Path) -> None:
    path = f"{tmp_path}/x"
    file = await backend.files.open(path, Purpose.REPLACE)

    assert await number_of(file.read(0, 1)) == errno.EBADF
    await file.write(0, b"still open")
    file.close()
    file = await backend.files.open(path, Purpose.READ)
    assert await number_of(file.write(0, b"x")) == errno.EBADF
    assert await number_of(file.read(2**63 - 2, 9)) == errno.EINVAL
    assert await file.read(0, 99) == b"still open"
    file.close()
    assert await number_of(backend.files.open(f"{tmp_path}/no", Purpose.READ)) == errno.ENOENT
    with pytest.raises((FileRefused, FileFailed)):
        await backend.files.open(str(tmp_path), Purpose.READ)


async def test_an_open_file_stays_what_it_was(backend: Backend, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    file = await backend.files.open(str(path), Purpose.READ)
    (tmp_path / "y").write_bytes(b"new")
    os.replace(tmp_path / "y", path)

    assert await file.read(0, 9) == b"old"
    file.close()


# Sandboxes, and what is not there yet.


async def test_a_sandbox_keeps_files_from_being_written(backend: Backend, tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"x")
    sandbox, files = only_read(tmp_path), backend.files

    assert await files.read(str(path), at_once=9, sandbox=sandbox) == b"x"
    for call in (
        files.write(str(path), b"y", sandbox=sandbox),
        files.write(str(path), b"y" * 5 * MIB, sandbox=sandbox),
        files.make_directory(f"{tmp_path}/d", recursive=True, sandbox=sandbox),
        files.remove(str(path), recursive=False, force=True, sandbox=sandbox),
        files.copy(str(path), f"{path}2", recursive=False, sandbox=sandbox),
        files.open(str(path), Purpose.REPLACE, sandbox=sandbox),
    ):
        assert await number_of(call) in (errno.EACCES, errno.EPERM, errno.EROFS)
    assert path.read_bytes() == b"x"


async def test_something_that_appears_is_told_once(backend: Backend, tmp_path: Path) -> None:
    seen = asyncio.Event()
    watch = await backend.files.watch_missing([f"{tmp_path}/new", f"{tmp_path}/{ODD}"], None, seen.set)
    assert watch is not None

    (tmp_path / ODD).write_bytes(b"")

    async with asyncio.timeout(10):
        await seen.wait()
    watch.stop()
    watch.stop()


async def test_there_is_nothing_to_wait_for_if_it_is_there(backend: Backend, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"")

    assert await backend.files.watch_missing([f"{tmp_path}/x"], None, lambda: None) is None
