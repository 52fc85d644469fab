"""Where in a ring the bytes of each stream are (pure).

Nothing is counted while a process talks.  When somebody asks for the first time, the sizes of what is kept
are added up, and how far that got is remembered at every ``STRIDE`` chunks: later questions only add what is
new.

What must hold:

1. A mark is true for ever: it counts from the first byte of the process, whatever was dropped since.
2. One call looks at ``_STRIDES`` strides at the most.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from holdfast.errors import Unsupported
from holdfast.model import Stream
from holdfast.ranges import OutputRange
from holdfast.value import value

from .ring import Ring

STRIDE: Final = 256
"""Chunks from mark to mark."""

_STRIDES = 16
"""How many of these are counted before others get their turn: about a millisecond."""

_PIECES = 2048
"""Chunks that are joined to one answer: a process may have written single bytes."""

RANGE_MOST = 1 << 20
"""Bytes of one answer: they are joined and encoded at once."""


@value
class Mark:
    """How many bytes there were up to a number: of standard error, and of the other stream."""

    seq: int
    stderr: int
    other: int

    def of(self, stream: Stream) -> int:
        """Return the bytes of one stream up to there."""
        return self.stderr if stream is Stream.STDERR else self.other


class Offsets:
    """The marks of one ring."""

    __slots__ = ("_marks",)

    def __init__(self) -> None:
        self._marks: list[Mark] = []

    def look(self, ring: Ring, until: int, first: Mark) -> Mark | None:
        """Return the mark behind everything up to ``until`` at least; None if more time is needed."""
        self._forget(first)
        for _ in range(_STRIDES):
            last = self._marks[-1]
            if last.seq >= until:
                return last
            sizes = ring.sizes(last.seq, STRIDE)
            if not sizes:
                return last
            stderr = sum(size for _, stream, size in sizes if stream is Stream.STDERR)
            other = sum(size for _, _, size in sizes) - stderr
            mark = Mark(sizes[-1][0], last.stderr + stderr, last.other + other)
            if len(sizes) < STRIDE:
                return mark  # Not remembered: what comes next belongs to the same stride.
            self._marks.append(mark)
        return None

    def _forget(self, first: Mark) -> None:
        """Drop the marks of what the ring has dropped."""
        marks = self._marks
        stale = bisect_right(marks, first.seq, key=lambda mark: mark.seq)
        if stale or not marks:
            marks[:stale] = [first]

    def find(self, ring: Ring, stream: Stream, offset: int, length: int) -> bytes:
        """Return the bytes at a place that is kept, as many as are to be had at once."""
        marks = self._marks
        index = bisect_right(marks, offset, key=lambda mark: mark.of(stream)) - 1
        place, pieces, found = marks[index].of(stream), list[bytes](), 0
        while found < length and len(pieces) < _PIECES:
            is_last = index + 1 >= len(marks)
            if is_last or marks[index + 1].of(stream) > place:
                # Behind the first mark there may be fewer: it is where dropping has got to.
                most = STRIDE if is_last else min(STRIDE, marks[index + 1].seq - marks[index].seq)
                for seq, told, size in ring.sizes(marks[index].seq, most):
                    if not is_last and seq > marks[index + 1].seq:
                        break  # One of the numbers is that of the exit.
                    if told is not stream or found >= length:
                        continue
                    if place + size > offset:
                        (chunk,) = ring.after(seq - 1, limit=1)
                        at = max(0, offset - place)
                        pieces.append(bytes(chunk.data[at : at + length - found]))
                        found += len(pieces[-1])
                    place += size
            if is_last:
                break
            index += 1
        return b"".join(pieces)


def read_range(
    ring: Ring, stream: Stream, offset: int, length: int, *, until: int, ended: bool
) -> OutputRange | None:
    """What there is in a stream from ``offset`` on: see ``ranges.RangedHere``."""
    seq, total, stderr = ring.origin()
    if stderr is None:
        if stream is not Stream.PTY:
            raise Unsupported("a range of output of which the server before this one has dropped some")
        stderr = 0
    if ring.offsets is None:
        ring.offsets = Offsets()
    first = Mark(seq, stderr, total - stderr)
    end = ring.offsets.look(ring, until, first)
    if end is None:
        return None
    skipped, skipped_stderr = ring.skipped()
    skipped_here = skipped_stderr if stream is Stream.STDERR else skipped - skipped_stderr
    start, kept = first.of(stream), end.of(stream)
    total = kept + skipped_here
    if start == kept:
        start = total  # Nothing is kept.
    data = b""
    if start <= offset < kept:
        data = ring.offsets.find(ring, stream, offset, min(length, kept - offset, RANGE_MOST))
    if offset < start:
        following = start
    else:
        following = total if skipped_here and offset + len(data) == kept else offset + len(data)
    return OutputRange(stream, offset, data, following, total, start, ended)
