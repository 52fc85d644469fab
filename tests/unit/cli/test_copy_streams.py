"""Copies from and to descriptors; whole commands are in ``tests/system/test_cli_cp.py``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.api.host import local
from holdfast.cli.copy_sides import CopySide, HostSide, LocalSide
from holdfast.cli.copy_streams import copy_from_input, copy_to_output
from holdfast.cli.report import Failure
from tests.fakes.terminal import Call


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (3 << 20) + 7])
async def test_everything_comes_from_the_input_and_goes_to_the_output(tmp_path: Path, size: int) -> None:
    data = os.urandom(size)
    (tmp_path / "in").write_bytes(data)
    async with local() as host:
        sides: list[CopySide] = [LocalSide(), HostSide(host.files, str(tmp_path))]
        for side in sides:
            moved: list[int] = []
            with (tmp_path / "in").open("rb") as given, (tmp_path / "out").open("wb") as taken:
                copied = await copy_from_input(given.fileno(), side, f"{tmp_path}/x", moved.append)
                told = await copy_to_output(side, f"{tmp_path}/x", taken.fileno(), moved.append)

            assert (copied, told, sum(moved)) == (size, size, 2 * size)
            assert (tmp_path / "x").read_bytes() == (tmp_path / "out").read_bytes() == data


async def test_what_is_no_file_is_refused_in_words(tmp_path: Path) -> None:
    side = LocalSide()

    for path, words in ((tmp_path, "is not a file"), (tmp_path / "none", "there is no file")):
        with pytest.raises(Failure, match=words):
            await copy_to_output(side, str(path), 1, lambda size: None)
    for name in (str(tmp_path), f"{tmp_path}/x/"):
        with pytest.raises(Failure, match="is a directory"):
            await copy_from_input(0, side, name, lambda size: None)


async def test_an_input_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(size: int) -> None:
        raise KeyError(size)

    (tmp_path / "in").write_bytes(b"x")
    with (tmp_path / "in").open("rb") as given, pytest.raises(KeyError):
        await copy_from_input(given.fileno(), LocalSide(), f"{tmp_path}/x", fail)

    assert os.listdir(tmp_path) == ["in"]


def test_a_document_and_a_file_do_not_share_the_output(call: Call) -> None:
    said = call("cp", "-o", "json", ":/etc/hosts", "-")

    assert (said.code, said.out) == (125, "")
    assert "leave one of them out" in said.err
