"""HTTP requests from another host: bodies in order, bounded, and never whole if they are not."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from holdfast.client.http import RemoteHttp
from holdfast.client.remote import RemoteBackend
from holdfast.config import MIB
from holdfast.errors import (
    BadHeader,
    HeaderFault,
    HttpFailed,
    HttpFault,
    LinkLost,
    OutcomeUnknown,
)
from holdfast.model import HttpHeader, HttpRequest
from holdfast.web import HttpResponse
from tests.fakes.peer import Message, Peer, Talk, peer
from tests.fakes.remote import background, far
from tests.fakes.server import eventually, inside
from tests.fakes.web import Visit, Web, response, web

GET = HttpRequest("GET", "http://user:secret@x/y?z")


async def body_of(response: HttpResponse) -> bytes:
    pieces = []
    while piece := await response.read():
        pieces.append(piece)
    return b"".join(pieces)


# With a real server.


@contextlib.asynccontextmanager
async def scene(**routes: bytes | Callable[[Visit], object]) -> AsyncIterator[tuple[RemoteHttp, Web]]:
    """A client, our server, and somebody for it to ask."""
    async with web(**routes) as served, inside() as server:  # type: ignore[arg-type]
        backend = RemoteBackend(server.url)
        await backend.open()
        try:
            yield backend.http, served
        finally:
            await backend.aclose()


async def test_a_request_is_made_there_and_answered_here() -> None:
    body = bytes(range(256)) * 10_000
    async with scene(x=response(body, "x-a: 1", "x-a: 2")) as (http, served):
        asked = HttpRequest(
            "POST", f"{served.url}/x", (HttpHeader("x-b", "3"),), body=b"question", timeout=9.5
        )

        found = await http.request(asked)

        assert found.status == 200
        assert [each for each in found.headers if each[0] == "x-a"] == [("x-a", "1"), ("x-a", "2")]
        assert await body_of(found) == body
        assert await found.read() == b""
        await found.aclose()
        assert served.visits[0].body == b"question"
        assert ("x-b", "3") in served.visits[0].headers
        assert http.unread_bytes == 0


async def test_errors_are_those_of_a_request_from_here() -> None:
    async with scene() as (http, served):
        with pytest.raises(HttpFailed) as nobody:
            await http.request(HttpRequest("GET", "http://127.0.0.1:1/x"))
        with pytest.raises(HttpFailed) as late:
            await http.request(HttpRequest("GET", f"{served.url}/x", timeout=0))
        with pytest.raises(BadHeader) as header:
            await http.request(HttpRequest("GET", served.url, (HttpHeader("a", "", "NO_SUCH_VARIABLE"),)))

    assert (nobody.value.fault, nobody.value.subject) == (HttpFault.SENDING, "http://127.0.0.1:1/x")
    assert (late.value.fault, late.value.subject) == (HttpFault.NO_TIME, f"{served.url}/x")
    assert header.value.args == ("a", HeaderFault.MISSING, "NO_SUCH_VARIABLE")


async def test_a_body_that_breaks_off_is_an_error() -> None:
    async with scene(x=b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf") as (http, served):
        found = await http.request(HttpRequest("GET", f"{served.url}/x"))

        assert await found.read() == b"half"
        for _ in range(2):
            with pytest.raises(HttpFailed) as caught:
                await found.read()
            assert caught.value.fault is HttpFault.BODY
        await found.aclose()


# With a server that does what the test wants.


@contextlib.asynccontextmanager
async def answered(request: HttpRequest = GET) -> AsyncIterator[tuple[HttpResponse, Talk, str, Peer]]:
    """A response whose body is still to come; how to send it, and its name."""
    async with peer() as server, far(server) as (backend, talk):
        asking = background(backend.http.request(request))
        asked = await talk.hear("http/request")
        talk.answer(asked, {"status": 200, "headers": [], "bodyBase64": ""})
        yield await asking, talk, asked["params"]["requestId"], server


def delta(name: str, seq: int, data: bytes = b"", *, done: bool = False, error: str | None = None) -> Message:
    text = base64.b64encode(data).decode()
    return {"requestId": name, "seq": seq, "deltaBase64": text, "done": done, "error": error}


async def failure_of(found: HttpResponse) -> tuple[HttpFault, str, str]:
    with pytest.raises(HttpFailed) as caught:
        await body_of(found)
    return caught.value.fault, caught.value.subject, caught.value.reason


async def test_a_request_is_told_as_the_protocol_has_it() -> None:
    async with peer() as server, far(server) as (backend, talk):
        asking = background(
            backend.http.request(
                HttpRequest("PUT", "http://x/", (HttpHeader("a", "b", "C"),), b"hi", 0.0001, follow=False)
            )
        )
        asked = await talk.hear("http/request")
        talk.refuse(asked, -32603, "http/request failed: too many redirects")
        with pytest.raises(HttpFailed) as caught:
            await asking

    name = asked["params"].pop("requestId")
    assert len(name) <= 32
    assert asked["params"] == {
        "method": "PUT",
        "url": "http://x/",
        "headers": [{"name": "a", "value": "b", "valueEnvVar": "C"}],
        "bodyBase64": "aGk=",
        "timeoutMs": 1,
        "redirectPolicy": "stop",
        "streamResponse": True,
    }
    assert caught.value.subject == "http://x/"


async def test_pieces_that_come_with_the_head_are_not_lost() -> None:
    """All of it may be there before whoever asked is woken."""
    async with peer() as server, far(server) as (backend, talk):
        asking = background(backend.http.request(GET))
        asked = await talk.hear("http/request")
        name = asked["params"]["requestId"]
        talk.answer(asked, {"status": 204, "headers": [{"name": "a", "value": "b"}], "bodyBase64": ""})
        talk.tell("http/request/bodyDelta", **delta(name, 1, b"one"))
        talk.tell("http/request/bodyDelta", **delta(name, 2, done=True))
        found = await asking

        assert (found.status, found.headers) == (204, [("a", "b")])
        assert await body_of(found) == b"one"


async def test_a_missing_piece_is_not_passed_over() -> None:
    async with answered() as (found, talk, name, _):
        talk.tell("http/request/bodyDelta", **delta(name, 1, b"one"))
        talk.tell("http/request/bodyDelta", **delta(name, 3, b"three"))
        talk.tell("http/request/bodyDelta", **delta(name, 4, done=True))

        assert await found.read() == b"one"
        assert await failure_of(found) == (HttpFault.BODY, "http://x/y?z", "a piece of it is missing")


@pytest.mark.parametrize(
    ("text", "fault", "reason"),
    [
        ("error decoding response body: timed out", HttpFault.BODY_TIMEOUT, "timed out"),
        ("error decoding response body: reset", HttpFault.BODY, "reset"),
        ("other words", HttpFault.BODY, "other words"),
    ],
)
async def test_an_end_with_an_error_is_one(text: str, fault: HttpFault, reason: str) -> None:
    async with answered() as (found, talk, name, _):
        talk.tell("http/request/bodyDelta", **delta(name, 1, done=True, error=text))

        assert await failure_of(found) == (fault, "http://x/y?z", reason)


async def test_a_lost_connection_cuts_a_body_also_for_one_who_waits() -> None:
    async with answered() as (found, talk, name, server):
        talk.tell("http/request/bodyDelta", **delta(name, 1, b"one"))
        assert await found.read() == b"one"
        reading = background(failure_of(found))
        talk.abort()

        fault, _, reason = await reading
        assert fault is HttpFault.BODY
        assert "connection to the server is lost" in reason
        again = await server.welcome()
        again.tell("http/request/bodyDelta", **delta(name, 2, b"two", done=True))
        assert (await failure_of(found))[0] is HttpFault.BODY


async def test_a_whole_body_outlives_its_connection() -> None:
    async with answered() as (found, talk, name, server):
        talk.tell("http/request/bodyDelta", **delta(name, 1, b"one"))
        talk.tell("http/request/bodyDelta", **delta(name, 2, done=True))
        talk.close()
        await server.welcome()

        assert await body_of(found) == b"one"


async def test_a_request_that_changes_nothing_is_made_again() -> None:
    async with peer() as server, far(server) as (backend, talk):
        asking = background(backend.http.request(GET))
        await talk.hear("http/request")
        talk.abort()
        again = await server.welcome()
        asked = await again.hear("http/request")
        again.answer(asked, {"status": 200, "headers": [], "bodyBase64": ""})
        again.tell("http/request/bodyDelta", **delta(asked["params"]["requestId"], 1, b"x", done=True))

        assert await body_of(await asking) == b"x"


async def test_a_request_that_may_have_changed_something_is_not() -> None:
    async with peer() as server, far(server) as (backend, talk):
        asking = background(backend.http.request(HttpRequest("POST", "http://x/")))
        await talk.hear("http/request")
        talk.abort()

        with pytest.raises(OutcomeUnknown):
            await asking
        assert not backend.http._responses


async def test_a_body_that_nobody_reads_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The protocol cannot slow one body down, and memory has an end."""
    monkeypatch.setattr("holdfast.client.http._MOST_UNREAD", 2 * MIB)
    async with answered() as (found, talk, name, _):
        for seq in (1, 2, 3):
            talk.tell("http/request/bodyDelta", **delta(name, seq, bytes(MIB)))
        await eventually(lambda: not found._http._responses)  # type: ignore[attr-defined]

        assert found._http.unread_bytes == 2 * MIB  # type: ignore[attr-defined]
        assert len(await found.read()) == MIB
        assert "was not read" in (await failure_of(found))[2]
        assert found._http.unread_bytes == 0  # type: ignore[attr-defined]


