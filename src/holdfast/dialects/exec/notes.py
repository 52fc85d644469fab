"""What the next server has to know of sessions and requests, as bytes and back."""

from __future__ import annotations

import marshal
from collections.abc import Iterable

from holdfast.backend import RecoveredProcess
from holdfast.config import SessionLimits
from holdfast.principal import Identity
from holdfast.value import value

from .entries import EntrySnapshot, StartSummary
from .scopes import SessionSnapshot, SharedSnapshot, Written
from .window import RELEASED, WindowSnapshot


@value
class ProcessNote:
    """To whom a process is served, and what is remembered of the request for it."""

    key: str
    """The key of its session; empty for a process that belongs to no client."""
    identity: Identity
    """Whose it is."""
    name: str
    request: StartSummary


def pack_process(note: ProcessNote) -> bytes:
    """The note as bytes."""
    request = note.request
    about = request.about, request.fingerprint, request.retain, request.sandboxed, request.window
    names = request.alias, request.auto_remove, request.again, request.notify
    return marshal.dumps((note.key, note.identity, note.name, about + names))


def unpack_process(data: bytes) -> ProcessNote:
    """The note in these bytes, which are those that were written."""
    key, identity, name, about = marshal.loads(data)  # noqa: S302  (our own bytes: whoever has kept them checks)
    return ProcessNote(key, identity, name, StartSummary(*about))


def unpack_session(data: bytes) -> tuple[str, Identity]:
    """The key of a session, and whose it is."""
    key, identity = marshal.loads(data)  # noqa: S302  (as above)
    return key, identity


def found_again(
    ledger: Iterable[tuple[int, bytes]],
    processes: Iterable[RecoveredProcess],
    limits: SessionLimits,
    now: float,
) -> tuple[tuple[tuple[int, SessionSnapshot], ...], tuple[SharedSnapshot, ...], tuple[RecoveredProcess, ...]]:
    """Sessions with their numbers in the ledger, what belongs to none, and what is nobody's any more."""
    known = {key: (number, identity) for number, (key, identity) in _sessions(ledger)}
    entries: dict[tuple[str, Identity], list[tuple[EntrySnapshot, RecoveredProcess]]] = {}
    strays: dict[tuple[str, Identity], list[RecoveredProcess]] = {}
    nobodys = []
    for process in processes:
        note = unpack_process(process.note)
        if note.key and note.key not in known:
            nobodys.append(process)
        elif process.is_forgotten:
            strays.setdefault((note.key, note.identity), []).append(process)
        else:
            written = _entry(note, process, limits, now)
            entries.setdefault((note.key, note.identity), []).append((written, process))

    def of(home: tuple[str, Identity]) -> tuple[Written, tuple[object, ...]]:
        return (
            tuple((written, found.process) for written, found in entries.pop(home, ())),
            tuple(found.process for found in strays.pop(home, ())),
        )

    sessions = tuple(
        (number, SessionSnapshot(key, identity, False, None, *of((key, identity))))  # type: ignore[arg-type]
        for key, (number, identity) in known.items()
    )
    shared = tuple(
        SharedSnapshot(identity, *of((key, identity)))  # type: ignore[arg-type]
        for key, identity in {*entries, *strays}
        if not key
    )
    return sessions, shared, tuple(nobodys)


def _sessions(ledger: Iterable[tuple[int, bytes]]) -> Iterable[tuple[int, tuple[str, Identity]]]:
    return ((number, unpack_session(data)) for number, data in ledger)


def _entry(note: ProcessNote, process: RecoveredProcess, limits: SessionLimits, now: float) -> EntrySnapshot:
    deadline = None
    if process.closed_at is not None:
        is_short = note.key or note.request.auto_remove
        deadline = process.closed_at + (limits.closed_seconds if is_short else limits.kept_seconds)
    window, unacknowledged = None, 0
    released = process.acknowledged >= RELEASED
    if note.request.window is not None and deadline is None:
        window = WindowSnapshot(0 if released else process.acknowledged, 0, now, is_released=released)
    elif note.request.window is not None and not released:
        # Its client may not have it, however much it reads: the answer can be lost with this server, too.
        unacknowledged = process.process.retained()
    return EntrySnapshot(note.name, note.request, unacknowledged, window, deadline)
