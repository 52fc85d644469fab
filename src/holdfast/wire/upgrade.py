"""How a client asks for a WebSocket, and what it is told (pure)."""

from __future__ import annotations

import re

from .websocket import accept_key

HEAD_LIMIT = 65_536
"""Bytes; a longer answer is none to a request like ours."""

_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: ([^\r\n]*))?")
_END = re.compile(rb"\r?\n\r?\n")


class NotUpgraded(Exception):
    """The server does not speak WebSocket here; ``str`` of this says what it answered."""


class Denied(NotUpgraded):
    """The server will not have us, now or later: the token is missing or wrong."""


def request(authority: str, path: str, key: str, *, token: str | None = None) -> bytes:
    """The request for a WebSocket."""
    fields = {
        "Host": authority,
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Key": key,
        "Sec-WebSocket-Version": "13",
    }
    if token is not None:
        fields["Authorization"] = f"Bearer {token}"
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def read_answer(data: bytes | bytearray, key: str) -> int | None:
    """How long the answer at the beginning of ``data`` is; None if that is not all of it.

    Raises:
        NotUpgraded: It is a refusal, or no answer to this request.
    """
    end = _END.search(data)
    if end is None:
        if len(data) > HEAD_LIMIT:
            raise NotUpgraded("it does not answer in HTTP")
        return None
    first, *rest = re.split(rb"\r?\n", bytes(data[: end.start()]))
    status = _STATUS.fullmatch(first)
    if status is None:
        raise NotUpgraded("it does not answer in HTTP")
    if status[1] != b"101":
        reason = (status[2] or b"").decode("latin-1")
        body = bytes(data[end.end() :]).decode("latin-1").strip()
        kind = Denied if status[1] in (b"401", b"403") else NotUpgraded
        raise kind(f"HTTP {status[1].decode()} {reason}".strip() + (f": {body[:200]}" if body else ""))
    fields = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in rest)
    }
    if fields.get(b"sec-websocket-accept", b"").decode("latin-1") != accept_key(key):
        raise NotUpgraded("its answer is to somebody else's request")
    return end.end()
