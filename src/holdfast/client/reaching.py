"""Why a connection to a server cannot be made: what the system, TLS and HTTP say, in words for a user."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from typing import TYPE_CHECKING

from holdfast.errors import LinkFault
from holdfast.wire.websocket import NotUpgraded, UpgradeDenied

from .address import TcpAddress, UnixAddress
from .channel import NoConnection

if TYPE_CHECKING:
    from ssl import SSLContext

_TLS_TRIAL_SECONDS = 2.0
"""How long somebody who does not answer in HTTP has to answer in TLS."""

_NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")
"""What versions of OpenSSL say of an answer that is not TLS."""

_TLS_RECORDS = (b"\x16\x03", b"\x15\x03")
"""How an answer in TLS begins: with a message of the handshake, or an alert; then its version."""

_AWAY = (502, 504)
"""The answers of a proxy that does not reach the server behind it."""

_LIMIT = "limit reached: "
"""The beginning of what a server of ours says to a client for whom it has no room."""


def tls_context() -> SSLContext:
    """The rules by which certificates of servers are checked: those of the system."""
    import ssl  # Late: it takes as long to import as most of the rest.

    return ssl.create_default_context()


def from_system(error: OSError, address: TcpAddress | UnixAddress) -> NoConnection:
    """The error for a connection that the system, or TLS, did not make."""
    # The numbers of OpenSSL's errors are not the system's.
    if said := getattr(error, "verify_message", ""):
        return NoConnection(f"its certificate cannot be trusted: {said}", fault=LinkFault.CERTIFICATE)
    if said := getattr(error, "reason", ""):
        if said in _NOT_TLS and isinstance(address, TcpAddress):
            right = TcpAddress(address.host, address.port, address.path)
            words = f"the server there does not speak TLS: use {right}"
        else:
            words = f"TLS failed: {said.replace('_', ' ').lower()}"
        return NoConnection(words, fault=LinkFault.PROTOCOL)
    if isinstance(error, socket.gaierror):
        return NoConnection(error.strerror or str(error), fault=LinkFault.NAME)
    words = os.strerror(error.errno) if error.errno else str(error)
    is_forbidden = isinstance(error, PermissionError)
    return NoConnection(words, fault=LinkFault.FORBIDDEN if is_forbidden else LinkFault.UNREACHABLE)


def from_answer(answer: NotUpgraded) -> NoConnection:
    """The error for an answer that is not the one to a request for a WebSocket."""
    match answer.status:
        case 401:
            fault = LinkFault.TOKEN
        case 403:
            fault = LinkFault.FORBIDDEN
        case 429:
            fault = LinkFault.FULL
        case 503:
            fault = LinkFault.FULL if answer.body.startswith(_LIMIT) else LinkFault.UNREACHABLE
        case status if status in _AWAY:
            fault = LinkFault.UNREACHABLE
        case _:
            fault = LinkFault.PROTOCOL
    # Who answers so at first is none of ours; one that was ours may be restarted behind a proxy.
    return NoConnection(str(answer), fault=fault, final=isinstance(answer, UpgradeDenied))


async def find_tls(address: TcpAddress) -> NoConnection | None:
    """Find out whether a server that ended a connection without an answer in HTTP speaks TLS.

    Servers of TLS close a connection on which something else is said, most of them without a word.  So it
    is said hello to in TLS, and nothing more.  Return the error for one that answers in kind: trying again
    without TLS is of no use.
    """
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(_TLS_TRIAL_SECONDS):
            reader, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(_hello())
            answer = await reader.readexactly(2)
    except (OSError, EOFError):  # Also what the time limit raises.
        return None
    finally:
        if writer is not None:
            writer.transport.abort()
    if answer not in _TLS_RECORDS:
        return None
    right = TcpAddress(address.host, address.port, address.path, secure=True)
    words = f"the server there speaks TLS: use {right}"
    return NoConnection(words, fault=LinkFault.PROTOCOL, final=True)


def _hello() -> bytes:
    """The first message of a client of TLS."""
    import ssl

    hello = ssl.MemoryBIO()
    # Nothing follows it, so it does not matter whose certificate the answer has.
    client = ssl._create_unverified_context().wrap_bio(ssl.MemoryBIO(), hello)  # noqa: S323
    with contextlib.suppress(ssl.SSLWantReadError):  # It waits for the answer.
        client.do_handshake()
    return hello.read()
