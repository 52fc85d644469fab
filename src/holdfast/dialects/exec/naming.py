"""Finding a process by what people call it, and forgetting one that has ended.

What must hold: however many processes there are, others get their turn while one is looked for.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import Any

from holdfast.aliases import LEAST_PREFIX
from holdfast.dialects.dialect import Pause
from holdfast.dialects.scope import Starting
from holdfast.errors import NameAmbiguous, StillRunning, StillStarting, UnknownProcess
from holdfast.protocol.processes import FindParams, RemoveProcessParams
from holdfast.protocol.shapes import Nothing
from holdfast.wire.jsonrpc import JsonParts

from .conversation import ExecConversation
from .entries import ArchivedEntry, Entry
from .scopes import ProcessScope, Session, is_live
from .session import listed_one

_AT_ONCE = 4096
"""Identifiers that are compared before others get their turn: less than a millisecond."""

_Found = tuple[ProcessScope, Entry | ArchivedEntry | Starting]


def find(talk: ExecConversation, params: FindParams) -> JsonParts | Coroutine[Any, Any, JsonParts]:
    """Return the process with this name or identifier, or whose identifier alone begins like this."""
    session, text = talk.session, params.name
    found = exactly(session, text)
    if found is not None:
        return listed_one(*found)
    if len(text) < LEAST_PREFIX:
        raise UnknownProcess(text)
    if len(session) + len(session.tenant.shared) > _AT_ONCE:
        return _search_later(talk, session, text)
    search = _Search(session, text)
    for _ in search.steps():
        pass
    return listed_one(*search.result())


def exactly(session: Session, text: str) -> _Found | None:
    """The process that is called so, by its name rather than by its identifier."""
    called = session.tenant.called(session, text)
    if called is not None and is_live(called[1]):
        return called
    home, entry = session.tenant.find(session, text)
    if entry is not None and (called is None or is_live(entry)):
        return home, entry
    return called


async def _search_later(talk: ExecConversation, session: Session, text: str) -> JsonParts:
    search = _Search(session, text)
    async with talk.listing:  # One after the other, as lists.
        for _ in search.steps():
            await Pause()
    return listed_one(*search.result())


class _Search:
    """Looks for the only identifier that begins with a text."""

    def __init__(self, session: Session, text: str) -> None:
        self._session = session
        self._text = text
        self._found: list[tuple[ProcessScope, str]] = []

    def steps(self) -> Iterator[None]:
        """Search; pause where others should have their turn."""
        for home in (self._session, self._session.tenant.shared):
            names = home.names
            for start in range(0, len(names), _AT_ONCE):
                some = names[start : start + _AT_ONCE]
                self._found += [(home, name) for name in some if name.startswith(self._text)]
                if len(self._found) > 1:
                    return
                yield

    def result(self) -> _Found:
        """Return the process.

        Raises:
            NameAmbiguous: There are several.
            UnknownProcess: There is none, or it was forgotten meanwhile.
        """
        if len(self._found) > 1:
            raise NameAmbiguous(self._text)
        for home, name in self._found:
            if (entry := home.find(name)) is not None:
                return home, entry
        raise UnknownProcess(self._text)


def remove(talk: ExecConversation, params: RemoveProcessParams) -> Nothing:
    """Forget a process that has ended, with its output; its identifier and its name are free then."""
    name = params.process_id
    entry = talk.endpoint.find(talk.session, name)
    match entry:
        case None:
            raise UnknownProcess(name)
        case Starting():
            raise StillStarting(name)
        case _ if entry.process.running:
            raise StillRunning(name)
    home, _ = talk.session.tenant.find(talk.session, name)
    talk.endpoint.remove(home, entry)
    return Nothing()
