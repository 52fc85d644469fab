"""Why a connection cannot be made, as a fault that programs compare and words that people read."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from holdfast.client.address import TcpAddress, UnixAddress
from holdfast.client.reaching import find_tls, from_answer, from_system
from holdfast.errors import LinkFault
from holdfast.wire.websocket import NotUpgraded, UpgradeDenied
from tests.fakes.certificates import authority

HERE = TcpAddress("h", 1)
SAFE = TcpAddress("h", 1, secure=True)


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = reason
    return error


# The system and TLS.


@pytest.mark.parametrize(
    ("error", "fault", "words"),
    [
        (ConnectionRefusedError(111, "x"), LinkFault.UNREACHABLE, "Connection refused"),
        (PermissionError(13, "x"), LinkFault.FORBIDDEN, "Permission denied"),
        (OSError("several attempts failed"), LinkFault.UNREACHABLE, "several attempts failed"),
        (socket.gaierror(-2, "Name or service not known"), LinkFault.NAME, "Name or service not known"),
        (
            tls_error("WRONG_VERSION_NUMBER"),
            LinkFault.PROTOCOL,
            "the server there does not speak TLS: use ws://h:1",
        ),
        (tls_error("NO_CIPHERS_AVAILABLE"), LinkFault.PROTOCOL, "TLS failed: no ciphers available"),
    ],
    ids=["nobody", "not permitted", "several", "no such name", "no TLS", "other TLS"],
)
def test_what_the_system_says_becomes_a_fault_and_words(error: OSError, fault: LinkFault, words: str) -> None:
    found = from_system(error, SAFE)

    assert (found.fault, str(found), found.final) == (fault, words, False)


def test_a_unix_socket_has_no_other_url() -> None:
    assert str(from_system(tls_error("HTTP_REQUEST"), UnixAddress("/x"))) == "TLS failed: http request"


# HTTP.


@pytest.mark.parametrize(
    ("status", "body", "fault"),
    [
        (401, "missing websocket bearer token", LinkFault.TOKEN),
        (403, "", LinkFault.FORBIDDEN),
        (429, "slow down", LinkFault.FULL),
        (503, "limit reached: connections (2)", LinkFault.FULL),
        (503, "the server behind this proxy is away", LinkFault.UNREACHABLE),
        (502, "", LinkFault.UNREACHABLE),
        (404, "", LinkFault.PROTOCOL),
        (None, "", LinkFault.PROTOCOL),
    ],
)
def test_an_answer_in_http_says_whose_move_it_is(status: int | None, body: str, fault: LinkFault) -> None:
    """A quota, a token and a wrong port need three different things of a user."""
    kind = UpgradeDenied if status in (401, 403) else NotUpgraded
    found = from_answer(kind("words", status=status, body=body))

    assert (found.fault, str(found)) == (fault, "words")
    assert found.final == (kind is UpgradeDenied)


# Whether somebody speaks TLS.


@asynccontextmanager
async def listening(tls: ssl.SSLContext | None) -> AsyncIterator[TcpAddress]:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield TcpAddress("127.0.0.1", server.sockets[0].getsockname()[1], "/path")


@pytest.mark.slow
@pytest.mark.parametrize("asks", [ssl.CERT_NONE, ssl.CERT_REQUIRED], ids=["anybody", "who has a certificate"])
async def test_a_server_of_tls_is_found_out(asks: ssl.VerifyMode, tmp_path: Path) -> None:
    made = authority(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # In which it refuses before it is greeted.
    context.load_cert_chain(made.both)
    context.load_verify_locations(made.root)
    context.verify_mode = asks
    async with listening(context) as address:
        found = await find_tls(address)

    assert found is not None
    assert str(found) == f"the server there speaks TLS: use wss://{address.authority}/path"
    assert (found.fault, found.final) == (LinkFault.PROTOCOL, True)


async def test_a_server_without_tls_may_be_asked_again() -> None:
    async with listening(None) as address:
        assert await find_tls(address) is None
    assert await find_tls(address) is None  # Now nobody is there at all.
