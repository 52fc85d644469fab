"""Tells subscribers what happens to many processes: start, end, and the wait for input.

What must hold:

1. Events are numbered in the order in which they are told, and every subscriber is told all of them.
2. Nobody is looked at while nobody has subscribed, nor on the loop.
3. However many processes there are, looks take a bounded share of the threads, and of the time of the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

from .inspection import InspectedHere, Inspection
from .model import Exit
from .process_events import EventKind, EventSink, ProcessEvent

_PAUSE = 0.25
"""Seconds from the end of one round of looks to the next: as long as a person waits for a prompt."""

_PATIENCE = 5.0
"""Seconds after which the next round begins, whether or not all looks of the last one were made."""

_SHARE = 4
"""The pause is as many times as long as the round took: large trees make looks slow."""

_LOOKS = 32
"""Processes that are looked at in one round."""

_AT_ONCE = 2
"""Looks at one moment: half of the threads that look, so that other looks need not wait for these."""

_SCANNED = 2048
"""Processes that one round goes through to find those to look at: a third of a millisecond."""

_TALKING = 4
"""Rounds for which a process that goes on talking is not looked at."""


class Announced(InspectedHere, Protocol):
    """A process of this host, as its announcer sees it."""

    @property
    def pid(self) -> int: ...

    @property
    def next_seq(self) -> int: ...


class _Followed:
    """What is known of one process that runs."""

    __slots__ = ("identifier", "looked", "name", "process", "said", "skipped", "told", "waits")

    def __init__(self, identifier: str, name: str, process: Announced) -> None:
        self.identifier = identifier
        self.name = name
        self.process = process
        self.said = 0
        """The number of its next event when a round last came across it."""
        self.skipped = 0
        """Rounds in a row in which it was not looked at because it had said something."""
        self.looked = 0
        """The round in which it was looked at last."""
        self.waits = False
        self.told: tuple[int, int] | None = None
        """When it was last told to wait: for how many listeners, and the number of its next event then."""


class Announcer:
    """Numbers what happens to the processes of one tenant, or one host, and tells it to subscribers."""

    __slots__ = (
        "_began",
        "_due",
        "_followed",
        "_left",
        "_listeners",
        "_loop",
        "_round",
        "_running",
        "_sinks",
        "_timer",
        "next_seq",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, next_seq: int = 1) -> None:
        """``next_seq`` is the number of the first event."""
        self.next_seq = next_seq
        self._loop = loop
        self._sinks: list[EventSink] = []
        self._listeners = 0  # How many there have been.
        self._followed: dict[Announced, _Followed] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._round = 0
        self._began = 0.0
        self._due: deque[_Followed] = deque()
        self._running = 0
        self._left = 0

    # Subscribers.

    def subscribe(self, sink: EventSink) -> None:
        """Tell ``sink`` all events from now on, and soon again who waits for input."""
        self._sinks.append(sink)
        self.remind()
        self._arm()

    def remind(self) -> None:
        """Tell soon again who waits for input: somebody listens who has not heard it."""
        self._listeners += 1

    def unsubscribe(self, sink: EventSink) -> bool:
        """Tell ``sink`` nothing more; return whether any other is left."""
        if sink in self._sinks:
            self._sinks.remove(sink)
        if not self._sinks:
            self._stop()
        return bool(self._sinks)

    def close(self, error: Exception | None = None) -> None:
        """Tell all subscribers that it is over."""
        sinks, self._sinks = self._sinks, []
        self._stop()
        for sink in sinks:
            sink.over(error)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._followed.clear()
        self._due.clear()

    # What happens.

    def follow(self, identifier: str, name: str, process: Announced) -> None:
        """Take note of a process that was there before."""
        if process not in self._followed:
            self._followed[process] = _Followed(identifier, name, process)
            self._arm()

    def started(
        self,
        identifier: str,
        name: str,
        process: Announced,
        *,
        argv: Sequence[str],
        terminal: bool,
        kept: bool,
    ) -> None:
        """A process runs."""
        followed = _Followed(identifier, name, process)
        self._tell(EventKind.STARTED, followed, argv=argv, terminal=terminal, kept=kept)
        self._followed[process] = followed
        self._arm()

    def exited(self, identifier: str, name: str, process: Announced, end: Exit) -> None:
        """A process has ended."""
        self._tell(
            EventKind.EXITED,
            self._last_of(identifier, name, process),
            exit_code=end.code,
            outcome=end.outcome,
            usage=end.usage,
        )

    def forgotten(self, identifier: str, name: str, process: Announced) -> None:
        """A process is ended, and nobody will be told how it ends."""
        self._tell(EventKind.FORGOTTEN, self._last_of(identifier, name, process))

    def _last_of(self, identifier: str, name: str, process: Announced) -> _Followed:
        """What is known of a process that is followed no longer."""
        followed = self._followed.pop(process, None)
        return _Followed(identifier, name, process) if followed is None else followed

    def _tell(self, kind: EventKind, of: _Followed, **facts: Any) -> None:
        event = ProcessEvent(
            self.next_seq, kind, time.time(), of.identifier, of.name, of.process.pid, **facts
        )
        self.next_seq += 1
        for sink in tuple(self._sinks):
            sink.told(event)

    # Rounds of looks.

    def _arm(self, pause: float = _PAUSE) -> None:
        if self._timer is None and self._sinks and self._followed:
            self._timer = self._loop.call_at(self._loop.time() + pause, self._begin)

    def _begin(self) -> None:
        """Look at those of whom there may be something to tell."""
        self._timer = None
        self._round += 1
        self._began = self._loop.time()
        self._due = deque(self._choose())
        self._left, self._running = len(self._due), 0
        if not self._due:
            self._arm()
            return
        self._arm(_PATIENCE)
        self._look()

    def _choose(self) -> list[_Followed]:
        """Choose whom to look at: first those who have said something and then fallen silent."""
        fresh: list[_Followed] = []
        others: list[_Followed] = []
        for _ in range(min(len(self._followed), _SCANNED)):
            process, followed = next(iter(self._followed.items()))
            # To the end of the line: the next round begins with others.
            del self._followed[process]
            self._followed[process] = followed
            seq = process.next_seq
            if seq != followed.said and followed.skipped < _TALKING:
                followed.said = seq
                followed.skipped += 1
                continue
            (fresh if followed.skipped else others).append(followed)
            followed.skipped = 0
        if len(fresh) + len(others) > _LOOKS:
            others.sort(key=lambda followed: followed.looked)
        return (fresh + others)[:_LOOKS]

    def _look(self) -> None:
        while self._due and self._running < _AT_ONCE:
            followed = self._due.popleft()
            followed.looked = self._round
            self._running += 1
            followed.process.look_at_input(partial(self._looked, followed, self._round))

    def _looked(self, followed: _Followed, number: int, found: Inspection) -> None:
        if self._followed.get(followed.process) is followed:
            self._compare(followed, waits=found.waiting_for_input)
        if number != self._round:
            return  # It has taken so long that another round has begun.
        self._running -= 1
        self._left -= 1
        if self._left:
            self._look()
        elif self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._arm(max(_PAUSE, _SHARE * (self._loop.time() - self._began)))

    def _compare(self, followed: _Followed, *, waits: bool | None) -> None:
        """Tell what a look has shown, if that is news; what is not known is none."""
        process = followed.process
        if waits:
            followed.waits = True
            if followed.told != (now := (self._listeners, process.next_seq)):
                followed.told = now
                self._tell(EventKind.WAITING, followed)
        elif waits is False and followed.waits:
            followed.waits = False
            followed.told = None
            self._tell(EventKind.RESUMED, followed)
