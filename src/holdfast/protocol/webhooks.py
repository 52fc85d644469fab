"""What a server tells a webhook of the end of a process (pure)."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from holdfast.model import Exit
from holdfast.process_events import EventKind

from . import events
from .processes import WireOutcome, WireUsage
from .shapes import Shape

_encode = msgspec.json.Encoder().encode


class EndNotice(Shape, kw_only=True):
    """A process has ended."""

    delivery_id: str
    """By this a receiver knows a notice that it has had before: it stays when that is sent again."""
    kind: str
    """``exited``, or ``forgotten`` if its session was over and nobody knows how it ended."""
    at_ms: int
    process_id: str
    name: str | UnsetType = UNSET
    pid: int
    exit_code: int | UnsetType = UNSET
    outcome: WireOutcome | UnsetType = UNSET
    usage: WireUsage | UnsetType = UNSET


def end_notice(
    delivery: str, seconds: float, identifier: str, name: str, pid: int, end: Exit | None
) -> bytes:
    """The body of a request; ``end`` is None if nobody knows how the process ended."""
    used = None if end is None else end.usage
    return _encode(
        EndNotice(
            delivery_id=delivery,
            kind=(EventKind.FORGOTTEN if end is None else EventKind.EXITED).value,
            at_ms=int(seconds * 1000),
            process_id=identifier,
            name=name or UNSET,
            pid=pid,
            exit_code=UNSET if end is None else end.code,
            outcome=UNSET if end is None else events.outcome(end.outcome),
            usage=UNSET if used is None else events.usage(used),
        )
    )
