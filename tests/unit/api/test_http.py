"""HTTP requests as programs make them: from this host, and from that of a server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import Host, connect, local
from holdfast.api.http import MOST_SENT
from holdfast.config import MIB
from holdfast.errors import (
    BadHeader,
    BadRequest,
    BadUrl,
    HttpFailed,
    HttpFault,
    LimitReached,
    OutOfTurn,
)
from holdfast.model import HttpHeader
from tests.fakes.server import inside
from tests.fakes.web import HI, Visit, Web, redirect, response, web

BODY = bytes(range(256)) * 12_000
"""Three megabytes: more than one piece."""


@pytest.fixture(params=["near", "far"])
async def host(request: pytest.FixtureRequest) -> AsyncIterator[Host]:
    if request.param == "near":
        async with local() as near:
            yield near
    else:
        async with inside() as server, connect(server.url) as far:
            yield far


async def cut(visit: Visit) -> None:
    await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")


@contextlib.asynccontextmanager
async def served() -> AsyncIterator[Web]:
    async with web(
        hi=HI,
        long=response(BODY, "x-a: 1", "X-A: 2"),
        missing=b"HTTP/1.1 404 Not Found\r\ncontent-length: 4\r\n\r\ngone",
        moved=redirect(302, "/hi"),
        cut=cut,
    ) as made:
        yield made


async def test_a_body_is_read_as_a_whole(host: Host) -> None:
    async with served() as there:
        found = await host.http.get(f"{there.url}/hi")

        assert (found.status, await found.read(), await found.read()) == (200, b"hi", b"")


async def test_a_body_comes_in_pieces_and_an_iteration_is_continued(host: Host) -> None:
    async with served() as there, await host.http.get(f"{there.url}/long") as found:
        pieces: list[bytes] = []
        async for piece in found:
            pieces.append(piece)
            break
        async for piece in found:
            pieces.append(piece)

        assert b"".join(pieces) == BODY
        assert len(pieces) > 1
        assert found.header("X-a") == "1"
        assert [value for name, value in found.headers if name == "x-a"] == ["1", "2"]
        assert found.header("x-b") is None


async def test_everything_of_a_request_is_sent(host: Host) -> None:
    async with served() as there:
        found = await host.http.request(
            "PUT", f"{there.url}/hi", headers={"X-One": "1"}, body=b"question", timeout=60
        )
        more = await host.http.request("X", f"{there.url}/hi", headers=[("a", "1"), HttpHeader("a", "2")])
        await found.read()
        await more.read()

        first, second = there.visits
        assert (first.line, first.body) == ("PUT /hi HTTP/1.1", b"question")
        assert ("x-one", "1") in first.headers
        assert second.line == "X /hi HTTP/1.1"
        assert [pair for pair in second.headers if pair[0] == "a"] == [("a", "1"), ("a", "2")]


async def test_any_status_is_a_response(host: Host) -> None:
    async with served() as there:
        found = await host.http.get(f"{there.url}/missing")

        assert (found.status, await found.read()) == (404, b"gone")


async def test_redirects_are_followed_unless_they_are_wanted(host: Host) -> None:
    async with served() as there:
        followed = await host.http.get(f"{there.url}/moved")
        shown = await host.http.get(f"{there.url}/moved", follow=False)

        assert (followed.status, await followed.read()) == (200, b"hi")
        assert (shown.status, shown.header("location"), await shown.read()) == (302, "/hi", b"")


async def test_a_body_that_is_too_long_is_refused_and_let_go(host: Host) -> None:
    """A program that expects a page must not be filled up with a disk."""
    async with served() as there:
        found = await host.http.get(f"{there.url}/long")

        with pytest.raises(LimitReached, match=str(MIB)):
            await found.read(MIB)
        with pytest.raises(OutOfTurn):
            await found.read()


async def test_a_response_that_was_closed_says_so(host: Host) -> None:
    async with served() as there:
        found = await host.http.get(f"{there.url}/long")
        await found.aclose()
        await found.aclose()

        with pytest.raises(OutOfTurn, match="closed before its end"):
            await found.read()


async def test_a_body_that_breaks_off_is_never_whole(host: Host) -> None:
    async with served() as there:
        found = await host.http.get(f"{there.url}/cut")

        with pytest.raises(HttpFailed) as failed:
            await found.read()

        assert failed.value.fault is HttpFault.BODY


async def test_where_nobody_listens_there_is_no_response(host: Host) -> None:
    async with served() as there:
        gone = there.url

    with pytest.raises(HttpFailed) as failed:
        await host.http.get(f"{gone}/hi")

    assert failed.value.fault is HttpFault.SENDING


WRONG: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "a method": ({"method": "G T"}, BadRequest),
    "another scheme": ({"url": "ftp://x/"}, BadUrl),
    "no URL": ({"url": "x"}, BadUrl),
    "a header's name": ({"headers": {"a b": "1"}}, BadHeader),
    "a header's value": ({"headers": {"a": "1\r\nb: 2"}}, BadHeader),
    "a secret": ({"headers": [HttpHeader("a", "", "OPENAI_API_KEY")]}, BadHeader),
    "too much": ({"body": bytes(MOST_SENT + 1)}, LimitReached),
}


@pytest.mark.parametrize(("wrong", "error"), WRONG.values(), ids=WRONG.keys())
async def test_what_cannot_be_sent_is_refused_at_once(
    host: Host, wrong: dict[str, Any], error: type[Exception]
) -> None:
    async with served() as there:
        with pytest.raises(error):
            await host.http.request(**{"method": "GET", "url": f"{there.url}/hi", **wrong})

        assert there.visits == []


async def test_a_request_can_be_given_up(host: Host) -> None:
    held = asyncio.Event()

    async def hold(visit: Visit) -> None:
        held.set()
        await visit.left()

    async with web(hold=hold) as there:
        asking = asyncio.create_task(host.http.get(f"{there.url}/hold"))
        await held.wait()
        asking.cancel()

        with pytest.raises(asyncio.CancelledError):
            await asking
        found = await host.http.get(f"{there.url}/hi")
        assert await found.read() == b"hi"
