"""Where to listen: the URLs of ``--listen`` (pure)."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from holdfast.value import value


class BadListen(Exception):
    """The URL cannot be listened on; ``str`` of this says why."""


@value
class TcpListen:
    """A WebSocket listener on an IP address."""

    host: str
    port: int
    tls: bool = False

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{'wss' if self.tls else 'ws'}://{self.address}"

    @property
    def is_loopback(self) -> bool:
        return ipaddress.ip_address(self.host).is_loopback


@value
class UnixListen:
    """A WebSocket listener on a Unix socket."""

    path: str


@value
class Stdio:
    """One client on our standard input and output."""


Listen = TcpListen | UnixListen | Stdio


def parse_listen(url: str) -> Listen:
    """Read one ``--listen`` URL.

    Raises:
        BadListen: It is none we know.
    """
    if url in ("stdio", "stdio://"):
        return Stdio()
    if url.startswith("unix://") and len(url) > len("unix://"):
        return UnixListen(url.removeprefix("unix://"))
    if not url.startswith(("ws://", "wss://")):
        raise BadListen(
            f"unsupported --listen URL `{url}`; expected `ws://IP:PORT`, `wss://IP:PORT`, `unix://PATH`"
            " or `stdio`"
        )
    tls = url.startswith("wss://")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        ipaddress.ip_address(host or "")
    except ValueError:
        host = port = None
    if host is None or port is None or url != TcpListen(host, port, tls).url:
        expected = "wss://IP:PORT" if tls else "ws://IP:PORT"
        raise BadListen(f"invalid websocket --listen URL `{url}`; expected `{expected}`")
    return TcpListen(host, port, tls)


def check_exposure(listen: Listen, *, auth: bool = False) -> None:
    """Refuse to serve the whole network without asking who is there.

    Raises:
        BadListen: The listener could be reached from other hosts.
    """
    if isinstance(listen, TcpListen) and not listen.is_loopback and not auth:
        raise BadListen(
            f"refusing to start non-loopback websocket listener {listen.address} without auth;"
            " configure `--ws-auth capability-token` or `--ws-auth signed-bearer-token`,"
            " or listen on 127.0.0.1 or [::1] and reach it through a tunnel"
        )
