"""``fs/watchMissing``: one watch per connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.files import FileWatch
from tests.fakes.dialects import FakeWatch
from tests.fakes.file_talk import FileScene, file_scene, uri
from tests.fakes.process import eventually


@pytest.fixture
async def scene() -> AsyncIterator[FileScene]:
    async with file_scene() as made:
        yield made


def changed(number: int) -> Any:
    return {"method": "fs/missingChanged", "params": {"watchId": number}}


async def watch(scene: FileScene, number: int, *paths: Path) -> bool:
    params = {"watchId": number, "missing": [uri(path) for path in paths]}
    watching: bool = (await scene.call("fs/watchMissing", params))["watching"]
    return watching


async def test_what_appears_is_told(scene: FileScene, tmp_path: Path) -> None:
    assert await watch(scene, 1, tmp_path / "n")

    (tmp_path / "n").touch()

    await eventually(lambda: scene.client.sent == [changed(1)])


async def test_only_a_newer_watch_counts(scene: FileScene, tmp_path: Path) -> None:
    answers = [await watch(scene, number, tmp_path / str(number)) for number in (0, 5, 5, 4, 6)]
    for number in (5, 4, 6):
        (tmp_path / str(number)).touch()

    await eventually(lambda: bool(scene.client.sent))
    assert answers == [False, True, False, False, True]
    assert scene.client.sent == [changed(6)]


async def test_an_empty_watch_ends_the_last_one(scene: FileScene, tmp_path: Path) -> None:
    await watch(scene, 1, tmp_path / "a")

    assert not await watch(scene, 2)
    assert not await watch(scene, 3, tmp_path)
    (tmp_path / "a").touch()
    assert await watch(scene, 4, tmp_path / "b")
    (tmp_path / "b").touch()

    await eventually(lambda: scene.client.sent == [changed(4)])


async def test_nothing_is_told_after_the_end(scene: FileScene, tmp_path: Path) -> None:
    await watch(scene, 1, tmp_path / "a")

    scene.talk.ended()
    (tmp_path / "a").touch()

    async with file_scene() as other:
        await watch(other, 1, tmp_path / "b")
        (tmp_path / "b").touch()
        await eventually(lambda: bool(other.client.sent))
    assert scene.client.sent == []


class Hasty:
    """Files whose watches are told something, or that are asked for another one, before they are set up."""

    def __init__(self, meanwhile: Callable[[Callable[[], None]], None]) -> None:
        self.watch = FakeWatch()
        self._meanwhile = meanwhile

    async def watch_missing(
        self, missing: Sequence[str], present: str | None, told: Callable[[], None]
    ) -> FileWatch | None:
        await asyncio.sleep(0)
        self._meanwhile(told)
        return self.watch


@pytest.mark.parametrize("newer", [False, True])
async def test_news_before_the_answer_make_it_a_no(scene: FileScene, tmp_path: Path, *, newer: bool) -> None:
    """A client would not know what the news are about."""

    def meanwhile(told: Callable[[], None]) -> None:
        if newer:
            scene.talk.files.missing.begin(9)
        else:
            told()

    hasty: Any = Hasty(meanwhile)
    scene.backend.files = hasty

    assert not await watch(scene, 1, tmp_path / "n")
    assert hasty.watch.stopped
    assert scene.client.sent == []
