"""The list of a client's processes.

What must hold: however many there are, others get their turn in between, and a
client that asks for many lists gets them one after the other.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import Any

from holdfast.dialects.dialect import Pause
from holdfast.dialects.scope import Starting
from holdfast.protocol import events
from holdfast.wire.jsonrpc import JsonParts

from .conversation import ExecConversation
from .entries import ArchivedEntry, Entry
from .scopes import ProcessScope, Session

_AT_ONCE = 1024
"""Processes listed before others get their turn: a millisecond, or three if all of them run."""


def list_processes(talk: ExecConversation, params: None) -> JsonParts | Coroutine[Any, Any, JsonParts]:
    """The processes that the client can ask for, those that are starting or ended included."""
    session, most = talk.session, talk.endpoint.limits.answer_bytes
    count = len(session) + len(session.tenant.shared)
    if count > _AT_ONCE or talk.listing.locked():
        return _list_later(talk, session, most)
    parts = JsonParts()
    for _ in _fill(parts, session, most):
        pass
    return parts


async def _list_later(talk: ExecConversation, session: Session, most: int) -> JsonParts:
    parts = JsonParts()
    async with talk.listing:
        await talk.flow()  # The next large answer waits until the client has taken the last one.
        for _ in _fill(parts, session, most):
            await Pause()
    return parts


def _fill(parts: JsonParts, session: Session, most: int) -> Iterator[None]:
    """Make the list, and pause where others should have their turn.

    ``most`` are the bytes of all processes; what goes beyond them is left out, and the list says so.
    """
    parts.append(b'{"processes":[')
    count = 0
    # The processes of the session and then the others, each with what says that it is one of those.
    scopes: tuple[tuple[ProcessScope, bytes], ...]
    scopes = (session, b""), (session.tenant.shared, b'"kept":true,')
    for home, kept in scopes:
        for entry in home:
            head, state = entry.listed if isinstance(entry, ArchivedEntry) else _listed(entry)
            text = b"%b{%b%b%b" % (b"," if count else b"", head, kept, state)
            most -= len(text)
            if most < 0:
                parts.append(b'],"more":true}')
                return
            parts.append(text)
            count += 1
            if not count % _AT_ONCE:
                yield
    parts.append(b"]}")


def _listed(entry: Entry | Starting) -> tuple[bytes, bytes]:
    about: bytes = entry.request.about
    state = events.LISTED_STARTING if isinstance(entry, Starting) else events.listed_state(entry.process)
    return events.listed_head(entry.name, about), state
