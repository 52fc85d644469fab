"""What processes have said, and how they ended."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from time import monotonic
from typing import Any

from msgspec import UNSET

from holdfast.dialects.dialect import Postponed
from holdfast.errors import StillStarting, UnknownProcess
from holdfast.model import Page
from holdfast.protocol import events
from holdfast.protocol.processes import ReadParams, WaitParams, WaitResult
from holdfast.wire.jsonrpc import JsonParts

from .conversation import ExecConversation
from .entries import Entry
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
    limit, wait = _limit(talk, entry, params.max_bytes), as_seconds(params.wait_ms)
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
    end = await process.wait(as_seconds(params.wait_ms))
    result = WaitResult(
        exited=end is not None,
        exit_code=None if end is None else end.code,
        outcome=None if end is None else events.outcome(end.outcome),
        usage=None if end is None or end.usage is None else events.usage(end.usage),
        held_by=[] if end is None else list(end.held_by),
        closed=process.closed,
        dropped_bytes=UNSET if end is None or not end.dropped else end.dropped,
    )
    if end is not None and end.denied is not None:
        result.sandbox_denied, result.denials, result.denial = events.denied(end.denied)
    return result


def as_seconds(milliseconds: int | None) -> float:
    """A time on the wire, in seconds, and not so long that clocks overflow."""
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
