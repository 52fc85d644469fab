"""Where to listen."""

from __future__ import annotations

import pytest

from holdfast.server.listen import (
    BadListen,
    Listen,
    Stdio,
    TcpListen,
    UnixListen,
    check_exposure,
    parse_listen,
)


@pytest.mark.parametrize(
    ("url", "listen"),
    [
        ("ws://127.0.0.1:0", TcpListen("127.0.0.1", 0)),
        ("ws://0.0.0.0:65535", TcpListen("0.0.0.0", 65_535)),
        ("ws://[::1]:8080", TcpListen("::1", 8080)),
        ("wss://127.0.0.1:0", TcpListen("127.0.0.1", 0, tls=True)),
        ("wss://[::1]:8080", TcpListen("::1", 8080, tls=True)),
        ("stdio", Stdio()),
        ("stdio://", Stdio()),
        ("unix:///run/x.sock", UnixListen("/run/x.sock")),
        ("unix://relative.sock", UnixListen("relative.sock")),
    ],
)
def test_a_url_says_where_to_listen(url: str, listen: Listen) -> None:
    assert parse_listen(url) == listen


@pytest.mark.parametrize(
    "url", ["", "http://127.0.0.1:1", "127.0.0.1:1", "WSS://127.0.0.1:1", "unix://", "off", "STDIO"]
)
def test_an_unknown_kind_of_url_is_refused(url: str) -> None:
    with pytest.raises(BadListen) as caught:
        parse_listen(url)

    assert str(caught.value) == (
        f"unsupported --listen URL `{url}`; expected `ws://IP:PORT`, `wss://IP:PORT`, `unix://PATH`"
        " or `stdio`"
    )


@pytest.mark.parametrize(
    "url",
    [
        "ws://",
        "ws://localhost:1",
        "ws://127.0.0.1",
        "ws://127.0.0.1:",
        "ws://127.0.0.1:x",
        "ws://127.0.0.1:65536",
        "ws://127.0.0.1:080",
        "ws://127.0.0.1:1/",
        "ws://127.0.0.1:1/path",
        "ws://user@127.0.0.1:1",
        "ws://::1:1",
        "ws://[::1",
        "ws://[127.0.0.1]:1",
        "ws://127.1:1",
    ],
)
def test_an_address_is_an_ip_and_a_port_and_nothing_else(url: str) -> None:
    """Names resolve to several addresses, or to none, or to others tomorrow."""
    with pytest.raises(BadListen) as caught:
        parse_listen(url)

    assert str(caught.value) == f"invalid websocket --listen URL `{url}`; expected `ws://IP:PORT`"


@pytest.mark.parametrize("url", ["wss://localhost:1", "wss://127.0.0.1", "wss://127.0.0.1:1/", "wss://"])
def test_the_same_holds_with_tls(url: str) -> None:
    with pytest.raises(BadListen) as caught:
        parse_listen(url)

    assert str(caught.value) == f"invalid websocket --listen URL `{url}`; expected `wss://IP:PORT`"


@pytest.mark.parametrize(
    ("tcp", "url"),
    [
        (TcpListen("127.0.0.1", 5), "ws://127.0.0.1:5"),
        (TcpListen("::1", 5), "ws://[::1]:5"),
        (TcpListen("::1", 5, tls=True), "wss://[::1]:5"),
    ],
)
def test_an_address_is_written_as_it_is_read(tcp: TcpListen, url: str) -> None:
    assert tcp.url == url
    assert parse_listen(url) == tcp


@pytest.mark.parametrize(
    "listen",
    [TcpListen("127.0.0.1", 1), TcpListen("127.9.9.9", 1), TcpListen("::1", 1), UnixListen("/x"), Stdio()],
)
def test_what_only_this_host_can_reach_is_let_through(listen: Listen) -> None:
    check_exposure(listen)


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        (TcpListen("0.0.0.0", 80), "0.0.0.0:80"),
        (TcpListen("::", 80), "[::]:80"),
        (TcpListen("10.0.0.1", 1), "10.0.0.1:1"),
    ],
)
def test_what_others_can_reach_is_refused_without_authentication(listen: Listen, address: str) -> None:
    """It would run any program for anybody."""
    with pytest.raises(BadListen) as caught:
        check_exposure(listen)

    assert str(caught.value) == (
        f"refusing to start non-loopback websocket listener {address} without auth;"
        " configure `--ws-auth capability-token` or `--ws-auth signed-bearer-token`,"
        " or listen on 127.0.0.1 or [::1] and reach it through a tunnel"
    )


@pytest.mark.parametrize(
    "listen", [TcpListen("0.0.0.0", 80), TcpListen("::", 80, tls=True), TcpListen("10.0.0.1", 1)]
)
def test_what_others_can_reach_is_let_through_if_they_are_asked_who_they_are(listen: Listen) -> None:
    check_exposure(listen, auth=True)


def test_a_certificate_says_who_we_are_and_not_who_they_are() -> None:
    with pytest.raises(BadListen):
        check_exposure(TcpListen("0.0.0.0", 80, tls=True))
