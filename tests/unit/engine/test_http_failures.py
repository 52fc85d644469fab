"""HTTP requests from this host: redirects, failures, time, bounds and proxies."""

from __future__ import annotations

import asyncio
import ssl
import struct
from collections.abc import AsyncIterator
from socket import SO_LINGER, SOL_SOCKET
from types import SimpleNamespace

import httpx
import pytest

from holdfast.config import HttpLimits
from holdfast.engine.http import HostHttp, Message, Network
from holdfast.errors import BadUrl, HttpFailed, HttpFault, LimitReached
from holdfast.model import HttpHeader, HttpRequest
from tests.fakes.server import PATIENCE, eventually
from tests.fakes.web import (
    Visit,
    Web,
    failure,
    fetch,
    headers,
    host_http,
    redirect,
    response,
    web,
)


@pytest.fixture
async def http() -> AsyncIterator[HostHttp]:
    async with host_http() as made:
        yield made


# Redirects.


@pytest.mark.parametrize(
    ("status", "method", "then", "body"),
    [
        (301, "POST", "GET", b""),
        (302, "POST", "GET", b""),
        (303, "POST", "GET", b""),
        (303, "PUT", "GET", b""),
        (302, "PUT", "PUT", b"hello"),
        (307, "POST", "POST", b"hello"),
        (308, "POST", "POST", b"hello"),
    ],
)
async def test_a_redirect_is_followed_with_the_method_it_asks_for(
    http: HostHttp, status: int, method: str, then: str, body: bytes
) -> None:
    given = headers(("Content-Type", "t/x"), ("Authorization", "a"), ("X-Q", "1"))
    async with web(x=redirect(status, "y?z#f")) as served:
        assert await fetch(http, f"{served.url}/x", method, body=b"hello", headers=given) == (200, b"hi")

    second = served.visits[1]
    assert (second.line, second.body) == (f"{then} /y?z HTTP/1.1", body)
    kept = [("authorization", "a"), ("x-q", "1"), ("referer", f"{served.url}/x")]
    if body:
        kept = [("content-type", "t/x"), *kept, ("content-length", "5")]
    assert second.own_headers == kept


async def test_a_head_stays_one(http: HostHttp) -> None:
    async with web(
        x=b"HTTP/1.1 303 X\r\nlocation: /y\r\n\r\n", y=b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"
    ) as served:
        assert await fetch(http, f"{served.url}/x", "HEAD") == (200, b"")

    assert [visit.line.split()[0] for visit in served.visits] == ["HEAD", "HEAD"]


async def test_another_origin_is_told_no_secrets(http: HostHttp) -> None:
    """What names a user, and every header made from a variable, is for the one who was named."""
    given = (
        *headers(("Authorization", "a"), ("Cookie", "c"), ("Proxy-Authorization", "p"), ("Host", "h")),
        HttpHeader("X-Key", "", "TOKEN_X"),
        HttpHeader("X-Q", "1"),
    )
    async with web() as other, web(x=redirect(302, f"{other.url}/y")) as served:
        await fetch(http, f"{served.url}/x", headers=given)

    assert other.visits[0].headers == [
        ("host", f"127.0.0.1:{other.port}"),
        ("x-q", "1"),
        ("referer", f"{served.url}/"),
        ("accept", "*/*"),
    ]


async def test_ten_redirects_are_followed_and_not_one_more(http: HostHttp) -> None:
    async with web(loop=redirect(302, "/loop")) as served:
        served.routes |= {f"/{n}": redirect(302, f"/{n - 1}") for n in range(1, 11)}
        assert (await fetch(http, f"{served.url}/10"))[0] == 200
        followed = len(served.visits)
        failed = await failure(http, f"{served.url}/loop")

    assert (followed, len(served.visits)) == (11, 22)
    assert (failed.fault, failed.reason) == (HttpFault.REDIRECTS, "too many redirects")


@pytest.mark.parametrize("location", ["/y", "http://[bad", "ftp://x/"])
async def test_a_redirect_that_is_not_to_be_followed_is_the_response(http: HostHttp, location: str) -> None:
    async with web(x=redirect(302, location)) as served:
        answer = await http.request(HttpRequest("GET", f"{served.url}/x", follow=False))
        await answer.aclose()

    assert (answer.status, dict(answer.headers)["location"]) == (302, location)


@pytest.mark.parametrize("location", [None, "http://[bad", "http://a b/", "/\x01", "//127.0.0.1:99999/"])
async def test_a_redirect_to_nowhere_is_the_response(http: HostHttp, location: str | None) -> None:
    answer = redirect(302, location) if location else b"HTTP/1.1 302 X\r\ncontent-length: 0\r\n\r\n"
    async with web(x=answer) as served:
        assert await fetch(http, f"{served.url}/x") == (302, b"")


