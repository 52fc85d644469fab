"""Who waits for which news of files."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.engine.files import LocalFileWatch, Watching
from holdfast.host.files import watch
from holdfast.host.files.watch import Event
from holdfast.poller import Poller
from tests.fakes.process import eventually
from tests.fakes.rules import raw


@pytest.fixture
async def watching() -> AsyncIterator[Watching]:
    poller = Poller()
    poller.attach(asyncio.get_running_loop())
    made = Watching(poller)
    yield made
    made.close()
    poller.close()


def add(watching: Watching, told: list[str], *paths: Path, name: str = "told") -> LocalFileWatch:
    plan = watch.plan([raw(path) for path in paths], None)
    assert plan is not None
    return watching.add(plan, lambda: told.append(name))


async def test_what_appears_is_told_once_to_those_who_wait_for_it(watching: Watching, tmp_path: Path) -> None:
    told: list[str] = []
    add(watching, told, tmp_path / "a", name="a")
    add(watching, told, tmp_path / "b", tmp_path / "a", name="b and a")
    add(watching, told, tmp_path / "c", name="c")

    (tmp_path / "x").touch()
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()
    await eventually(lambda: len(told) == 2)
    (tmp_path / "c").touch()
    await eventually(lambda: "c" in told)

    assert sorted(told) == ["a", "b and a", "c"]


async def test_one_who_stopped_is_told_nothing(watching: Watching, tmp_path: Path) -> None:
    told: list[str] = []
    stopped = add(watching, told, tmp_path / "a", name="stopped")
    add(watching, told, tmp_path / "a", name="goes on")

    stopped.stop()
    stopped.stop()
    (tmp_path / "a").touch()

    await eventually(lambda: bool(told))
    stopped.fire()
    assert told == ["goes on"]


async def test_the_end_of_a_directory_is_told(watching: Watching, tmp_path: Path) -> None:
    told: list[str] = []
    (tmp_path / "d").mkdir()
    add(watching, told, tmp_path / "d" / "n")

    (tmp_path / "d").rmdir()

    await eventually(lambda: told == ["told"])


async def test_when_news_are_lost_everybody_has_to_look(watching: Watching, tmp_path: Path) -> None:
    told: list[str] = []
    for name in ("a", "b"):
        add(watching, told, tmp_path / name, name=name)

    watching._on_event(Event(-1, watch.IN_Q_OVERFLOW, b""))

    assert sorted(told) == ["a", "b"]


async def test_a_kernel_without_watches_leaves_nothing_open(
    watching: Watching, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(os.listdir("/proc/self/fd"))
    plan = watch.plan([raw(tmp_path / "n")], None)
    assert plan is not None

    def refuse(*_: object) -> int:
        raise OSError(28, "")

    monkeypatch.setattr(watch.Inotify, "add", refuse)
    with pytest.raises(OSError, match="28"):
        watching.add(plan, lambda: None)

    assert len(os.listdir("/proc/self/fd")) == before + 1  # The one for all news.


async def test_after_the_end_nobody_is_told(watching: Watching, tmp_path: Path) -> None:
    told: list[str] = []
    add(watching, told, tmp_path / "a")

    watching.close()
    watching.close()
    watching.on_ready(1)
    (tmp_path / "a").touch()

    assert told == []
