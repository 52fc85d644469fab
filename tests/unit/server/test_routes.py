"""The body of a request, as the handler of a route reads it."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

import pytest

from holdfast.server.routes import HttpRefused, RequestBody


async def test_a_body_is_read_piece_by_piece_as_it_arrives() -> None:
    body, rooms = RequestBody(), []
    body.on_room(lambda: rooms.append(body.size))
    read: list[bytes] = []

    async def reader() -> None:
        read.extend([piece async for piece in body])

    reading = asyncio.ensure_future(reader())
    body.feed(b"ab")
    body.feed(b"cde")
    await asyncio.sleep(0)
    assert (read, body.is_awaited, body.size) == ([], True, 0)
    body.feed(b"f")
    body.end()
    await reading

    assert (read, rooms) == ([b"ab", b"cde", b"f"], [3, 0, 0])


async def test_what_keeps_a_body_from_being_whole_is_raised_behind_what_arrived() -> None:
    body = RequestBody()
    body.feed(b"a")
    body.end(HttpRefused(HTTPStatus.BAD_REQUEST, "broken"))
    body.end()  # Only the first end counts.

    pieces = aiter(body)
    assert await anext(pieces) == b"a"
    with pytest.raises(HttpRefused, match="broken"):
        await anext(pieces)
    with pytest.raises(HttpRefused):
        await body.read()


async def test_a_whole_body_is_read_at_once() -> None:
    body = RequestBody()
    body.feed(b"a")
    body.feed(b"b")
    body.end()

    assert await body.read() == b"ab"
    assert await body.read() == b""
