"""Where a server is: the URLs of ``connect`` (pure)."""

from __future__ import annotations

import shlex
from urllib.parse import urlsplit

from holdfast.errors import BadRequest
from holdfast.value import value


@value
class TcpAddress:
    """A WebSocket at an address of the network."""

    host: str
    port: int
    path: str = "/"
    secure: bool = False
    """Whether it is encrypted: ``wss``."""

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{'wss' if self.secure else 'ws'}://{self.authority}{self.path.rstrip('/')}"


@value
class UnixAddress:
    """A WebSocket at a Unix socket."""

    path: str

    def __str__(self) -> str:
        return f"unix://{self.path}"


@value
class Program:
    """A program that is a server on its standard input and output, such as one behind ``ssh``."""

    argv: tuple[str, ...]

    def __str__(self) -> str:
        return f"stdio:{shlex.join(self.argv)}"


Address = TcpAddress | UnixAddress | Program

_PORTS = {"ws": 80, "wss": 443}


def parse(url: str) -> Address:
    """Read a URL.

    Raises:
        BadRequest: It is none of ours; the words say what would be.
    """
    if url.startswith("stdio:"):
        return Program(_program(url.removeprefix("stdio:").removeprefix("//")))
    if url.startswith("unix://"):
        path = url.removeprefix("unix://")
        if not path:
            raise BadRequest("unix:// needs the path of a socket", field="url")
        return UnixAddress(path)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadRequest(f"{url!r} is no URL: {error}", field="url") from None
    if parts.scheme not in _PORTS or not parts.hostname:
        raise BadRequest(
            f"{url!r} names no server: use ws://HOST:PORT, wss://HOST:PORT, unix://PATH or stdio:COMMAND",
            field="url",
        )
    if parts.username is not None or parts.password is not None:
        raise BadRequest("a URL is no place for a password: use a token", field="url")
    path = parts.path or "/"
    if parts.query:
        path += f"?{parts.query}"
    if not path.isascii() or any(character <= " " for character in path):
        raise BadRequest(f"{url!r} has characters in its path that have to be encoded", field="url")
    return TcpAddress(parts.hostname, port or _PORTS[parts.scheme], path, secure=parts.scheme == "wss")


def _program(command: str) -> tuple[str, ...]:
    try:
        argv = tuple(shlex.split(command))
    except ValueError as error:
        raise BadRequest(f"stdio:{command} is no command: {error}", field="url") from None
    if not argv:
        raise BadRequest("stdio: needs a command that is a server, such as 'holdfast serve'", field="url")
    return argv
