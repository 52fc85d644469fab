"""Clients for tests: a link with somebody who notes what it tells, and a whole backend."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

import msgspec

from holdfast.client.address import parse
from holdfast.client.link import Link
from holdfast.client.remote import RemoteBackend
from holdfast.errors import LinkLost
from holdfast.protocol.shapes import Signature
from tests.fakes.peer import Message, Peer, Talk
from tests.fakes.server import PATIENCE

T = TypeVar("T")


def raw(method: str) -> Signature[Any, msgspec.Raw]:
    """A method with any params, whose answer is not looked at."""
    return Signature(method, None, msgspec.Raw)


class Notes:
    """Implements ``client.link.Follower``."""

    def __init__(self) -> None:
        self.told: list[tuple[object, ...]] = []
        self.breaks = 0
        self._news = asyncio.Event()

    def _note(self, *event: object) -> None:
        self.told.append(event)
        self._news.set()

    async def until(self, kind: str) -> tuple[object, ...]:
        """Wait for the first event of a kind."""
        async with asyncio.timeout(PATIENCE):
            while not any(event[0] == kind for event in self.told):
                self._news.clear()
                await self._news.wait()
        return next(event for event in self.told if event[0] == kind)

    def broke(self, reason: str) -> None:
        self.breaks += 1

    def resumed(self) -> None:
        self._note("resumed")

    def forgotten(self, reason: str) -> None:
        self._note("forgotten", reason)

    def over(self, error: LinkLost) -> None:
        self._note("over", error.reason)

    def output(self, message: bytes | memoryview) -> bool:
        text = bytes(message)  # It is not ours for longer than this call.
        if text.startswith(b"OUTPUT"):
            self._note("output", text)
            return True
        return False

    def notified(self, method: str, params: msgspec.Raw) -> None:
        self._note("notified", method, msgspec.json.decode(params, type=dict[str, Any]))


def make_link(url: str, notes: Notes, **options: Any) -> Link:
    settings = {
        "token": None,
        "client_name": "test",
        "heartbeat": 20.0,
        "reconnect_timeout": PATIENCE,
        **options,
    }
    return Link(parse(url), notes, **settings)


@contextlib.asynccontextmanager
async def linked(peer: Peer, *features: str, **options: Any) -> AsyncIterator[tuple[Link, Talk, Notes]]:
    """A link that is up, the server's side of it, and who is told."""
    notes = Notes()
    link = make_link(peer.url, notes, **options)
    opening = background(link.open())
    talk = await peer.welcome("s1", *features)
    await opening
    try:
        yield link, talk, notes
    finally:
        await ended(link.aclose(), peer)


@contextlib.asynccontextmanager
async def far(
    peer: Peer, *features: str, about: Message | None = None, **options: Any
) -> AsyncIterator[tuple[RemoteBackend, Talk]]:
    """A backend that is connected, and the server's side of it."""
    backend = RemoteBackend(peer.url, **{"reconnect_timeout": PATIENCE, **options})
    opening = background(backend.open())
    talk = await peer.welcome("s1", *features, about=about)
    await opening
    try:
        yield backend, talk
    finally:
        await ended(backend.aclose(), peer)


async def ended(closing: Coroutine[Any, Any, None], peer: Peer) -> None:
    """Close a client whose server no longer talks: it is cut off, so that nobody waits for goodbyes."""
    task = background(closing)
    await peer.end()
    async with asyncio.timeout(PATIENCE):
        await task


def background(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Do something while the test does something else, which is waited for."""
    return asyncio.get_running_loop().create_task(work)
