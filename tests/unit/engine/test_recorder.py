"""What is written down of a process, and when: before anybody is told, and before its shim may forget it."""

from __future__ import annotations

from typing import Any

from holdfast.engine.recorder import NO_RECORDER
from holdfast.model import PLAIN, Cause, Exit, Kind
from tests.property.scripted import Deed, Life


class Notes:
    """Implements ``recorder.Recorder``: keeps a list, beside what the watcher is told."""

    holding = None
    taker = None
    open = NO_RECORDER.open
    open_stdin = NO_RECORDER.open_stdin

    def discard(self) -> None: ...

    def __init__(self, life: Life) -> None:
        self._ledger = life.ledger
        self._child = life.child

    def ending(self, cause: Cause | None, kill_at: float, *, asked: bool = False) -> None:
        self._ledger.append(("ending", cause and cause.kind, kill_at, asked, list(self._child.orders)))

    def exited(self, seq: int, end: Exit, drain: float | None) -> None:
        self._ledger.append(("noted", seq, end.code, list(self._child.orders)))

    def amended(self, end: Exit) -> None: ...

    def closed(self, seq: int) -> None:
        self._ledger.append(("noted closed", seq))

    def audited(self) -> None: ...

    def active(self, now: float) -> None: ...

    def dropped(self, total: int) -> None: ...

    def acknowledged(self, seq: int) -> None: ...

    def forgotten(self) -> None:
        self._ledger.append("noted: forgotten")

    def gone(self) -> None:
        self._ledger.append("noted: gone")


def events(life: Life) -> list[Any]:
    """What happened, without what the script says of itself."""
    words = ("owner", "noted", "exited", "closed", "ending")
    return [
        event[0] if isinstance(event, tuple) else event
        for event in life.ledger
        if str(event[0] if isinstance(event, tuple) else event).startswith(words)
    ]


def test_an_exit_is_written_down_before_anybody_is_told_and_before_the_shim_is_released() -> None:
    """A shim that was released may forget how its command ended."""
    life = Life(PLAIN, suspends=False)
    life.process.recorder = Notes(life)

    life.do(Deed("exit", 3))  # It has left others: the shim is to be released.

    assert ("noted", 1, 3, []) in life.ledger
    assert events(life)[:3] == ["noted", "owner: exited", "exited"]
    assert life.child.orders == ["release"]
    life.bury()


def test_a_close_is_written_down_before_anybody_is_told() -> None:
    life = Life(PLAIN, suspends=False)
    life.process.recorder = Notes(life)

    life.do(Deed("exit", 0, flag=True))

    assert events(life) == [
        "noted",
        "owner: exited",
        "exited",
        "noted closed",
        "closed",
        "owner: closed",
        "noted: gone",
        "owner: gone",
    ]
    life.bury()


def test_the_cause_of_an_end_and_its_time_are_written_down_before_the_order() -> None:
    """Whoever goes on after a crash carries out what was written down."""
    life = Life(PLAIN, suspends=False)
    life.process.recorder = Notes(life)

    life.process.end_for(Cause(Kind.TIMEOUT, "limit"), 0.5)

    before, after = (event[1:] for event in life.ledger if event[0] == "ending")
    assert before == (Kind.TIMEOUT, life.process.tree.killed_at, False, [])
    assert after[2:] == (True, ["signal 15 to all"])
    life.process.end_for(Cause(Kind.TERMINATED, "client"))
    assert life.ledger[-1][:2] == ("ending", Kind.TIMEOUT)
    life.settle()
    life.bury()
