"""The files of this host, from the loop."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.config import FileLimits
from holdfast.engine import files as engine_files
from holdfast.engine.files import LocalFile, LocalFiles
from holdfast.engine.workers import Workers
from holdfast.errors import FileFailed, FileRefused, Forbidden
from holdfast.files import DirEntry, Purpose, WalkTerms
from holdfast.host.files import content, watch
from holdfast.host.sandbox.rules import PolicySearch
from holdfast.sandbox import Access, Rules, Sandbox, SandboxEntry
from tests.fakes.file_talk import local_files
from tests.fakes.process import eventually


@pytest.fixture
async def files() -> AsyncIterator[LocalFiles]:
    async with local_files(FileLimits(read_bytes=100, threads=4)) as made:
        yield made


async def test_everything_that_can_be_asked(files: LocalFiles, tmp_path: Path) -> None:
    root = str(tmp_path.resolve())
    terms = WalkTerms(9, 9, 9, follow=False, prune=False, budget=999, spell=str)

    await files.make_directory(f"{root}/d/e", recursive=True)
    await files.write(f"{root}/d/f", b"hello")
    await files.copy(f"{root}/d/f", f"{root}/d/g", recursive=False)
    await files.remove(f"{root}/d/e", recursive=False, force=False)
    walk = await files.walk(root, terms)

    assert await files.read(f"{root}/d/g", at_once=9) == b"hello"
    assert (await files.metadata(f"{root}/d/f")).size == 5
    assert await files.canonical(f"{root}/d/../d/f") == f"{root}/d/f"
    assert await files.list(root) == [DirEntry("d", directory=True, file=False, link=False)]
    assert [entry.path for entry in walk.entries] == [f"{root}/d", f"{root}/d/f", f"{root}/d/g"]


async def test_failures_of_the_system_have_a_number(files: LocalFiles, tmp_path: Path) -> None:
    with pytest.raises(FileFailed) as failed:
        await files.read(str(tmp_path / "none"), at_once=9)
    (tmp_path / "large").write_bytes(bytes(101))
    with pytest.raises(FileRefused):
        await files.read(str(tmp_path / "large"), at_once=9)

    assert failed.value.number == 2


async def test_a_sandbox_is_asked(files: LocalFiles, tmp_path: Path) -> None:
    path = str(tmp_path.resolve() / "f")
    box = Sandbox((SandboxEntry(str(tmp_path), Access.READ),), network=False, cwd="/")
    free = Sandbox(None, network=False, cwd="/")

    with pytest.raises(FileFailed) as refused:
        await files.write(path, b"", sandbox=box)
    await files.write(path, b"x", sandbox=free)

    assert refused.value.number == 30
    assert await files.read(path, at_once=9, sandbox=box) == b"x"


async def test_a_call_that_is_given_up_no_longer_looks_for_what_its_sandbox_means(
    files: LocalFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = threading.Semaphore(0)

    def endless(sandbox: Sandbox, tmpdir: str | None, search: PolicySearch) -> Rules:
        while True:
            looks.release()
            search.check()

    monkeypatch.setattr("holdfast.engine.files.resolve", endless)
    sandbox = Sandbox((), network=False, cwd="/")
    calls = [
        asyncio.ensure_future(files.metadata(str(tmp_path), sandbox=sandbox)),
        asyncio.ensure_future(files.read(str(tmp_path), at_once=1, sandbox=sandbox)),
        asyncio.ensure_future(files.open(str(tmp_path), Purpose.READ, sandbox=sandbox)),
    ]
    await eventually(lambda: files.workers.busy == 3 and looks.acquire(blocking=False))

    for call in calls:
        call.cancel()

    await eventually(lambda: files.workers.busy == 0)


async def test_an_open_file_is_used_piece_by_piece(files: LocalFiles, tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    writing = await files.open(path, Purpose.REPLACE)
    await writing.write(2, b"hello")
    reading = await files.read(path, at_once=3)

    assert isinstance(reading, LocalFile)
    assert await reading.read(0, 99) == b"\0\0hello"
    for each in (reading, writing):
        each.close()
        each.close()
    with pytest.raises(FileFailed) as closed:
        await reading.read(0, 1)
    assert closed.value.number == 9


def nobody() -> None:
    """Is told nothing."""


def is_open(path: Path) -> bool:
    links = Path("/proc/self/fd").iterdir()
    return any(os.path.realpath(link) == str(path) for link in links)


async def test_a_file_in_use_is_closed_when_nobody_uses_it(
    files: LocalFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of a descriptor that is closed too soon may be another file's when a thread reads it."""
    path, begun, gate = tmp_path.resolve() / "f", threading.Event(), threading.Event()
    path.write_bytes(b"x")
    file = await files.open(str(path), Purpose.READ)
    read = content.read_block

    def slow_read(*facts: Any) -> bytes:
        begun.set()
        gate.wait()
        return read(*facts)

    monkeypatch.setattr(content, "read_block", slow_read)
    task = asyncio.ensure_future(file.read(0, 1))
    await eventually(begun.is_set)
    task.cancel()
    await asyncio.wait([task])
    file.close()
    still_open = is_open(path)
    gate.set()

    await eventually(lambda: not is_open(path))
    assert still_open


