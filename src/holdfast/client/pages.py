"""The answer to a read, taken apart into what happened, in the order of the numbers (pure).

A read gives the chunks that are kept and says whether the process has exited and
closed; it does not say which numbers these two have.  They are the ones that are
missing.  If more are missing, output is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from holdfast.errors import LinkLost, OutputGap
from holdfast.model import Chunk, Exit, Page


@dataclass(slots=True)
class Exited:
    seq: int
    exit: Exit


@dataclass(slots=True)
class Closed:
    seq: int


Event = Chunk | Exited | Closed | OutputGap | LinkLost
"""What can happen to a process far away.  A gap counts as its last number; nothing follows a loss."""


def events(page: Page, after: int, *, exit_known: bool) -> Iterator[Event]:
    """What happened behind number ``after``, as far as the page tells.

    An exit whose number the page does not show is left to the next page, as long as there may be one.
    If it turns out that it was lost with the output around it, it comes with the number ``after``.

    Args:
        exit_known: Whether the exit was told before ``after``.
    """
    missing = _missing(page, after)
    found: list[tuple[int, Event]] = [(chunk.seq, chunk) for chunk in page.chunks if chunk.seq > after]
    # With a limit a page ends behind its last chunk, whatever there is behind that.
    last = not found
    if page.closed and missing and missing[-1][1] == page.next_seq - 1:
        last, closed = True, page.next_seq - 1
        missing = _without(missing, closed)
        found.append((closed, Closed(closed)))
    if page.exit is not None and not exit_known:
        exited = _exit_number(page, missing, after, last=last)
        if exited is not None:
            missing = _without(missing, exited)
            found.append((exited, Exited(exited, page.exit)))
    gap = page.gap
    for start, end in missing:
        size = gap.size if gap is not None and start <= gap.last and end >= gap.first else None
        found.append((start, OutputGap(start, end, size)))
    found.sort(key=lambda each: each[0])
    for _, event in found:
        yield event


def _exit_number(page: Page, missing: list[tuple[int, int]], after: int, *, last: bool) -> int | None:
    """The number of the exit; None if one of the next pages shows it."""
    gap = page.gap
    shown = [end for _, end in missing if gap is None or end > gap.last]
    if shown:
        return shown[-1]
    if not last:
        return None
    # Somebody went on talking for so long that even the exit's neighbours are gone.
    return missing[0][0] if missing else after


def _missing(page: Page, after: int) -> list[tuple[int, int]]:
    """Numbers that are neither told nor still to come, as ranges with both ends included."""
    ranges, at = [], after + 1
    for chunk in page.chunks:
        if chunk.seq > at:
            ranges.append((at, chunk.seq - 1))
        at = max(at, chunk.seq + 1)
    if page.next_seq > at:
        ranges.append((at, page.next_seq - 1))
    return ranges


def _without(ranges: list[tuple[int, int]], number: int) -> list[tuple[int, int]]:
    """The ranges without one number at an end of one of them."""
    kept = []
    for first, last in ranges:
        if first <= number <= last:
            kept += [part for part in ((first, number - 1), (number + 1, last)) if part[0] <= part[1]]
        else:
            kept.append((first, last))
    return kept


def number(event: Chunk | Exited | Closed | OutputGap) -> int:
    """The number up to which an event brings its reader."""
    return event.last if isinstance(event, OutputGap) else event.seq
