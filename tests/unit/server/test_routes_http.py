"""What a listener answers to plain HTTP, byte for byte as the reference does."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any

import pytest

from holdfast.principal import ANYBODY
from holdfast.server.routes import HttpAnswer, Reply, Route, Routes, reply
from holdfast.wire.http import BadHead, read_head

ROUTES = Routes(healthz=False)
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": KEY,
    "Sec-WebSocket-Version": "13",
}


def asked(line: str, fields: dict[str, str] | None = None, routes: Routes = ROUTES) -> Reply:
    if " HTTP/" not in line:
        line += " HTTP/1.1"
    text = line + "\r\n" + "".join(f"{name}: {value}\r\n" for name, value in (fields or {}).items()) + "\r\n"
    found = read_head(text.encode())
    assert found is not None
    return reply(found[0], routes)


def text_of(answer: Reply) -> str:
    return re.sub(r"date: [^\r]+", "date: D", answer.data.decode())


def plain(status: str, body: str = "", *, fields: str = "", version: str = "1.1") -> str:
    kind = "content-type: text/plain; charset=utf-8\r\n" if body else ""
    return f"HTTP/{version} {status}\r\n{kind}{fields}content-length: {len(body)}\r\ndate: D\r\n\r\n{body}"


OK = plain("200 OK")
NOT_FOUND = plain("404 Not Found")
ONLY_GET_AND_HEAD = plain("405 Method Not Allowed", fields="allow: GET,HEAD\r\n")
ONLY_GET = plain("405 Method Not Allowed", "Request method must be `GET`")
NO_CONNECTION = plain("400 Bad Request", "Connection header did not include 'upgrade'")
NO_UPGRADE = plain("400 Bad Request", "`Upgrade` header did not include 'websocket'")
NO_KEY = plain("400 Bad Request", "`Sec-WebSocket-Key` header missing")
NO_VERSION = plain("400 Bad Request", "`Sec-WebSocket-Version` header did not include '13'")
FORBIDDEN = plain("403 Forbidden")


def switched(accept: str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=") -> str:
    return (
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        f"sec-websocket-accept: {accept}\r\ndate: D\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("GET /readyz", OK),
        ("HEAD /readyz", OK),
        ("GET /readyz?x=1", OK),
        ("GET http://x/readyz", OK),
        *[(f"{method} /readyz", ONLY_GET_AND_HEAD) for method in ("POST", "PUT", "OPTIONS", "DELETE")],
        ("GET /readyz/", NOT_FOUND),
        ("GET //readyz", NOT_FOUND),
        ("GET /READYZ", NOT_FOUND),
        ("GET /healthz", NOT_FOUND),
        ("POST /other", NOT_FOUND),
        ("GET *", NOT_FOUND),
        ("OPTIONS *", NOT_FOUND),
        ("CONNECT a:1", NOT_FOUND),
        ("GET /", NO_CONNECTION),
        ("GET /?a=b", NO_CONNECTION),
        *[(f"{method} /", ONLY_GET) for method in ("POST", "PUT", "OPTIONS", "TRACE", "CONNECT", "FOO")],
        ("HEAD /", ONLY_GET.removesuffix("Request method must be `GET`")),
    ],
)
def test_a_plain_request_is_answered_and_the_connection_kept(line: str, text: str) -> None:
    answer = asked(line)

    assert text_of(answer) == text
    assert (answer.upgrade, answer.close) == (None, False)


@pytest.mark.parametrize(
    ("line", "change"),
    [
        ("GET /", {}),
        ("GET /?q=1", {}),
        ("GET /", {"Upgrade": "WebSocket"}),
        ("GET /", {"Connection": "keep-alive, Upgrade"}),
        ("GET /", {"Connection": "UPGRADE"}),
        ("GET /", {"Connection": "xupgradex"}),
        ("GET /", {"Sec-WebSocket-Protocol": "a, b"}),
        ("GET /", {"Sec-WebSocket-Extensions": "permessage-deflate"}),
    ],
)
def test_a_websocket_client_is_let_through(line: str, change: dict[str, str]) -> None:
    """No subprotocol and no extension is ever chosen."""
    answer = asked(line, {**UPGRADE, **change})

    assert text_of(answer) == switched()
    assert (answer.upgrade, answer.close) == (ANYBODY, False)


@pytest.mark.parametrize(
    ("key", "accept"),
    [("x", "JVxkmtKFjDcI/Pm/AGPEKSN6wT8="), ("", "Kfh9QIsMVZcl6xEPYxPHzW8SZ8w=")],
)
def test_any_key_is_answered(key: str, accept: str) -> None:
    assert text_of(asked("GET /", {**UPGRADE, "Sec-WebSocket-Key": key})) == switched(accept)


def without(*names: str) -> dict[str, str]:
    return {name: value for name, value in UPGRADE.items() if name not in names}


@pytest.mark.parametrize(
    ("line", "fields", "text"),
    [
        ("GET /other", UPGRADE, NOT_FOUND),
        ("GET /readyz", UPGRADE, OK),
        ("POST /", UPGRADE, ONLY_GET),
        ("GET /", without("Connection"), NO_CONNECTION),
        ("GET /", {**UPGRADE, "Connection": "keep-alive"}, NO_CONNECTION),
        ("GET /", without("Upgrade"), NO_UPGRADE),
        ("GET /", {**UPGRADE, "Upgrade": "h2c"}, NO_UPGRADE),
        ("GET /", {**UPGRADE, "Upgrade": "websocket, x"}, NO_UPGRADE),
        ("GET /", {**UPGRADE, "Upgrade": "x, websocket"}, NO_UPGRADE),
        ("GET /", without("Sec-WebSocket-Key"), NO_KEY),
        ("GET /", without("Sec-WebSocket-Version"), NO_VERSION),
        *[
            ("GET /", {**UPGRADE, "Sec-WebSocket-Version": value}, NO_VERSION)
            for value in ("8", "13, 8", "14")
        ],
        ("GET /", {}, NO_CONNECTION),
        ("GET /", {"Connection": "upgrade"}, NO_UPGRADE),
        ("GET /", without("Sec-WebSocket-Key", "Sec-WebSocket-Version"), NO_KEY),
    ],
)
def test_an_upgrade_that_is_none_is_told_the_first_thing_that_is_wrong(
    line: str, fields: dict[str, str], text: str
) -> None:
    answer = asked(line, fields)

    assert text_of(answer) == text
    assert not answer.upgrade


@pytest.mark.parametrize("origin", ["", "null", "http://localhost", "http://evil"])
@pytest.mark.parametrize("line", ["GET /", "POST /", "GET /readyz", "HEAD /readyz", "GET /other"])
def test_a_web_page_is_refused_whatever_it_asks(line: str, origin: str) -> None:
    """A page of any site could otherwise run programs on the host of whoever reads it."""
    assert text_of(asked(line, {**UPGRADE, "Origin": origin})) == FORBIDDEN


def test_a_listener_that_no_page_can_reach_need_not_look() -> None:
    routes = Routes(healthz=False, refuse_origin=False)

    assert asked("GET /", {**UPGRADE, "Origin": "x"}, routes).upgrade


def test_a_listener_may_serve_health_as_well() -> None:
    routes = Routes(healthz=True)

    assert text_of(asked("GET /healthz", routes=routes)) == OK
    assert text_of(asked("POST /healthz", routes=routes)) == ONLY_GET_AND_HEAD


ANYWHERE = Routes(healthz=True, any_path=True)


@pytest.mark.parametrize("line", ["GET /", "GET /foo", "GET /foo/bar?x=1", "GET /readyz/", "GET //"])
def test_a_listener_may_take_websocket_clients_on_every_path(line: str) -> None:
    answer = asked(line, UPGRADE, ANYWHERE)

    assert text_of(answer) == switched()
    assert answer.upgrade


@pytest.mark.parametrize(
    ("line", "fields", "text"),
    [
        ("GET /readyz", UPGRADE, OK),
        ("GET /healthz", UPGRADE, OK),
        ("POST /healthz", UPGRADE, ONLY_GET_AND_HEAD),
        ("POST /foo", UPGRADE, ONLY_GET),
        ("GET /foo", without("Connection"), NO_CONNECTION),
        ("GET /foo", {**UPGRADE, "Upgrade": "h2c"}, NO_UPGRADE),
        ("GET /foo", without("Sec-WebSocket-Key"), NO_KEY),
        ("GET /foo", without("Sec-WebSocket-Version"), NO_VERSION),
        ("GET /foo", {**UPGRADE, "Origin": "http://evil"}, FORBIDDEN),
        ("GET /", {}, NO_CONNECTION),
    ],
)
def test_on_every_path_the_same_is_asked_of_a_websocket_client(
    line: str, fields: dict[str, str], text: str
) -> None:
    answer = asked(line, fields, ANYWHERE)

    assert text_of(answer) == text
    assert not answer.upgrade


@pytest.mark.parametrize(
    ("line", "fields", "text", "close"),
    [
        ("GET /readyz HTTP/1.0", {}, plain("200 OK", version="1.0"), True),
        (
            "GET /readyz HTTP/1.0",
            {"Connection": "keep-alive"},
            plain("200 OK", fields="connection: keep-alive\r\n", version="1.0"),
            False,
        ),
        ("GET /readyz", {"Connection": "close"}, plain("200 OK", fields="connection: close\r\n"), True),
        (
            "GET / HTTP/1.0",
            UPGRADE,
            plain(
                "426 Upgrade Required",
                "WebSocket request couldn't be upgraded since no upgrade state was present",
                version="1.0",
            ),
            True,
        ),
    ],
)
def test_a_connection_is_kept_or_ended_as_the_client_expects(
    line: str, fields: dict[str, str], text: str, *, close: bool
) -> None:
    answer = asked(line, fields)

    assert text_of(answer) == text
    assert (answer.upgrade, answer.close) == (None, close)


def test_a_request_with_a_body_is_answered_and_the_connection_ended() -> None:
    """Nobody reads the body, so nothing after it could be understood."""
    answer = asked("POST /", {"Content-Length": "5"})

    assert text_of(answer) == ONLY_GET.replace("content-type", "connection: close\r\ncontent-type", 1)
    assert answer.close


def test_the_date_is_written_as_http_wants_it() -> None:
    """Whatever language the server's user speaks."""
    before = datetime.now(UTC).replace(microsecond=0)

    line = next(
        line for line in asked("GET /readyz").data.decode().split("\r\n") if line.startswith("date: ")
    )

    at = parsedate_to_datetime(line.removeprefix("date: "))
    assert before <= at <= datetime.now(UTC)
    assert line == f"date: {format_datetime(at, usegmt=True)}"


