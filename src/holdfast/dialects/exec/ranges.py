"""Output by place, for clients that left something out or want only a part."""

from __future__ import annotations

from holdfast.dialects.dialect import Pause
from holdfast.protocol.ranges import ReadRangeParams, ReadRangeResult, range_result

from .conversation import ExecConversation
from .reading import find

_MOST = 1 << 63
"""What is asked for if nothing is: the engine gives as much as one answer has."""


async def read_range(talk: ExecConversation, params: ReadRangeParams) -> ReadRangeResult:
    """Return bytes of one stream of a process from a place on, as far as they are kept."""
    process = find(talk, params.process_id).process
    # Whoever talks on is not waited for.
    until = process.next_seq - 1
    offset, length = params.offset or 0, _MOST if params.length is None else params.length
    await talk.flow()
    while (found := process.try_read_range(params.stream, offset, length, until=until)) is None:
        await Pause()
        process = find(talk, params.process_id).process  # It may have been forgotten or archived meanwhile.
    return range_result(found)
