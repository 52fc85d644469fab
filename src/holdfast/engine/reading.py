"""What a reader is given (pure)."""

from __future__ import annotations

from holdfast.model import Exit, Page

from .ring import Ring


def page(ring: Ring, after: int, limit: int | None, *, next_seq: int, end: Exit | None, closed: bool) -> Page:
    """What was said since number ``after``, as far as ``limit`` allows.

    With a limit the reader may not have got everything: it then goes on behind
    the last chunk it got.
    """
    chunks = ring.after(after, limit=limit)
    if limit is not None and chunks:
        next_seq = chunks[-1].seq + 1
    return Page(chunks, next_seq, end, closed, ring.gap(after))


def is_news(found: Page, after: int) -> bool:
    """Whether a reader who knows everything up to ``after`` learns anything from ``found``."""
    return bool(found.chunks) or found.closed or (found.exited and after < found.next_seq - 1)
