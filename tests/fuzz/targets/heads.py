"""Heads of HTTP: requests to a server, and the answer to a client that asks for a WebSocket."""

from __future__ import annotations

from http import HTTPStatus

from holdfast.server.routes import Routes, reply
from holdfast.wire.http import BadHead, Head, read_head
from holdfast.wire.websocket import ANSWER_LIMIT, NotUpgraded, accept_key, read_upgrade

from .draw import Draw, timed

KEY = "AAAAAAAAAAAAAAAAAAAAAA=="

FILLERS = (b"", b" ", b"x", b"\n", b"\r", b"9", b"a:b\n", b"\t ", b": ", b"\0")
"""What a case can have much of, without being long itself."""

MUCH = {1: 5000, 2: 60_000, 3: 70_000}
"""How many bytes, by the first one of the case: more than a number may have digits, nearly as much as a head
may have, and more than that."""

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"

REQUEST_SEEDS = (
    b"\0\0\0\0" + REQUEST + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: x\r\n\r\n",
    b"\0\0\0\0GET /readyz?x HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    b"\0\0\0\0HEAD http://a/healthz HTTP/1.1\nX:y\n\n",
    b"\0\0\0\0POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\nOrigin: x\r\n\r\nabcde",
    *(
        bytes((much, index, 0, at)) + b"GET / HTTP/1.1\r\na: xy\r\ncontent-length: 1\r\n\r\n"
        for index in range(10)
        for much, at in ((1, 40), (2, 20), (3, 16))
    ),
)
ANSWER_SEEDS = (
    b"\0\0\0\0HTTP/1.1 101 Switching\r\nSec-WebSocket-Accept: "
    + accept_key(KEY).encode()
    + b"\r\n\r\n\x81\0",
    b"\0\0\0\0HTTP/1.1 401 Unauthorized\r\n\r\nno token",
    b"\0\0\0\0HTTP/1.0 200\n\nhello",
    *(
        bytes((much, index, 0, 17)) + b"HTTP/1.1 403 No\r\na: x\r\n\r\n"
        for index in range(10)
        for much in MUCH
    ),
)


def _stretched(data: bytes) -> tuple[bytes, list[int]]:
    """The bytes of a case, and where to cut them."""
    draw = Draw(data)
    much, filler, at = (
        MUCH.get(draw.byte() % 32, 0),
        draw.pick(FILLERS),
        draw.below(256) << 8 | draw.below(256),
    )
    text = draw.rest()
    if much:
        at %= len(text) + 1
        text = text[:at] + filler * (much // max(1, len(filler))) + text[at:]
    return text, [at % (len(text) + 1), len(text) // 2, len(text) - 1]


def _request(data: bytes) -> tuple[Head, int] | HTTPStatus | None:
    try:
        return read_head(data)
    except BadHead as bad:
        return bad.status


def check_request(data: bytes) -> None:
    """A request is read, or refused, and either way does not depend on the packets it came in."""
    text, cuts = _stretched(data)
    whole = timed(lambda: _request(text))

    for cut in cuts:
        part = _request(text[: max(0, cut)])
        if isinstance(whole, tuple):
            assert part == (whole if cut >= whole[1] else None)
        elif whole is None:
            assert part is None
        elif part is not None:
            # The rest may show that the first line was not all that was too long.
            assert not isinstance(part, tuple)
    if isinstance(whole, tuple):
        head, end = whole
        assert 0 < end <= len(text)
        for routes in (Routes(healthz=True), Routes(healthz=False, any_path=True, refuse_origin=False)):
            _check_reply(head, routes)


def _check_reply(head: Head, routes: Routes) -> None:
    try:
        assert head.body_length >= 0
    except BadHead as bad:
        assert bad.status is HTTPStatus.BAD_REQUEST
    try:
        found = reply(head, routes)
    except BadHead as bad:
        assert bad.status is HTTPStatus.BAD_REQUEST
        return
    first, *fields = found.data.partition(b"\r\n\r\n")[0].split(b"\r\n")
    assert first.startswith(b"HTTP/1.")
    # Nothing of the request gets into the answer, so nobody can write headers of it.
    assert len(fields) <= 5
    assert len(found.data) < 500
    assert not (found.upgrade and found.close)


def _answer(data: bytes) -> int | str | None:
    try:
        return read_upgrade(data, KEY)
    except NotUpgraded as refusal:
        assert len(str(refusal)) < ANSWER_LIMIT + 80_000
        str(refusal).encode()
        return type(refusal).__name__


def check_answer(data: bytes) -> None:
    """An answer is ours, or a refusal, and a part of it is not taken for all of it."""
    text, cuts = _stretched(data)
    whole = timed(lambda: _answer(text))

    for cut in cuts:
        part = _answer(text[: max(0, cut)])
        if isinstance(whole, int):
            assert part == (whole if cut >= whole else None)
        elif whole is None:
            assert part is None
    if isinstance(whole, int):
        assert accept_key(KEY).encode() in text[:whole]
