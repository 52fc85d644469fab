"""The little HTTP of a WebSocket listener."""

from __future__ import annotations

from http import HTTPStatus

import pytest

from holdfast.wire.http import HEAD_LIMIT, BadHead, Head, answer, read_head


def head_of(text: str | bytes) -> Head:
    data = text if isinstance(text, bytes) else text.encode("latin-1")
    found = read_head(data)
    assert found is not None
    assert found[1] == len(data)
    return found[0]


def refusal(data: bytes) -> HTTPStatus:
    with pytest.raises(BadHead) as caught:
        read_head(data)
    return caught.value.status


REQUEST = b"GET /readyz?x=1 HTTP/1.1\r\nHost: a\r\nX-Two:  b \t\r\nx-two:c\r\nEmpty:\r\n\r\n"
HEAD = Head("GET", "/readyz?x=1", 1, {"host": "a", "x-two": "b, c", "empty": ""})


def test_a_request_is_read_with_where_it_ends() -> None:
    assert read_head(REQUEST + b"more") == (HEAD, len(REQUEST))
    assert read_head(bytearray(REQUEST)) == (HEAD, len(REQUEST))


def test_a_request_is_not_read_before_it_is_complete() -> None:
    for end in range(len(REQUEST)):
        assert read_head(REQUEST[:end]) is None


def test_lines_may_end_without_a_carriage_return_and_begin_after_blank_ones() -> None:
    assert head_of("\r\n\r\nGET / HTTP/1.0\nHost: x\n\n") == Head("GET", "/", 0, {"host": "x"})


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02",
        b"\x16\x03\x01\x02\x00",
        b"hello world\r\n",
        b"GET\r\n\r\n",
        b"GET /\r\n\r\n",
        b"GET / HTTP/3.0\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /a b HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : x\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\nA: b\0\r\n\r\n",
        b"GET / HTTP/1.1\r\n: x\r\n\r\n",
    ],
)
def test_what_is_no_request_is_refused(data: bytes) -> None:
    """At once: a client that speaks another protocol should not have to wait for a deadline."""
    assert refusal(data) is HTTPStatus.BAD_REQUEST


def fields(count: int) -> bytes:
    return b"".join(b"h%d: x\r\n" % index for index in range(count))


def test_a_request_may_have_a_hundred_fields() -> None:
    assert len(head_of(b"GET / HTTP/1.1\r\n" + fields(100) + b"\r\n").fields) == 100
    assert (
        refusal(b"GET / HTTP/1.1\r\n" + fields(101) + b"\r\n") is HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    )


def test_a_head_is_bounded_whether_it_ends_or_not() -> None:
    before, large = b"GET / HTTP/1.1\r\nA: ", b"x" * HEAD_LIMIT

    assert refusal(before + large) is HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    assert refusal(before + large + b"\r\n\r\n") is HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    assert head_of(before + b"x" * 60_000 + b"\r\n\r\n").fields == {"a": "x" * 60_000}


def test_a_request_line_over_the_bound_is_told_from_fields_over_it() -> None:
    """A client that reads 414 shortens its address."""
    data = b"GET /?" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n"

    assert refusal(data) is HTTPStatus.REQUEST_URI_TOO_LONG


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/", "/"),
        ("/?a=b", "/"),
        ("/readyz?x=1", "/readyz"),
        ("/readyz/", "/readyz/"),
        ("//readyz", "//readyz"),
        ("http://x/readyz", "/readyz"),
        ("https://x:1?q", "/"),
        ("http://x", "/"),
        ("*", "*"),
        ("a:1", "a:1"),
    ],
)
def test_the_path_is_the_target_without_host_and_query(target: str, path: str) -> None:
    assert Head("GET", target, 1, {}).path == path


@pytest.mark.parametrize(
    ("minor", "connection", "keeps"),
    [
        (1, None, True),
        (1, "close", False),
        (1, "Close", False),
        (1, "keep-alive", True),
        (0, None, False),
        (0, "Keep-Alive", True),
        (0, "close", False),
    ],
)
def test_a_connection_is_kept_as_version_and_client_say(
    minor: int, connection: str | None, *, keeps: bool
) -> None:
    head = Head("GET", "/", minor, {} if connection is None else {"connection": connection})

    assert head.keeps_alive is keeps


def test_the_length_of_a_body_is_known() -> None:
    assert Head("POST", "/", 1, {}).body_length == 0
    assert Head("POST", "/", 1, {"content-length": "12"}).body_length == 12


@pytest.mark.parametrize(
    "fields",
    [
        {"content-length": ""},
        {"content-length": "-1"},
        {"content-length": "x"},
        {"content-length": "²"},
        {"content-length": "1, 1"},
        {"content-length": "9" * 5000},
        {"transfer-encoding": "chunked"},
    ],
)
def test_a_body_of_unknown_length_is_refused(fields: dict[str, str]) -> None:
    """Two readers that see different ends of a request see different requests."""
    with pytest.raises(BadHead) as caught:
        _ = Head("POST", "/", 1, fields).body_length

    assert caught.value.status is HTTPStatus.BAD_REQUEST


def test_a_long_run_of_blanks_costs_no_more_than_other_bytes() -> None:
    """Nobody else is served while a head is read: at a minute each, a few requests would stop a server."""
    blanks = " " * (HEAD_LIMIT - 100)

    for _ in range(10):
        assert head_of(f"GET / HTTP/1.1\r\na:{blanks}x\r\nb: y \r\n\r\n").fields == {"a": "x", "b": "y"}
        assert head_of(f"GET / HTTP/1.1\r\na: x{blanks}x\r\n\r\n").fields == {"a": f"x{blanks}x"}


# Out.


def test_an_empty_answer_still_has_a_length() -> None:
    assert (
        answer(HTTPStatus.OK, date="D").decode() == "HTTP/1.1 200 OK\r\ncontent-length: 0\r\ndate: D\r\n\r\n"
    )


def test_an_answer_with_a_body_says_what_it_is() -> None:
    data = answer(
        HTTPStatus.METHOD_NOT_ALLOWED, b"no", fields={"allow": "GET"}, minor=0, connection="close", date="D"
    )

    assert data.decode() == (
        "HTTP/1.0 405 Method Not Allowed\r\nconnection: close\r\ncontent-type: text/plain; charset=utf-8\r\n"
        "allow: GET\r\ncontent-length: 2\r\ndate: D\r\n\r\nno"
    )


def test_a_head_announces_the_body_it_leaves_out() -> None:
    data = answer(HTTPStatus.BAD_REQUEST, b"why", only_head=True, date="D")

    assert data.decode() == (
        "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n"
        "content-length: 3\r\ndate: D\r\n\r\n"
    )


def test_a_change_of_protocols_has_no_length() -> None:
    data = answer(HTTPStatus.SWITCHING_PROTOCOLS, fields={"upgrade": "websocket"})

    assert data == b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n"


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (HTTPStatus.REQUEST_URI_TOO_LONG, "HTTP/1.1 414 URI Too Long"),
        (HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "HTTP/1.1 431 Request Header Fields Too Large"),
    ],
)
def test_a_status_has_the_phrase_of_today(status: HTTPStatus, line: str) -> None:
    assert answer(status).decode().splitlines()[0] == line
