"""WebSocket: frames of both sides, and how a client asks for it (RFC 6455; pure).

What must hold: a frame is judged by its header alone, before its payload is
there, so that nobody makes us collect what we will refuse.
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
from collections.abc import Callable, Iterator
from enum import IntEnum
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, Final

from holdfast.wording import counted

# Masking.  A compiled routine does it.  Until it is wanted, or for the first small messages, integers do.

_SMALL = 512
"""Bytes from which the compiled routine is worth its import at once."""

Unmask = Callable[[memoryview | bytes, bytes], bytes]


def _with_integers(data: memoryview | bytes, key: bytes) -> bytes:
    size = len(data)
    if size > _SMALL:
        load()
        return unmask(data, key)
    mask = (key * (size // 4 + 1))[:size]
    return (int.from_bytes(data, "little") ^ int.from_bytes(mask, "little")).to_bytes(size, "little")


unmask: Unmask = _with_integers
"""The data as it was before the client masked it.  Look it up at every use: ``load`` replaces it."""


def load() -> None:
    """Have the compiled routine from now on."""
    global unmask
    unmask = _speedups().apply_mask


def _speedups() -> ModuleType:
    """Import the one compiled module without its package, which imports fifty others: 2.6 MiB."""
    name = "websockets.speedups"
    package = find_spec("websockets")
    found = package and PathFinder.find_spec(name, package.submodule_search_locations)
    if found is None or found.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


_ACCEPT_SALT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


# What a frame is.  Plain numbers: an enum costs more than the rest of a small frame.
CONTINUATION: Final = 0
TEXT: Final = 1
BINARY: Final = 2
CLOSE: Final = 8
PING: Final = 9
PONG: Final = 10

_KNOWN = frozenset((CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG))


class CloseCode(IntEnum):
    """Why a connection ends."""

    NORMAL = 1000
    GOING_AWAY = 1001
    PROTOCOL_ERROR = 1002
    NO_STATUS = 1005
    INVALID_TEXT = 1007
    POLICY_VIOLATION = 1008
    TOO_BIG = 1009
    INTERNAL_ERROR = 1011


class Violation(Exception):
    """The peer broke the rules; the connection ends with this code and reason."""

    def __init__(self, code: CloseCode, reason: str, *, limit: str = "") -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason
        self.limit = limit
        """The limit that it is over, if it is one."""


def accept_key(key: str) -> str:
    """The proof that we read the client's upgrade request."""
    digest = hashlib.sha1(key.encode("latin-1") + _ACCEPT_SALT, usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


# Out.


def header(op: int, length: int, *, final: bool = True) -> bytes:
    """What comes before a payload of ``length`` bytes."""
    first = op | 0x80 if final else op
    if length < 126:
        return bytes((first, length))
    if length < 65_536:
        return b"%c\x7e%c%c" % (first, length >> 8, length & 0xFF)
    return b"%c\x7f%b" % (first, length.to_bytes(8, "big"))


SHORT_TEXT: Final = tuple(header(TEXT, length) for length in range(126))
"""The headers of short text messages, by their length."""


def client_header(op: int, length: int) -> bytes:
    """What a client puts before a whole message of ``length`` bytes.

    Clients have to mask what they send, so that web pages cannot make a proxy on the
    way take it for something else.  We are no web page: the key is zero, and the
    payload stays as it is.
    """
    first, second, *rest = header(op, length)
    return bytes((first, second | 0x80, *rest, 0, 0, 0, 0))


def close_payload(code: CloseCode, reason: str) -> bytes:
    """What is in a close frame; the reason is cut to what fits, between characters."""
    return code.to_bytes(2, "big") + reason.encode()[:123].decode(errors="ignore").encode()


def fragments(data: bytes, most: int, *, first: bool, last: bool) -> Iterator[tuple[bytes, bytes]]:
    """Headers and payloads of what a text message begins, goes on or ends with, ``most`` bytes each."""
    for at in range(0, len(data), most):
        part = data[at : at + most]
        op = CONTINUATION if at or not first else TEXT
        yield header(op, len(part), final=last and at + most >= len(data)), part


def close_frame(code: CloseCode, reason: str) -> bytes:
    """A close frame of a server."""
    payload = close_payload(code, reason)
    return header(CLOSE, len(payload)) + payload


# In.

_COPIED = 16 * 1024
"""Bytes up to which what was received is copied before it is read: parts of a copy cost less than views."""

_SHORT_FRAME = 4096
"""Bytes of a frame that is looked for as a whole."""

_MASKING = {4: "frames from a client must be masked", 0: "frames from a server must not be masked"}


class FrameReader:
    """Turns bytes into frames of control and whole messages."""

    __slots__ = ("_key", "_limit", "_message", "_op", "_partial", "left", "parsed")

    def __init__(self, limit: int, *, masked: bool = True) -> None:
        """
        Args:
            limit: Bytes of a message, over all its frames.  One frame may have as many.
            masked: Whose frames these are: those of clients are masked, those of servers are not.
        """
        self._key = 4 if masked else 0  # Bytes of it.
        self.parsed = 0
        """How much of what was given last is done with."""
        self.left = False
        """Whether there may be more frames in it than were asked for."""
        self._limit = limit
        # Made when first needed: an idle connection holds neither.
        self._partial: bytearray | None = None
        self._message: bytearray | None = None
        self._op = TEXT

    def whole(self, data: memoryview) -> bytes | None:
        """The text if ``data`` is one short text message of a client, from its first byte to its last.

        That is what most reads of a socket give.  None for anything else, which is left to ``feed``.
        """
        if self._partial is not None or self._message is not None or not 6 <= len(data) < _SHORT_FRAME:
            return None
        frame = bytes(data)
        length = frame[1] - 0x80
        start = 6
        if length == 126:
            length, start = frame[2] << 8 | frame[3], 8
        elif length > 126:
            return None
        # If it is not masked, its length is negative.
        if frame[0] != 0x81 or start + length != len(frame) or length > self._limit:
            return None
        text = unmask(frame[start:], frame[start - 4 : start])
        return text if text.isascii() else _checked(TEXT, text)

    def feed(self, data: memoryview, most: int = sys.maxsize) -> Iterator[tuple[int, Any]]:
        """What ``data`` completes: messages as TEXT or BINARY, and control frames.

        ``data`` is not kept.  The iterator must be exhausted before the next call.

        No more than ``most`` frames are looked at, those included that complete nothing.  If that
        was not all, ``left`` is set, and the next call goes on there; it may bring nothing new.

        The frames of a server are read where they are: a message is a part of ``data``
        then, and not looked at; what is behind ``parsed`` has to be given again.

        Raises:
            Violation: The peer broke the rules.
        """
        view: memoryview | bytes = data
        if self._partial is not None:
            self._partial += data
            view = memoryview(self._partial)
        at, size, key, limit = 0, len(view), self._key, self._limit
        masked = key != 0
        if masked and size <= _COPIED:
            view = bytes(view)
        while most > 0 and size - at >= 2:
            first, second = view[at], view[at + 1]
            length, start = second & 0x7F, at + 2 + key
            if length == 126:
                if size - at < 4:
                    break
                length, start = view[at + 2] << 8 | view[at + 3], at + 4 + key
            elif length == 127:
                if size - at < 10:
                    break
                length, start = int.from_bytes(view[at + 2 : at + 10], "big"), at + 10 + key
            # A whole text message, masked or not as it has to be, needs no judging: nearly all are.
            odd = first != 0x81 or (second >= 0x80) is not masked
            if odd or length > limit or self._message is not None:
                self._judge(first, second, length)
            end = start + length
            if end > size:
                break
            at = end
            most -= 1
            op = first & 0x0F
            if key:
                payload = unmask(view[start:end], bytes(view[start - 4 : start]))
            elif first & 0x80 and op < CLOSE and self._message is None:
                self.parsed = at
                yield op, view[start:end]
                continue
            else:
                payload = bytes(view[start:end])
            if op >= CLOSE:
                yield op, payload
            elif first & 0x80 and self._message is None:
                yield op, payload if payload.isascii() else _checked(op, payload)
            else:
                yield from self._fragment(op, payload, final=bool(first & 0x80))
        self.parsed = at
        self.left = most <= 0 and size - at >= 2
        if masked:
            self._keep(view[at:])

    def _keep(self, rest: memoryview | bytes) -> None:
        if not rest:
            self._partial = None
        elif self._partial is None or len(rest) != len(self._partial):
            self._partial = bytearray(rest)

    def _judge(self, first: int, second: int, length: int) -> None:
        """Refuse a frame that may not be here."""
        if first & 0x70:
            raise Violation(CloseCode.PROTOCOL_ERROR, "reserved bits are set")
        if bool(second & 0x80) is not bool(self._key):
            raise Violation(CloseCode.PROTOCOL_ERROR, _MASKING[self._key])
        op = first & 0x0F
        if op not in _KNOWN:
            raise Violation(CloseCode.PROTOCOL_ERROR, f"unknown opcode {op}")
        if op >= CLOSE:
            if length > 125 or not first & 0x80:
                raise Violation(CloseCode.PROTOCOL_ERROR, "a control frame is too long or fragmented")
            return
        if (op == CONTINUATION) is (self._message is None):
            raise Violation(CloseCode.PROTOCOL_ERROR, "fragments are out of order")
        if (0 if self._message is None else len(self._message)) + length > self._limit:
            reason = f"message is over the limit of {counted(self._limit, 'byte')}"
            raise Violation(CloseCode.TOO_BIG, reason, limit="connection.message_bytes")

    def _fragment(self, op: int, payload: bytes, *, final: bool) -> Iterator[tuple[int, bytes]]:
        if self._message is None:
            self._op, self._message = op, bytearray()
        # Joined at once: a message may come in millions of fragments, and an object for each costs far more.
        self._message += payload
        if final:
            whole, self._message = bytes(self._message), None
            yield self._op, _checked(self._op, whole)


def _checked(op: int, payload: bytes) -> bytes:
    if op == TEXT and not payload.isascii():
        try:
            payload.decode()
        except UnicodeDecodeError:
            raise Violation(CloseCode.INVALID_TEXT, "a text message is not UTF-8") from None
    return payload


def close_reason(payload: bytes) -> CloseCode | int:
    """The code in a peer's close frame.

    Raises:
        Violation: The frame is ill-formed.
    """
    if not payload:
        return CloseCode.NO_STATUS
    code = int.from_bytes(payload[:2], "big")
    if len(payload) == 1 or not (1000 <= code <= 1003 or 1007 <= code <= 1014 or 3000 <= code <= 4999):
        raise Violation(CloseCode.PROTOCOL_ERROR, "ill-formed close frame")
    _checked(TEXT, payload[2:])
    return code


# How a client asks for a WebSocket, and what it is told.

ANSWER_LIMIT = 65_536
"""Bytes; a longer answer is none to a request like ours."""

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})(?: ([^\r\n]*))?")


