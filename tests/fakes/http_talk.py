"""A client that makes HTTP requests through an exec endpoint, past the dispatch of a server."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.config import HttpLimits
from holdfast.dialects.dialect import Sequel
from holdfast.dialects.exec.conversation import ExecEndpoint
from holdfast.dialects.exec.explain import explain
from holdfast.dialects.exec.methods import METHODS
from holdfast.errors import HoldfastError
from holdfast.wire import jsonrpc
from tests.fakes.exec_talk import ExecTalk
from tests.fakes.server import PATIENCE
from tests.fakes.web import Visit, Web, host_http, web

Message = dict[str, Any]

BROKEN = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"


async def stuck(visit: Visit) -> None:
    await visit.left()


async def stuck_in_the_body(visit: Visit) -> None:
    await visit.send(BROKEN)
    await visit.left()


class Scene:
    """A client, the engine's HTTP and an HTTP server."""

    def __init__(self, talk: ExecTalk, served: Web) -> None:
        self.exec = talk
        self.web = served
        self.streams: list[asyncio.Task[None]] = []

    async def ask(self, path: str = "/x", **params: Any) -> Message:
        """The result; what follows it goes on in a task."""
        asked = {"method": "GET", "url": self.web.url + path, "requestId": "r", **params}
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._handle(asked, answer))
        await asyncio.wait((task, answer), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            await task
        self.streams.append(task)
        return answer.result()

    async def _handle(self, asked: Message, answer: asyncio.Future[Message]) -> None:
        """What a dispatch does: the answer first, and then, without any wait in between, the rest."""
        found = METHODS["http/request"]
        result = await found.handle(self.exec.talk, found.decode(asked))
        first = result.result if isinstance(result, Sequel) else result
        answer.set_result(json.loads(b"".join(jsonrpc.result(1, first)))["result"])
        if isinstance(result, Sequel):
            await result.rest

    async def refused(self, path: str = "/x", **params: Any) -> tuple[int, str]:
        with pytest.raises(HoldfastError) as caught:
            await self.ask(path, **params)
        wire = explain(caught.value)
        return wire.code, wire.message

    def deltas(self, name: str = "r") -> list[Message]:
        told = [message["params"] for message in self.exec.client.sent]
        return [delta for delta in told if delta["requestId"] == name]

    async def stream(self, path: str = "/x", **params: Any) -> list[Message]:
        """All that is told of a streamed body."""
        await self.ask(path, streamResponse=True, **params)
        async with asyncio.timeout(PATIENCE):
            await self.streams[-1]
        return self.deltas(params.get("requestId", "r"))


@contextlib.asynccontextmanager
async def scene(limits: HttpLimits | None = None) -> AsyncIterator[Scene]:
    async with web() as served, host_http(limits) as http:
        talk = ExecTalk()
        talk.backend.http = http
        talk.endpoint = ExecEndpoint(talk.backend, METHODS, loop=talk.loop.loop, http_limits=limits)
        talk.talk = talk.endpoint.greet(talk.client)
        await talk.shake_hands()
        made = Scene(talk, served)
        yield made
        for task in made.streams:
            task.cancel()
        await asyncio.gather(*made.streams, return_exceptions=True)
        assert len(talk.talk.exchanges) == 0
        assert talk.endpoint.http_room.left == talk.endpoint.http_limits.buffered_total


def bytes_of(deltas: list[Message]) -> bytes:
    return b"".join(base64.b64decode(delta["deltaBase64"]) for delta in deltas)


def last(seq: int, error: str | None = None) -> Message:
    return {"requestId": "r", "seq": seq, "deltaBase64": "", "done": True, "error": error}
