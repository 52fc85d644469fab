"""x"""

from __future__ import annotations
from holdfast.backend import Backend
from tests.fakes.gate import Gate
from tests.fakes.process import sh
from tests.fakes.recorder import Recorder


async def test_exit_is_told_before_a_grandchild_lets_go_of_stdout(backend: Backend, gate: Gate) -> None:
    """
    The exit of the child and the end of its output are two events: a
    grandchild that kept the pipe may still speak after the first.
    """
    watcher = Recorder()
    process = await backend.start(sh(f"({gate.shell}; echo late) & echo early"))
    process.watch(watcher)

    await gate.reached()
    await watcher.until("exited", 0)
    assert ("closed",) not in watcher.told

    gate.open()
    await watcher.until("closed")
    assert watcher.told == [
        ("stdout", b"early\n"),
        ("exited", 0),
        ("stdout", b"late\n"),
        ("closed",),
    ]
