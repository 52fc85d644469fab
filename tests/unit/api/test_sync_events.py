"""Events for programs without an event loop."""

from __future__ import annotations

import threading

import pytest

from holdfast import EventKind, sync
from tests.fakes.process import nothing_left_open


def test_a_program_follows_all_processes_of_a_host() -> None:
    with nothing_left_open(), sync.local() as host, host.events() as events:
        host.run(["sh", "-c", "exit 3"], name="p")

        first = events.next()
        kinds = [first.kind] + [event.kind for _, event in zip(range(1), events, strict=False)]

    assert (first.name, kinds) == ("p", [EventKind.STARTED, EventKind.EXITED])


def test_a_wait_ends_in_time() -> None:
    with sync.local() as host, host.events() as events, pytest.raises(TimeoutError):
        events.next(timeout=0.001)


def test_a_loop_ends_when_another_thread_closes_the_events() -> None:
    with sync.local() as host:
        events = host.events().open()
        closing = threading.Thread(target=events.close)
        closing.start()
        seen = list(events)
        closing.join()

        assert seen == []
        with pytest.raises(StopIteration):
            events.next()
