"""What a listener answers to plain HTTP, and whom it lets through to WebSocket."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from time import gmtime, time
from typing import Any

from holdfast.wire import http
from holdfast.wire.http import Head
from holdfast.wire.websocket import accept_key


@dataclass(frozen=True, slots=True)
class Routes:
    """What a listener serves."""

    healthz: bool
    """Whether there is a ``/healthz`` besides ``/readyz``."""
    any_path: bool = False
    """Whether an upgrade is welcome on every path, not only on ``/``."""
    refuse_origin: bool = True
    """Whether requests of web pages, which carry an Origin, are refused."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The bytes to send, and what happens then."""

    data: bytes
    upgrade: bool = False
    close: bool = False


def reply(head: Head, routes: Routes) -> Reply:
    """Answer a request.  The order of the checks is part of the protocol."""
    if routes.refuse_origin and "origin" in head.fields:
        return _plain(head, HTTPStatus.FORBIDDEN)
    if head.path == "/readyz" or (routes.healthz and head.path == "/healthz"):
        if head.method in ("GET", "HEAD"):
            return _plain(head, HTTPStatus.OK)
        return _plain(head, HTTPStatus.METHOD_NOT_ALLOWED, fields={"allow": "GET,HEAD"})
    if head.path != "/" and not (routes.any_path and "upgrade" in head.fields):
        return _plain(head, HTTPStatus.NOT_FOUND)
    return _upgrade(head)


def _upgrade(head: Head) -> Reply:
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
    fields = {
        "connection": "upgrade",
        "upgrade": "websocket",
        "sec-websocket-accept": accept_key(head.fields["sec-websocket-key"]),
    }
    return Reply(answer(HTTPStatus.SWITCHING_PROTOCOLS, fields=fields), upgrade=True)


def _plain(
    head: Head, status: HTTPStatus, body: bytes = b"", *, fields: dict[str, str] | None = None
) -> Reply:
    # A request with a body is answered without reading it; then the connection is of no more use.
    close = not head.keeps_alive or head.body_length > 0
    # Said where it is not what the version implies.
    connection = "close" if close and head.minor else "keep-alive" if not close and not head.minor else None
    only_head = head.method == "HEAD"
    data = answer(status, body, fields=fields, only_head=only_head, minor=head.minor, connection=connection)
    return Reply(data, close=close)


def answer(status: HTTPStatus, body: bytes = b"", **options: Any) -> bytes:
    """A whole answer with the date in it."""
    return http.answer(status, body, date=_date(time()), **options)


def _date(seconds: float) -> str:
    """As HTTP writes it, in any locale."""
    at = gmtime(seconds)
    day, month = _DAYS[at.tm_wday], _MONTHS[at.tm_mon - 1]
    return f"{day}, {at.tm_mday:02} {month} {at.tm_year} {at.tm_hour:02}:{at.tm_min:02}:{at.tm_sec:02} GMT"


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
