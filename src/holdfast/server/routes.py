"""What a listener serves over plain HTTP, request by request, and whom it lets through to WebSocket."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from http import HTTPStatus
from time import gmtime, time
from typing import Any, Protocol

from holdfast.errors import LimitReached
from holdfast.principal import ANYBODY, Principal
from holdfast.value import value
from holdfast.wire import http
from holdfast.wire.http import HEAD_LIMIT, MOST_FIELDS, BadHead, Head, read_head
from holdfast.wire.websocket import accept_key

from .auth import Auth, NotAdmitted


class HttpSocket(Protocol):
    """The socket that HTTP is spoken on."""

    peer: str

    @property
    def full(self) -> bool:
        """Whether the peer should first take what it was sent; ``on_room`` is called when it has."""

    def upgrade(self, principal: Principal, accepted: bytes, rest: bytes) -> None:
        """Upgrade this client: send ``accepted``, and take ``rest`` as its first bytes after that."""

    def abort(self, limit: str) -> None:
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
        """Yield the body piece by piece, as it arrives.

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
        """Whether a reader waits for the next piece."""
        return self._news is not None and not self._news.done()

    def on_room(self, call: Callable[[], None]) -> None:
        """Have ``call`` called whenever a piece was read."""
        self._on_room = call

    def feed(self, piece: bytes) -> None:
        self._pieces.append(piece)
        self._size += len(piece)
        self._wake()

    def end(self, error: Exception | None = None) -> None:
        """Mark the body as complete, or as broken by ``error``.  Only the first call counts."""
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


@value
class HttpCall:
    """A request to a route."""

    head: Head
    principal: Principal
    peer: str
    body: RequestBody


_NO_FIELDS: Mapping[str, str] = {}
"""Shared by all answers that have none; nobody changes it."""


@value
class HttpAnswer:
    """What a route answers: bytes that are there, or a stream of them, sent at the pace of the peer."""

    body: bytes | AsyncGenerator[bytes, None] = b""
    status: HTTPStatus = HTTPStatus.OK
    fields: Mapping[str, str] = _NO_FIELDS


_WITH_HEAD = {"GET": ("GET", "HEAD")}


@value
class Route:
    """A path of a listener, or everything below one, with the function that answers HTTP requests there."""

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


@value
class Routes:
    """What a listener serves, and to whom."""

    healthz: bool
    """Whether there is a ``/healthz`` besides ``/readyz``."""
    any_path: bool = False
    """Whether an upgrade is welcome on every path, not only on ``/``."""
    refuse_origin: bool = True
    """Whether requests of web pages, which carry an Origin, are refused."""
    auth: Auth | None = None
    """What decides who may connect; without it, everybody who can reach the listener."""
    table: tuple[Route, ...] = ()
    """What is served besides; the first route that matches a path answers."""

    def find(self, path: str) -> Route | None:
        for route in self.table:
            if route.matches(path):
                return route
        return None


@value
class Reply:
    """The bytes to send, and what happens then."""

    data: bytes
    upgrade: Principal | None = None
    """The client that may speak WebSocket from here on; None for all other answers."""
    close: bool = False
    refusal: str = ""
    """Why a client was refused, in one word."""
    call: RouteCall | None = None
    """The request that a route answers in its own time; then there are no bytes to send yet."""


@value
class RouteCall:
    """A request for a route that waits, reads a body or sends a stream."""

    route: Route
    head: Head
    body: RequestBody
    answer: HttpAnswer | Coroutine[Any, Any, HttpAnswer]


def reply(head: Head, routes: Routes, peer: str = "") -> Reply:
    """Answer a request.  The order of the checks is part of the protocol."""
    route = routes.find(head.path)
    if routes.refuse_origin and "origin" in head.fields and not (route is not None and route.origins):
        return _plain(head, HTTPStatus.FORBIDDEN)
    if head.path == "/readyz" or (routes.healthz and head.path == "/healthz"):
        return _shown(head, b"")
    if route is not None:
        return _routed(head, route, routes.auth, peer)
    if head.path != "/" and not (routes.any_path and "upgrade" in head.fields):
        return _plain(head, HTTPStatus.NOT_FOUND)
    return _upgrade(head, routes.auth)


def _routed(head: Head, route: Route, auth: Auth | None, peer: str) -> Reply:
    """Answer from the table, now if nothing has to be waited for."""
    principal = ANYBODY
    if route.grant:
        try:
            principal = ANYBODY if auth is None else auth.admit(head.fields.get("authorization"))
        except NotAdmitted as denied:
            return _plain(head, HTTPStatus.UNAUTHORIZED, str(denied).encode(), refusal=denied.reason)
        if not principal.grant.allows_method(route.grant):
            return _plain(head, HTTPStatus.FORBIDDEN, f"the token does not allow `{route.grant}`".encode())
    if not route.takes(head.method):
        return _plain(head, HTTPStatus.METHOD_NOT_ALLOWED, fields={"allow": route.allowed})
    body = RequestBody()
    given = route.handle(HttpCall(head, principal, peer, body))
    if isinstance(given, HttpAnswer) and isinstance(given.body, bytes):
        return _plain(head, given.status, given.body, fields=dict(given.fields))
    return Reply(b"", call=RouteCall(route, head, body, given))


