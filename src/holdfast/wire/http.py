"""The little HTTP that WebSockets need: requests and answers, of a listener and of a client (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus

from holdfast.value import value

HEAD_LIMIT = 64 * 1024
"""Bytes of a request's head: far more than a client's, far less than a burden."""

MOST_FIELDS = 100

_MOST_DIGITS = 19
"""Digits of a content length; nobody could send as many bytes as a longer number says."""

_REQUEST_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e\x80-\xff]+) HTTP/1\.([01])")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)", re.DOTALL)
_END = re.compile(rb"\r?\n\r?\n")


class BadHead(Exception):
    """The bytes are no request we can read; answered with ``status``, then the end."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status)
        self.status = status


@value
class Head:
    """The head of a request."""

    method: str
    target: str
    minor: int
    """The version is HTTP/1.``minor``."""
    fields: Mapping[str, str]
    """Names in lower case; of a repeated field all values, joined by commas."""

    @property
    def path(self) -> str:
        """The target without its query, and without the host a proxy may have put there."""
        path = re.sub(r"^https?://[^/?]*", "", self.target)
        return path.partition("?")[0] or "/"

    @property
    def keeps_alive(self) -> bool:
        options = self.fields.get("connection", "").lower()
        return "close" not in options if self.minor else "keep-alive" in options

    @property
    def body_length(self) -> int:
        """Bytes that follow the head; a body of unknown length is refused."""
        if "transfer-encoding" in self.fields:
            raise BadHead(HTTPStatus.BAD_REQUEST)
        length = self.fields.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or len(length) > _MOST_DIGITS:
            raise BadHead(HTTPStatus.BAD_REQUEST)
        return int(length)


def read_head(data: bytes | bytearray) -> tuple[Head, int] | None:
    """The request at the start of ``data`` and where its head ends; None if more is needed.

    Raises:
        BadHead: This will never be a request.
    """
    start = len(data) - len(data.lstrip(b"\r\n"))
    end = _END.search(data, start)
    if end is None:
        if len(data) > HEAD_LIMIT:
            raise BadHead(_too_large(data))
        # A first line that is none needs no waiting for the rest.
        line, ended, _ = bytes(data[start:]).partition(b"\n")
        if (ended and not _REQUEST_LINE.fullmatch(line.rstrip(b"\r"))) or (line and line[0] < 0x21):
            raise BadHead(HTTPStatus.BAD_REQUEST)
        return None
    if end.start() > HEAD_LIMIT:
        raise BadHead(_too_large(data))
    first, *rest = re.split(rb"\r?\n", bytes(data[start : end.start()]))
    request = _REQUEST_LINE.fullmatch(first)
    if request is None:
        raise BadHead(HTTPStatus.BAD_REQUEST)
    method, target, minor = request.groups()
    return Head(method.decode(), target.decode("latin-1"), int(minor), _fields(rest)), end.end()


def _too_large(data: bytes | bytearray) -> HTTPStatus:
    """What is too large: the first line or the rest."""
    line_end = data.find(b"\n")
    if 0 <= line_end <= HEAD_LIMIT:
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    return HTTPStatus.REQUEST_URI_TOO_LONG


def _fields(lines: list[bytes]) -> dict[str, str]:
    if len(lines) > MOST_FIELDS:
        raise BadHead(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
    fields: dict[str, str] = {}
    for line in lines:
        field = _FIELD.fullmatch(line)
        if field is None or b"\0" in line:
            raise BadHead(HTTPStatus.BAD_REQUEST)
        # Not in the pattern: that would look at a long run of blanks once for each of them.
        name, value = field[1].decode().lower(), field[2].strip(b" \t").decode("latin-1")
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


def answer(
    status: HTTPStatus,
    body: bytes = b"",
    *,
    fields: Mapping[str, str] | None = None,
    only_head: bool = False,
    minor: int = 1,
    connection: str | None = None,
    date: str = "",
) -> bytes:
    """A whole answer.  ``only_head`` is for HEAD: the body is announced, not sent."""
    lines = [f"HTTP/1.{minor} {status.value} {_PHRASES.get(status, status.phrase)}"]
    if connection is not None:
        lines.append(f"connection: {connection}")
    if body and "content-type" not in (fields or {}):
        lines.append("content-type: text/plain; charset=utf-8")
    lines += [f"{name}: {value}" for name, value in (fields or {}).items()]
    if status is not HTTPStatus.SWITCHING_PROTOCOLS:
        lines.append(f"content-length: {len(body)}")
    if date:
        lines.append(f"date: {date}")
    head = "\r\n".join(lines).encode() + b"\r\n\r\n"
    return head if only_head else head + body


_PHRASES = {HTTPStatus.REQUEST_URI_TOO_LONG: "URI Too Long"}
