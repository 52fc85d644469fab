"""Events of all processes of a principal, on the wire (pure)."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from holdfast.model import Usage
from holdfast.process_events import EventKind, ProcessEvent

from . import events
from .processes import WaitResult, WireOutcome, WireUsage
from .shapes import U64, Nothing, Params, Shape, Signature, open_choice, within_u64


class SubscribeParams(Params):
    wire_name = "SubscribeParams"


class UnsubscribeParams(Params):
    wire_name = "UnsubscribeParams"


class SubscribeResult(Shape):
    next_seq: U64
    """The number of the first event that is told."""

    def __post_init__(self) -> None:
        within_u64(self.next_seq)


class EventNotice(Shape, kw_only=True):
    """Something has happened to a process of the client's principal, or events were left out."""

    seq: U64
    """Counts the events of the principal; of a ``gap``, the last one that was left out."""
    kind: Annotated[str, open_choice(EventKind)]
    at_ms: U64
    """When it was noticed, in milliseconds since 1970."""
    process_id: str | UnsetType = UNSET
    """Absent for a ``gap``."""
    name: str | UnsetType = UNSET
    """What people call the process, if it was given a name."""
    pid: int | UnsetType = UNSET
    argv: list[str] | UnsetType = UNSET
    """Told of a start: cut as in ``process/list``."""
    tty: bool | UnsetType = UNSET
    """Told of a start."""
    kept: bool | UnsetType = UNSET
    """Told of a start: whether it belongs to no client."""
    exit_code: int | UnsetType = UNSET
    """Told of an exit: 128 + n after death by signal n."""
    outcome: WireOutcome | UnsetType = UNSET
    """Told of an exit."""
    usage: WireUsage | UnsetType = UNSET
    """Told of an exit, if it is known."""
    lost: U64 | UnsetType = UNSET
    """Told of a ``gap``: how many events were left out."""

    def __post_init__(self) -> None:
        within_u64(self.seq, self.at_ms, None if self.lost is UNSET else self.lost)


SUBSCRIBE = Signature("events/subscribe", SubscribeParams, SubscribeResult)
UNSUBSCRIBE = Signature("events/unsubscribe", UnsubscribeParams, Nothing)
EVENT = "events/event"
"""The name of the notification."""


def event_notice(event: ProcessEvent) -> EventNotice:
    """What a server tells of an event."""
    end, used = event.outcome, event.usage
    return EventNotice(
        seq=event.seq,
        kind=event.kind.value,
        at_ms=int(event.time * 1000),
        process_id=event.identifier if event.kind is not EventKind.GAP else UNSET,
        name=event.name or UNSET,
        pid=UNSET if event.pid is None else event.pid,
        argv=list(event.argv) if event.kind is EventKind.STARTED else UNSET,
        tty=UNSET if event.terminal is None else event.terminal,
        kept=UNSET if event.kept is None else event.kept,
        exit_code=UNSET if event.exit_code is None else event.exit_code,
        outcome=UNSET if end is None else events.outcome(end),
        usage=UNSET if used is None else events.usage(used),
        lost=UNSET if event.lost is None else event.lost,
    )


def read_event(told: EventNotice) -> ProcessEvent | None:
    """What a client is told; None for a kind of event that only a newer server knows."""
    try:
        kind = EventKind(told.kind)
    except ValueError:
        return None
    outcome, usage = None, None
    if told.outcome is not UNSET:
        ended = WaitResult(exited=True, exit_code=told.exit_code or 0, outcome=told.outcome, closed=False)
        outcome = events.read_exit(ended).outcome
    if told.usage is not UNSET:
        used = told.usage
        usage = Usage(used.user_ms * 1000, used.system_ms * 1000, used.max_rss_bytes)
    return ProcessEvent(
        told.seq,
        kind,
        told.at_ms / 1000,
        identifier=told.process_id or "",
        name=told.name or told.process_id or "",
        pid=told.pid if told.pid is not UNSET else None,
        argv=told.argv or (),
        terminal=told.tty if told.tty is not UNSET else None,
        kept=told.kept if told.kept is not UNSET else None,
        exit_code=told.exit_code if told.exit_code is not UNSET else None,
        outcome=outcome,
        usage=usage,
        lost=told.lost if told.lost is not UNSET else None,
    )
