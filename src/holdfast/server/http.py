"""What a listener answers to plain HTTP, and whom it lets through to WebSocket."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from http import HTTPStatus
from time import gmtime, time
from typing import Any

from holdfast.principal import ANYBODY, Principal
from holdfast.wire import http
from holdfast.wire.http import Head
from holdfast.wire.websocket import accept_key

from .auth import Auth, NotAdmitted
from .routes import HttpAnswer, HttpCall, RequestBody, Route, Routes


@dataclass(frozen=True, slots=True)
class Reply:
    """The bytes to send, and what happens then."""

    data: bytes
    upgrade: Principal | None = None
    """Who is let in."""
    close: bool = False
    refusal: str = ""
    """Why somebody was not, in a word."""
    call: RouteCall | None = None
    """The request that a route answers in its own time; then there are no bytes to send yet."""


@dataclass(frozen=True, slots=True)
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
