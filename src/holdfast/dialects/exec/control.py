"""Talking to what runs: input, size, signals, end."""

from __future__ import annotations

import signal as signals
from collections.abc import Coroutine
from typing import Any

from holdfast.dialects.scope import Starting
from holdfast.dialects.shapes import Nothing, Undecodable
from holdfast.errors import BadRequest
from holdfast.model import Kind, WriteStatus

from . import answers as a
from . import messages as m
from .conversation import ExecConversation
from .entries import Entry
from .reading import find
from .starting import size_of
from .window import Window

_LONGEST_GRACE = 24 * 3600.0
"""Seconds; longer is legal and means the same."""


def write(talk: ExecConversation, params: m.Write) -> a.WriteResult | Coroutine[Any, Any, a.WriteResult]:
    """Offer bytes to stdin.  A process that nobody knows is an answer here, not an error."""
    if params.write_id == "":
        raise BadRequest("writeId must not be empty", field="writeId")
    entry = talk.endpoint.find(talk.session, params.process_id)
    if entry is None:
        return a.WriteResult("unknownProcess")
    if isinstance(entry, Starting):
        return a.WriteResult("starting")
    status = entry.process.try_write(params.data, write_id=params.write_id)
    if status is None:
        return _write_later(entry, params)
    return _ACCEPTED if status is WriteStatus.ACCEPTED else a.WriteResult(status.value)


async def _write_later(entry: Entry, params: m.Write) -> a.WriteResult:
    status = await entry.process.write(params.data, write_id=params.write_id)
    return a.WriteResult(status.value)


_ACCEPTED = a.WriteResult(WriteStatus.ACCEPTED.value)


def close_stdin(talk: ExecConversation, params: m.CloseStdinParams) -> a.WriteResult:
    """End the input of a process, after everything that was offered before."""
    if params.write_id == "":
        raise BadRequest("writeId must not be empty", field="writeId")
    match talk.endpoint.find(talk.session, params.process_id):
        case None:
            return a.WriteResult("unknownProcess")
        case Starting():
            return a.WriteResult("starting")
        case entry:
            return a.WriteResult(entry.process.close_stdin_now(write_id=params.write_id).value)


def resize(talk: ExecConversation, params: m.ResizeParams) -> Nothing:
    """Give a terminal another size."""
    size = size_of(params.size)
    find(talk, params.process_id).process.resize_now(size)
    return Nothing()


_NUMBERS = {
    m.SignalName.INTERRUPT: signals.SIGINT,
    m.SignalName.TERMINATE: signals.SIGTERM,
    m.SignalName.KILL: signals.SIGKILL,
    m.SignalName.HANGUP: signals.SIGHUP,
    m.SignalName.QUIT: signals.SIGQUIT,
    m.SignalName.USER1: signals.SIGUSR1,
    m.SignalName.USER2: signals.SIGUSR2,
    m.SignalName.STOP: signals.SIGSTOP,
    m.SignalName.CONTINUE: signals.SIGCONT,
}


def signal(talk: ExecConversation, params: m.SignalParams) -> Nothing:
    """Signal a process; nothing happens if there is none."""
    if params.signal is m.SignalName.KILL and params.tree is None and not talk.session.extended:
        # Clients of the reference are promised that there is no such thing.
        raise Undecodable("unknown variant `kill`, expected `interrupt`")
    match talk.endpoint.find(talk.session, params.process_id):
        case Entry() as entry:
            entry.process.signal_now(_NUMBERS[params.signal], tree=bool(params.tree))
    return Nothing()


def acknowledge(talk: ExecConversation, params: m.AckParams) -> Nothing:
    """Say what has arrived, so that a process with a window may go on; nothing happens to any other."""
    match talk.endpoint.find(talk.session, params.process_id):
        case Entry(window=Window() as window) as entry:
            window.acknowledge(params.seq or 0)
            if params.release:
                entry.release_window()
    return Nothing()


async def terminate(talk: ExecConversation, params: m.TerminateParams) -> a.TerminateResult:
    """End a process and everything it has started, or give up starting it."""
    match talk.endpoint.find(talk.session, params.process_id):
        case None:
            return a.TerminateResult(running=False, survivors=[])
        case Starting() as starting:
            starting.cancel()
            return a.TerminateResult(running=True, survivors=[])
        case entry:
            end = entry.process.exit
            if end is not None and params.grace_ms is None:
                # What it left behind is spared, as clients of the reference expect.
                return a.TerminateResult(
                    running=False, survivors=[], tree_exact=end.outcome.kind is not Kind.LOST
                )
            grace = min((params.grace_ms or 0) / 1000, _LONGEST_GRACE)
            with talk.waiting_for_end(counted=grace > 0):
                entry.terminated = entry.terminated or entry.process.exit is None
                ended = await entry.process.terminate(grace=grace)
            return a.TerminateResult(ended.running, list(ended.survivors), tree_exact=ended.exact)
