"""Where a command does its work: on a server, or in this process; and how its work is run there."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import termios
from collections.abc import Awaitable, Callable

from holdfast.api.host import Host, connect, local
from holdfast.client.known_hosts import KnownHost, config_path, is_name
from holdfast.client.known_hosts import find as find_host
from holdfast.client.known_hosts import read as read_hosts
from holdfast.errors import BadRequest, HoldfastError
from holdfast.value import replace

from .connection import ConnectionState
from .explain import explain
from .report import Failure, say
from .streams import open_standard_files
from .terminal import is_terminal

Work = Callable[[Host], Awaitable[int]]
"""What a command does with a host.  It returns the exit code."""

_LONG_BREAK = 1.0
"""Seconds without a connection after which a user wonders what is going on."""


def url_of(arguments: argparse.Namespace) -> str | None:
    """Return the URL or name of the server, from the option or the variable; None if neither is set."""
    return arguments.url or os.environ.get("HOLDFAST_URL") or None


def perform(
    arguments: argparse.Namespace,
    work: Work,
    *,
    embedded: bool = False,
    parting: Callable[[], str] | None = None,
    on_connection_change: Callable[[bool], None] | None = None,
) -> int:
    """Run ``work`` with a host, in an event loop of its own; return the exit code.

    ``arguments.connection`` is the ``ConnectionState`` meanwhile, and afterwards.

    Args:
        embedded: Run processes in this process if there is no URL.
        parting: Returns what a user is told who ends the work with ^C.
        on_connection_change: Told of a lost connection instead of the user; see ``connect``.

    Raises:
        Failure: There is no server, or an error of the library ended the work.
    """
    server = _server_of(arguments)
    url = None if server is None else server.url
    token = None if server is None else server.token
    if url is None and not embedded:
        raise Failure(
            "no server given: use --url ws://HOST:PORT or set HOLDFAST_URL; start one with 'holdfast serve'"
        )
    open_standard_files()
    arguments.connection = connection = ConnectionState(url_of(arguments))
    if on_connection_change is not None:
        connection.listen(on_connection_change)
    elif is_terminal(2) and not getattr(arguments, "quiet", False):
        connection.listen(ConnectionNotice(2).on_connection_change)
    try:
        return asyncio.run(_with_host(url, token, arguments.reconnect, work, connection))
    except KeyboardInterrupt:
        if not getattr(arguments, "quiet", False):
            if parting is not None:
                say(parting())
            elif connection.is_lost:
                say(f"no connection to {connection.server}; what runs there goes on")
        raise
    except HoldfastError as error:
        raise explain(error, url=url) from None


async def _with_host(
    url: str | None,
    token: str | None,
    reconnect_timeout: float,
    work: Work,
    connection: ConnectionState,
) -> int:
    if url is None:
        async with local() as host:
            return await work(host)
    async with connect(
        url, token=token, reconnect_timeout=reconnect_timeout, on_connection_change=connection.on_change
    ) as host:
        try:
            return await work(host)
        finally:
            connection.leave()


def _server_of(arguments: argparse.Namespace) -> KnownHost | None:
    """Return the server to work on, with its token if there is one; None if no server was chosen.

    A token that was kept for a name goes before one in a variable, which may be for another server.

    Raises:
        Failure: The configuration or the token cannot be used.
    """
    chosen = url_of(arguments)
    if chosen is None:
        return None
    path = config_path(os.environ)
    try:
        if is_name(chosen):
            server = find_host(path, chosen)
            own = None if arguments.token_file else _kept_token(server)
            return replace(server, token=own or given_token(arguments))
        token = given_token(arguments)
        if token is None:
            same = [one for one in read_hosts(path).values() if one.url == chosen]
            token = _kept_token(same[0]) if same else None
    except BadRequest as error:
        raise Failure(str(error)) from None
    return KnownHost("", chosen, token)


def _kept_token(host: KnownHost) -> str | None:
    if host.token is not None:
        return checked_token(host.token, f"the token of {host.name} in the configuration")
    return None if host.token_file is None else _read_token(host.token_file)


def given_token(arguments: argparse.Namespace) -> str | None:
    """Return the token that an option or a variable gives: the file of ``--token-file`` first.

    Raises:
        Failure: It cannot be read, or is no token.
    """
    if arguments.token_file:
        return _read_token(arguments.token_file)
    if token := os.environ.get("HOLDFAST_TOKEN", "").strip():
        return checked_token(token, "$HOLDFAST_TOKEN")
    path = os.environ.get("HOLDFAST_TOKEN_FILE")
    return _read_token(path) if path else None


def checked_token(token: str, place: str) -> str:
    """Return the token, if it can be sent; ``place`` says where it comes from.

    Raises:
        Failure: It cannot.
    """
    if not (token.isascii() and token.isprintable()):
        raise Failure(f"{place} has more in it than one line of plain characters")
    return token


def _read_token(path: str) -> str:
    """Return the token in a file.

    Raises:
        Failure: The file cannot be read, or does not contain a token.
    """
    try:
        with open(path, encoding="utf-8") as file:
            token = file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Failure(f"cannot read the token file {path}: {reason}") from None
    if not token:
        raise Failure(f"the token file {path} is empty")
    return checked_token(token, f"the token file {path}")


class ConnectionNotice:
    """Shows on a terminal that the connection was lost, and that it is back.  Short breaks are not shown."""

    def __init__(self, fd: int, *, wait: float = _LONG_BREAK) -> None:
        """
        Args:
            fd: The terminal.
            wait: Seconds that a break must last to be shown.
        """
        self._fd = fd
        self._wait = wait
        self._timer: asyncio.TimerHandle | None = None
        self._is_shown = False

    def on_connection_change(self, connected: bool) -> None:  # noqa: FBT001  (a callback with one fact)
        """Take note that the connection was lost or restored; may be called again with the same fact."""
        if connected:
            if self._timer is not None:
                self._timer.cancel()
            if self._is_shown:
                self._show("connected again")
            self._timer, self._is_shown = None, False
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._wait, self._on_long_break)

    def _on_long_break(self) -> None:
        self._is_shown = True
        self._show("connection lost, trying again...")

    def _show(self, words: str) -> None:
        line = f"holdfast: {words}\n"
        if self._is_raw():
            # A program draws on this terminal, and may have left the cursor anywhere.
            line = f"\r\nholdfast: {words}\r\n"
        with contextlib.suppress(OSError):
            os.write(self._fd, line.encode())

    def _is_raw(self) -> bool:
        try:
            modes: list[int] = termios.tcgetattr(self._fd)
        except termios.error:
            return False
        return not modes[1] & termios.OPOST
