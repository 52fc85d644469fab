"""``holdfast cp``: between sides of any kind, and as a command, here and to a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.cli.copy_sides import CopySide, FileReader, FileWriter, LocalSide, _LocalReader
from holdfast.cli.cp import BLOCK, FileCopy
from holdfast.cli.report import Failure
from tests.fakes.terminal import Call


class Copied:
    """A copy from here to here, or between other sides, with what it told."""

    def __init__(self, source: CopySide | None = None, target: CopySide | None = None) -> None:
        self.begun: list[tuple[str, int | None]] = []
        self.advanced = 0
        self.skipped: list[str] = []
        self.complaints: list[str] = []
        near = LocalSide()
        self.copying = FileCopy(
            source or near,
            target or near,
            begin=lambda name, size: self.begun.append((name, size)),
            advance=self._advance,
            skip=self.skipped.append,
            complain=self.complaints.append,
        )

    def _advance(self, count: int) -> None:
        self.advanced += count

    async def copy(self, source: Path | str, target: Path | str, *, recursive: bool = False) -> None:
        await self.copying.copy(str(source), str(target), recursive=recursive)


@pytest.mark.parametrize("size", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 4 * BLOCK, 9 * BLOCK + 7])
async def test_a_file_of_any_length_is_the_same_afterwards(size: int, tmp_path: Path) -> None:
    data = os.urandom(min(size, BLOCK)) * (size // BLOCK + 1)
    (tmp_path / "a").write_bytes(data[:size])
    copied = Copied()

    await copied.copy(tmp_path / "a", tmp_path / "b")

    assert (tmp_path / "b").read_bytes() == data[:size]
    assert (copied.begun, copied.advanced) == ([("a", size)], size)
    assert (copied.copying.files, copied.copying.bytes) == (1, size)


async def test_a_file_goes_into_a_directory_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "d").mkdir()

    await Copied().copy(tmp_path / "a", tmp_path / "d")

    assert (tmp_path / "d" / "a").read_text() == "x"


async def test_a_directory_is_copied_with_all_in_it_but_what_leads_elsewhere(tmp_path: Path) -> None:
    """A link to a directory may lead back to where we are."""
    source = tmp_path / "s"
    (source / "deep" / "er").mkdir(parents=True)
    (source / "deep" / "er" / "file").write_text("x")
    (source / "link").symlink_to("deep/er/file")
    (source / "loop").symlink_to(".")
    os.mkfifo(source / "pipe")
    copied = Copied()

    await copied.copy(source, tmp_path / "new", recursive=True)
    await copied.copy(source, tmp_path / "new", recursive=True)  # Now it is there: into it.

    for root in (tmp_path / "new", tmp_path / "new" / "s"):
        assert (root / "deep" / "er" / "file").read_text() == "x"
        assert (root / "link").read_text() == "x"
        assert not (root / "loop").exists()
    assert [words.partition(": ")[2] for words in copied.skipped[:2]] == [
        "it is a link to a directory",
        "it is neither a file nor a directory",
    ]


async def test_what_cannot_be_copied_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "f").touch()
    os.mkfifo(tmp_path / "p")

    for source, target, recursive, words in (
        ("no", "x", False, "there is no file"),
        ("p", "x", False, "is neither a file nor a directory"),
        ("d", "x", False, "is a directory; copy it with -r"),
        ("d", "f", True, "is not a directory"),
        ("f", "x/", False, "there is no directory"),
    ):
        with pytest.raises(Failure, match=words):
            await Copied().copy(tmp_path / source, f"{tmp_path}/{target}", recursive=recursive)


async def test_a_copy_that_breaks_off_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10)
    copied = Copied()

    def fail(count: int) -> None:
        raise KeyError

    copied.copying._advance = fail
    with pytest.raises(KeyError):
        await copied.copy(tmp_path / "a", tmp_path / "b")

    assert os.listdir(tmp_path) == ["a"]


async def test_a_file_on_itself_and_a_directory_into_itself_are_refused(tmp_path: Path) -> None:
    """The one would be emptied, the other never be complete."""
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "f").write_text("kept")

    with pytest.raises(Failure, match="are the same file"):
        await Copied().copy(tmp_path / "f", tmp_path)
    for inside in ("d/new", "d/e", "d"):
        with pytest.raises(Failure, match="into itself"):
            await Copied().copy(tmp_path / "d", tmp_path / inside, recursive=True)

    assert (tmp_path / "f").read_text() == "kept"
    assert os.listdir(tmp_path / "d") == ["e"]


async def test_a_file_does_not_take_the_place_of_a_directory(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    (tmp_path / "d" / "a").mkdir(parents=True)

    with pytest.raises(Failure, match="is there already and is a directory"):
        await Copied().copy(tmp_path / "a", tmp_path / "d")


# Files that give less than was asked for, and files that change.


class Grudging(FileReader):
    """A reader that gives a few bytes at a time, as files of the kernel do, and changes a file on the way."""

    def __init__(self, reader: FileReader, most: int, change: Callable[[], object]) -> None:
        self._reader = reader
        self._most = most
        self._change: Callable[[], object] | None = change

    async def size(self) -> int:
        return await self._reader.size()

    async def read(self, offset: int, length: int) -> bytes:
        data = await self._reader.read(offset, min(length, self._most))
        if self._change is not None:
            self._change()
            self._change = None
        return data

    def close(self) -> None:
        self._reader.close()


class Slow(LocalSide):
    """This file system, read by such readers."""

    def __init__(self, most: int = 100_000, change: Callable[[], object] = lambda: None) -> None:
        self._most = most
        self._change = change

    async def reader(self, path: str) -> FileReader:
        return Grudging(await super().reader(path), self._most, self._change)


@pytest.mark.parametrize("size", [1, BLOCK + 1, 5 * BLOCK + 7])
async def test_short_reads_do_not_end_a_copy(size: int, tmp_path: Path) -> None:
    """A network file system, or the kernel, may give less than there is."""
    data = os.urandom(size)
    (tmp_path / "a").write_bytes(data)
    copied = Copied(Slow())

    await copied.copy(tmp_path / "a", tmp_path / "b")

    assert (tmp_path / "b").read_bytes() == data
    assert (copied.advanced, copied.complaints) == (size, [])


@pytest.mark.parametrize(
    "path", ["/proc/self/status", "/proc/cpuinfo", "/sys/kernel/mm/transparent_hugepage/enabled"]
)
async def test_a_file_whose_size_says_nothing_is_copied_to_its_end(path: str, tmp_path: Path) -> None:
    """Files of the kernel say 0 or 4096, whatever is in them, and give a page at a time."""
    if not os.path.exists(path):
        pytest.skip("this kernel has no such file")
    copied = Copied()

    await copied.copy(path, tmp_path / "b")

    there = Path(path).read_bytes()
    assert len((tmp_path / "b").read_bytes().splitlines()) == len(there.splitlines())
    assert copied.complaints == []


class Endless(FileReader):
    """A file of the kernel: it says that it is empty, and has more than one block in it."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def size(self) -> int:
        return 0

    async def read(self, offset: int, length: int) -> bytes:
        return self._data[offset : offset + min(length, 4096)]

    def close(self) -> None:
        pass


