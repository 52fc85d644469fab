"""A socket served by the poller, with or without TLS: what a channel needs of a transport.

Does for a ``BufferedProtocol`` what the event loop's own transport does, with
less in between: an event is one call, a write is one system call, and an idle
socket holds no buffer.  A protocol cannot tell the difference.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import logging
import socket
import ssl
import sys
import termios
from asyncio import sslproto
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from holdfast.poller import READABLE, WRITABLE, Poller
from holdfast.value import value

from .listen import BadListen
from .websocket import WebSocketChannel

_log = logging.getLogger(__name__)

_LINGER = 5.0
"""Seconds a peer has to take what was written before we ended."""

_BREATHER = 1.0
"""Seconds without accepting after the system ran out of descriptors."""


@value
class Delivery:
    """How far a peer is with what it was sent.  What ``get_extra_info("delivery")`` answers."""

    taken: int
    """Bytes that the peer's side has taken, as far as the system knows."""
    waiting: int
    """Bytes that it has not."""


class SocketStream(asyncio.Transport):
    """One connected socket."""

    __slots__ = (
        "_closing",
        "_fd",
        "_high",
        "_low",
        "_paused",
        "_poller",
        "_protocol",
        "_sent",
        "_socket",
        "_unsent",
        "_watched",
        "_writing_paused",
    )

    def __init__(self, sock: socket.socket, protocol: asyncio.BufferedProtocol, poller: Poller) -> None:
        """
        Raises:
            OSError: The system has no room for it; the socket is still the caller's.
        """
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            # Or every short answer would wait for the acknowledgement of the one before.
            with contextlib.suppress(OSError):  # The peer may be gone already.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = sock
        self._fd = sock.fileno()
        self._protocol = protocol
        self._poller = poller
        self._unsent: bytes | bytearray = b""  # Nothing costs nothing.
        self._sent = 0
        self._high = self._low = 1 << 16
        self._paused = False
        self._writing_paused = False
        self._closing = False
        self._watched = 0
        protocol.connection_made(self)
        poller.add(self._fd, self, READABLE)
        self._watched = READABLE
        self._watch()  # The protocol may have said something already.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        match name:
            case "socket":
                return self._socket
            case "peername":
                with contextlib.suppress(OSError):  # The peer may be gone already.
                    return self._socket.getpeername()
            case "delivery":
                return self._delivery()
        return default

    def _delivery(self) -> Delivery:
        in_flight = bytearray(4)
        if self._fd >= 0:
            with contextlib.suppress(OSError):  # Then all that the system took counts as taken.
                fcntl.ioctl(self._fd, termios.TIOCOUTQ, in_flight)
        left = int.from_bytes(in_flight, sys.byteorder)
        return Delivery(self._sent - left, left + len(self._unsent))

    # In.

    def on_ready(self, events: int) -> None:
        """Implements ``poller.Source``."""
        if events & WRITABLE and self._unsent:
            self._send_on()
        if not events & ~WRITABLE or self._fd < 0:
            return
        if self._paused or self._closing:
            if events & ~(READABLE | WRITABLE):
                self._lose(None)  # Hung up while nobody reads.
            return
        try:
            count = self._socket.recv_into(self._protocol.get_buffer(-1))
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        if count:
            self._protocol.buffer_updated(count)
        else:
            self.close()

    def pause_reading(self) -> None:
        self._paused = True
        self._watch()

    def resume_reading(self) -> None:
        self._paused = False
        self._watch()

    # Out.

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = 1 << 16 if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_size(self) -> int:
        return len(self._unsent)

    def write(self, data: Any) -> None:
        if self._closing or self._unsent:
            self.writelines((data,))
            return
        # Apart from ``writelines``, because nearly every batch of short answers is one piece.
        try:
            count = self._socket.send(data)
        except OSError as error:
            count = self._on_unsent(error)
        if count == len(data):
            self._sent += count
        else:
            self._keep((data,), count)

    def writelines(self, parts: Sequence[Any]) -> None:  # type: ignore[override]  # As we are called.
        """Send the parts one after the other, with one system call and without joining them."""
        if self._closing:
            return
        if self._unsent:
            self._unsent += b"".join(parts)
            self._pause_if_full()
            return
        try:
            count = self._socket.sendmsg(parts)
        except OSError as error:
            count = self._on_unsent(error)
        if count == sum(map(len, parts)):
            self._sent += count
        else:
            self._keep(parts, count)

    def _on_unsent(self, error: OSError) -> int:
        """The system has taken nothing: 0 if it may take it later, -1 if the peer is gone."""
        if isinstance(error, BlockingIOError | InterruptedError):
            return 0
        # Not at once: whoever writes is in the middle of something.
        self._closing = True
        self._poller.defer(partial(self._lose, error))
        return -1

    def _keep(self, parts: Sequence[Any], sent: int) -> None:
        """Send later what the system has not taken of the parts, unless the peer is gone."""
        if sent >= 0:
            self._sent += sent
            self._unsent = _rest(parts, sent)
            self._watch()
            self._pause_if_full()

    def _pause_if_full(self) -> None:
        if len(self._unsent) > self._high and not self._writing_paused:
            self._writing_paused = True
            self._protocol.pause_writing()

    def _send_on(self) -> None:
        unsent = self._unsent
        assert isinstance(unsent, bytearray)
        try:
            count = self._socket.send(unsent)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._lose(error)
            return
        self._sent += count
        del unsent[:count]
        if not unsent:
            self._unsent = b""
            if self._closing:
                self._lose(None)
                return
            self._watch()
        if self._writing_paused and len(self._unsent) <= self._low:
            self._writing_paused = False
            self._protocol.resume_writing()

    # The end.

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """End when everything written has been sent."""
        if not self._closing:
            self._closing = True
            if self._unsent:
                self._watch()
                asyncio.get_running_loop().call_later(_LINGER, self.abort)
            else:
                self._lose(None)

    def abort(self) -> None:
        """End now."""
        self._lose(None)

    def _force_close(self, error: BaseException | None) -> None:
        """What the library's TLS calls when it gives up."""
        self._lose(None)

    def _lose(self, error: OSError | None) -> None:
        if self._fd < 0:
            return
        self._closing = True
        self._unsent = b""
        if self._watched:
            self._poller.remove(self._fd)
            self._watched = 0
        self._fd = -1
        # Closing alone may tell the peer nothing: a child that is just being started
        # holds a copy of every descriptor until its program runs.
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        protocol, self._protocol = self._protocol, _NOBODY  # It knows us, and is not to be kept by that.
        protocol.connection_lost(error)

    def _watch(self) -> None:
        """Watch for what is of use now."""
        if self._fd < 0:
            return
        reading = not self._paused and not self._closing
        wanted = (READABLE if reading else 0) | (WRITABLE if self._unsent else 0)
        if wanted == self._watched:
            return
        if not self._watched:
            self._poller.add_again(self._fd, self, wanted)
        elif wanted:
            self._poller.modify(self._fd, wanted)
        else:
            self._poller.remove(self._fd)
        self._watched = wanted


