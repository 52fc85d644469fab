"""HTTP requests: URLs as browsers read them, headers that may be sent."""

from __future__ import annotations

import pytest

from holdfast.errors import BadHeader, BadUrl, HeaderFault
from holdfast.model import HttpHeader
from holdfast.web import (
    FORBIDDEN_VARIABLES,
    check_header,
    check_value,
    is_token,
    parse_url,
    scheme_of,
)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://host", "http://host/"),
        ("HTTP://HOST/A", "http://host/A"),
        (" http://host/\n", "http://host/"),
        ("ht\ttp://ho\nst/", "http://host/"),
        ("http:host/x", "http://host/x"),
        ("http:///host/x", "http://host/x"),
        ("http:\\\\host\\x?a\\b", "http://host/x?a\\b"),
        ("http://host?q", "http://host/?q"),
        ("http://host#f", "http://host/#f"),
        ("http://host/p?q='1'#'f'", "http://host/p?q=%271%27#'f'"),
        ("http://host:80/", "http://host/"),
        ("https://host:443/", "https://host/"),
        ("https://host:80/", "https://host:80/"),
        ("http://host:/", "http://host/"),
        ("http://host:0080/", "http://host/"),
        ("http://host:65535/", "http://host:65535/"),
        ("http://user:p%40@host/", "http://user:p%40@host/"),
        ("http://a@b@host/", "http://a@b@host/"),
        ("http://@host/", "http://host/"),
        ("http://%68ost/", "http://host/"),
        ("http://host./", "http://host./"),
        ("http://a_b/", "http://a_b/"),
        ("http://bücher.example/", "http://bücher.example/"),
        ("http://[0:0::1]:8/", "http://[::1]:8/"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://0x7f.0.0.010/", "http://127.0.0.8/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://0x/", "http://0.0.0.0/"),
        ("http://1.2.3.4./", "http://1.2.3.4/"),
    ],
)
def test_a_url_is_read_as_browsers_read_it(text: str, url: str) -> None:
    """Clients of the reference send what its parser forgives."""
    assert parse_url(text) == url


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "relative URL without a base"),
        ("foo", "relative URL without a base"),
        ("//host/x", "relative URL without a base"),
        ("ht tp://host", "relative URL without a base"),
        ("1http://host", "relative URL without a base"),
        ("http:", "empty host"),
        ("http://", "empty host"),
        ("http://:80/", "empty host"),
        ("http://@/", "empty host"),
        ("http://[::1", "invalid IPv6 address"),
        ("http://[zz]/", "invalid IPv6 address"),
        ("http://[::1]x/", "invalid IPv6 address"),
        ("http://host:99999/", "invalid port number"),
        ("http://host:123456789012345678/", "invalid port number"),
        ("http://host:x/", "invalid port number"),
        ("http://host:٣/", "invalid port number"),
        ("http://a b/", "invalid international domain name"),
        ("http://a<b/", "invalid international domain name"),
        ("http://a%zz/", "invalid international domain name"),
        ("http://a%00/", "invalid international domain name"),
        ("http://%ff/", "invalid international domain name"),
        ("http://xn--/", "invalid international domain name"),
        ("http://\ud800/", "invalid international domain name"),
        ("http://1.2.3.4.5/", "invalid IPv4 address"),
        ("http://256.1.1.1/", "invalid IPv4 address"),
        ("http://1.2.3.256/", "invalid IPv4 address"),
        ("http://x.1/", "invalid IPv4 address"),
        ("http://1.08/", "invalid IPv4 address"),
        ("http://" + "9" * 5000 + "/", "invalid IPv4 address"),
    ],
)
def test_what_is_no_url_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(BadUrl) as caught:
        parse_url(text)

    assert str(caught.value) == reason


def test_the_scheme_is_known_before_the_rest() -> None:
    """A URL that is not ours is refused for what it is, not for its parts."""
    assert scheme_of(" FTP:what ever") == "ftp"


def test_a_method_or_name_is_a_token() -> None:
    assert all(map(is_token, ("GET", "get", "a-b!", "X_1")))
    assert not any(map(is_token, ("", "G ET", "é", "a:", "GET\n")))


@pytest.mark.parametrize(
    ("header", "fault"),
    [
        (HttpHeader("", "x"), HeaderFault.NAME),
        (HttpHeader("a b", "x"), HeaderFault.NAME),
        (HttpHeader("a b", "x", "OPENAI_API_KEY"), HeaderFault.NAME),
        (HttpHeader("a", "x\ny"), HeaderFault.VALUE),
        (HttpHeader("a", "x\0"), HeaderFault.VALUE),
        (HttpHeader("a", "\x7f"), HeaderFault.VALUE),
        (HttpHeader("a", "\udcff"), HeaderFault.VALUE),
        *((HttpHeader("a", "", name), HeaderFault.FORBIDDEN) for name in sorted(FORBIDDEN_VARIABLES)),
        (HttpHeader("a", "", "openai_api_key"), HeaderFault.FORBIDDEN),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused(header: HttpHeader, fault: HeaderFault) -> None:
    """A line break in a value would be a header that nobody gave; some variables are not the client's."""
    with pytest.raises(BadHeader) as caught:
        check_header(header)

    assert (caught.value.name, caught.value.fault) == (header.name, fault)


def test_a_header_that_can_be_sent_is_not_refused() -> None:
    check_header(HttpHeader("X-A", " é\t~"))
    check_header(HttpHeader("X-A", "", "NODE_REPL_AUTH_TOKEN"))
    check_value("X-A", "")
