"""What is retained for clients of processes that a server before has seen closing."""

from __future__ import annotations

import pytest

from holdfast.backend import RecoveredProcess
from holdfast.config import SessionLimits
from holdfast.dialects.exec.entries import EntrySnapshot, StartSummary
from holdfast.dialects.exec.notes import ProcessNote, found_again, pack_process, unpack_process
from holdfast.dialects.exec.window import RELEASED
from holdfast.principal import ANYBODY
from tests.fakes.dialects import FakeProcess

LIMITS = SessionLimits()


def note(window: int | None = None) -> ProcessNote:
    return ProcessNote("", ANYBODY.identity, "p", StartSummary(b"about", b"print", 7, window=window))


def entry(window: int | None, *, closed_at: float | None, acknowledged: int = 0) -> EntrySnapshot:
    """The entry of a process of nobody that retains 99 bytes, as it is found again."""
    process = FakeProcess()
    process.retained_bytes = 99
    found = RecoveredProcess(pack_process(note(window)), process, closed_at, acknowledged, is_forgotten=False)
    _, (shared,), _ = found_again((), [found], LIMITS, 1000.0)
    ((written, _),) = shared.entries
    return written


def test_what_is_remembered_of_a_request_is_what_was_packed() -> None:
    assert unpack_process(pack_process(note(4096))) == note(4096)


def test_of_a_closed_process_everything_is_retained_that_its_client_may_not_have() -> None:
    """An answer with all of it may never arrive: the server that gives it can die, too."""
    written = entry(4096, closed_at=990.0, acknowledged=3)

    assert (written.unacknowledged, written.window) == (99, None)
    assert written.deadline == 990.0 + LIMITS.kept_seconds


@pytest.mark.parametrize(("window", "acknowledged"), [(None, 0), (4096, RELEASED)])
def test_a_client_that_acknowledges_nothing_relies_on_nothing(window: int | None, acknowledged: int) -> None:
    assert entry(window, closed_at=990.0, acknowledged=acknowledged).unacknowledged == 0


def test_the_window_of_one_that_runs_goes_on_where_it_was() -> None:
    window = entry(4096, closed_at=None, acknowledged=3).window

    assert window is not None
    assert (window.acknowledged, window.is_released) == (3, False)