def _shown(head: Head, body: bytes, *, fields: dict[str, str] | None = None) -> Reply:
    if head.method in ("GET", "HEAD"):
        return _plain(head, HTTPStatus.OK, body, fields=fields)
    return _plain(head, HTTPStatus.METHOD_NOT_ALLOWED, fields={"allow": "GET,HEAD"})


def _upgrade(head: Head, auth: Auth | None) -> Reply:
    if head.method != "GET":
        return _plain(head, HTTPStatus.METHOD_NOT_ALLOWED, b"Request method must be `GET`")
    if "upgrade" not in head.fields.get("connection", "").lower():
        return _plain(head, HTTPStatus.BAD_REQUEST, b"Connection header did not include 'upgrade'")
    if head.fields.get("upgrade", "").lower() != "websocket":
        return _plain(head, HTTPStatus.BAD_REQUEST, b"`Upgrade` header did not include 'websocket'")
    if "sec-websocket-key" not in head.fields:
        return _plain(head, HTTPStatus.BAD_REQUEST, b"`Sec-WebSocket-Key` header missing")
    if head.fields.get("sec-websocket-version") != "13":
        return _plain(head, HTTPStatus.BAD_REQUEST, b"`Sec-WebSocket-Version` header did not include '13'")
    if not head.minor:
        return _plain(
            head,
            HTTPStatus.UPGRADE_REQUIRED,
            b"WebSocket request couldn't be upgraded since no upgrade state was present",
        )
    try:
        principal = ANYBODY if auth is None else auth.admit(head.fields.get("authorization"))
    except NotAdmitted as denied:
        return _plain(head, HTTPStatus.UNAUTHORIZED, str(denied).encode(), refusal=denied.reason)
    fields = {
        "connection": "upgrade",
        "upgrade": "websocket",
        "sec-websocket-accept": accept_key(head.fields["sec-websocket-key"]),
    }
    return Reply(answer(HTTPStatus.SWITCHING_PROTOCOLS, fields=fields), upgrade=principal)


def _plain(
    head: Head,
    status: HTTPStatus,
    body: bytes = b"",
    *,
    fields: dict[str, str] | None = None,
    refusal: str = "",
) -> Reply:
    # A request with a body is answered without reading it; then the connection is of no more use.
    close = not head.keeps_alive or head.body_length > 0
    # Said where it is not what the version implies.
    connection = "close" if close and head.minor else "keep-alive" if not close and not head.minor else None
    only_head = head.method == "HEAD"
    data = answer(status, body, fields=fields, only_head=only_head, minor=head.minor, connection=connection)
    return Reply(data, close=close, refusal=refusal)


def answer(status: HTTPStatus, body: bytes = b"", **options: Any) -> bytes:
    """A whole answer with the date in it."""
    return http.answer(status, body, date=date(), **options)


def date() -> str:
    """The time as HTTP writes it, in any locale."""
    at = gmtime(time())
    day, month = _DAYS[at.tm_wday], _MONTHS[at.tm_mon - 1]
    return f"{day}, {at.tm_mday:02} {month} {at.tm_year} {at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02} GMT"


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def no_room(limit: LimitReached) -> bytes:
    """The answer to a client for which there is no room."""
    return turned_away(HTTPStatus.SERVICE_UNAVAILABLE, str(limit).encode()).data


def turned_away(status: HTTPStatus, words: bytes = b"") -> Reply:
    """An answer that ends the connection."""
    return Reply(answer(status, words, connection="close"), close=True)


class HttpRequests:
    """Splits the bytes of a socket into requests, and answers those that need not wait."""

    __slots__ = ("_head", "_lines", "_peer", "_refused", "_routes")

    def __init__(self, routes: Routes, refused: Callable[[str], None], peer: str = "") -> None:
        self._routes = routes
        self._peer = peer
        self._refused = refused
        self._head = bytearray()
        self._lines = 0

    def add(self, data: memoryview) -> bool:
        """Take what has come.  Return whether there may be something to answer now."""
        first = not self._head
        self._head += data
        lines = data.tobytes().count(b"\n")
        self._lines += lines
        # A head that comes byte by byte is looked at when there is a line more, not with every byte.
        return first or lines > 0 or len(self._head) > HEAD_LIMIT

    @property
    def has_rest(self) -> bool:
        """Whether something is here that was not answered."""
        return bool(self._head)

    def answers(self) -> Iterator[Reply]:
        """Answer what is here.  The last answer may close, let through, or be left to a route.

        Whoever stops in between can go on later with another iterator.
        """
        try:
            while (found := read_head(self._head)) is not None:
                head, end = found
                answered = reply(head, self._routes, self._peer)
                if answered.call is not None:
                    yield answered  # Whoever reads its body reads the head again.
                    return
                # Those of this head, not of all behind it: there may be thousands.
                self._lines -= self._head.count(b"\n", 0, end)
                del self._head[:end]
                if answered.refusal:
                    self._refused(answered.refusal)
                yield answered
                if answered.upgrade is not None or answered.close:
                    return
            if self._lines > MOST_FIELDS + 1:
                raise BadHead(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
        except BadHead as bad:
            yield turned_away(bad.status)

    def rest(self) -> bytes:
        """Take what was not answered: what follows an upgrade, or the whole request to a route."""
        rest, self._lines = bytes(self._head), 0
        self._head.clear()
        return rest
