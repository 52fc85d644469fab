"""The app endpoint: one client's processes and commands, which end with its connection."""

from __future__ import annotations

import asyncio
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from time import time

import msgspec

from holdfast.backend import HostedBackend, Valve
from holdfast.config import AppLimits
from holdfast.dialects.dialect import Client, Method, WireError
from holdfast.dialects.scope import Scope, Starting, Strays
from holdfast.errors import HoldfastError, LimitReached, OutOfTurn
from holdfast.protocol.app import AppCapabilities, AppInitializeParams, AppInitializeResult, ClientInfo
from holdfast.protocol.paths import utf8_size
from holdfast.protocol.shapes import Shape
from holdfast.wire import jsonrpc
from holdfast.wire.jsonrpc import Notification, Response

from .buffered import OutputRoom
from .explain import Declined, explain
from .family import COMMAND, PROCESS, Family
from .run import Run

_encode = msgspec.json.Encoder().encode

NOTIFICATIONS = frozenset({PROCESS.delta, COMMAND.delta, "process/exited"})
"""What a client can be told without asking."""

_NOT_IN_A_HEADER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class AppEndpoint:
    """What all conversations share.  Implements ``dialect.Endpoint``."""

    def __init__(
        self,
        backend: HostedBackend,
        methods: Mapping[str, Method],
        *,
        loop: asyncio.AbstractEventLoop,
        limits: AppLimits | None = None,
    ) -> None:
        self.backend = backend
        self.methods = methods
        self.loop = loop
        self.limits = limits or AppLimits()
        self.room = OutputRoom(self.limits.buffered_total)

    def pick(self, text: bytes) -> AppEndpoint:
        return self

    def greet(self, client: Client) -> AppConversation:
        return AppConversation(self, client)

    def usage(self) -> Mapping[str, int]:
        return {"app.buffered_total": self.limits.buffered_total - self.room.left}

    def close(self) -> None:
        pass  # Everything ends with its connection.


def around(method: str) -> tuple[bytes, bytes]:
    """What comes before and behind the params of a notification."""
    return b'{"method":"%b","params":' % method.encode(), b',"emittedAtMs":%d}' % int(time() * 1000)


class AppConversation:
    """One client's talk, from the handshake on.  Implements ``dialect.Conversation``."""

    __slots__ = (
        "_experimental",
        "_initialized",
        "_silenced",
        "backend",
        "client",
        "commands",
        "endpoint",
        "numbers",
        "processes",
        "strays",
        "unnamed",
        "valve",
    )

    binary = False
    envelope = jsonrpc.LOOSE

    def __init__(self, endpoint: AppEndpoint, client: Client) -> None:
        self.endpoint = endpoint
        self.client = client
        self.backend = endpoint.backend.on_behalf_of(client.principal, client.peer)
        limits = endpoint.limits
        make = partial(Scope[Run], limit=limits.names, most_bytes=limits.name_bytes, name="app.names")
        self.processes: Scope[Run] = make()
        self.commands: Scope[Run] = make()
        self.unnamed: Scope[Run] = make()
        """Commands whose client gave them no name."""
        self.numbers = count()
        self.strays = Strays()
        """What ended processes and commands have left behind."""
        self.valve = Valve()
        self._initialized = False
        self._experimental = False
        self._silenced: frozenset[str] = frozenset()

    # The handshake.

    def begin(self, params: AppInitializeParams) -> AppInitializeResult:
        if self._initialized:
            raise OutOfTurn("Already initialized")
        client = params.client_info
        if _NOT_IN_A_HEADER.search(client.name):
            raise Declined(f"Invalid clientInfo.name: '{client.name}'. Must be a valid HTTP header value.")
        wanted = params.capabilities or AppCapabilities()
        silenced = wanted.opt_out_notification_methods or ()
        _check_opt_outs(silenced, self.endpoint.limits)
        self._initialized = True
        self._experimental = wanted.experimental_api
        # We keep what we could ever tell.
        self._silenced = NOTIFICATIONS.intersection(silenced)
        info = self.backend.info
        return AppInitializeResult(_user_agent(client, info.version), f"{info.home or info.cwd}/.holdfast")

    def gate(self, method: Method) -> None:
        if not method.family:
            return
        if not self._initialized:
            raise OutOfTurn("Not initialized")
        if method.family.startswith("process/"):
            self.need_experimental(method.family)

    def need_experimental(self, feature: str) -> None:
        """Refuse ``feature`` unless the client said that it knows what it asks for."""
        if not self._experimental:
            raise Declined(f"{feature} requires experimentalApi capability")

    def scope(self, family: Family) -> Scope[Run]:
        """Where the names of this family are."""
        return self.processes if family is PROCESS else self.commands

    # What the client is told.

    def wants(self, method: str) -> bool:
        """Whether the client wants notifications of this method."""
        return method not in self._silenced

    def notify(self, method: str, params: Shape) -> None:
        if self.wants(method):
            prefix, suffix = around(method)
            self.client.send(prefix + _encode(params) + suffix)

    # Implements ``dialect.Conversation``.

    def malformed(self, detail: str) -> None:
        return None

    def notified(self, notification: Notification) -> None:
        pass  # ``initialized`` changes nothing here, and others are not for us.

    def answered(self, response: Response) -> None:
        pass

    def congested(self) -> None:
        self.valve.shut()

    def drained(self) -> None:
        self.valve.open()

    def explain(self, error: HoldfastError) -> WireError:
        return explain(error, self.endpoint.methods)

    def usage(self) -> Mapping[str, int]:
        scopes = self.processes, self.commands, self.unnamed
        return {"app.names": max(map(len, scopes)), "app.name_bytes": max(scope.size for scope in scopes)}

    def ended(self) -> None:
        for entry in self._entries():
            if isinstance(entry, Starting):
                entry.cancel()
            else:
                entry.abandon()
        self.strays.end()

    def _entries(self) -> Iterator[Run | Starting]:
        for scope in (self.processes, self.commands, self.unnamed):
            yield from scope


def _user_agent(client: ClientInfo, version: str) -> str:
    system = f"{platform.system()} {platform.release()}; {platform.machine()}"
    return f"holdfast/{version} ({system}) ({client.name.strip()}; {client.version.strip()})"


def _check_opt_outs(names: Sequence[str], limits: AppLimits) -> None:
    if len(names) > limits.opt_outs:
        raise LimitReached("notifications to opt out of", limits.opt_outs, name="app.opt_outs")
    if sum(map(utf8_size, names)) > limits.opt_out_bytes:
        raise LimitReached(
            "bytes of notifications to opt out of", limits.opt_out_bytes, name="app.opt_out_bytes"
        )
