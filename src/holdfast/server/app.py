"""The server: an endpoint, its listeners, and the connections they accept."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import stat
from collections.abc import Callable

from holdfast.config import ConnectionLimits
from holdfast.dialects.dialect import Endpoint
from holdfast.poller import Poller
from holdfast.telemetry import Telemetry
from holdfast.value import replace

from .connection import Channel, Connection
from .http import Routes
from .listen import BadListen, Listen, Stdio, Tcp, Unix, check_exposure
from .stdio import StdioChannel
from .stream import Listener
from .websocket import WebSocketChannel

_UNDECIDED = 256
"""Sockets beyond the limit of connections: room for health checks, and to tell others that we are full."""

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
        on_idle: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_idle`` is called when the one client on standard input has gone."""
        self._endpoint = endpoint
        self._routes = routes
        self._telemetry = telemetry
        self._loop = loop
        self._poller = poller
        self._limits = limits or ConnectionLimits()
        self._on_idle = on_idle
        self._listeners: list[Listener] = []
        self._paths: list[str] = []
        self._connections: set[Connection] = set()
        self._channels: set[WebSocketChannel] = set()
        self._stdio: StdioChannel | None = None

    @property
    def connections(self) -> int:
        return len(self._connections)

    # Listening.

    async def listen(self, where: Listen) -> str:
        """Start a listener; return the URL at which clients reach it.

        Raises:
            BadListen: It cannot be had; the words say why.
        """
        check_exposure(where)
        match where:
            case Tcp():
                return self._listen_tcp(where)
            case Unix(path=path):
                return self._listen_unix(path)
            case Stdio():
                return await self._serve_stdio()

    def _listen_tcp(self, where: Tcp) -> str:
        family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        self._bind(sock, (where.host, where.port), where.url, self._routes)
        return Tcp(where.host, sock.getsockname()[1]).url

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
            routes = replace(self._routes, refuse_origin=False)
            self._bind(sock, path, f"unix://{path}", routes)
        finally:
            os.umask(umask)
        self._paths.append(path)
        return f"unix://{path}"

    def _bind(self, sock: socket.socket, address: object, url: str, routes: Routes) -> None:
        try:
            sock.bind(address)  # type: ignore[arg-type]  # Which kind of address depends on the family.
            sock.listen(_BACKLOG)
        except OSError as error:
            sock.close()
            raise BadListen(f"cannot listen on {url}: {error.strerror or error}") from error
        self._listeners.append(Listener(sock, lambda: self._accept(routes), self._poller))

    async def _serve_stdio(self) -> str:
        if self._stdio is not None:
            raise BadListen("standard input and output can be served only once")
        self._stdio = StdioChannel(
            self._connect, limits=self._limits, loop=self._loop, poller=self._poller, on_end=self._on_idle
        )
        await self._stdio.open(0, 1)
        return "stdio"

    # Connections.

    def _accept(self, routes: Routes) -> WebSocketChannel | None:
        """A channel for a new socket, unless far too many have not even said what they want."""
        if len(self._channels) >= self._limits.connections + _UNDECIDED:
            return None
        channel = WebSocketChannel(
            self._try_connect,
            routes=routes,
            limits=self._limits,
            loop=self._loop,
            poller=self._poller,
            on_lost=self._channels.discard,
        )
        self._channels.add(channel)
        return channel

    def _try_connect(self, channel: Channel) -> Connection | None:
        """A new connection, unless there are too many."""
        return self._connect(channel) if len(self._connections) < self._limits.connections else None

    def _connect(self, channel: Channel) -> Connection:
        connection = Connection(
            channel,
            self._endpoint,
            telemetry=self._telemetry,
            limits=self._limits,
            on_end=self._on_end,
        )
        self._connections.add(connection)
        return connection

    def _on_end(self, connection: Connection) -> None:
        self._connections.discard(connection)

    # The end.

    async def stop(self) -> None:
        """Listen no more and send everybody away, with a word why."""
        for listener in self._listeners:
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


def _answers(path: str) -> bool:
    """Whether somebody listens on the Unix socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError as error:
            # Without a number it is no answer of the system's: the path cannot be one.
            return error.errno not in (None, errno.ENOENT, errno.ENOTDIR, errno.ECONNREFUSED, errno.ENOTSOCK)
        return True
