"""Copies from one side to another."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.cli.copying import BLOCK, Copying
from holdfast.cli.failure import Failure
from holdfast.cli.sides import Near


class Copied:
    """A copy from here to here, with what it told."""

    def __init__(self) -> None:
        self.begun: list[tuple[str, int | None]] = []
        self.advanced = 0
        self.skipped: list[str] = []
        near = Near()
        self.copying = Copying(
            near,
            near,
            begin=lambda name, size: self.begun.append((name, size)),
            advance=self._advance,
            skip=self.skipped.append,
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