async def test_a_redirect_out_of_http_is_refused(http: HostHttp) -> None:
    async with web(x=redirect(302, "FTP://x/")) as served:
        failed = await failure(http, f"{served.url}/x")

    assert (failed.fault, failed.subject) == (HttpFault.SCHEME, "ftp")


async def test_cookies_are_neither_kept_nor_sent(http: HostHttp) -> None:
    """They would pass from one client to another, and pile up."""
    set_cookie = b"HTTP/1.1 302 X\r\nset-cookie: a=b\r\nlocation: /y\r\ncontent-length: 0\r\n\r\n"
    async with web(x=set_cookie) as served:
        await fetch(http, f"{served.url}/x")
        await fetch(http, f"{served.url}/y")

    assert not any("cookie" in dict(visit.headers) for visit in served.visits)


def test_nobody_without_tls_is_told_what_was_asked_with_it() -> None:
    """Whoever listens in would learn of it."""
    message = Message("GET", httpx.URL("https://h/secret"), (("referer", b"x"), ("x-q", b"1")), b"")

    then = message.redirected(302, httpx.URL("http://h/"), frozenset())

    assert then.headers == (("x-q", b"1"),)


# What goes wrong.


async def test_a_server_that_is_not_there(http: HostHttp) -> None:
    failed = await failure(http, "http://127.0.0.1:1/p?q#f")

    assert (failed.fault, failed.subject) == (HttpFault.SENDING, "http://127.0.0.1:1/p?q#f")
    assert "Connect call failed" in failed.reason


@pytest.mark.parametrize("host", ["no.such.host.invalid", "a" * 70, "a..b"])
async def test_a_host_that_nobody_knows(http: HostHttp, host: str) -> None:
    assert (await failure(http, f"http://{host}/")).fault is HttpFault.SENDING


async def test_a_name_that_is_none_in_any_language(http: HostHttp) -> None:
    with pytest.raises(BadUrl) as caught:
        await fetch(http, "http://\u00ad\u2010\u2010.example/")

    assert str(caught.value) == "invalid international domain name"


async def test_a_url_that_is_too_long(http: HostHttp) -> None:
    with pytest.raises(BadUrl):
        await fetch(http, f"http://127.0.0.1/{'x' * 70_000}")


async def test_headers_that_make_no_request_are_not_repeated_in_its_failure(http: HostHttp) -> None:
    """The library shows them, and they may be secret."""
    async with web() as served:
        failed = await failure(http, served.url, headers=headers(("Host", "a"), ("Host", "b")))

    assert (failed.fault, failed.reason) == (HttpFault.SENDING, "the headers cannot be sent")


@pytest.mark.parametrize("raw", [b"", b"garbage\r\n\r\n", b"HTTP/1.1 099 X\r\n\r\n"])
async def test_an_answer_that_is_none(http: HostHttp, raw: bytes) -> None:
    async with web(x=raw) as served:
        assert (await failure(http, f"{served.url}/x")).fault is HttpFault.SENDING


def test_a_python_without_a_store_of_certificates_gets_one(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = SimpleNamespace(cafile=None, capath=None)
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: paths)

    network = Network(HttpLimits())

    assert network._tls.cert_store_stats()["x509_ca"] > 0
    assert network._tls.verify_mode is ssl.CERT_REQUIRED


async def test_tls_with_somebody_who_has_none(http: HostHttp) -> None:
    async with web() as served:
        server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            failed = await failure(http, f"https://127.0.0.1:{port}/")

    assert served.visits == []
    assert failed.fault is HttpFault.SENDING


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n",
    ],
)
async def test_a_body_that_breaks_off(http: HostHttp, raw: bytes) -> None:
    async with web(x=raw) as served:
        answer = await http.request(HttpRequest("GET", f"{served.url}/x"))
        assert await answer.read() == b"abc"
        with pytest.raises(HttpFailed) as caught:
            await answer.read()
        await answer.aclose()

    assert caught.value.fault is HttpFault.BODY
    assert caught.value.reason