class NotUpgraded(Exception):
    """The server does not speak WebSocket here; ``str`` of this says what it answered."""

    def __init__(self, words: str, *, status: int | None = None, body: str = "") -> None:
        super().__init__(words)
        self.status = status
        """The status of its answer; None if that is no HTTP."""
        self.body = body
        """The beginning of what it says of the reason."""


class UpgradeDenied(NotUpgraded):
    """The server will not have us, now or later: the token is missing or wrong."""


def upgrade_request(authority: str, path: str, key: str, *, token: str | None = None) -> bytes:
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


def read_upgrade(data: bytes | bytearray, key: str) -> int | None:
    """How long the answer at the beginning of ``data`` is; None if that is not all of it.

    Raises:
        NotUpgraded: It is a refusal, or no answer to this request.
    """
    end = _HEAD_END.search(data)
    if end is None:
        if len(data) > ANSWER_LIMIT:
            raise NotUpgraded("it does not answer in HTTP")
        return None
    first, *rest = re.split(rb"\r?\n", bytes(data[: end.start()]))
    status = _STATUS.fullmatch(first)
    if status is None:
        raise NotUpgraded("it does not answer in HTTP")
    if status[1] != b"101":
        reason = (status[2] or b"").decode("latin-1")
        body = bytes(data[end.end() :]).decode("latin-1").strip()
        kind = UpgradeDenied if status[1] in (b"401", b"403") else NotUpgraded
        words = f"HTTP {status[1].decode()} {reason}".strip() + (f": {body[:200]}" if body else "")
        raise kind(words, status=int(status[1]), body=body[:200])
    fields = {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in rest)
    }
    if fields.get(b"sec-websocket-accept", b"").decode("latin-1") != accept_key(key):
        raise NotUpgraded("its answer is to somebody else's request")
    return end.end()
