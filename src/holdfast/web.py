"""HTTP requests as far as they need no network: headers, URLs, the interface of whoever makes them (pure)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

from .errors import BadHeader, BadUrl, HeaderFault
from .model import HttpHeader, is_unicode

if TYPE_CHECKING:
    from .model import HttpRequest

# The interface.


class HttpResponse(Protocol):
    """The response to an HTTP request: its head is here, its body is still to come."""

    @property
    def status(self) -> int:
        """The status of the response; if redirects were followed, of the last one."""

    @property
    def headers(self) -> Sequence[tuple[str, str]]:
        """In the order in which they came; names in lower case, without values that are no ASCII text."""

    async def read(self) -> bytes:
        """The next bytes of the body as they are, without any decoding; nothing at its end.

        Nothing is received ahead of this but what fits into the buffer of a socket.
        Cancelling ends the response.

        Raises:
            HttpFailed: The body broke off, or took longer than the request's timeout.
        """

    async def aclose(self) -> None:
        """Let go of the response, read or not.  May be called twice."""


class Http(Protocol):
    """Makes HTTP requests from the host."""

    async def request(self, request: HttpRequest) -> HttpResponse:
        """Make a request and wait for the head of its response, which the caller has to close.

        Needs a task, because of the timeout.  Cancelling leaves no connection behind.

        Raises:
            BadHeader: A variable is not there, or has nothing that can be sent.
            BadUrl: The host has no such name as the URL says.
            HttpFailed: There is no response.
            LimitReached: As many requests are made as may be, or the headers are too long.
        """


# The rules.

FORBIDDEN_VARIABLES = frozenset(
    (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AZURE_CLIENT_SECRET",
        "AZURE_FEDERATED_TOKEN_FILE",
        "CODEX_ACCESS_TOKEN",
        "CODEX_API_KEY",
        "CODEX_CONNECTORS_TOKEN",
        "CODEX_EXEC_SERVER_NOISE_AUTH_TOKEN",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "OPENAI_API_KEY",
        "OPENAI_FEDERATION_RULE_ID",
        "OPENAI_IDENTITY_TOKEN_FILE",
        "OPENAI_WORKLOAD_IDENTITY_CONTEXT",
        "OTEL_EXPORTER_OTLP_HEADERS",
        "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
        "OTEL_EXPORTER_OTLP_METRICS_HEADERS",
        "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
    )
)
"""What no header gets, in whatever case it is spelled: credentials of the host and of those who run it."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FOREIGN_IN_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


def is_token(text: str) -> bool:
    """Whether it can be a method or the name of a header."""
    return _TOKEN.fullmatch(text) is not None


def check_header(header: HttpHeader) -> None:
    """Refuse what can be refused without the value of a variable.

    Raises:
        BadHeader: The name is none, the value cannot be sent, or the variable may not be used.
    """
    if not is_token(header.name):
        raise BadHeader(header.name, HeaderFault.NAME)
    if header.variable is None:
        check_value(header.name, header.value)
    elif header.variable.upper() in FORBIDDEN_VARIABLES:
        raise BadHeader(header.name, HeaderFault.FORBIDDEN, header.variable)


def check_value(name: str, value: str) -> None:
    """Refuse a value that would end its line, or is no text.

    Raises:
        BadHeader: It is such a value.
    """
    if _FOREIGN_IN_VALUE.search(value) or not is_unicode(value):
        raise BadHeader(name, HeaderFault.VALUE)


# URLs, as browsers and the reference read them: forgiving in form, strict about the host.

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_AROUND = "".join(map(chr, range(0x21)))
_FORBIDDEN_IN_HOST = re.compile(r"[\x00-\x20\x7f\"#%/:<>?@\[\\\]^`{|}]")
_PORTS = {"http": 80, "https": 443}


def scheme_of(text: str) -> str:
    """The scheme of an absolute URL, in lower case.

    Raises:
        BadUrl: There is none.
    """
    found = _SCHEME.match(_cleaned(text))
    if found is None:
        raise BadUrl("relative URL without a base")
    return found[1].lower()


def parse_url(text: str) -> str:
    """An http or https URL in its plain form: one spelling of the slashes, the host and the port.

    Characters that must be escaped are left to whoever sends it.

    Raises:
        BadUrl: It is none.
    """
    scheme = scheme_of(text)
    rest = _cleaned(text)[len(scheme) + 1 :]
    end = re.search(r"[?#]", rest)
    before, after = (rest, "") if end is None else (rest[: end.start()], rest[end.start() :])
    query, hash_, fragment = after.partition("#")
    after = query.replace("'", "%27") + hash_ + fragment
    authority, _, path = before.replace("\\", "/").lstrip("/").partition("/")
    user, at, place = authority.rpartition("@")
    host, port = _split_port(place)
    if not host:
        raise BadUrl("empty host")
    number = _port(port)
    shown = "" if number in (None, _PORTS.get(scheme)) else f":{number}"
    return f"{scheme}://{user}{at if user else ''}{_host(host)}{shown}/{path}{after}"


def _cleaned(text: str) -> str:
    return re.sub(r"[\t\n\r]", "", text.strip(_AROUND))


def _split_port(place: str) -> tuple[str, str]:
    if place.startswith("["):
        host, bracket, port = place.partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise BadUrl("invalid IPv6 address")
        return host + bracket, port[1:]
    host, _, port = place.partition(":")
    return host, port


def _port(digits: str) -> int | None:
    if not digits:
        return None
    if not (digits.isascii() and digits.isdecimal() and len(digits.lstrip("0")) <= 5):
        raise BadUrl("invalid port number")
    number = int(digits)
    if number > 65_535:
        raise BadUrl("invalid port number")
    return number


def _host(text: str) -> str:
    if text.startswith("["):
        try:
            return f"[{IPv6Address(text[1:-1])}]"
        except AddressValueError:
            raise BadUrl("invalid IPv6 address") from None
    host = unquote(text, errors="surrogateescape").lower()
    if _FORBIDDEN_IN_HOST.search(host) or not is_unicode(host):
        raise BadUrl("invalid international domain name")
    labels = host.removesuffix(".").split(".")
    if "xn--" in labels:
        raise BadUrl("invalid international domain name")
    if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]):
        return _ipv4(labels)
    return host


def _ipv4(parts: list[str]) -> str:
    """An address in the forms of old: octal, hexadecimal, and with the last numbers taken together."""
    try:
        numbers = [_number(part) for part in parts]
        last = numbers.pop()
        if len(numbers) > 3 or any(number > 255 for number in numbers) or last >= 256 ** (4 - len(numbers)):
            raise ValueError(parts)
    except ValueError:
        raise BadUrl("invalid IPv4 address") from None
    for index, number in enumerate(numbers):
        last += number << 8 * (3 - index)
    return str(IPv4Address(last))


def _number(text: str) -> int:
    if len(text) > 16:
        raise ValueError(text)  # No part of an address is that large, and digits beyond count cost time.
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8 if len(text) > 1 and text.startswith("0") else 10)