async def test_a_long_file_of_the_kernel_is_copied_to_its_end(tmp_path: Path) -> None:
    data = os.urandom(2 * BLOCK + 5)
    (tmp_path / "a").touch()

    class Kernel(LocalSide):
        async def reader(self, path: str) -> FileReader:
            return Endless(data)

    await Copied(Kernel()).copy(tmp_path / "a", tmp_path / "b")

    assert (tmp_path / "b").read_bytes() == data


async def test_a_file_that_shrinks_is_reported_and_not_copied(tmp_path: Path) -> None:
    """What was read of it is neither the old file nor the new one."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_bytes(bytes(5 * BLOCK))
    (tmp_path / "d" / "z").write_bytes(b"the next one")
    copied = Copied(Slow(BLOCK, lambda: os.truncate(tmp_path / "d" / "a", 10)))

    await copied.copy(tmp_path / "d", tmp_path / "new", recursive=True)

    assert os.listdir(tmp_path / "new") == ["z"]
    assert copied.complaints == [
        f"{tmp_path}/d/a became shorter while it was copied, from 5242880 bytes to 10; it is not copied"
    ]
    assert (copied.copying.files, copied.copying.changed) == (1, 1)


async def test_a_file_that_grows_is_reported_and_copied_as_long_as_it_was(tmp_path: Path) -> None:
    """One that always grows has no end; what it had when it was looked at is a whole."""
    (tmp_path / "a").write_bytes(b"old")

    def grow() -> None:
        with (tmp_path / "a").open("ab") as file:
            file.write(b" and new")

    copied = Copied(Slow(BLOCK, grow))

    await copied.copy(tmp_path / "a", tmp_path / "b")

    assert (tmp_path / "b").read_bytes() == b"old"
    assert copied.complaints == [
        f"{tmp_path}/a became longer while it was copied; the copy has its first 3 bytes"
    ]
    assert (copied.copying.files, copied.copying.changed) == (1, 1)


async def test_a_copy_that_is_not_as_long_as_what_was_written_is_a_failure(tmp_path: Path) -> None:
    """Whoever takes less than it is given and says nothing is found out."""
    (tmp_path / "a").write_bytes(b"12345")

    class Forgetful(LocalSide):
        async def writer(self, path: str, mode: int | None = None) -> FileWriter:
            writer = await super().writer(path, mode)
            write = writer.write
            writer.write = lambda offset, data: write(offset, data[:-1])  # type: ignore[method-assign]
            return writer

    with pytest.raises(Failure, match="4 of 5 bytes arrived"):
        await Copied(target=Forgetful()).copy(tmp_path / "a", tmp_path / "b")

    assert os.listdir(tmp_path) == ["a"]


# The command.


@pytest.mark.slow
def test_a_file_goes_there_and_back(far: Call, tmp_path: Path) -> None:
    data = os.urandom(3_000_000)
    (tmp_path / "a").write_bytes(data)

    there = far("cp", str(tmp_path / "a"), f":{tmp_path}/b")
    back = far("cp", "-o", "json", f":{tmp_path}/b", str(tmp_path / "c"))

    assert there == (0, "", "")
    assert (back.code, json.loads(back.out)) == (0, {"files": 1, "bytes": 3_000_000, "changed": 0})
    assert (tmp_path / "c").read_bytes() == data


@pytest.mark.slow
def test_a_directory_goes_there_with_r(far: Call, tmp_path: Path) -> None:
    (tmp_path / "s" / "t").mkdir(parents=True)
    (tmp_path / "s" / "t" / "f").write_text("x")

    refused = far("cp", str(tmp_path / "s"), f":{tmp_path}/n")
    done = far("cp", "-r", str(tmp_path / "s"), f":{tmp_path}/n")

    assert (refused.code, done.code) == (125, 0)
    assert "copy it with -r" in refused.err
    assert (tmp_path / "n" / "t" / "f").read_text() == "x"


@pytest.mark.slow
def test_without_a_server_it_is_this_hosts_files(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")

    assert call("cp", f":{tmp_path}/a", f"{tmp_path}/b").code == 0
    assert (tmp_path / "b").read_text() == "x"


@pytest.mark.slow
def test_one_side_has_to_be_the_servers(call: Call) -> None:
    said = call("cp", "a", "b")

    assert (said.code, said.out) == (125, "")
    assert "put a colon before its path" in said.err


@pytest.mark.slow
def test_what_the_system_refuses_is_told_with_the_path(call: Call, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")

    near = call("cp", f":{tmp_path}/a", f"{tmp_path}/no/b")
    far = call("cp", f"{tmp_path}/a", f":{tmp_path}/no/b")

    assert (near.code, far.code) == (125, 125)
    assert f"to {tmp_path}/no/b: No such file or directory\n" in near.err
    assert f"to :{tmp_path}/no/b: No such file or directory\n" in far.err


@pytest.mark.parametrize("length", [2, 20])
@pytest.mark.slow
def test_a_file_that_changes_its_length_is_told_of_and_the_code_says_so(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    """A script that goes on with the copy must not take it for the file."""
    (tmp_path / "a").write_bytes(bytes(10))
    size = _LocalReader.size

    async def changing(reader: _LocalReader) -> int:
        before = await size(reader)
        os.truncate(tmp_path / "a", length)
        return before

    monkeypatch.setattr(_LocalReader, "size", changing)
    said = call("cp", "-q", "-o", "json", f":{tmp_path}/a", f"{tmp_path}/b")

    files = int(length > 10)
    assert (said.code, json.loads(said.out)["changed"]) == (125, 1)
    assert f"{tmp_path}/a became {'longer' if files else 'shorter'} while it was copied" in said.err
    assert (tmp_path / "b").exists() == bool(files)


MAPPED = """
import mmap, sys
held = [mmap.mmap(-1, 4096, prot=mmap.PROT_READ | (n % 2 and mmap.PROT_WRITE)) for n in range(500)]
print("ready", flush=True)
sys.stdin.read()
"""
"""A program of which the kernel has much to tell, and always the same."""


@pytest.mark.slow
def test_files_of_the_kernel_are_copied_whole_to_a_server_and_back(far: Call, tmp_path: Path) -> None:
    """They say that they are empty, and give less per read than is asked for."""
    (tmp_path / "there").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", MAPPED], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        maps = f"/proc/{program.pid}/maps"
        told = Path(maps).read_bytes()

        assert far("cp", maps, f":{tmp_path}/there/a").code == 0
        assert far("cp", f":{maps}", f"{tmp_path}/b").code == 0
        program.communicate()

    assert len(told) > 3 * 4096
    assert (tmp_path / "there" / "a").read_bytes() == told
    assert (tmp_path / "b").read_bytes() == told
