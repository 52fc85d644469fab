"""The URLs of servers."""

from __future__ import annotations

import pytest

from holdfast.client.address import Address, Program, TcpAddress, UnixAddress, parse
from holdfast.errors import BadRequest


@pytest.mark.parametrize(
    ("url", "address", "shown"),
    [
        ("ws://localhost:7000", TcpAddress("localhost", 7000), "ws://localhost:7000"),
        ("ws://h", TcpAddress("h", 80), "ws://h:80"),
        ("wss://h", TcpAddress("h", 443, secure=True), "wss://h:443"),
        ("WS://H:1/", TcpAddress("h", 1), "ws://h:1"),
        ("ws://h:1/a/b?c=d", TcpAddress("h", 1, "/a/b?c=d"), "ws://h:1/a/b?c=d"),
        ("ws://[::1]:7000", TcpAddress("::1", 7000), "ws://[::1]:7000"),
        ("unix:///run/x.sock", UnixAddress("/run/x.sock"), "unix:///run/x.sock"),
        ("unix://x y", UnixAddress("x y"), "unix://x y"),
        ("stdio:ssh host 'a b'", Program(("ssh", "host", "a b")), "stdio:ssh host 'a b'"),
        ("stdio://holdfast serve", Program(("holdfast", "serve")), "stdio:holdfast serve"),
    ],
)
def test_a_url_names_a_server(url: str, address: Address, shown: str) -> None:
    assert parse(url) == address
    assert str(address) == shown


def test_the_name_in_a_request_has_brackets_if_it_needs_them() -> None:
    assert TcpAddress("::1", 7).authority == "[::1]:7"
    assert TcpAddress("h", 7).authority == "h:7"


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost:7000",
        "http://h",
        "ws://",
        "ws:///path",
        "ws://h:99999",
        "ws://h:x",
        "ws://[::1",
        "ws://me:secret@h",
        "ws://me@h",
        "ws://h/snow☃",
        "ws://h/a b",
        "unix://",
        "stdio:",
        "stdio: ",
        "stdio:'half",
    ],
)
def test_what_names_no_server_is_refused_with_its_field(url: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse(url)

    assert caught.value.field == "url"
    assert "secret" not in str(caught.value)
