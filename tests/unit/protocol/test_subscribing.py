"""Events of processes, written for the wire and read again."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.model import Kind, Outcome, Usage
from holdfast.process_events import EventKind, ProcessEvent
from holdfast.protocol.subscribing import EventNotice, event_notice, read_event

EVENTS = [
    ProcessEvent(1, EventKind.STARTED, 2.5, "p", "web", 7, argv=["sh", "-c"], terminal=True, kept=False),
    ProcessEvent(2, EventKind.WAITING, 3.5, "p", "web", 7),
    ProcessEvent(3, EventKind.RESUMED, 3.5, "p", "web", 7),
    ProcessEvent(
        4,
        EventKind.EXITED,
        3.5,
        "p",
        "web",
        7,
        exit_code=137,
        outcome=Outcome(Kind.OOM, None, 9, "limit", "too large"),
        usage=Usage(1000, 2000, 3),
    ),
    ProcessEvent(5, EventKind.FORGOTTEN, 3.5, "p", "web", 7),
    ProcessEvent(9, EventKind.GAP, 3.5, lost=4),
]


def told(event: ProcessEvent) -> EventNotice:
    return msgspec.json.decode(msgspec.json.encode(event_notice(event)), type=EventNotice)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: event.kind.value)
def test_an_event_is_read_as_it_was_written(event: ProcessEvent) -> None:
    assert read_event(told(event)) == event


def test_a_process_without_a_name_goes_by_its_identifier() -> None:
    event = read_event(told(ProcessEvent(2, EventKind.WAITING, 3.5, "p", "", 7)))

    assert event is not None
    assert event.name == "p"


def test_an_event_of_a_newer_server_is_passed_over() -> None:
    assert read_event(EventNotice(seq=1, kind="frozen", at_ms=1, process_id="p")) is None


def test_a_number_of_more_than_64_bits_is_none() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(b'{"seq":%d,"kind":"gap","atMs":1}' % 2**64, type=EventNotice)
