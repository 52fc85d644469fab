"""TLS at the real program: bytes both ways, handshakes that fail or never end, and our own clients."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import random
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import holdfast
from tests.fakes.backends import LONG
from tests.fakes.certificates import Authority, authority
from tests.fakes.client import Client, page_bytes
from tests.fakes.frames import TEXT, Wire
from tests.fakes.server import PATIENCE, Program, eventually, open_files, program
from tests.fakes.tokens import bearer, signing_options, token

pytestmark = pytest.mark.slow

MIB = 1 << 20
SIZE = 50 * MIB if LONG else 4 * MIB
WSS = ("--listen", "wss://127.0.0.1:0")


@pytest.fixture(scope="module")
def issued(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def served(issued: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Program, str]]:
    """One server that asks for tokens, and cuts slow handshakes soon."""
    options = ("--tls-cert", issued.certificate, "--tls-key", issued.key)
    auth = signing_options(tmp_path_factory.mktemp("auth"))
    with program(*WSS, *options, *auth, "--limit=connection.handshake_seconds=2s") as started:
        url = started.read_url()
        assert url.startswith("wss://127.0.0.1:")
        yield started, url


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


@contextlib.asynccontextmanager
async def client(url: str, tls: ssl.SSLContext) -> AsyncIterator[Client]:
    talking = Client(await Wire.open(url, headers=[bearer(token("a"))], tls=tls))
    try:
        await talking.initialize()
        yield talking
    finally:
        await talking.close()


def some_bytes(size: int) -> bytes:
    return random.Random(size).randbytes(size)  # noqa: S311  (the same each time)


async def vanish(writer: asyncio.StreamWriter) -> None:
    """Cut the connection, and wait until our end is closed: the loop does not wait for it."""
    writer.transport.abort()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        await writer.wait_closed()


# Bytes.


async def test_bytes_arrive_as_they_are_in_both_directions(
    served: tuple[Program, str], issued: Authority
) -> None:
    data = some_bytes(SIZE)
    async with client(served[1], issued.trusting()) as talking:
        await talking.start("p", "sha256sum", pipeStdin=True)
        for number, at in enumerate(range(0, SIZE, MIB)):
            assert await talking.write("p", data[at : at + MIB], str(number)) == "accepted"
        await talking.call("process/closeStdin", {"processId": "p"})
        tale = await talking.closed("p", within=60)
        script = f"import random, sys; sys.stdout.buffer.write(random.Random({SIZE}).randbytes({SIZE}))"
        await talking.start("q", sys.executable, "-c", script)
        back = await talking.closed("q", within=60)

    assert tale.data().split()[0].decode() == hashlib.sha256(data).hexdigest()
    assert hashlib.sha256(back.data()).hexdigest() == hashlib.sha256(data).hexdigest()


async def test_a_message_in_many_records_and_many_in_one(
    served: tuple[Program, str], issued: Authority
) -> None:
    """Where a record ends says nothing about where a message does."""
    async with client(served[1], issued.trusting()) as talking:
        answers = talking.post_together(*[("environment/status", None)] * 200)
        for answer in answers:
            assert await talking.result(answer)
        message, slow = talking.compose("environment/status")
        talking.wire.send(TEXT, message[:3], final=False)
        for byte in message[3:-1]:
            talking.wire.send(0, bytes([byte]), final=False)
        talking.wire.send(0, message[-1:])
        assert await talking.result(slow) == {"status": "ready"}


# Handshakes.


async def test_whoever_does_not_finish_the_handshake_is_cut_and_others_go_on(
    served: tuple[Program, str], issued: Authority
) -> None:
    server, url = served
    async with client(url, issued.trusting()) as talking:
        before = open_files(server.pid)
        slow = [await asyncio.open_connection("127.0.0.1", port_of(url)) for _ in range(20)]
        for number, (_, writer) in enumerate(slow):
            writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[:number])
        await talking.call("environment/status")
        async with asyncio.timeout(PATIENCE):
            for reader, writer in slow:
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
                await vanish(writer)
        await eventually(lambda: open_files(server.pid) <= before)


async def test_whoever_finishes_it_and_asks_for_nothing_is_cut_too(
    served: tuple[Program, str], issued: Authority
) -> None:
    wire = await Wire.dial(served[1], issued.trusting())
    wire.writer.write(b"GET / HT")
    async with asyncio.timeout(PATIENCE):
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            assert await wire.reader.read() == b""
    await vanish(wire.writer)


@pytest.mark.parametrize(
    "said", [b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n", b"\0" * 64, b"\x80\x2e\x01\x03\x01"]
)
async def test_plain_text_is_no_way_in(served: tuple[Program, str], said: bytes) -> None:
    wire = await Wire.dial(served[1])
    wire.writer.write(said)
    async with asyncio.timeout(PATIENCE):
        answer = b""
        with contextlib.suppress(ConnectionError):
            answer = await wire.reader.read()
    await wire.close()

    assert b"HTTP" not in answer


def test_old_versions_are_refused(served: tuple[Program, str], issued: Authority) -> None:
    def version(context: ssl.SSLContext) -> str | None:
        with (
            socket.create_connection(("127.0.0.1", port_of(served[1])), PATIENCE) as plain,
            context.wrap_socket(plain, server_hostname="127.0.0.1") as tls,
        ):
            return tls.version()

    old = issued.trusting()
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="deprecated"):
        old.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="deprecated"):
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    still_good = issued.trusting()
    still_good.maximum_version = ssl.TLSVersion.TLSv1_2

    with pytest.raises((ssl.SSLError, ConnectionError)):
        version(old)
    assert version(still_good) == "TLSv1.2"
    assert version(issued.trusting()) == "TLSv1.3"


async def test_a_client_that_does_not_know_the_authority_refuses_us(served: tuple[Program, str]) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        await Wire.dial(served[1], ssl.create_default_context())


async def test_a_token_is_asked_for_behind_tls_as_well(
    served: tuple[Program, str], issued: Authority
) -> None:
    wire = await Wire.dial(served[1], issued.trusting())
    wire.writer.write(
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    async with asyncio.timeout(PATIENCE):
        answer = await wire.reader.readuntil(b"missing websocket bearer token")
    await vanish(wire.writer)

    assert answer.startswith(b"HTTP/1.1 401 ")


# Many.


async def test_many_connections_come_and_go_and_nothing_is_left(
    served: tuple[Program, str], issued: Authority
) -> None:
    server, url = served
    trusting = issued.trusting()
    async with client(url, trusting) as watching:
        before = open_files(server.pid)
        for _ in range(4 if LONG else 2):
            async with contextlib.AsyncExitStack() as stack:
                all_of_them = [await stack.enter_async_context(client(url, trusting)) for _ in range(25)]
                await asyncio.gather(*(each.call("environment/status") for each in all_of_them))
            gone = [await Wire.open(url, headers=[bearer(token("a"))], tls=trusting) for _ in range(10)]
            for wire in gone:
                await vanish(wire.writer)
            half = [await asyncio.open_connection("127.0.0.1", port_of(url)) for _ in range(10)]
            for _, writer in half:
                await vanish(writer)
        await watching.call("environment/status")
        await eventually(lambda: open_files(server.pid) <= before)


async def test_a_server_that_stops_says_goodbye(issued: Authority) -> None:
    with program(*WSS, "--tls-cert", issued.both) as server:
        talking = Client(await Wire.open(server.read_url(), tls=issued.trusting()))
        await talking.initialize()
        await talking.start("p", "sleep", "1000")
        await asyncio.to_thread(server.stop)
        frame = await talking.ended()
        await talking.close()

    assert frame is not None
    assert frame.close_code == 1001


async def test_a_server_stops_also_in_the_middle_of_handshakes(issued: Authority) -> None:
    """And ends what it has started, whoever else is at the door."""
    with program(*WSS, "--tls-cert", issued.both) as server:
        url = server.read_url()
        talking = Client(await Wire.open(url, tls=issued.trusting()))
        await talking.initialize()
        await talking.start("p", "sleep", "1000")
        before = open_files(server.pid)
        waiting = [await asyncio.open_connection("127.0.0.1", port_of(url)) for _ in range(3)]
        waiting[0][1].write(b"\x16\x03")
        await eventually(lambda: open_files(server.pid) == before + 3)
        await asyncio.to_thread(server.stop)
        await talking.close()
        for _, writer in waiting:
            await vanish(writer)

    assert server.code == 0


# Our own clients.


async def test_the_library_connects_with_the_authority_from_the_environment(
    served: tuple[Program, str], issued: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", issued.root)
    async with holdfast.connect(served[1], token=token("a")) as host:
        result = await host.run(["echo", "hi"], capture_output=True)

    assert result.stdout == b"hi\n"


def test_the_command_line_does(served: tuple[Program, str], issued: Authority, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(token("a"))
    command = (sys.executable, "-m", "holdfast", "run", "--url", served[1], "--token-file", str(path))

    def run(**env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            (*command, "--", "echo", "hi"),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            env={**os.environ, **env},
        )

    good, stranger = run(SSL_CERT_FILE=issued.root), run()

    assert (good.returncode, good.stdout) == (0, "hi\n")
    assert (stranger.returncode, stranger.stdout) == (125, "")
    assert "its certificate cannot be trusted: " in stranger.stderr


async def test_output_that_is_read_is_the_same(served: tuple[Program, str], issued: Authority) -> None:
    async with client(served[1], issued.trusting()) as talking:
        await talking.start("p", "echo", "hi")
        await talking.closed("p")

        assert page_bytes(await talking.read("p")) == b"hi\n"
