"""The methods about the session itself: how it begins and ends, its processes, and what the host is like.

What must hold: however many processes there are, others get their turn while a list of them is made, and a
client that asks for many lists gets them one after the other.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import Any

from holdfast.dialects.dialect import Pause
from holdfast.dialects.scope import Starting
from holdfast.protocol import events
from holdfast.protocol.inspecting import ListParams
from holdfast.protocol.session import (
    CloseResult,
    EnvironmentInfo,
    InitializeParams,
    InitializeResult,
    StatusResult,
    TakeOverParams,
)
from holdfast.protocol.session import environment_info as describe_host
from holdfast.wire.jsonrpc import JsonParts, encode

from .conversation import ExecConversation
from .entries import ArchivedEntry, Entry
from .inspecting import Waiting, look_at_all
from .scopes import ProcessScope, Session


async def initialize(talk: ExecConversation, params: InitializeParams) -> InitializeResult:
    """Open or resume a session."""
    session = await talk.begin(params.resume_session_id, extended=bool(params.holdfast))
    return InitializeResult(session.key, _host(talk))


async def take_over(talk: ExecConversation, params: TakeOverParams) -> InitializeResult:
    """Resume a session, instead of ``initialize``, also if another connection has it, which then ends."""
    session = await talk.begin(params.session_id, extended=bool(params.holdfast), by_force=True)
    return InitializeResult(session.key, _host(talk))


async def close(talk: ExecConversation, params: None) -> CloseResult:
    """End the session and everything in it; return when that is gone.  A new one may be opened then."""
    return CloseResult(await talk.finish())


def environment_info(talk: ExecConversation, params: None) -> EnvironmentInfo:
    """Describe the host: its shell, its directories, its capabilities."""
    return _host(talk)


def _host(talk: ExecConversation) -> EnvironmentInfo:
    return describe_host(talk.backend.info, extended=talk.session.extended)


def environment_status(talk: ExecConversation, params: None) -> JsonParts:
    """Answer, to show that the server is alive and the session is open."""
    return _READY


_READY = JsonParts((encode(StatusResult()),))
"""The answer to each of these requests: encoded once."""


# Its processes.


_NOBODY: Waiting = {}

_AT_ONCE = 1024
"""Processes listed before others get their turn: a millisecond, or three if all of them run."""


def list_processes(talk: ExecConversation, params: ListParams) -> JsonParts | Coroutine[Any, Any, JsonParts]:
    """The processes that the client can ask for, those that are starting or ended included."""
    session, most = talk.session, talk.endpoint.limits.answer_bytes
    count = len(session) + len(session.tenant.shared)
    inspects = bool(params.inspect) and session.extended
    if inspects or count > _AT_ONCE or talk.listing.locked():
        return _list_later(talk, session, most, inspects=inspects)
    parts = JsonParts()
    for _ in _fill(parts, session, most):
        pass
    return parts


async def _list_later(talk: ExecConversation, session: Session, most: int, *, inspects: bool) -> JsonParts:
    parts = JsonParts()
    async with talk.listing:
        waiting = await look_at_all(talk) if inspects else _NOBODY
        await talk.flow()  # The next large answer waits until the client has taken the last one.
        for _ in _fill(parts, session, most, waiting):
            await Pause()
    return parts


def _fill(parts: JsonParts, session: Session, most: int, waiting: Waiting = _NOBODY) -> Iterator[None]:
    """Make the list, and pause where others should have their turn.

    ``most`` are the bytes of all processes; what goes beyond them is left out, and the list says so.
    """
    parts.append(b'{"processes":[')
    count = 0
    shared = session.tenant.shared
    for home in (session, shared):
        for entry in home:
            if type(entry) is Entry and entry.request.auto_remove and not shared.is_listed(entry.name):
                continue
            text = (b"," if count else b"") + _line(home, entry, waiting)
            most -= len(text)
            if most < 0:
                parts.append(b'],"more":true}')
                return
            parts.append(text)
            count += 1
            if not count % _AT_ONCE:
                yield
    parts.append(b"]}")


def listed_one(home: ProcessScope, entry: Entry | ArchivedEntry | Starting) -> JsonParts:
    """What a list says of one process, as an answer."""
    return JsonParts((_line(home, entry),))


def _line(home: ProcessScope, entry: Entry | ArchivedEntry | Starting, waiting: Waiting = _NOBODY) -> bytes:
    head, state = entry.listed if isinstance(entry, ArchivedEntry) else _listed(entry, waiting)
    return b"{%b%b%b" % (head, b'"kept":true,' if home.is_shared else b"", state)


def _listed(entry: Entry | Starting, waiting: Waiting) -> tuple[bytes, bytes]:
    about: bytes = entry.request.about
    state = events.LISTED_STARTING
    if isinstance(entry, Entry):
        state = events.listed_state(entry.process)
        if entry in waiting:
            state = b"%b%b}" % (state[:-1], waiting[entry])
    return events.listed_head(entry.name, about), state