@pytest.mark.parametrize("fields", [{"Transfer-Encoding": "chunked"}, {"Content-Length": "x"}])
def test_a_body_of_unknown_length_is_refused(fields: dict[str, str]) -> None:
    with pytest.raises(BadHead):
        asked("POST /", fields)


# Routes.


def figures(**facts: Any) -> Routes:
    answer = HttpAnswer(b"x 1\n", fields={"content-type": "text/x"})
    return Routes(healthz=False, table=(Route("/figures", lambda call: answer, **facts),))


def test_a_route_that_need_not_wait_is_answered_at_once() -> None:
    shown = "HTTP/1.1 200 OK\r\ncontent-type: text/x\r\ncontent-length: 4\r\ndate: D\r\n\r\n"

    assert text_of(asked("GET /figures?x=1", routes=figures())) == shown + "x 1\n"
    assert text_of(asked("HEAD /figures", routes=figures())) == shown
    refused = plain("405 Method Not Allowed", fields="allow: GET,HEAD\r\n")
    assert text_of(asked("POST /figures", routes=figures())) == refused
    assert text_of(asked("GET /figures")) == plain("404 Not Found")


def test_a_route_says_which_methods_it_takes() -> None:
    routes = figures(methods=("POST", "GET"))

    assert text_of(asked("POST /figures", routes=routes)).endswith("\r\n\r\nx 1\n")
    refused = plain("405 Method Not Allowed", fields="allow: POST,GET,HEAD\r\n")
    assert text_of(asked("PUT /figures", routes=routes)) == refused


def test_a_route_may_be_everything_below_a_path() -> None:
    routes = Routes(
        healthz=False,
        table=(
            Route("/a/b", lambda call: HttpAnswer(b"b")),
            Route("/a/*", lambda call: HttpAnswer(call.head.path.encode())),
        ),
    )

    texts = {path: text_of(asked(f"GET {path}", routes=routes)) for path in ("/a/b", "/a/c/d", "/a/", "/a")}

    bodies = {path: text.partition("\r\n\r\n")[2] for path, text in texts.items()}
    assert bodies == {"/a/b": "b", "/a/c/d": "/a/c/d", "/a/": "/a/", "/a": ""}
    assert texts["/a"] == NOT_FOUND


def test_pages_of_others_are_refused_unless_a_route_takes_them() -> None:
    fields = {"Origin": "http://x"}

    assert text_of(asked("GET /figures", fields, figures())) == FORBIDDEN
    assert text_of(asked("GET /figures", fields, figures(origins=True))).endswith("x 1\n")