def _rest(parts: Sequence[Any], sent: int) -> bytearray:
    """What is left of the parts after so many bytes."""
    rest = bytearray()
    for part in parts:
        if sent < len(part):
            rest += memoryview(part)[sent:] if sent else part
        sent = max(0, sent - len(part))
    return rest


_NOBODY = asyncio.BufferedProtocol()
"""The protocol of a stream that has ended."""


class Listener:
    """A listening socket: each connection becomes a stream for a new protocol, if one can be had."""

    _MOST = 64  # Connections accepted before others get their turn.

    def __init__(
        self, sock: socket.socket, make: Callable[[], asyncio.BufferedProtocol | None], poller: Poller
    ) -> None:
        sock.setblocking(False)
        self._socket = sock
        self._make = make
        self._poller = poller
        self._resting = False
        poller.add(sock.fileno(), self)

    def fileno(self) -> int:
        return self._socket.fileno()

    def on_ready(self, events: int) -> None:
        """Implements ``poller.Source``."""
        for _ in range(self._MOST):
            try:
                sock, _address = self._socket.accept()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    self._rest()
                return  # Otherwise nobody is left, or whoever came is gone again.
            protocol = self._make()
            if protocol is None:
                sock.close()
            else:
                self._serve(sock, protocol)

    def _serve(self, sock: socket.socket, protocol: asyncio.BufferedProtocol) -> None:
        try:
            SocketStream(sock, protocol, self._poller)
        except OSError as error:
            sock.close()
            protocol.connection_lost(error)

    def _rest(self) -> None:
        """Accept no connection for a moment: without descriptors, another try at once would fail, too."""
        self._resting = True
        _log.warning("out of descriptors: accepting no connections for a moment")
        self._poller.remove(self._socket.fileno())
        asyncio.get_running_loop().call_later(_BREATHER, self._go_on)

    def _go_on(self) -> None:
        if self._socket.fileno() >= 0:
            self._poller.add_again(self._socket.fileno(), self)
            self._resting = False

    def close(self) -> None:
        if not self._resting:
            self._poller.remove(self._socket.fileno())
        self._socket.close()


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
