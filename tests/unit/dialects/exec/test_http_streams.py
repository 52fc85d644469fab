"""``http/request`` with the body behind the answer: over real sockets, past the dispatch of a server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.config import HttpLimits
from holdfast.dialects.exec.conversation import ExecEndpoint
from holdfast.dialects.exec.methods import METHODS
from tests.fakes.exec_talk import ExecTalk
from tests.fakes.http import FakeHttp
from tests.fakes.http_talk import BROKEN, Scene, bytes_of, last, scene, stuck_in_the_body
from tests.fakes.server import eventually
from tests.fakes.web import HI, Visit, Web, response

INVALID = -32602
INTERNAL = -32603


@pytest.fixture
async def made() -> AsyncIterator[Scene]:
    async with scene() as each:
        yield each


# The body behind the answer.


async def test_a_streamed_body_comes_in_numbered_pieces_and_an_end(made: Scene) -> None:
    more = asyncio.Event()

    async def answer(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nabc")
        await more.wait()
        await visit.send(b"def")

    made.web.routes["/x"] = answer
    result = await made.ask(streamResponse=True)
    await eventually(lambda: len(made.deltas()) == 1)
    more.set()
    await made.streams[0]

    assert (result["status"], result["bodyBase64"]) == (200, "")
    assert made.deltas() == [
        {"requestId": "r", "seq": 1, "deltaBase64": "YWJj", "done": False, "error": None},
        {"requestId": "r", "seq": 2, "deltaBase64": "ZGVm", "done": False, "error": None},
        last(3),
    ]


@pytest.mark.parametrize("answer", [response(b""), b"HTTP/1.1 204 X\r\n\r\n"])
async def test_an_empty_body_is_an_end(made: Scene, answer: bytes) -> None:
    made.web.routes["/x"] = answer

    assert await made.stream() == [last(1)]


async def test_a_large_piece_is_told_in_parts() -> None:
    """The protocol promises a size; whoever gives pieces need not know it."""
    talk = ExecTalk()
    http = FakeHttp()
    http.pieces = (b"x" * 25, b"y")
    talk.backend.http = http
    limits = HttpLimits(delta_bytes=10)
    talk.endpoint = ExecEndpoint(talk.backend, METHODS, loop=talk.loop.loop, http_limits=limits)
    talk.talk = talk.endpoint.greet(talk.client)
    await talk.shake_hands()
    told = Scene(talk, Web(port=1))

    deltas = await told.stream()

    assert [len(bytes_of([delta])) for delta in deltas] == [10, 10, 5, 1, 0]
    assert [delta["seq"] for delta in deltas] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("answer", "limit", "reason"),
    [
        (
            BROKEN,
            60_000,
            "peer closed connection without sending complete message body (received 3 bytes, expected 10)",
        ),
        (stuck_in_the_body, 1_500, "timed out"),
    ],
)
async def test_a_body_that_breaks_off_ends_with_the_reason(
    made: Scene, answer: Any, limit: int, reason: str
) -> None:
    made.web.routes["/x"] = answer

    deltas = await made.stream(timeoutMs=limit)

    assert bytes_of(deltas) == b"abc"
    assert deltas[-1] == last(2, f"error decoding response body: {reason}")
    await eventually(lambda: made.web.open == 0)


async def test_a_name_is_taken_while_its_stream_goes_on(made: Scene) -> None:
    """Also against a request that is wrong in other ways; and it is free again at the end."""
    more = asyncio.Event()

    async def answer(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab")
        await more.wait()
        await visit.send(b"cd")

    made.web.routes["/x"] = answer
    await made.ask(streamResponse=True)

    words = "http/request streamResponse requestId `r` is already active"
    assert await made.refused(streamResponse=True) == (INVALID, words)
    assert await made.refused(streamResponse=True, method="G ET") == (INVALID, words)
    assert (await made.ask("/y"))["bodyBase64"] == "aGk="

    more.set()
    await made.streams[0]
    made.web.routes["/x"] = HI
    again = await made.stream()
    assert again[-2:] == [
        {"requestId": "r", "seq": 1, "deltaBase64": "aGk=", "done": False, "error": None},
        last(2),
    ]


async def test_nothing_is_told_while_the_client_is_behind(made: Scene) -> None:
    """Streams wait, and so do large answers; what is asked meanwhile waits as well."""
    made.exec.talk.congested()
    await made.ask(streamResponse=True)
    whole = asyncio.create_task(made.ask("/y"))
    await eventually(lambda: len(made.web.visits) == 2)
    assert (made.deltas(), whole.done()) == ([], False)

    made.exec.talk.drained()
    await made.streams[0]
    await whole

    assert bytes_of(made.deltas()) == b"hi"


async def test_a_client_that_falls_behind_in_the_middle_gets_the_rest_later(made: Scene) -> None:
    more = asyncio.Event()

    async def answer(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nab")
        await more.wait()
        await visit.send(b"cd")

    made.web.routes["/x"] = answer
    await made.ask(streamResponse=True)
    await eventually(lambda: len(made.deltas()) == 1)
    made.exec.talk.congested()
    more.set()
    assert (await made.ask("/y", timeoutMs=200, streamResponse=True, requestId="s"))["status"] == 200
    made.exec.talk.drained()
    await made.streams[0]

    assert bytes_of(made.deltas()) == b"abcd"


async def test_streams_that_are_cancelled_say_nothing_and_close(made: Scene) -> None:
    made.web.routes["/x"] = stuck_in_the_body
    await made.ask(streamResponse=True)
    await made.ask(streamResponse=True, requestId="s")
    await eventually(lambda: len(made.exec.client.sent) == 2)

    for task in made.streams:
        task.cancel()
    await asyncio.gather(*made.streams, return_exceptions=True)

    await eventually(lambda: made.web.open == 0)
    assert [message["params"]["done"] for message in made.exec.client.sent] == [False, False]
