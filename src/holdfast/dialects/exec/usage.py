"""What the processes of a client use at this moment.

What must hold: however many processes there are, others get their turn, and a client that asks again and
again is answered one request after the other.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator

from holdfast.dialects.dialect import Pause
from holdfast.protocol.usage import UsageParams, told
from holdfast.usage import MeasuredName, current_usage
from holdfast.wire.jsonrpc import JsonParts, encode

from .conversation import ExecConversation
from .entries import Entry
from .naming import exactly

_AT_ONCE = 1024
"""Names or processes that are gone through before others get their turn."""


async def usage(talk: ExecConversation, params: UsageParams) -> JsonParts:
    """Return what processes use, with everything they have started: processor time, memory, output."""
    parts, most = JsonParts((b'{"processes":[',)), talk.endpoint.limits.answer_bytes
    session = talk.session
    async with talk.listing:
        await talk.flow()  # The next large answer waits until the client has taken the last one.
        names = params.names
        entries = (*session, *session.tenant.shared) if names is None else _named(talk, names)
        live = [one async for one in _live(entries)]
        async for found in current_usage(live):
            text = encode(told(found))
            most -= len(text) + 1
            if most < 0:
                parts.append(b'],"more":true}')
                return parts
            parts.append(text if len(parts) == 1 else b"," + text)
    parts.append(b"]}")
    return parts


def _named(talk: ExecConversation, names: Iterable[str]) -> Iterator[object]:
    seen: set[str] = set()
    for name in names:
        found = exactly(talk.session, name)
        entry = None if found is None else found[1]
        # It may be asked for by its name and by its identifier.
        if type(entry) is Entry and entry.name not in seen:
            seen.add(entry.name)
            yield entry
        else:
            yield None


async def _live(entries: Iterable[object]) -> AsyncIterator[MeasuredName]:
    """Give the processes of which somebody is left, each with what it is called."""
    for number, entry in enumerate(entries, 1):
        if type(entry) is Entry and (entry.process.exit is None or entry.process.has_leftovers):
            yield entry.request.alias or entry.name, entry.name, entry.process
        if not number % _AT_ONCE:
            await Pause()