async def test_a_body_that_is_cut_with_a_reset(http: HostHttp) -> None:
    async def answer(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n")
        got = visit.writer.get_extra_info("socket")
        got.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        visit.writer.transport.abort()

    async with web(x=answer) as served:
        failed = await failure(http, f"{served.url}/x")

    assert failed.fault in (HttpFault.BODY, HttpFault.SENDING)


# Time.


async def silent(visit: Visit) -> None:
    await visit.left()


async def test_a_head_that_takes_too_long(http: HostHttp) -> None:
    async with web(x=silent) as served:
        failed = await failure(http, f"{served.url}/x", timeout=0.1)
        await eventually(lambda: served.open == 0)

    assert (failed.fault, failed.reason) == (HttpFault.TIMEOUT, "timed out")


async def test_a_body_that_takes_too_long(http: HostHttp) -> None:
    """The time is that of the whole exchange; a body that goes on for ever ends with it."""

    async def answer(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")
        await visit.left()

    async with web(x=answer) as served:
        failed = await failure(http, f"{served.url}/x", timeout=0.2)
        await eventually(lambda: served.open == 0)

    assert failed.fault is HttpFault.BODY_TIMEOUT


async def test_no_time_at_all(http: HostHttp) -> None:
    async with web() as served:
        failed = await failure(http, served.url, timeout=0.0)

    assert failed.fault is HttpFault.NO_TIME
    assert served.visits == []


async def test_time_enough(http: HostHttp) -> None:
    async with web() as served:
        assert await fetch(http, served.url, timeout=1e9) == (200, b"hi")


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc"])
async def test_who_is_cancelled_leaves_no_connection(http: HostHttp, head: bytes) -> None:
    reached = asyncio.Event()

    async def answer(visit: Visit) -> None:
        await visit.send(head)
        reached.set()
        await visit.left()

    async with web(x=answer) as served:
        task = asyncio.create_task(fetch(http, f"{served.url}/x"))
        await asyncio.wait_for(reached.wait(), PATIENCE)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await eventually(lambda: served.open == 0)


# Bounds.


async def test_only_so_many_requests_at_once() -> None:
    """A response counts until it is closed: so long it has a socket."""
    async with web() as served, host_http(HttpLimits(requests=1)) as http:
        first = await http.request(HttpRequest("GET", served.url))
        with pytest.raises(LimitReached) as caught:
            await http.request(HttpRequest("GET", served.url))
        await first.aclose()
        assert await fetch(http, served.url) == (200, b"hi")

    assert (caught.value.limit, caught.value.value) == ("HTTP requests", 1)


async def test_headers_are_bounded_both_ways() -> None:
    long = "x" * 1000
    answer, limits = response(b"", f"x-long: {long}"), HttpLimits(header_bytes=1000)
    async with web(x=answer) as served, host_http(limits) as http:
        for request in (
            HttpRequest("GET", served.url, headers(("X-Long", long))),
            HttpRequest("GET", f"{served.url}/x"),
        ):
            with pytest.raises(LimitReached):
                await http.request(request)


async def test_a_head_without_end_is_given_up(http: HostHttp) -> None:
    async def answer(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\nx: ")
        while True:
            await visit.send(b"x" * 65_536)

    async with web(x=answer) as served:
        assert (await failure(http, f"{served.url}/x")).fault is HttpFault.SENDING


# Proxies.


async def through(
    monkeypatch: pytest.MonkeyPatch, served: Web, url: str, **variables: str
) -> tuple[int, bytes]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value.replace("PROXY", f"127.0.0.1:{served.port}"))
    http = HostHttp({}, asyncio.get_running_loop(), HttpLimits())
    try:
        return await fetch(http, url)
    finally:
        await http.aclose()


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
@pytest.mark.parametrize("value", ["http://PROXY", "PROXY"])
async def test_a_proxy_of_the_server_is_used(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    """A host behind a proxy has no other way out."""
    async with web() as served:
        await through(monkeypatch, served, "http://example.invalid/x", **{variable: value})

    assert served.visits[0].line == "GET http://example.invalid/x HTTP/1.1"


async def test_a_proxy_is_passed_by_where_the_server_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with web() as served, web() as direct:
        await through(monkeypatch, served, direct.url, HTTP_PROXY="http://PROXY", NO_PROXY="127.0.0.1")

    assert (len(served.visits), len(direct.visits)) == (0, 1)


@pytest.mark.parametrize("proxy", ["socks5://PROXY", "what://PROXY"])
async def test_a_proxy_that_cannot_be_used_is_said_to_be_one(
    monkeypatch: pytest.MonkeyPatch, proxy: str
) -> None:
    async with web() as served:
        with pytest.raises(HttpFailed) as caught:
            await through(monkeypatch, served, "http://example.invalid/", HTTP_PROXY=proxy)

    assert caught.value.reason.startswith("the proxy that the server is to use cannot be used")


async def test_closing_what_was_never_used_is_nothing() -> None:
    await HostHttp({}, asyncio.get_running_loop(), HttpLimits()).aclose()
