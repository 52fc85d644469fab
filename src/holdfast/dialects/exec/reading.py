"""What processes have said, how they ended, and the list of them.

What must hold: however many processes there are, others get their turn while a list of them is made, and a
client that asks for many lists gets them one after the other.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from functools import partial
from time import monotonic
from typing import Any

from holdfast.dialects.dialect import Pause, Postponed
from holdfast.dialects.scope import Starting
from holdfast.errors import StillStarting, UnknownProcess
from holdfast.model import Page
from holdfast.protocol import events
from holdfast.protocol.processes import ReadParams, WaitParams, WaitResult
from holdfast.wire.jsonrpc import JsonParts

from .conversation import ExecConversation
from .entries import ArchivedEntry, Entry
from .scopes import ProcessScope, Session
from .window import Window

_LONGEST_WAIT = 365 * 24 * 3600.0
"""Seconds; longer waits are legal and mean the same, but clocks overflow."""


def read(
    talk: ExecConversation, params: ReadParams
) -> JsonParts | Postponed | Coroutine[Any, Any, JsonParts]:
    """Return the output of a process, as far as it is kept."""
    entry, after = find(talk, params.process_id), params.after_seq or 0
    if entry.window is not None:
        entry.window.acknowledge(after)
    process = entry.process
    if not params.wait_ms and process.exit is None and not entry.retention.is_for_absent:
        # Whoever looks without waiting mostly finds nothing.  What is running and has dropped something has
        # dropped nothing above its last number, so that there is no gap to tell of either.
        next_seq = process.next_seq
        if after >= next_seq - 1:
            return events.nothing(next_seq)
    limit, wait = _limit(talk, entry, params.max_bytes), _seconds(params.wait_ms)
    # Now: the client may close its session while it waits.
    extended = talk.session.extended
    page = process.try_read(after=after, limit=limit, wait=wait)
    if page is None:
        deadline = monotonic() + wait  # The clock of event loops.
        if entry.window is not None:
            return _read_later(talk, entry, entry.window, after, limit, deadline, extended=extended)
        return _poll(talk, entry, after, limit, deadline, extended=extended)
    return _page(talk, entry, page, extended=extended)


def _poll(
    talk: ExecConversation, entry: Entry, after: int, limit: int | None, deadline: float, *, extended: bool
) -> Postponed:
    """Answer when there is something to tell, or at the deadline."""
    return Postponed(
        partial(entry.process.listen, after=after, deadline=deadline),
        partial(_polled, talk, entry, after, limit, deadline, extended=extended),
    )


def _polled(
    talk: ExecConversation, entry: Entry, after: int, limit: int | None, deadline: float, *, extended: bool
) -> JsonParts | Postponed | Coroutine[Any, Any, JsonParts]:
    page = entry.process.try_read(after=after, limit=limit, wait=deadline - monotonic())
    if page is None:
        return _poll(talk, entry, after, limit, deadline, extended=extended)
    # One piece of output wakes everybody who waits for it, and each answer has all of it.
    if talk.is_congested:
        return _page_later(talk, entry, page, extended=extended)
    return _page(talk, entry, page, extended=extended)


async def _read_later(
    talk: ExecConversation,
    entry: Entry,
    window: Window,
    after: int,
    limit: int | None,
    deadline: float,
    *,
    extended: bool,
) -> JsonParts:
    with window.reading():
        page = await entry.process.read(after=after, limit=limit, wait=deadline - monotonic())
    return await _page_later(talk, entry, page, extended=extended)


async def _page_later(talk: ExecConversation, entry: Entry, page: Page, *, extended: bool) -> JsonParts:
    """Answer when the client has taken what it was sent."""
    await talk.flow()
    return _page(talk, entry, page, extended=extended)


def _limit(talk: ExecConversation, entry: Entry, asked: int | None) -> int | None:
    """Answers stay below what a peer takes as one message."""
    most = talk.endpoint.limits.answer_bytes
    if asked is None:
        return most if entry.process.retained() > most else None
    return min(asked, most)


def _page(talk: ExecConversation, entry: Entry, page: Page, *, extended: bool) -> JsonParts:
    if (
        entry.retention.is_for_absent
        and entry.home.client is talk.client
        and page.next_seq >= entry.process.next_seq
    ):
        entry.catch_up()
    return events.page(page, extended=extended)


async def wait(talk: ExecConversation, params: WaitParams) -> WaitResult:
    """Wait for the exit of a process."""
    process = find(talk, params.process_id).process
    end = await process.wait(_seconds(params.wait_ms))
    return WaitResult(
        exited=end is not None,
        exit_code=None if end is None else end.code,
        outcome=None if end is None else events.outcome(end.outcome),
        usage=None if end is None or end.usage is None else events.usage(end.usage),
        held_by=[] if end is None else list(end.held_by),
        closed=process.closed,
    )


def _seconds(milliseconds: int | None) -> float:
    return min((milliseconds or 0) / 1000, _LONGEST_WAIT)


def find(talk: ExecConversation, name: str) -> Entry:
    """The process of that name.

    Raises:
        UnknownProcess: There is none.
        StillStarting: It does not run yet.
    """
    entry = talk.endpoint.find(talk.session, name)
    if type(entry) is Entry:
        return entry
    raise UnknownProcess(name) if entry is None else StillStarting(name)


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
    for home, mark in scopes:
        for entry in home:
            head, state = entry.listed if isinstance(entry, ArchivedEntry) else _listed(entry)
            text = b"%b{%b%b%b" % (b"," if count else b"", head, mark, state)
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
