"""What terminals show."""

from __future__ import annotations

from holdfast.dialects.dialect import Pause
from holdfast.protocol.screen import SnapshotParams, SnapshotResult, snapshot_result

from .conversation import ExecConversation
from .reading import find


async def snapshot(talk: ExecConversation, params: SnapshotParams) -> SnapshotResult:
    """Return what the terminal of a process shows, as escape sequences that draw it."""
    process = find(talk, params.process_id).process
    # What is said from now on can be read behind the snapshot: whoever talks on is not waited for.
    until = process.next_seq - 1
    while (found := process.try_snapshot(until)) is None:
        await Pause()
    await talk.flow()
    return snapshot_result(found)
