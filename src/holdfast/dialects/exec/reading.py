"""What processes have said, how they are, how they ended."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import nullcontext
from typing import Any

import msgspec

from holdfast.dialects import base64
from holdfast.dialects.scope import Starting
from holdfast.errors import StillStarting, UnknownProcess
from holdfast.model import Page
from holdfast.wire.jsonrpc import Parts

from . import answers as a
from . import describe
from . import messages as m
from .archive import Archived
from .conversation import ExecConversation
from .feed import Feed

_encode = msgspec.json.Encoder().encode

_LONGEST_WAIT = 365 * 24 * 3600.0
"""Seconds; longer waits are legal and mean the same, but clocks overflow."""


def read(talk: ExecConversation, params: m.ReadParams) -> Parts | Coroutine[Any, Any, Parts]:
    """What a process has said, as far as it is kept."""
    feed = find(talk, params.process_id)
    after, limit = params.after_seq or 0, _limit(talk, feed, params.max_bytes)
    wait = _seconds(params.wait_ms)
    if feed.window is not None:
        feed.window.acknowledge(after)
    # Now: the client may close its session while it waits.
    extended = talk.session.extended
    page = feed.process.try_read(after=after, limit=limit, wait=wait)
    if page is None:
        return _read_later(talk, feed, after, limit, wait, extended=extended)
    return _page(talk, feed, page, extended=extended)


async def _read_later(
    talk: ExecConversation, feed: Feed, after: int, limit: int | None, wait: float, *, extended: bool
) -> Parts:
    with nullcontext() if feed.window is None else feed.window.reading():
        page = await feed.process.read(after=after, limit=limit, wait=wait)
    # One piece of output wakes everybody who waits for it, and each answer has all of it.
    await talk.flow()
    return _page(talk, feed, page, extended=extended)


def _limit(talk: ExecConversation, feed: Feed, asked: int | None) -> int | None:
    """Answers stay below what a peer takes as one message."""
    most = talk.endpoint.limits.answer_bytes
    if asked is None:
        return most if feed.process.retained() > most else None
    return min(asked, most)


def _page(talk: ExecConversation, feed: Feed, page: Page, *, extended: bool) -> Parts:
    if feed.roomy and feed.session.client is talk.client and page.next_seq >= feed.process.next_seq:
        talk.endpoint.caught_up(feed)
    parts = Parts((b'{"chunks":[',))
    for chunk in page.chunks:
        parts.append(
            b'%b{"seq":%d,"stream":"%b","chunk":"'
            % (b"," if len(parts) > 1 else b"", chunk.seq, chunk.stream.value.encode())
        )
        parts.append(base64.encode(chunk.data))
        parts.append(b'"}')
    end = page.exit
    parts.append(
        b'],"nextSeq":%d,"exited":%b,"exitCode":%b,"closed":%b,"failure":null,%b%b%b}'
        % (
            page.next_seq,
            b"false" if end is None else b"true",
            b"null" if end is None else b"%d" % end.code,
            b"true" if page.closed else b"false",
            describe.of_denied(end, extended=extended),
            b"" if page.gap is None else describe.of_gap(page.gap),
            b"" if end is None else describe.of_end(end, extended=extended),
        )
    )
    return parts


async def wait(talk: ExecConversation, params: m.WaitParams) -> a.WaitResult:
    """Wait for the exit of a process."""
    process = find(talk, params.process_id).process
    end = await process.wait(_seconds(params.wait_ms))
    return a.WaitResult(
        exited=end is not None,
        exit_code=None if end is None else end.code,
        outcome=None if end is None else describe.outcome(end.outcome),
        usage=None if end is None or end.usage is None else describe.usage(end.usage),
        held_by=[] if end is None else list(end.held_by),
        closed=process.closed,
    )


def list_processes(talk: ExecConversation, params: None) -> Parts:
    """The processes that the client can ask for, those that are starting or ended included."""
    parts = Parts((b'{"processes":[',))
    room = talk.endpoint.limits.answer_bytes
    for entry, kept in _all(talk):
        comma = b"," if len(parts) > 1 else b""
        state = _STARTING if isinstance(entry, Starting) else _state(entry)
        about = entry.request.about
        text = b'%b{"processId":%b,%b,%b%b' % (comma, _encode(entry.name), about, kept, state)
        room -= len(text)
        if room < 0:
            break
        parts.append(text)
    parts.append(b'],"more":true}' if room < 0 else b"]}")
    return parts


def _all(talk: ExecConversation) -> Iterator[tuple[Feed | Starting, bytes]]:
    """The processes of the session and then the others, each with what says that it is one of those."""
    for home, kept in ((talk.session, b""), (talk.session.realm.commons.session, b'"kept":true,')):
        for entry in home.scope:
            yield talk.endpoint.restore(home, entry) if isinstance(entry, Archived) else entry, kept


_STARTING = b'"state":"starting","pid":null,"exitCode":null,"outcome":null,"nextSeq":1,"retainedBytes":0}'


def _state(feed: Feed) -> bytes:
    process = feed.process
    end = process.exit
    word = b"running" if end is None else b"closed" if process.closed else b"exited"
    return b'"state":"%b","pid":%d,"exitCode":%b,"outcome":%b,"nextSeq":%d,"retainedBytes":%d}' % (
        word,
        process.pid,
        b"null" if end is None else b"%d" % end.code,
        b"null" if end is None else _encode(describe.outcome(end.outcome)),
        process.next_seq,
        process.retained(),
    )


def _seconds(milliseconds: int | None) -> float:
    return min((milliseconds or 0) / 1000, _LONGEST_WAIT)


def find(talk: ExecConversation, name: str) -> Feed:
    """The process of that name.

    Raises:
        UnknownProcess: There is none.
        StillStarting: It does not run yet.
    """
    match talk.endpoint.find(talk.session, name):
        case None:
            raise UnknownProcess(name)
        case Starting():
            raise StillStarting(name)
        case feed:
            return feed
