"""Talking to what runs: input, size, signals, end."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Final

from holdfast.dialects.scope import Starting
from holdfast.errors import BadRequest
from holdfast.model import Kind, WriteStatus
from holdfast.protocol.processes import (
    SIGNAL_NUMBERS,
    AckParams,
    CloseStdinParams,
    ResizeParams,
    SignalName,
    SignalParams,
    TerminateParams,
    TerminateResult,
    WriteAnswer,
    WriteResult,
)
from holdfast.protocol.shapes import Nothing, Undecodable
from holdfast.wire.jsonrpc import JsonParts, encode

from .conversation import ExecConversation
from .decoding import DecodedWrite
from .entries import Entry
from .reading import find
from .starting import size_of

LONGEST_GRACE = 24 * 3600.0
"""Seconds; longer is legal and means the same."""


def write(
    talk: ExecConversation, params: DecodedWrite
) -> JsonParts | WriteResult | Coroutine[Any, Any, WriteResult]:
    """Write bytes to stdin.  An unknown process is an answer here, not an error."""
    if params.write_id == "":
        raise BadRequest("writeId must not be empty", field="writeId")
    entry = talk.endpoint.find(talk.session, params.process_id)
    if type(entry) is not Entry:
        return WriteResult(WriteAnswer.UNKNOWN_PROCESS if entry is None else WriteAnswer.STARTING)
    status = entry.process.try_write(params.data, write_id=params.write_id)
    if status is None:
        return _write_later(entry, params)
    return _ANSWER_ACCEPTED if status is _ACCEPTED else WriteResult(status.value)


async def _write_later(entry: Entry, params: DecodedWrite) -> WriteResult:
    status = await entry.process.write(params.data, write_id=params.write_id)
    return WriteResult(status.value)


_ACCEPTED: Final = WriteStatus.ACCEPTED
_ANSWER_ACCEPTED = JsonParts((encode(WriteResult(_ACCEPTED.value)),))
"""The answer to nearly every write: encoded once."""


def close_stdin(talk: ExecConversation, params: CloseStdinParams) -> WriteResult:
    """End the input of a process, after everything that was offered before."""
    if params.write_id == "":
        raise BadRequest("writeId must not be empty", field="writeId")
    match talk.endpoint.find(talk.session, params.process_id):
        case None:
            return WriteResult(WriteAnswer.UNKNOWN_PROCESS)
        case Starting():
            return WriteResult(WriteAnswer.STARTING)
        case entry:
            return WriteResult(entry.process.close_stdin_now(write_id=params.write_id).value)


def resize(talk: ExecConversation, params: ResizeParams) -> Nothing:
    """Give a terminal another size."""
    size = size_of(params.size)
    find(talk, params.process_id).process.resize_now(size)
    return Nothing()


def signal(talk: ExecConversation, params: SignalParams) -> Nothing:
    """Signal a process; nothing happens if there is none."""
    if params.signal is SignalName.KILL and params.tree is None and not talk.session.extended:
        # Clients of the reference are promised that there is no such thing.
        raise Undecodable("unknown variant `kill`, expected `interrupt`")
    match talk.endpoint.find(talk.session, params.process_id):
        case Entry() as entry:
            entry.process.signal_now(SIGNAL_NUMBERS[params.signal], tree=bool(params.tree))
    return Nothing()


def acknowledge(talk: ExecConversation, params: AckParams) -> Nothing:
    """Acknowledge output, so that a process with a window goes on; has no effect on any other process."""
    match talk.endpoint.find(talk.session, params.process_id):
        case Entry() as entry:
            entry.acknowledge(params.seq or 0)
            if params.release:
                entry.release_window()
    return Nothing()


async def terminate(talk: ExecConversation, params: TerminateParams) -> TerminateResult:
    """End a process and everything it has started, or give up starting it."""
    match talk.endpoint.find(talk.session, params.process_id):
        case None:
            return TerminateResult(running=False, tree_exact=True)
        case Starting() as starting:
            starting.cancel()
            return TerminateResult(running=True, tree_exact=True)
        case entry:
            end = entry.process.exit
            if end is not None and params.grace_ms is None:
                # What it left behind is spared, as clients of the reference expect.
                return TerminateResult(running=False, tree_exact=end.outcome.kind is not Kind.LOST)
            grace = min((params.grace_ms or 0) / 1000, LONGEST_GRACE)
            with talk.waiting_for_end(counted=grace > 0):
                ended = await entry.process.end(grace=grace)
            return TerminateResult(ended.running, list(ended.survivors), tree_exact=ended.exact)