async def test_a_file_in_use_at_the_end_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that stops in the middle of a long answer must not keep the file, if its program goes on."""
    path, begun, gate = tmp_path.resolve() / "f", threading.Event(), threading.Event()
    path.write_bytes(b"x")
    read = content.read_block

    def slow_read(*facts: Any) -> bytes:
        begun.set()
        gate.wait()
        return read(*facts)

    monkeypatch.setattr(content, "read_block", slow_read)
    async with local_files() as files:
        file = await files.open(str(path), Purpose.READ)
        task = asyncio.ensure_future(file.read(0, 1))
        await eventually(begun.is_set)
        task.cancel()
        await asyncio.wait([task])
        file.close()
        files.close()
        gate.set()

        await eventually(lambda: not is_open(path))


async def test_what_a_cancelled_call_opens_is_closed(
    files: LocalFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path.resolve() / "f"
    path.write_bytes(bytes(50))
    opened: list[bool] = []
    gate = threading.Event()
    run = Workers.run

    async def run_slowly(self: Workers, call: Any, **facts: Any) -> Any:
        def work() -> Any:
            result = call()
            opened.append(is_open(path))
            gate.wait()
            return result

        return await run(self, work, **facts)

    monkeypatch.setattr(Workers, "run", run_slowly)
    for call in (files.open(str(path), Purpose.READ), files.read(str(path), at_once=9)):
        task = asyncio.ensure_future(call)
        await eventually(lambda: bool(opened))
        task.cancel()
        await asyncio.wait([task])
        opened.pop()
    gate.set()

    await eventually(lambda: not is_open(path))


async def test_a_watch_is_set_up_or_not(
    files: LocalFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[bool] = []
    missing = [str(tmp_path / "n")]

    assert await files.watch_missing([], None, nobody) is None
    found = await files.watch_missing(missing, str(tmp_path), lambda: told.append(True))
    assert found is not None
    (tmp_path / "n").touch()
    await eventually(lambda: told == [True])
    assert await files.watch_missing(missing, None, nobody) is None

    (tmp_path / "n").unlink()
    monkeypatch.setattr(watch, "appeared", lambda _: True)
    assert await files.watch_missing(missing, None, nobody) is None

    def fail(_: object) -> bool:
        raise OSError(5, "")

    monkeypatch.setattr(watch, "appeared", fail)
    with pytest.raises(FileFailed):
        await files.watch_missing(missing, None, nobody)

    def refuse(*_: object) -> LocalFile:
        raise OSError(28, "")

    monkeypatch.setattr(files._watching, "add", refuse)
    assert await files.watch_missing(missing, None, nobody) is None


async def test_a_plan_that_nobody_waits_for_is_closed(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for plan in (watch.plan([os.fsencode(tmp_path / "n")], None), None):
        engine_files._close_plan(plan)

    assert len(os.listdir("/proc/self/fd")) <= before


# Walls.


async def test_outside_of_its_walls_a_view_refuses_by_the_text_alone(
    files: LocalFiles, tmp_path: Path
) -> None:
    """At once, and the same whether there is something or not; the system says the rest of those inside."""
    inside, outside = str(tmp_path / "in"), str(tmp_path / "out")
    await files.make_directory(inside, recursive=False)
    await files.write(outside, b"secret")
    view = files.within((inside,))
    terms = WalkTerms(9, 9, 9, follow=False, prune=False, budget=999, spell=str)

    for path in (outside, f"{outside}/x", f"{inside}x", str(tmp_path), "/"):
        for asked in (
            view.read(path, at_once=9),
            view.write(path, b""),
            view.make_directory(path, recursive=True),
            view.metadata(path),
            view.canonical(path),
            view.list(path),
            view.walk(path, terms),
            view.remove(path, recursive=True, force=True),
            view.copy(path, f"{inside}/x", recursive=True),
            view.copy(f"{inside}/x", path, recursive=True),
            view.open(path, Purpose.READ),
            view.watch_missing([f"{inside}/x", path], None, lambda: None),
            view.watch_missing([f"{inside}/x"], path, lambda: None),
        ):
            with pytest.raises(Forbidden) as caught:
                await asked
            assert (caught.value.what, caught.value.subject) == ("path", path)

    assert Path(outside).read_bytes() == b"secret"
    assert await files.read(outside, at_once=9) == b"secret"
    await view.write(f"{inside}/f", b"mine")
    assert await view.read(f"{inside}/f", at_once=9) == b"mine"


async def test_a_sandbox_inside_of_walls_allows_what_both_do(files: LocalFiles, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    view = files.within((f"{tmp_path}/a", f"{tmp_path}/b"))
    only_read = Sandbox(
        (SandboxEntry("/", Access.READ), SandboxEntry(f"{tmp_path}/b", Access.WRITE)), network=True, cwd="/"
    )

    await view.write(f"{tmp_path}/b/f", b"x", sandbox=only_read)
    with pytest.raises(FileFailed) as failed:
        await view.write(f"{tmp_path}/a/f", b"x", sandbox=only_read)
    with pytest.raises(Forbidden):
        await view.read("/etc/passwd", at_once=9, sandbox=only_read)

    assert failed.value.number == errno.EROFS
    assert not (tmp_path / "a/f").exists()
