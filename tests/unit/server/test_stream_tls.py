"""TLS on the way in: certificates that can be used, and connections that end before they have begun."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from pathlib import Path

import pytest

from holdfast.server.listen import BadListen
from holdfast.server.stream import TlsProtocol, make_context
from holdfast.server.websocket import WebSocketChannel
from tests.fakes.certificates import Authority, authority
from tests.fakes.process import PATIENCE, eventually


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("tls"))


# Certificates.


def test_a_context_takes_nothing_older_than_tls_1_2_and_asks_clients_for_nothing(issued: Authority) -> None:
    context = make_context(issued.certificate, issued.key)

    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.verify_mode is ssl.CERT_NONE
    assert make_context(issued.both, None).minimum_version is ssl.TLSVersion.TLSv1_2


def refusal(certificate: str, key: str | None = None) -> str:
    with pytest.raises(BadListen) as caught:
        make_context(certificate, key)
    return str(caught.value)


def test_what_cannot_be_used_is_named_with_the_reason(issued: Authority, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    certificate, begin = issued.certificate, "cannot use the TLS certificate"
    no_pem = "no certificate and private key in PEM format that belong together"

    assert refusal("/no/such") == f"{begin} /no/such: No such file or directory"
    assert refusal(certificate, "/no/such") == (
        f"{begin} {certificate} and /no/such: No such file or directory"
    )
    assert refusal(certificate, issued.stranger) == (
        f"{begin} {certificate} and {issued.stranger}: key values mismatch"
    )
    for path in (str(empty), certificate, issued.key):
        assert refusal(path).startswith(f"{begin} {path}: ")
    assert refusal(str(empty)) == f"{begin} {empty}: {no_pem}"


def test_a_key_with_a_passphrase_is_refused_and_nobody_is_asked_for_it(issued: Authority) -> None:
    """A server that waits at a terminal for a passphrase does not start after a reboot."""
    said = refusal(issued.certificate, issued.locked)

    assert said.startswith(f"cannot use the TLS certificate {issued.certificate} and {issued.locked}: ")


def test_nothing_of_a_key_is_in_the_words(issued: Authority, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text(Path(issued.key).read_text()[:-40])
    line = Path(issued.key).read_text().splitlines()[1]

    assert line[:20] not in refusal(issued.certificate, str(broken))


# Connections.


class Channel(WebSocketChannel):
    """Remembers what it was given, and what it was asked for."""

    def __init__(self) -> None:
        self.peer = ""
        self.events: list[str] = []
        self.data = b""
        self._buffer = bytearray(4096)
        self.socket: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.socket = transport
        self.peer = "127.0.0.1:5"
        self.events.append("made")

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._buffer)

    def hang_up(self) -> None:
        self.events.append("hang up")

    def buffer_updated(self, nbytes: int) -> None:
        self.data += self._buffer[:nbytes]
        assert self.socket is not None
        self.socket.write(bytes(self._buffer[:nbytes]).upper())

    def connection_lost(self, exc: BaseException | None) -> None:
        self.events.append("lost")


class Scene:
    """A listener with one channel."""

    def __init__(self, context: ssl.SSLContext, within: float) -> None:
        self.channel = Channel()
        self.lost = asyncio.Event()
        self._context = context
        self._within = within

    def protocol(self) -> TlsProtocol:
        self.made = TlsProtocol(
            self.channel,
            self._context,
            loop=asyncio.get_running_loop(),
            within=self._within,
            on_lost=lambda protocol: self.lost.set(),
        )
        return self.made


async def serve(issued: Authority, within: float = PATIENCE) -> tuple[Scene, asyncio.Server, int]:
    scene = Scene(make_context(issued.both, None), within)
    server = await asyncio.get_running_loop().create_server(scene.protocol, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    return scene, server, port


async def closed(writer: asyncio.StreamWriter) -> None:
    """Close our end, and wait until it is: the loop does not wait for it."""
    writer.close()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        await writer.wait_closed()


async def test_a_channel_gets_the_bytes_and_hears_of_the_end_once(issued: Authority) -> None:
    scene, server, port = await serve(issued)
    async with server, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=issued.trusting())
        writer.write(b"hello")
        answer = await reader.readexactly(5)
        await closed(writer)
        await scene.lost.wait()

    assert (answer, scene.channel.data, scene.channel.events) == (b"HELLO", b"hello", ["made", "lost"])


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05hello", bytes(100)])
async def test_a_connection_without_a_handshake_is_heard_of_when_it_is_lost(
    issued: Authority, said: bytes
) -> None:
    """The library tells the channel nothing of it, and somebody counts connections."""
    scene, server, port = await serve(issued)
    async with server, asyncio.timeout(PATIENCE):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(said)
        await closed(writer)
        await scene.lost.wait()

    assert "made" not in scene.channel.events


async def test_whoever_does_not_finish_the_handshake_in_time_is_cut(issued: Authority) -> None:
    """A part of a second is a time, too."""
    scene, server, port = await serve(issued, within=0.05)
    async with server, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x16\x03\x01\x02\x00")
        assert await reader.read() == b""
        await scene.lost.wait()
        await closed(writer)

    assert scene.channel.events == []


async def test_whoever_is_in_its_handshake_is_cut_at_once_by_a_server_that_stops(issued: Authority) -> None:
    """The channel knows nothing of it yet, and has no socket to close."""
    scene, server, port = await serve(issued)
    async with server, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await eventually(lambda: hasattr(scene, "made") and scene.made._socket is not None)
        scene.made.hang_up()
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        await scene.lost.wait()
        await closed(writer)
        scene.made.hang_up()  # Once more, without harm.

    assert scene.channel.events == []


async def test_whoever_has_done_it_is_the_channels(issued: Authority) -> None:
    scene, server, port = await serve(issued)
    async with server, asyncio.timeout(PATIENCE):
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=issued.trusting())
        await eventually(lambda: scene.channel.events == ["made"])
        scene.made.hang_up()
        await closed(writer)
        await scene.lost.wait()

    assert scene.channel.events == ["made", "hang up", "lost"]
