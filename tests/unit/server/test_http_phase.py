"""A socket while it speaks HTTP: what it sends, and how it is let through or ended."""

from __future__ import annotations

import asyncio
from typing import Any

from holdfast.config import ConnectionLimits
from holdfast.principal import ANYBODY, Principal
from holdfast.server.http_phase import HttpPhase
from holdfast.server.routes import Routes
from holdfast.value import replace

READY = b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n"
UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


class Peer(asyncio.Transport):
    """Both sides of the socket.  Implements ``routes.HttpSocket``."""

    peer = "somebody"

    def __init__(self, *, full: bool = False, patience: float = 60.0) -> None:
        super().__init__()
        self.full = full
        self.sent = b""
        self.ends: list[str] = []
        self.let_through: list[tuple[Principal, bytes]] = []
        self.http = HttpPhase(
            self,
            self,
            Routes(healthz=False),
            loop=asyncio.get_running_loop(),
            limits=replace(ConnectionLimits(), handshake_seconds=patience),
            run=asyncio.ensure_future,
            refused=self.ends.append,
        )

    def write(self, data: Any) -> None:
        self.sent += data

    def close(self) -> None:
        self.ends.append("closed")

    def abort(self, limit: str = "aborted") -> None:
        self.ends.append(limit)

    def upgrade(self, principal: Principal, accepted: bytes, rest: bytes) -> None:
        self.sent += accepted
        self.let_through.append((principal, rest))


async def test_a_socket_is_kept_after_an_answer_until_its_client_is_let_through() -> None:
    peer = Peer()
    peer.http.receive(memoryview(READY))
    first = peer.sent
    peer.http.receive(memoryview(UPGRADE + b"frames"))
    peer.http.end()

    assert first.startswith(b"HTTP/1.1 200 OK")
    assert peer.sent[len(first) :].startswith(b"HTTP/1.1 101 ")
    assert (peer.let_through, peer.ends) == ([(ANYBODY, b"frames")], [])


async def test_who_asks_for_the_end_gets_it_behind_the_answer() -> None:
    peer = Peer()
    peer.http.receive(memoryview(b"GET /none HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" + READY))
    peer.http.end()

    assert (peer.sent.count(b"HTTP/1.1 "), peer.sent[9:12], peer.ends) == (1, b"404", ["closed"])


async def test_who_does_not_read_its_answers_is_ended() -> None:
    """What it loses it can ask for again, and others need the memory."""
    peer = Peer(full=True)
    peer.http.receive(memoryview(READY * 2))
    peer.http.end()

    assert (peer.sent.count(b"HTTP/1.1 "), peer.ends) == (1, ["connection.output_bytes"])


async def test_only_who_never_asked_anything_has_reached_a_limit_when_its_time_is_over() -> None:
    silent, served = Peer(patience=0.0), Peer(patience=0.0)
    served.http.receive(memoryview(READY))
    await asyncio.sleep(0.01)

    assert (silent.ends, served.ends) == (["connection.handshake_seconds"], ["aborted"])
