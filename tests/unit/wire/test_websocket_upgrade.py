"""How a client asks for a WebSocket, and what it makes of the answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.wire.websocket import (
    ANSWER_LIMIT,
    NotUpgraded,
    UpgradeDenied,
    accept_key,
    read_upgrade,
    upgrade_request,
)

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
PROOF = accept_key(KEY).encode()
GRANTED = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: %b\r\n\r\n" % PROOF
)


def test_the_request_is_what_the_standard_wants() -> None:
    assert upgrade_request("h:7", "/a?b", KEY) == (
        b"GET /a?b HTTP/1.1\r\n"
        b"Host: h:7\r\n"
        b"Upgrade: websocket\r\n"
        b"Connection: Upgrade\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        b"Sec-WebSocket-Version: 13\r\n\r\n"
    )


def test_a_token_is_sent_as_a_bearer() -> None:
    assert b"\r\nAuthorization: Bearer t0k\r\n" in upgrade_request("h", "/", KEY, token="t0k")


@pytest.mark.parametrize(
    "answer",
    [
        GRANTED,
        GRANTED.replace(b"\r\n", b"\n"),
        GRANTED.replace(b"Sec-WebSocket-Accept: ", b"SEC-WEBSOCKET-ACCEPT:   "),
        GRANTED.replace(b" Switching Protocols", b""),
        GRANTED.replace(b"HTTP/1.1", b"HTTP/1.0"),
        GRANTED.replace(b"\r\n\r\n", b"\r\nno colon\r\nempty:\r\n\r\n"),
    ],
)
def test_a_granted_request_is_as_long_as_its_head(answer: bytes) -> None:
    assert read_upgrade(answer, KEY) == len(answer)
    assert read_upgrade(bytearray(answer + b"\x81\x02{}"), KEY) == len(answer)


@given(size=st.integers(0, len(GRANTED) - 1))
def test_a_part_of_an_answer_is_not_judged(size: int) -> None:
    assert read_upgrade(GRANTED[:size], KEY) is None


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 404 Not Found\r\n\r\n", "HTTP 404 Not Found"),
        (b"HTTP/1.1 500\r\nx: y\r\n\r\n oh \r\n", "HTTP 500: oh"),
        (b"HTTP/1.1 500 X\r\n\r\n" + b"y" * 999, "HTTP 500 X: " + "y" * 200),
        (b"SSH-2.0-x\r\n\r\n", "it does not answer in HTTP"),
        (b"HTTP/2 101\r\n\r\n", "it does not answer in HTTP"),
        (b"\r\n\r\n", "it does not answer in HTTP"),
        (b"x" * (ANSWER_LIMIT + 1), "it does not answer in HTTP"),
        (b"HTTP/1.1 101 X\r\n\r\n", "its answer is to somebody else's request"),
        (GRANTED.replace(PROOF, accept_key("other").encode()), "its answer is to somebody else's request"),
        (GRANTED.replace(PROOF, b"\xff\xfe"), "its answer is to somebody else's request"),
    ],
)
def test_a_refusal_says_what_was_answered(answer: bytes, words: str) -> None:
    with pytest.raises(NotUpgraded) as caught:
        read_upgrade(answer, KEY)

    assert str(caught.value) == words
    assert not isinstance(caught.value, UpgradeDenied)


@pytest.mark.parametrize("status", [b"401 Unauthorized", b"403 Forbidden"])
def test_a_server_that_will_not_have_us_says_so_for_good(status: bytes) -> None:
    with pytest.raises(UpgradeDenied):
        read_upgrade(b"HTTP/1.1 %b\r\n\r\n" % status, KEY)


def test_a_head_without_an_end_is_waited_for_up_to_a_limit() -> None:
    assert read_upgrade(b"x" * ANSWER_LIMIT, KEY) is None
