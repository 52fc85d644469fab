"""Whom an output of a child is read for: its process, or nobody any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from holdfast.backend import Valve
from holdfast.model import Stream

if TYPE_CHECKING:
    from .output import Output

_FLOOD = 32_768
"""Bytes of one read behind which there is likely more."""


class Speaker(Protocol):
    """The process behind a descriptor."""

    valves: tuple[Valve, ...]
    """While one of these is shut nothing is read."""

    writes: int
    """How often somebody wrote to its stdin."""

    def said(self, stream: Stream, data: bytes) -> None: ...

    def ended(self, output: Output) -> None:
        """This output is at its end and closed."""


class UnheardSpeaker:
    """Stands in for a process that is told nothing any more but the end.  Implements ``Speaker``."""

    valves: tuple[Valve, ...] = ()
    writes = 0

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker

    def said(self, stream: Stream, data: bytes) -> None:
        pass

    def ended(self, output: Output) -> None:
        self._speaker.ended(output)


class CountedSpeaker(UnheardSpeaker):
    """Passes on no output, and counts what it drops.

    Nobody waits for it, so a flood of it is read with pauses: it takes little of the processor, and the
    writer still goes on.
    """

    def __init__(self, speaker: Speaker, output: Output, drop: Callable[[int], object]) -> None:
        super().__init__(speaker)
        self._output = output
        self._drop = drop

    def said(self, stream: Stream, data: bytes) -> None:
        self._drop(len(data))
        if len(data) >= _FLOOD:
            self._output.rest()
