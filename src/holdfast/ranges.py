"""Output by place: the bytes of one stream, counted from the start of the process (pure)."""

from __future__ import annotations

from typing import Protocol

from .errors import BadRequest
from .model import Stream
from .value import value


@value
class OutputRange:
    """Bytes of one stream of a process, from one place on."""

    stream: Stream
    offset: int
    """The place that was asked for: how many bytes of this stream came before."""
    data: bytes
    """What is there; empty if that is no longer kept, or does not exist yet."""
    next: int
    """Where to go on: behind ``data``, or at ``first_offset`` if what was asked for is no longer kept."""
    total: int
    """How many bytes this stream had when it was looked at."""
    first_offset: int
    """The place of the oldest byte that is kept; ``total`` if none is."""
    ended: bool
    """Whether nothing more will come in this stream."""

    @property
    def is_lost(self) -> bool:
        """Whether what was asked for is no longer kept."""
        return not self.data and self.offset < self.first_offset


class RangedHere(Protocol):
    """A process of this host whose output can be read by place."""

    def try_read_range(
        self, stream: Stream | None, offset: int, length: int, *, until: int
    ) -> OutputRange | None:
        """Return bytes of one stream from a place on, of what came up to number ``until`` at least.

        None if more time is needed: others should have their turn before this is called again.  It may
        give less than ``length`` although there is more.

        Args:
            stream: None for the terminal, if there is one, and else standard output.

        Raises:
            BadRequest: The process has no such stream.
            Unsupported: The places are not known.
        """


class Ranged(Protocol):
    """A process whose output can be read by place, on this host or another."""

    async def read_range(self, stream: Stream | None, offset: int, length: int) -> OutputRange:
        """Return bytes of one stream from a place on; it may be less than ``length`` although there is more.

        Raises:
            BadRequest: The process has no such stream.
            Unsupported: The places are not known there.
        """


def chosen(stream: Stream | None, *, terminal: bool) -> Stream:
    """Return the stream that is meant.

    Raises:
        BadRequest: The process has no such stream.
    """
    if stream is None:
        return Stream.PTY if terminal else Stream.STDOUT
    if terminal and stream is not Stream.PTY:
        raise BadRequest("the process has a terminal: all its output is in the stream pty", field="stream")
    if not terminal and stream is Stream.PTY:
        raise BadRequest("the process has no terminal: its streams are stdout and stderr", field="stream")
    return stream
