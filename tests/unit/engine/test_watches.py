"""Who is told what a process does; the contract has the rest."""

from __future__ import annotations

import weakref

from holdfast.engine.local import LocalBackend
from tests.fakes.process import command
from tests.fakes.recorder import Recorder, record


async def test_a_stopped_watch_lets_its_watcher_go(backend: LocalBackend) -> None:
    """A watcher usually holds its watch: in a circle both would wait for the collector."""
    process = await backend.start(command("sleep", "1000"))
    watcher = Recorder()
    watch = process.watch(watcher)
    seen = weakref.ref(watcher)

    watch.stop()
    watch.stop()
    del watcher

    assert seen() is None


async def test_who_has_stopped_is_told_nothing(backend: LocalBackend) -> None:
    process = await backend.start(command("sleep", "1000"))
    silent = Recorder()
    watch = process.watch(silent)
    recorder = record(process)

    watch.stop()
    await process.end()

    await recorder.until("closed")
    assert silent.told == []
