"""A client that talks to an app endpoint past the dispatch of a server, and a clock moved by hand."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable
from typing import Any

from holdfast.backend import HostedProcess
from holdfast.config import AppLimits
from holdfast.dialects.app.conversation import AppConversation, AppEndpoint, Run
from holdfast.dialects.app.methods import METHODS
from holdfast.dialects.app.order import Terms
from holdfast.errors import NoTerminal
from holdfast.model import Size, Stream
from holdfast.wire import jsonrpc
from tests.fakes.dialects import FakeBackend, FakeClient, FakeProcess, HandLoop, HandTimer

CLIENT = {"name": "test", "version": "1"}
EXPERIMENTAL = {"clientInfo": CLIENT, "capabilities": {"experimentalApi": True}}

QUIET, HARD = 0.5, 2.0
"""Seconds of a run in a test: halves and wholes, so that sums of them are exact."""


class AppTimer(HandTimer):
    """Like the loop's own, it may be cancelled after it has run."""

    def cancel(self) -> None:
        if self in self._loop.timers:
            super().cancel()


class AppLoop(HandLoop):
    """A clock and its timers, moved by hand, and futures of the running loop."""

    def call_at(self, when: float, callback: Callable[[], object]) -> HandTimer:
        timer = AppTimer(self, when, callback)
        self.timers.append(timer)
        return timer

    def call_later(self, seconds: float, callback: Callable[[], object]) -> HandTimer:
        return self.call_at(self.now + seconds, callback)

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()


class Pipes(FakeProcess):
    """A process without a terminal, with output that nobody has been told of yet."""

    def __init__(self) -> None:
        super().__init__()
        self.ready: list[tuple[Stream, bytes]] = []
        """What a drain finds."""

    def resize_now(self, size: Size) -> None:
        raise NoTerminal

    def drain(self) -> None:
        super().drain()
        ready, self.ready = self.ready, []
        for stream, data in ready:
            self.say(data, stream)


def terms(
    *,
    terminal: bool = False,
    streamed: bool = False,
    stdin: bool = False,
    cap: int | None = None,
    quiet: float | None = QUIET,
    hard: float = HARD,
) -> Terms:
    """What a client asked for: a buffered process, if nothing else is said."""
    return Terms(
        terminal=terminal,
        streamed=streamed,
        stdin=stdin,
        cap=cap,
        quiet=quiet,
        hard=hard,
    )


class AppTalk:
    """A client of an app endpoint."""

    limits = AppLimits(
        names=3,
        buffered_bytes=100,
        drain_seconds=HARD,
        process_quiet_seconds=None,
        command_quiet_seconds=QUIET,
        command_policy="danger-full-access",
    )

    def __init__(self, *outcomes: FakeProcess | BaseException | asyncio.Event) -> None:
        self.loop = AppLoop()
        self.backend = FakeBackend(*outcomes)
        self.endpoint = AppEndpoint(self.backend, METHODS, loop=self.loop.loop, limits=self.limits)
        self.client = FakeClient()
        self.talk: AppConversation = self.endpoint.greet(self.client)

    async def start(self, method: str, params: Any) -> Any:
        """The result of a request; a future, if it comes later."""
        found = METHODS[method]
        decoded = found.decode(params)
        self.talk.gate(found)
        result = found.handle(self.talk, decoded)
        return await result if inspect.iscoroutine(result) else result

    async def call(self, method: str, params: Any) -> Any:
        """The result of a request, as it goes out."""
        result = await self.start(method, params)
        if isinstance(result, asyncio.Future):
            result = await result
        return json.loads(b"".join(jsonrpc.result(1, result)))["result"]

    def run(self, process: HostedProcess, *, name: str = "p", command: bool = False, **options: Any) -> Run:
        """A process that runs under a name."""
        scope = self.talk.commands if command else self.talk.processes
        run = Run(
            process,
            terms(**options),
            room=self.endpoint.room,
            valve=self.talk.valve,
            loop=self.loop.loop,
            tell=lambda stream, data, full: None,
            on_over=lambda run: scope.release(name),
            on_lost=lambda: None,
        )
        scope.settle(scope.reserve(name), run)
        return run


async def ready(*outcomes: FakeProcess | BaseException | asyncio.Event) -> AppTalk:
    """A client that has done the handshake and may use everything."""
    scene = AppTalk(*outcomes)
    await scene.call("initialize", EXPERIMENTAL)
    return scene