async def test_a_response_that_is_closed_keeps_nothing_and_is_not_whole() -> None:
    async with answered() as (found, talk, name, _):
        talk.tell("http/request/bodyDelta", **delta(name, 1, b"one"))
        assert await found.read() == b"one"
        talk.tell("http/request/bodyDelta", **delta(name, 2, b"two"))
        await eventually(lambda: found._http.unread_bytes)  # type: ignore[attr-defined]

        await found.aclose()
        await found.aclose()

        talk.tell("http/request/bodyDelta", **delta(name, 3, b"three", done=True))
        assert await failure_of(found) == (HttpFault.BODY, "http://x/y?z", "the response was closed")
        assert found._http.unread_bytes == 0  # type: ignore[attr-defined]


async def test_a_cancelled_request_is_forgotten() -> None:
    async with peer() as server, far(server) as (backend, talk):
        asking = background(backend.http.request(GET))
        asked = await talk.hear("http/request")
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        name = asked["params"]["requestId"]
        talk.answer(asked, {"status": 200, "headers": [], "bodyBase64": ""})
        talk.tell("http/request/bodyDelta", **delta(name, 1, b"x", done=True))
        listing = background(backend.list())
        talk.answer(await talk.hear("process/list"), {"processes": []})
        await listing

        assert not backend.http._responses
        assert backend.http.unread_bytes == 0


async def test_an_answer_that_is_none_is_an_error_of_ours() -> None:
    async with peer() as server, far(server) as (backend, talk):
        asking = background(backend.http.request(GET))
        talk.answer(await talk.hear("http/request"), {"status": "fine"})

        with pytest.raises(LinkLost, match="makes no sense"):
            await asking


async def test_a_piece_that_is_none_ends_the_connection() -> None:
    async with answered() as (found, talk, name, server):
        talk.tell("http/request/bodyDelta", **{**delta(name, 1), "deltaBase64": "?"})
        await server.welcome()

        assert (await failure_of(found))[0] is HttpFault.BODY


async def test_a_request_without_a_server_is_an_error() -> None:
    async with peer() as server, far(server, reconnect_timeout=0.05) as (backend, talk):
        asking = background(backend.http.request(GET))
        await talk.hear("http/request")
        talk.abort()

        with pytest.raises(LinkLost):
            await asking
        with pytest.raises(LinkLost):
            await backend.http.request(GET)
