"""The server: an endpoint, its listeners, and the connections they accept."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import socket
import ssl
import stat
from collections.abc import Callable, Coroutine
from typing import Any

from holdfast.config import ConnectionLimits
from holdfast.dialects.dialect import Endpoint
from holdfast.errors import LimitReached
from holdfast.poller import Poller
from holdfast.principal import ANYBODY, Principal
from holdfast.telemetry import Audit, Telemetry
from holdfast.value import replace

from .channel import Channel
from .connection import Connection
from .listen import BadListen, Listen, Stdio, TcpListen, UnixListen, check_exposure, parse_listen
from .observers import observers_of
from .routes import Routes
from .stdio import StdioChannel
from .stream import Listener, TlsProtocol
from .websocket import WebSocketChannel

_log = logging.getLogger(__name__)

_BACKLOG = 1024
"""Connections the system accepts for us while we are busy."""


class Server:
    """Serves one endpoint on any number of listeners."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        routes: Routes,
        telemetry: Telemetry,
        loop: asyncio.AbstractEventLoop,
        poller: Poller,
        limits: ConnectionLimits | None = None,
        tls: ssl.SSLContext | None = None,
        audit: Audit | None = None,
        on_idle: Callable[[], None] = lambda: None,
    ) -> None:
        """
        Args:
            tls: The certificate of ``wss`` listeners.
            audit: Where it is written down who comes and goes.
            on_idle: Called when the one client on standard input has gone.
        """
        self._endpoint = endpoint
        self._routes = routes
        self._telemetry = telemetry
        self._loop = loop
        self._poller = poller
        self._limits = limits or ConnectionLimits()
        self._tls = tls
        self._audit = audit
        self._on_idle = on_idle
        self._listeners: list[tuple[str, Listener]] = []
        self._paths: list[str] = []
        self._connections: set[Connection] = set()
        self._channels: set[WebSocketChannel | TlsProtocol] = set()
        self._stdio: StdioChannel | None = None
        self._observers = observers_of(telemetry)
        self._exchanges: set[asyncio.Task[None]] = set()

    @property
    def connections(self) -> int:
        return len(self._connections)

    def usage(self) -> dict[str, int]:
        """How much of the limits is in use; of those that each connection has, the most of any."""
        used = {
            "connection.connections": len(self._connections),
            # Standard input is a connection without a socket.
            "connection.exchanges": len(self._exchanges),
            "connection.undecided": max(0, len(self._channels) - len(self._connections)),
            **self._endpoint.usage(),
        }
        for connection in self._connections:
            for name, amount in connection.usage().items():
                used[name] = max(amount, used.get(name, 0))
        return used

    # Listening.

    async def listen(self, where: Listen) -> str:
        """Start a listener; return the URL at which clients reach it.

        Raises:
            BadListen: It cannot be had; the words say why.
        """
        check_exposure(where, auth=self._routes.auth is not None)
        match where:
            case TcpListen():
                url = self._listen_tcp(where)
            case UnixListen(path=path):
                url = self._listen_unix(path)
            case Stdio():
                url = await self._serve_stdio()
        _log.info("listening on %s", url, extra={"url": url})
        return url

    def adopt(self, url: str, fd: int) -> None:
        """Serve a listening socket that another server has opened, for which ``listen`` returned ``url``."""
        where, sock = parse_listen(url), socket.socket(fileno=fd)
        if isinstance(where, UnixListen):
            self._paths.append(where.path)
            self._add(url, sock, self._unix_routes)
        else:
            assert isinstance(where, TcpListen)
            self._add(url, sock, self._routes, self._tls if where.tls else None)
        _log.info("listening on %s again", url, extra={"url": url})

    def sockets(self) -> list[tuple[str, int]]:
        """The URL and the listening socket of each listener."""
        return [(url, listener.fileno()) for url, listener in self._listeners]

    def _listen_tcp(self, where: TcpListen) -> str:
        if where.tls and self._tls is None:
            raise BadListen(f"{where.url} needs a certificate")
        family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        _bind(sock, (where.host, where.port), where.url)
        url = TcpListen(where.host, sock.getsockname()[1], where.tls).url
        self._add(url, sock, self._routes, self._tls if where.tls else None)
        return url

    def _listen_unix(self, path: str) -> str:
        """A socket that only our own user can reach; a stale one is replaced, a live one is not."""
        if _answers(path):
            raise BadListen(f"control socket is already in use at {path}")
        with contextlib.suppress(OSError):
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                os.unlink(path)
        umask = os.umask(0o177)
        try:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            _bind(sock, path, f"unix://{path}")
        finally:
            os.umask(umask)
        self._paths.append(path)
        self._add(f"unix://{path}", sock, self._unix_routes)
        return f"unix://{path}"

    @property
    def _unix_routes(self) -> Routes:
        # Whoever can open it is our own user, or root: a token would say no more.
        return replace(self._routes, refuse_origin=False, auth=None)

    def _add(self, url: str, sock: socket.socket, routes: Routes, tls: ssl.SSLContext | None = None) -> None:
        listener = Listener(sock, lambda: self._accept(routes, tls), self._poller)
        self._listeners.append((url, listener))

    async def _serve_stdio(self) -> str:
        if self._stdio is not None:
            raise BadListen("standard input and output can be served only once")
        self._stdio = StdioChannel(
            self._connect,
            limits=self._limits,
            loop=self._loop,
            poller=self._poller,
            on_end=self._on_idle,
            on_limit=self._refuse,
        )
        await self._stdio.open(0, 1)
        return "stdio"

    # Connections.

    def _accept(self, routes: Routes, tls: ssl.SSLContext | None) -> asyncio.BufferedProtocol | None:
        """A channel for a new socket, unless far too many have not even said what they want."""
        if len(self._channels) >= self._limits.connections + self._limits.undecided:
            self._refuse("connection.undecided")
            return None
        channel = WebSocketChannel(
            self._try_connect,
            routes=routes,
            limits=self._limits,
            loop=self._loop,
            poller=self._poller,
            on_lost=self._channels.discard,
            run=self._run_exchange,
            on_refused=self._on_refused,
            on_limit=self._refuse,
        )
        if tls is None:
            self._channels.add(channel)
            return channel
        within = self._limits.handshake_seconds
        protocol = TlsProtocol(channel, tls, loop=self._loop, within=within, on_lost=self._channels.discard)
        self._channels.add(protocol)
        return protocol

    def _on_refused(self, peer: str, reason: str) -> None:
        # Not louder: whoever knocks must not decide how long the log gets.
        _log.info("%s was not let in: %s", peer, reason, extra={"peer": peer, "reason": reason})
        self._telemetry.authenticated(reason)
        if self._audit is not None:
            self._audit.refused(peer, reason)

    def _try_connect(self, channel: Channel) -> Connection:
        """A new connection.

        Raises:
            LimitReached: There are too many.
        """
        most, mine = self._limits.connections, channel.principal.grant.connections
        if len(self._connections) >= most:
            self._refuse("connection.connections", channel.peer)
            raise LimitReached("connections", most, name="connection.connections")
        if mine is not None and self._held_by(channel.principal) >= mine:
            self._refuse("token.connections", channel.peer)
            raise LimitReached("connections of one principal", mine, name="token.connections")
        if channel.principal is not ANYBODY:
            self._telemetry.authenticated("accepted")
        return self._connect(channel)

    def _held_by(self, principal: Principal) -> int:
        return sum(each.principal.identity == principal.identity for each in self._connections)

    def _refuse(self, limit: str, peer: str = "") -> None:
        self._telemetry.limit_reached(limit)
        _log.info("connection refused or ended: limit %s", limit, extra={"limit": limit, "peer": peer})

    def _connect(self, channel: Channel) -> Connection:
        connection = Connection(
            channel,
            self._endpoint,
            telemetry=self._telemetry,
            limits=self._limits,
            on_end=self._on_end,
            audit=self._audit,
            observers=self._observers,
        )
        self._connections.add(connection)
        if self._audit is not None:
            self._audit.connected(channel.principal, channel.peer)
        return connection

    def _on_end(self, connection: Connection) -> None:
        self._connections.discard(connection)
        if self._audit is not None:
            self._audit.gone(connection.principal, connection.peer)

    # Routes.

    def _run_exchange(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run what a route does for one request.

        Raises:
            LimitReached: There are too many at once; the coroutine is closed.
        """
        most = self._limits.exchanges
        if len(self._exchanges) >= most:
            coroutine.close()
            self._refuse("connection.exchanges")
            raise LimitReached("HTTP requests at once", most, name="connection.exchanges")
        task = self._loop.create_task(coroutine)
        self._exchanges.add(task)
        task.add_done_callback(self._on_exchange_over)
        return task

    def _on_exchange_over(self, task: asyncio.Task[None]) -> None:
        self._exchanges.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("an HTTP request's task failed", exc_info=error)

    # The end.

    async def stop(self) -> None:
        """Listen no more and send everybody away, with a word why."""
        _log.info("the server stops", extra={"connections": len(self._connections)})
        for _, listener in self._listeners:
            listener.close()
        for path in self._paths:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        self._listeners = []
        self._paths = []
        for connection in list(self._connections):
            connection.cut("the server stops", stopping=True)
        for channel in list(self._channels):
            channel.hang_up()
        if self._stdio is not None:
            await self._stdio.close()
        for task in self._exchanges:
            task.cancel()
        if self._exchanges:
            await asyncio.wait(self._exchanges)


def _bind(sock: socket.socket, address: object, url: str) -> None:
    try:
        sock.bind(address)  # type: ignore[arg-type]  # Which kind of address depends on the family.
        sock.listen(_BACKLOG)
    except OSError as error:
        sock.close()
        raise BadListen(f"cannot listen on {url}: {error.strerror or error}") from error


def _answers(path: str) -> bool:
    """Whether somebody listens on the Unix socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError as error:
            # Without a number it is no answer of the system's: the path cannot be one.
            return error.errno not in (None, errno.ENOENT, errno.ENOTDIR, errno.ECONNREFUSED, errno.ENOTSOCK)
        return True
