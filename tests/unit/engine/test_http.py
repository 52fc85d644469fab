"""HTTP requests from this host: what goes out, what comes back, and that nothing is left open."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.engine.http import HostHttp
from holdfast.errors import BadHeader, HeaderFault, HttpFault
from holdfast.model import HttpHeader, HttpRequest
from tests.fakes.server import eventually
from tests.fakes.web import (
    HI,
    Visit,
    Web,
    body_of,
    failure,
    fetch,
    headers,
    host_http,
    response,
    web,
)


@pytest.fixture
async def http() -> AsyncIterator[HostHttp]:
    async with host_http() as made:
        yield made


# What goes out.


async def test_a_plain_request_has_two_headers_that_nobody_gave(http: HostHttp) -> None:
    """What clients of the reference do not send, its servers do not see: no agent, no encoding."""
    async with web() as served:
        assert await fetch(http, f"{served.url}/x?q=1#f") == (200, b"hi")

    [visit] = served.visits
    assert visit.line == "GET /x?q=1 HTTP/1.1"
    assert visit.headers == [("host", f"127.0.0.1:{served.port}"), ("accept", "*/*")]


async def test_headers_go_out_in_their_order_with_their_repeats(http: HostHttp) -> None:
    given = (("X-B", "1"), ("x-a", " é "), ("X-B", "3"), ("Accept", "q"), ("Host", "other"), ("X-E", ""))
    async with web() as served:
        await fetch(http, served.url, headers=headers(*given))

    # The host comes first, as HTTP wants it.
    expected = [("host", "other"), ("x-b", "1"), ("x-a", "é"), ("x-b", "3"), ("accept", "q"), ("x-e", "")]
    assert served.visits[0].headers == expected


@pytest.mark.parametrize("method", ["get", "FOO", "a-b!", "POST"])
async def test_a_method_goes_out_as_it_is(http: HostHttp, method: str) -> None:
    async with web() as served:
        await fetch(http, f"{served.url}/x", method)

    assert served.visits[0].line == f"{method} /x HTTP/1.1"
    assert served.visits[0].own_headers == []


async def test_connect_names_the_place_and_has_no_body(http: HostHttp) -> None:
    async with web() as served:
        served.routes[f"127.0.0.1:{served.port}"] = HI
        assert (await fetch(http, f"{served.url}/x", "CONNECT"))[0] == 200

    assert served.visits[0].line == f"CONNECT 127.0.0.1:{served.port} HTTP/1.1"


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_a_body_goes_out_with_its_length(http: HostHttp, method: str) -> None:
    async with web() as served:
        await fetch(http, served.url, method, body=b"hello")

    assert served.visits[0].body == b"hello"
    assert served.visits[0].own_headers == [("content-length", "5")]


async def test_a_body_can_be_sent_in_chunks(http: HostHttp) -> None:
    received = b""

    async def answer(visit: Visit) -> None:
        nonlocal received
        received = await visit.reader.readuntil(b"0\r\n\r\n")
        await visit.send(HI)

    async with web(x=answer) as served:
        given = headers(("Transfer-Encoding", "chunked"))
        await fetch(http, f"{served.url}/x", "POST", body=b"hello", headers=given)

    assert received == b"5\r\nhello\r\n0\r\n\r\n"


async def test_a_wrong_length_is_not_sent_as_half_a_body(http: HostHttp) -> None:
    """The reference cuts the body without a word."""
    async with web() as served:
        failed = await failure(
            http, served.url, method="PUT", body=b"hello", headers=headers(("Content-Length", "3"))
        )

    assert failed.fault is HttpFault.SENDING
    assert failed.reason == "the content-length is not that of the body"
    assert served.visits == []


async def test_a_user_in_the_url_becomes_a_header_and_stays_out_of_texts(http: HostHttp) -> None:
    async with web(cut=b"") as served:
        place = f"http://user:p%40@127.0.0.1:{served.port}"
        await fetch(http, f"{place}/x")
        failed = await failure(http, f"{place}/cut")
        await fetch(http, f"{place}/x", headers=headers(("Authorization", "own")))

    assert served.visits[0].own_headers == [("authorization", "Basic dXNlcjpwQA==")]
    assert served.visits[2].own_headers == [("authorization", "own")]
    assert failed.subject == f"{served.url}/cut"


async def test_a_large_body_arrives_whole(http: HostHttp) -> None:
    sent = os.urandom(5_000_000)
    async with web() as served:
        await fetch(http, served.url, "POST", body=sent)

    assert served.visits[0].body == sent


# Variables.


async def test_a_header_takes_its_value_from_a_variable(http: HostHttp) -> None:
    given = (HttpHeader("Authorization", "Bearer ", "TOKEN_X"), HttpHeader("X-W", "", "WORD"))
    async with web() as served:
        await fetch(http, served.url, headers=given)

    assert served.visits[0].own_headers == [("authorization", "Bearer s3cret"), ("x-w", "é")]


@pytest.mark.parametrize(
    ("variable", "fault"),
    [
        ("NOBODY", HeaderFault.MISSING),
        ("", HeaderFault.MISSING),
        ("A=B", HeaderFault.MISSING),
        ("BYTES", HeaderFault.MISSING),
        ("EMPTY", HeaderFault.EMPTY),
        ("LINES", HeaderFault.VALUE),
    ],
)
async def test_a_variable_that_cannot_be_sent_is_named_and_not_shown(
    http: HostHttp, variable: str, fault: HeaderFault
) -> None:
    with pytest.raises(BadHeader) as caught:
        await http.request(HttpRequest("GET", "http://127.0.0.1:1/", (HttpHeader("X-H", "", variable),)))

    assert caught.value.fault is fault
    assert "a\nb" not in str(caught.value)


async def test_a_secret_is_in_no_log_and_no_text(http: HostHttp, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with web(x=response(b"", "x-answer: answ3r"), cut=b"") as served:
        given = (HttpHeader("X-H", "", "TOKEN_X"),)
        await fetch(http, f"{served.url}/x", headers=given)
        failed = await failure(http, f"{served.url}/cut", headers=given)

    assert "s3cret" not in caplog.text + str(failed)
    assert "answ3r" not in caplog.text


# What comes back.


async def test_headers_come_back_in_lower_case_and_in_order(http: HostHttp) -> None:
    """One that is no text is left out, and so is nothing else."""
    raw = b"HTTP/1.1 200 OK\r\nX-B:  1 \r\nx-a: 2\r\nX-N: na\xefve\r\nX-B: 3\r\nContent-Length: 0\r\n\r\n"
    async with web(x=raw) as served:
        answer = await http.request(HttpRequest("GET", f"{served.url}/x"))
        await answer.aclose()
        await answer.aclose()

    assert answer.headers == [("x-b", "1"), ("x-a", "2"), ("x-b", "3"), ("content-length", "0")]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"HTTP/1.1 404 No\r\ncontent-length: 2\r\n\r\nno", (404, b"no")),
        (b"HTTP/1.1 999 X\r\ncontent-length: 0\r\n\r\n", (999, b"")),
        (b"HTTP/1.0 200 OK\r\n\r\nold", (200, b"old")),
        (b"HTTP/1.1 204 X\r\n\r\n", (204, b"")),
        (b"HTTP/1.1 103 Early\r\n\r\n" + HI, (200, b"hi")),
        (
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            (200, b"abcde"),
        ),
        (response(b"\x1f\x8bzipped", "content-encoding: gzip"), (200, b"\x1f\x8bzipped")),
        (b"HTTP/1.1 300 X\r\nlocation: /y\r\ncontent-length: 2\r\n\r\nrd", (300, b"rd")),
    ],
)
async def test_a_body_comes_back_as_it_is(http: HostHttp, raw: bytes, expected: tuple[int, bytes]) -> None:
    """Nothing is unpacked: the client sees how it is packed, and may want it so."""
    async with web(x=raw) as served:
        assert await fetch(http, f"{served.url}/x") == expected


async def test_a_body_comes_piece_by_piece(http: HostHttp) -> None:
    """A stream of events must not wait for its end."""
    more = asyncio.Event()

    async def answer(visit: Visit) -> None:
        await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nabc")
        await more.wait()
        await visit.send(b"def")

    async with web(x=answer) as served:
        got = await http.request(HttpRequest("GET", f"{served.url}/x"))
        assert await got.read() == b"abc"
        more.set()
        assert await body_of(got) == b"def"


async def test_a_body_that_nobody_reads_stays_with_its_sender(http: HostHttp) -> None:
    """Back-pressure reaches the other server: it can send what buffers hold, and no more."""
    sent = 0

    async def answer(visit: Visit) -> None:
        nonlocal sent
        visit.writer.transport.set_write_buffer_limits(0)
        await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 200000000\r\n\r\n")
        while True:
            await visit.send(b"x" * 65_536)
            sent += 65_536

    async with web(x=answer) as served:
        got = await http.request(HttpRequest("GET", f"{served.url}/x"))
        counts: list[int] = []

        def stands() -> bool:
            counts.append(sent)
            return len(counts) > 40 and len(set(counts[-40:])) == 1

        await eventually(stands)
        assert sent < 20_000_000
        await got.aclose()
        await eventually(lambda: served.open == 0)


# TLS.


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("openssl") is None, reason="nobody makes a certificate")
async def test_a_certificate_decides_whom_we_talk_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that the host knows is enough; one that nobody knows is a failure, with the reason."""
    key, certificate = str(tmp_path / "key"), str(tmp_path / "certificate")
    names = "subjectAltName=IP:127.0.0.1"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-addext", names]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    served = Web()
    async with await asyncio.start_server(served.serve, "127.0.0.1", 0, ssl=context) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        async with host_http() as stranger:
            failed = await failure(stranger, url)
        monkeypatch.setenv("SSL_CERT_FILE", certificate)
        async with host_http() as friend:
            assert await fetch(friend, url) == (200, b"hi")

    assert "certificate verify failed" in failed.reason
