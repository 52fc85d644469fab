"""HTTP before the upgrade, packet by packet."""

from __future__ import annotations

import pytest

from holdfast.errors import LimitReached
from holdfast.principal import ANYBODY
from holdfast.server import routes as module
from holdfast.server.auth import CapabilityAuth
from holdfast.server.routes import HttpRequests, Reply, Routes, no_room
from holdfast.wire import http
from holdfast.wire.http import HEAD_LIMIT
from tests.fakes.work import steps

UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
READY = b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"


class Scene:
    """The HTTP phase of a socket, what it answered, and whom it did not let in."""

    def __init__(self, routes: Routes | None = None) -> None:
        self.refused: list[str] = []
        self.http = HttpRequests(routes or Routes(healthz=True), self.refused.append)

    def send(self, *packets: bytes) -> list[Reply]:
        return [
            reply for packet in packets if self.http.add(memoryview(packet)) for reply in self.http.answers()
        ]


def status(reply: Reply) -> bytes:
    return reply.data.split(b" ", 2)[1]


def each(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


@pytest.mark.parametrize("packets", [[READY + UPGRADE + b"rest"], [*each(READY + UPGRADE), b"rest"]])
def test_it_answers_until_somebody_is_let_through(packets: list[bytes]) -> None:
    scene = Scene()
    health, let_through = scene.send(*packets)

    assert (status(health), health.upgrade, health.close) == (b"200", None, False)
    assert (status(let_through), let_through.upgrade) == (b"101", ANYBODY)
    assert scene.http.rest() == b"rest"


def test_whoever_is_not_let_in_is_told_why_and_may_try_again() -> None:
    scene = Scene(Routes(healthz=True, auth=CapabilityAuth(b"?" * 32)))
    replies = scene.send(UPGRADE, UPGRADE)

    assert [status(reply) for reply in replies] == [b"401", b"401"]
    assert scene.refused == ["missing", "missing"]
    assert not any(reply.close for reply in replies)


def test_nothing_is_answered_behind_an_end() -> None:
    scene = Scene()
    (only,) = scene.send(b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n" + READY)

    assert only.close


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x16\x03\x01 not HTTP", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 102, b"431"),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * (HEAD_LIMIT + 1), b"431"),
        (b"GET /" + b"y" * (HEAD_LIMIT + 1), b"414"),
    ],
    ids=["no HTTP", "too many lines", "a long line", "a long target"],
)
def test_what_will_never_be_a_request_is_turned_away(data: bytes, code: bytes) -> None:
    (whole,) = Scene().send(data)
    *_, last = Scene().send(*(data[at : at + 97] for at in range(0, len(data), 97)))

    assert (status(whole), whole.close) == (code, True)
    assert (status(last), last.close) == (code, True)


def test_a_head_that_comes_byte_by_byte_is_not_read_again_with_every_byte(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = 0
    read_head = http.read_head

    def counted(data: bytearray) -> object:
        nonlocal looks
        looks += 1
        return read_head(data)

    monkeypatch.setattr(module, "read_head", counted)
    scene = Scene()
    scene.send(*each(b"GET / HTTP/1.1\r\nx: " + b"y" * 5000))

    assert looks == 2
    assert steps(lambda: scene.send(b"y")) < 20


def test_a_full_server_names_the_limit() -> None:
    data = no_room(LimitReached("connections", 3, name="connection.connections"))

    assert data.startswith(b"HTTP/1.1 503 ")
    assert data.endswith(b"limit reached: connections (3)")
