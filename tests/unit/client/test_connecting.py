"""The channel that an address asks for."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from pathlib import Path

import pytest

from holdfast.client.address import Program, TcpAddress, UnixAddress
from holdfast.client.channel import NoConnection
from holdfast.client.connecting import connect
from tests.fakes.certificates import authority


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        (TcpAddress("127.0.0.1", 1), "Connection refused"),
        (UnixAddress("/no/such/socket"), "No such file or directory"),
        (Program(("/no/such/program",)), "/no/such/program: No such file or directory"),
    ],
    ids=["tcp", "unix", "program"],
)
async def test_each_kind_says_why_there_is_none(
    address: TcpAddress | UnixAddress | Program, reason: str
) -> None:
    with pytest.raises(NoConnection, match=reason):
        await connect(address, token=None, patience=10.0)


async def test_a_file_that_is_no_socket_is_no_server(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(NoConnection, match="Connection refused"):
        await connect(UnixAddress(str(tmp_path / "file")), token=None, patience=10.0)


async def test_a_server_that_cannot_be_trusted_is_told_from_one_that_is_not_there(tmp_path: Path) -> None:
    """OpenSSL's numbers are not the system's: the same one means that something is not permitted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority(tmp_path).both)
    words = []
    for tls in (context, None):
        server = await asyncio.start_server(_plain, "127.0.0.1", 0, ssl=tls)
        async with server:
            port = server.sockets[0].getsockname()[1]
            with pytest.raises(NoConnection) as caught:
                await connect(TcpAddress("127.0.0.1", port, secure=True), token=None, patience=10.0)
            words.append(str(caught.value))

    assert words[0].startswith("its certificate cannot be trusted: ")
    assert re.fullmatch(r"the server there does not speak TLS: use ws://127.0.0.1:\d+", words[1])


async def _plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()
        await writer.wait_closed()
