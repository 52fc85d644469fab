"""``http/request`` that is answered with the whole body: over real sockets, past the dispatch of a server."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.config import HttpLimits
from holdfast.dialects.exec.explain import explain
from holdfast.errors import HoldfastError
from tests.fakes.http_talk import BROKEN, Message, Scene, bytes_of, scene, stuck, stuck_in_the_body
from tests.fakes.server import eventually
from tests.fakes.web import Visit, redirect, response

INVALID = -32602
INTERNAL = -32603


@pytest.fixture
async def made() -> AsyncIterator[Scene]:
    async with scene() as each:
        yield each


# The whole body at once.


async def test_a_request_is_answered_with_status_headers_and_body(made: Scene) -> None:
    made.web.routes["/x"] = response(b"\x00\xff", "X-A: 1", "x-a: 2")

    result = await made.ask(
        method="POST",
        bodyBase64="aGk=",
        headers=[{"name": "X-Q", "value": "1"}, {"name": "X-Q", "value": "2"}],
    )

    headers = [("x-a", "1"), ("x-a", "2"), ("content-length", "2")]
    assert result == {
        "status": 200,
        "headers": [{"name": name, "value": value} for name, value in headers],
        "bodyBase64": "AP8=",
    }
    [visit] = made.web.visits
    assert (visit.line, visit.body) == ("POST /x HTTP/1.1", b"hi")
    assert visit.own_headers == [("x-q", "1"), ("x-q", "2"), ("content-length", "2")]


async def test_a_value_comes_from_a_variable_of_the_server(made: Scene) -> None:
    await made.ask(headers=[{"name": "Authorization", "value": "Bearer ", "valueEnvVar": "TOKEN_X"}])

    assert made.web.visits[0].own_headers == [("authorization", "Bearer s3cret")]


@pytest.mark.parametrize(
    ("policy", "status"), [({}, 200), ({"redirectPolicy": "follow"}, 200), ({"redirectPolicy": "stop"}, 302)]
)
async def test_redirects_are_followed_unless_they_are_to_stop(
    made: Scene, policy: dict[str, str], status: int
) -> None:
    made.web.routes["/x"] = redirect(302, "/y")

    assert (await made.ask(**policy))["status"] == status


async def test_a_name_is_free_for_requests_that_are_not_streamed(made: Scene) -> None:
    results = await asyncio.gather(*(made.ask() for _ in range(3)))

    assert [result["bodyBase64"] for result in results] == ["aGk="] * 3


NAME = {"name": "X-H", "value": ""}


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"method": "G ET"}, "method is invalid: invalid HTTP method"),
        ({"method": "", "url": "foo"}, "method is invalid: invalid HTTP method"),
        ({"url": "foo"}, "url is invalid: relative URL without a base"),
        ({"url": "http://"}, "url is invalid: empty host"),
        ({"url": "http://h:x/"}, "url is invalid: invalid port number"),
        ({"url": "http://[zz]/"}, "url is invalid: invalid IPv6 address"),
        ({"url": "http://1.2.3.4.5/"}, "url is invalid: invalid IPv4 address"),
        ({"url": "http://a b/"}, "url is invalid: invalid international domain name"),
        ({"url": "http://\u00ad\u2010\u2010.b/"}, "url is invalid: invalid international domain name"),
        ({"url": "ftp://x/"}, "only supports http and https URLs, got ftp"),
        ({"headers": [{"name": "a b", "value": ""}]}, "header name is invalid: invalid HTTP header name"),
        (
            {"headers": [{"name": "X-H", "value": "a\nb"}]},
            "header value is invalid for X-H: failed to parse header value",
        ),
        (
            {"headers": [{**NAME, "valueEnvVar": "LINES"}]},
            "header value is invalid for X-H: failed to parse header value",
        ),
        (
            {"headers": [{**NAME, "valueEnvVar": "NOBODY"}]},
            "header X-H requires executor environment variable NOBODY",
        ),
        (
            {"headers": [{**NAME, "valueEnvVar": "EMPTY"}]},
            "header X-H requires a non-empty executor environment variable EMPTY",
        ),
        (
            {"headers": [{**NAME, "valueEnvVar": "Openai_Api_Key"}]},
            "header X-H cannot use executor environment variable Openai_Api_Key",
        ),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_request_that_cannot_be_made_is_refused(
    made: Scene, params: Message, words: str, *, streamed: bool
) -> None:
    """In the words of the reference.  A streamed one frees its name."""
    for _ in range(2):
        assert await made.refused(**params, streamResponse=streamed) == (INVALID, f"http/request {words}")

    assert made.web.visits == []


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_request_without_an_answer_fails(made: Scene, *, streamed: bool) -> None:
    made.web.routes |= {"/cut": b"", "/loop": redirect(302, "/loop"), "/ftp": redirect(302, "ftp://x/")}
    sending = f"http/request failed: error sending request for url ({made.web.url}/cut)"

    assert await made.refused("/cut", streamResponse=streamed) == (INTERNAL, sending)
    assert await made.refused("/loop", streamResponse=streamed) == (
        INTERNAL,
        "http/request failed: too many redirects",
    )
    assert await made.refused("/ftp", streamResponse=streamed) == (
        INTERNAL,
        "http/request failed: redirect target uses unsupported URL scheme: ftp",
    )
    assert await made.refused(timeoutMs=0, streamResponse=streamed) == (
        INTERNAL,
        "http/request failed: route-aware request timed out",
    )


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_head_has_its_time(made: Scene, *, streamed: bool) -> None:
    made.web.routes["/x"] = stuck
    words = f"http/request failed: error sending request for url ({made.web.url}/x)"

    assert await made.refused(timeoutMs=100, streamResponse=streamed) == (INTERNAL, words)
    await eventually(lambda: made.web.open == 0)


@pytest.mark.parametrize(("answer", "fault"), [(BROKEN, "body"), (stuck_in_the_body, "bodyTimeout")])
async def test_a_body_that_is_not_whole_is_no_answer(made: Scene, answer: Any, fault: str) -> None:
    made.web.routes["/x"] = answer

    with pytest.raises(HoldfastError) as caught:
        await made.ask(timeoutMs=300)
    wire = explain(caught.value)

    words = "failed to read http/request response body: error decoding response body"
    assert (wire.code, wire.message, wire.data["fault"]) == (INTERNAL, words, fault)
    assert wire.data["reason"]


async def test_a_body_that_is_too_large_names_the_limit() -> None:
    """It is found out while it comes: the length may not be known before."""
    async with scene(HttpLimits(buffered_bytes=1000)) as made:
        made.web.routes |= {"/fits": response(b"x" * 1000), "/x": response(b"x" * 1001)}
        result = await made.ask("/fits")
        refused = await made.refused()
        streamed = await made.stream()

    assert len(base64.b64decode(result["bodyBase64"])) == 1000
    assert refused == (INTERNAL, "limit reached: bytes of a buffered HTTP response (1000)")
    assert bytes_of(streamed) == b"x" * 1001


async def test_the_bodies_of_all_clients_share_their_room() -> None:
    async with scene(HttpLimits(buffered_total=1500)) as made:
        held = asyncio.Event()
        more = asyncio.Event()

        async def answer(visit: Visit) -> None:
            await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n" + b"x" * 1000)
            held.set()
            await more.wait()
            await visit.send(b"x")

        made.web.routes |= {"/x": answer, "/y": response(b"y" * 1000)}
        first = asyncio.create_task(made.ask())
        room = made.exec.endpoint.http_room
        await eventually(lambda: room.left == 500)
        refused = await made.refused("/y")
        more.set()
        await first
        assert (await made.ask("/y"))["status"] == 200

    assert refused == (INTERNAL, "limit reached: bytes of buffered HTTP responses (1500)")


async def test_a_connection_has_only_so_many_requests() -> None:
    async with scene(HttpLimits(connection_requests=1)) as made:
        made.web.routes["/x"] = stuck_in_the_body
        await made.ask(streamResponse=True)

        refused = await made.refused()

    assert refused == (INTERNAL, "limit reached: HTTP requests of a connection (1)")
