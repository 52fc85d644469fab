"""The table of what a listener serves over plain HTTP: routes, their requests and their answers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Protocol

from holdfast.principal import Principal
from holdfast.wire.http import Head

from .auth import Auth


class HttpSocket(Protocol):
    """The socket that HTTP is spoken on."""

    peer: str

    @property
    def full(self) -> bool:
        """Whether the peer should first take what it was sent; ``on_room`` is called when it has."""

    def upgrade(self, principal: Principal, accepted: bytes, rest: bytes) -> None:
        """Let this client through: send ``accepted``, and take ``rest`` as the first of what it says then."""

    def give_up(self, limit: str) -> None:
        """Close the socket at once: its peer has exceeded this limit."""


class RequestBody:
    """The body of a request, as it arrives.  To be read once, piece by piece or as a whole.

    What has arrived and was not read is bounded: the socket is not read meanwhile.
    """

    __slots__ = ("_error", "_is_whole", "_news", "_on_room", "_pieces", "_size")

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._is_whole = False
        self._error: Exception | None = None
        self._news: asyncio.Future[None] | None = None
        self._on_room: Callable[[], None] = lambda: None

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        """Give the pieces.

        Raises:
            HttpRefused: The body is too long, ill-formed, or takes too long to arrive.
        """
        while True:
            while self._pieces:
                piece = self._pieces.popleft()
                self._size -= len(piece)
                self._on_room()
                yield piece
            if self._error is not None:
                raise self._error
            if self._is_whole:
                return
            self._news = asyncio.get_running_loop().create_future()
            await self._news

    async def read(self) -> bytes:
        """Give all of it.  Raises as iterating does."""
        return b"".join([piece async for piece in self])

    # For whoever receives it.

    @property
    def size(self) -> int:
        """Bytes that have arrived and were not read."""
        return self._size

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for the next piece."""
        return self._news is not None and not self._news.done()

    def on_room(self, call: Callable[[], None]) -> None:
        """Have ``call`` called whenever a piece was read."""
        self._on_room = call

    def feed(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)
        self._wake()

    def end(self, error: Exception | None = None) -> None:
        """It is whole; or ``error`` says why it will never be.  Only the first call counts."""
        if not self._is_whole and self._error is None:
            self._is_whole, self._error = error is None, error
            self._wake()

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)


class HttpRefused(Exception):
    """A request that a route does not take: answered with ``status`` and the words."""

    def __init__(self, status: HTTPStatus, words: str = "") -> None:
        super().__init__(status, words)
        self.status = status
        self.words = words


@dataclass(frozen=True, slots=True)
class HttpCall:
    """A request to a route."""

    head: Head
    principal: Principal
    peer: str
    body: RequestBody


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a route answers: bytes that are there, or a stream of them, sent at the pace of the peer."""

    body: bytes | AsyncGenerator[bytes, None] = b""
    status: HTTPStatus = HTTPStatus.OK
    fields: Mapping[str, str] = field(default_factory=dict)


_WITH_HEAD = {"GET": ("GET", "HEAD")}


@dataclass(frozen=True, slots=True)
class Route:
    """One path, or everything below one, and who answers there."""

    path: str
    """Such as ``/metrics``, or ``/console/*`` for whatever is below ``/console/``."""
    handle: Callable[[HttpCall], HttpAnswer | Coroutine[Any, Any, HttpAnswer]]
    """Called with each request: gives the answer, or a coroutine of it if there is something to wait for.

    A coroutine may read the body and give a stream; it is cancelled when the peer leaves.  It
    may raise ``HttpRefused``; errors of ours are answered with a fitting status.
    """
    methods: tuple[str, ...] = ("GET",)
    """HTTP methods; HEAD is taken where GET is."""
    grant: str = ""
    """What a token must allow to use the route; without it no token is asked for."""
    body_bytes: int = 0
    """The longest body that is taken; a longer one is refused with 413."""
    origins: bool = False
    """Whether requests of web pages, which carry an Origin, are taken where they are refused otherwise."""

    def matches(self, path: str) -> bool:
        if self.path.endswith("/*"):
            return path.startswith(self.path[:-1])
        return path == self.path

    @property
    def allowed(self) -> str:
        """The methods, as an ``Allow`` field lists them."""
        return ",".join(each for method in self.methods for each in _WITH_HEAD.get(method, (method,)))

    def takes(self, method: str) -> bool:
        return method in self.methods or (method == "HEAD" and "GET" in self.methods)


@dataclass(frozen=True, slots=True)
class Routes:
    """What a listener serves."""

    healthz: bool
    """Whether there is a ``/healthz`` besides ``/readyz``."""
    any_path: bool = False
    """Whether an upgrade is welcome on every path, not only on ``/``."""
    refuse_origin: bool = True
    """Whether requests of web pages, which carry an Origin, are refused."""
    auth: Auth | None = None
    """Who may connect; without it, everybody who can."""
    table: tuple[Route, ...] = ()
    """What is served besides; the first route that matches a path answers."""

    def find(self, path: str) -> Route | None:
        for route in self.table:
            if route.matches(path):
                return route
        return None
