"""TLS on the way in: certificates, and a protocol that has it undone before a channel sees the bytes."""

from __future__ import annotations

import asyncio
import ssl
from asyncio import sslproto
from collections.abc import Callable

from .listen import BadListen
from .websocket import WebSocketChannel


def make_context(certificate: str, key: str | None) -> ssl.SSLContext:
    """What a listener needs; the key may be in the file of the certificate.

    Raises:
        BadListen: The files are not there, or not what they should be.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without a terminal to ask at, a key with a passphrase is an error.
        context.load_cert_chain(certificate, key, password=lambda: b"")
    except OSError as error:  # What OpenSSL says is one, too.
        files = certificate if key is None else f"{certificate} and {key}"
        raise BadListen(f"cannot use the TLS certificate {files}: {_words(error)}") from error
    return context


def _words(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        if not error.reason:
            return "no certificate and private key in PEM format that belong together"
        return error.reason.replace("_", " ").lower()
    return error.strerror or str(error)


class TlsProtocol(sslproto.SSLProtocol):
    """Between a socket and a channel.

    The library's own; it tells a channel of a lost connection only if the handshake
    was completed before.  Whoever counts connections has to hear of all of them.
    """

    def __init__(
        self,
        channel: WebSocketChannel,
        context: ssl.SSLContext,
        *,
        loop: asyncio.AbstractEventLoop,
        within: float,
        on_lost: Callable[[TlsProtocol], object],
    ) -> None:
        """``within`` are the seconds for the handshake, and for the goodbye."""
        super().__init__(
            loop,
            channel,
            context,
            None,  # type: ignore[arg-type]  # Nobody waits for the handshake.
            server_side=True,
            ssl_handshake_timeout=within,  # type: ignore[arg-type]  # A part of a second is one, too.
            ssl_shutdown_timeout=within,
        )
        self._channel = channel
        self._socket: asyncio.Transport | None = None
        self._on_lost = on_lost

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._socket = transport
        super().connection_made(transport)

    def hang_up(self) -> None:
        """Let go of the socket; a peer that is still in its handshake was told nothing, and is not."""
        if self._channel.peer:  # It has one when the handshake is over.
            self._channel.hang_up()
        elif self._socket is not None:
            self._socket.abort()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._on_lost(self)
