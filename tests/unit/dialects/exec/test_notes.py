"""Sessions and requests that the next server finds again."""

from __future__ import annotations

import marshal
from typing import Any

from holdfast.backend import RecoveredProcess
from holdfast.config import SessionLimits
from holdfast.dialects.exec.entries import EntrySnapshot, StartSummary
from holdfast.dialects.exec.notes import ProcessNote, found_again, pack_process, unpack_process
from holdfast.dialects.exec.scopes import SessionSnapshot, SharedSnapshot
from holdfast.dialects.exec.window import RELEASED, WindowSnapshot
from holdfast.principal import Identity
from tests.fakes.dialects import FakeProcess

LIMITS = SessionLimits(closed_seconds=30.0, kept_seconds=3600.0)
ANN: Identity = ("issuer", "ann", True)
REQUEST = StartSummary(b'"argv":["x"]', b"print", 1 << 20, sandboxed=True, window=100)
PLAIN = StartSummary(b"", b"", None)


def note(key: str, name: str = "p", request: StartSummary = PLAIN) -> bytes:
    return pack_process(ProcessNote(key, ANN, name, request))


def recovered(data: bytes, process: Any, **more: Any) -> RecoveredProcess:
    facts = {"closed_at": None, "acknowledged": 0, "is_forgotten": False} | more
    return RecoveredProcess(data, process, **facts)


def session(key: str) -> bytes:
    return marshal.dumps((key, ANN))


def test_a_note_comes_back_as_it_was() -> None:
    written = ProcessNote("key", ANN, "name \ud800", REQUEST)

    assert unpack_process(pack_process(written)) == written


def test_processes_find_their_sessions_and_what_is_shared_its_tenant() -> None:
    mine, shared = FakeProcess(), FakeProcess()

    sessions, homes, nobodys = found_again(
        [(7, session("k"))], [recovered(note("k"), mine), recovered(note("", "s"), shared)], LIMITS, 5.0
    )

    assert sessions == (
        (7, SessionSnapshot("k", ANN, False, None, ((EntrySnapshot("p", PLAIN, 0, None, None), mine),), ())),
    )
    assert homes == (SharedSnapshot(ANN, ((EntrySnapshot("s", PLAIN, 0, None, None), shared),), ()),)
    assert nobodys == ()


def test_a_process_whose_session_has_ended_is_nobodys() -> None:
    """The server died after the session was removed, and before all its processes were ended."""
    orphan = recovered(note("gone"), FakeProcess())

    assert found_again([], [orphan], LIMITS, 5.0) == ((), (), (orphan,))


def test_a_forgotten_process_is_a_stray_of_its_session() -> None:
    left = FakeProcess()

    ((_, found),), _, _ = found_again(
        [(1, session("k"))], [recovered(note("k"), left, is_forgotten=True)], LIMITS, 5.0
    )

    assert (found.entries, found.strays) == ((), (left,))


def test_closed_processes_are_retained_for_the_rest_of_their_time() -> None:
    found = [
        recovered(note("k", "mine"), FakeProcess(), closed_at=100.0),
        recovered(note("", "shared"), FakeProcess(), closed_at=100.0),
    ]

    ((_, mine),), (shared,), _ = found_again([(1, session("k"))], found, LIMITS, 110.0)

    assert mine.entries[0][0].deadline == 130.0
    assert shared.entries[0][0].deadline == 3700.0


def test_a_window_goes_on_behind_what_was_acknowledged_or_stays_released() -> None:
    def window(acknowledged: int) -> WindowSnapshot | None:
        one = recovered(note("k", "p", REQUEST), FakeProcess(), acknowledged=acknowledged)
        ((_, found),), _, _ = found_again([(1, session("k"))], [one], LIMITS, 5.0)
        return found.entries[0][0].window

    assert window(12) == WindowSnapshot(12, 0, 5.0, is_released=False)
    assert window(RELEASED) == WindowSnapshot(0, 0, 5.0, is_released=True)
