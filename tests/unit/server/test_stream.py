"""A socket served by the poller: writes that do not fit, pauses, and the ways it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
from collections.abc import AsyncIterator

import pytest

from holdfast.poller import Poller
from holdfast.server.stream import Listener, SocketStream
from tests.fakes.server import eventually


class Recording(asyncio.BufferedProtocol):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.received = b""
        self.told: list[str] = []
        self._buffer = bytearray(1000)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.told.append("made")

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self._buffer[:nbytes]

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.told.append("lost" if exc is None else type(exc).__name__)


@contextlib.asynccontextmanager
async def polling() -> AsyncIterator[Poller]:
    poller = Poller()
    poller.attach(asyncio.get_running_loop())
    try:
        yield poller
    finally:
        poller.close()


class Pair:
    """A stream and the socket at its other end."""

    def __init__(self, poller: Poller) -> None:
        self.other, ours = socket.socketpair()
        self.other.setblocking(False)
        self._taken = bytearray()
        self.protocol = Recording()
        self.stream = SocketStream(ours, self.protocol, poller)

    def take(self) -> bytes:
        """All that has arrived at the other end, now and before."""
        with contextlib.suppress(BlockingIOError):
            while data := self.other.recv(1 << 20):
                self._taken += data
        return bytes(self._taken)


@contextlib.asynccontextmanager
async def pair() -> AsyncIterator[Pair]:
    async with polling() as poller:
        made = Pair(poller)
        try:
            yield made
        finally:
            made.stream.abort()
            made.other.close()


async def test_what_arrives_is_handed_on_and_what_is_written_is_sent() -> None:
    """In any pieces."""
    async with pair() as made:
        made.other.send(b"x" * 5000)
        made.stream.write(b"a")
        made.stream.writelines([b"b", b"", b"c"])
        await eventually(lambda: len(made.protocol.received) == 5000)
        taken = made.take()

    assert taken == b"abc"
    assert made.protocol.told == ["made", "lost"]


async def test_what_does_not_fit_is_sent_later_in_order() -> None:
    """And the protocol is told when it should stop and when it may go on."""
    parts = [bytes([number]) * 10_000 for number in range(200)]
    async with pair() as made:
        made.stream.set_write_buffer_limits(high=100_000, low=50_000)
        made.stream.writelines(parts[:150])
        for part in parts[150:]:
            made.stream.write(part)
        unsent = made.stream.get_write_buffer_size()
        paused = list(made.protocol.told)
        await eventually(lambda: len(made.take()) == 2_000_000)
        taken = made.take()

    assert unsent > 100_000
    assert paused == ["made", "pause"]
    assert taken == b"".join(parts)
    assert made.protocol.told == ["made", "pause", "resume", "lost"]


async def test_nothing_is_received_while_reading_is_paused() -> None:
    """What arrives meanwhile waits in the socket."""
    async with pair() as made:
        made.stream.pause_reading()
        made.other.send(b"later")
        made.stream.write(b"x")
        await eventually(lambda: made.take())
        before = made.protocol.received
        made.stream.resume_reading()
        await eventually(lambda: made.protocol.received == b"later")

    assert before == b""


async def test_close_sends_what_was_written_first() -> None:
    """A last word is not lost because it does not fit at once."""
    async with pair() as made:
        made.stream.write(b"x" * 1_000_000)
        made.stream.close()
        made.stream.write(b"too late")
        closing = made.stream.is_closing()
        await eventually(lambda: made.take() and made.protocol.told[-1] == "lost")
        taken = made.take()

    assert closing
    assert taken == b"x" * 1_000_000


async def test_abort_ends_at_once_and_once() -> None:
    """What was not sent is dropped."""
    async with pair() as made:
        made.stream.write(b"x" * 1_000_000)
        made.stream.abort()
        made.stream.abort()
        made.stream.close()

    assert made.protocol.told == ["made", "pause", "lost"]


async def test_the_end_of_the_peer_is_the_end() -> None:
    """Also while nobody reads, as far as the system tells."""
    async with pair() as made, pair() as paused:
        made.other.close()
        await eventually(lambda: made.protocol.told == ["made", "lost"])
        paused.stream.write(b"x" * 1_000_000)
        paused.stream.pause_reading()
        paused.other.close()
        await eventually(lambda: paused.protocol.told[-1] != "pause")

    assert paused.protocol.told[:2] == ["made", "pause"]


async def test_writing_to_a_peer_that_has_gone_is_no_failure_of_the_writer() -> None:
    """Whoever writes is in the middle of something else; it learns of the end by itself."""
    async with pair() as made:
        made.other.close()
        made.stream.write(b"x")
        made.stream.write(b"y")
        told = list(made.protocol.told)
        await eventually(lambda: len(made.protocol.told) == 2)

    assert told == ["made"]


# Accepting.


@contextlib.asynccontextmanager
async def listening(protocols: list[Recording]) -> AsyncIterator[tuple[str, int]]:
    def make() -> Recording:
        protocols.append(Recording())
        return protocols[-1]

    async with polling() as poller:
        sock = socket.create_server(("127.0.0.1", 0))
        listener = Listener(sock, make, poller)
        try:
            yield sock.getsockname()
        finally:
            listener.close()
            await eventually(lambda: not poller._sources)


async def test_each_connection_gets_its_own_protocol() -> None:
    """Many that arrive at once are all accepted."""
    protocols: list[Recording] = []
    async with listening(protocols) as address:
        peers = [socket.create_connection(address) for _ in range(100)]
        await eventually(lambda: len(protocols) == 100)
        peers[7].send(b"seven")
        await eventually(lambda: any(protocol.received == b"seven" for protocol in protocols))
        for peer in peers:
            peer.close()
        await eventually(lambda: all(protocol.told == ["made", "lost"] for protocol in protocols))


async def test_a_connection_that_was_reset_before_it_was_accepted_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Port scanners do this all day."""
    protocols: list[Recording] = []
    with caplog.at_level(logging.WARNING):
        async with listening(protocols) as address:
            for _ in range(5):
                gone = socket.create_connection(address)
                gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                gone.close()
            with socket.create_connection(address) as peer:
                peer.send(b"still here")
                await eventually(lambda: any(protocol.received for protocol in protocols))

    assert caplog.records == []
