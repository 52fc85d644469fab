"""A client that talks to an exec endpoint past the dispatch of a server; the clock is moved by hand."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from holdfast.config import SessionLimits
from holdfast.dialects.exec.conversation import ExecConversation, ExecEndpoint
from holdfast.dialects.exec.entries import Entry
from holdfast.dialects.exec.methods import METHODS
from holdfast.dialects.exec.scopes import Tenant
from holdfast.errors import HoldfastError
from holdfast.principal import ANYBODY
from holdfast.wire import jsonrpc
from tests.fakes.dialects import FakeBackend, FakeClient, FakeProcess, HandLoop, settled

START = {"processId": "p", "argv": ["x"], "cwd": "file:///tmp", "env": {"A": "1"}, "tty": False}
INITIALIZED = jsonrpc.Notification("initialized", None)


def a_tenant(limits: SessionLimits | None = None) -> Tenant:
    """Of whoever has no token."""
    return Tenant(ANYBODY.identity, FakeBackend(), limits or SessionLimits())


class ExecTalk:
    """A client of an exec endpoint."""

    limits = SessionLimits(
        detached_seconds=30.0,
        closed_seconds=30.0,
        attached_bytes=10,
        detached_bytes=99,
        answer_bytes=10_000,
        probe_seconds=1.5,
    )

    def __init__(
        self,
        *outcomes: FakeProcess | BaseException | asyncio.Event,
        client: FakeClient | None = None,
        beside: ExecTalk | None = None,
    ) -> None:
        """With ``beside``, another connection to the same endpoint."""
        if beside is None:
            self.loop, self.backend = HandLoop(), FakeBackend(*outcomes)
            self.endpoint = ExecEndpoint(self.backend, METHODS, loop=self.loop.loop, limits=self.limits)
        else:
            self.loop, self.backend = beside.loop, beside.backend
            self.endpoint = beside.endpoint
        self.client = client or FakeClient()
        self.talk: ExecConversation = self.endpoint.greet(self.client)
        self.client.on_cut = self.talk.ended

    async def shake_hands(self, **params: Any) -> None:
        await self.call("initialize", {"clientName": "test", **params})
        self.talk.notified(INITIALIZED)

    async def take_over(self, session: str, **params: Any) -> None:
        await self.call("session/takeOver", {"sessionId": session, **params})
        self.talk.notified(INITIALIZED)

    async def call(self, method: str, params: Any = None) -> Any:
        """The result of a request, as it goes out."""
        found = METHODS[method]
        result = await settled(found.handle(self.talk, found.decode(params)))
        return json.loads(b"".join(jsonrpc.result(1, result)))["result"]

    async def refusal(self, method: str, params: Any = None) -> HoldfastError:
        """Why a request is refused."""
        with pytest.raises(HoldfastError) as caught:
            await self.call(method, params)
        return caught.value

    async def starting(self, **params: Any) -> asyncio.Task[Any]:
        """A start that the backend holds back."""
        task = asyncio.create_task(self.call("process/start", {**START, **params}))
        await self.backend.asked.wait()
        return task

    def entry(self, name: str = "p") -> Entry:
        """A process of the session."""
        entry = self.talk.session.find(name)
        assert isinstance(entry, Entry)
        return entry


async def ready(*outcomes: FakeProcess | BaseException | asyncio.Event, extended: bool = False) -> ExecTalk:
    """A client that has done the handshake."""
    scene = ExecTalk(*outcomes)
    await scene.shake_hands(**({"holdfast": 1} if extended else {}))
    return scene


async def started(*, extended: bool = False, **params: Any) -> tuple[ExecTalk, FakeProcess]:
    """A client with a process that runs."""
    process = FakeProcess()
    scene = await ready(process, extended=extended)
    await scene.call("process/start", {**START, **params})
    process.calls.clear()
    return scene, process
