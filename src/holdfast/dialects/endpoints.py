"""The table of endpoints, and the endpoint for clients of any of them: the first message decides.

Another dialect is a folder with an endpoint, and a row of this table.  Nothing heavy is imported for
the table itself: the command line shows it in its help.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.value import value

if TYPE_CHECKING:
    import asyncio

    from holdfast.backend import HostedBackend
    from holdfast.config import ServerLimits
    from holdfast.telemetry import Telemetry
    from holdfast.webhooks import WebhookPolicy

    from .dialect import Catalog, Client, Conversation, Endpoint, Method


@value
class Services:
    """What endpoints are made with."""

    backend: HostedBackend
    loop: asyncio.AbstractEventLoop
    telemetry: Telemetry
    limits: ServerLimits
    webhooks: WebhookPolicy | None = None
    """Where clients may have the ends of processes told to; None: nowhere."""


@value
class EndpointRow:
    """One endpoint that a server can have."""

    name: str
    """As on the command line."""
    module: str
    """Has ``make_endpoint(services)`` and ``CATALOG``.  Imported when first needed, to listen sooner."""
    means: Callable[[bytes], bool]
    """Whether a client whose first message this is means this endpoint."""
    healthz: bool = True
    """Whether a listener of this endpoint alone has ``/healthz``."""
    any_path: bool = False
    """Whether a listener of this endpoint alone takes an upgrade on every path."""

    def make(self, services: Services) -> Endpoint:
        endpoint: Endpoint = importlib.import_module(self.module).make_endpoint(services)
        return endpoint

    @property
    def catalog(self) -> Catalog:
        """Everything that may be said at it."""
        catalog: Catalog = importlib.import_module(self.module).CATALOG
        return catalog


def _has_client_info(text: bytes) -> bool:
    """Only the app dialects begin with a ``clientInfo``."""
    from holdfast.wire import jsonrpc  # Here: see above.

    try:
        message = jsonrpc.decode_loosely(text)
    except jsonrpc.Malformed:
        return False
    match message:
        case jsonrpc.Request(method="initialize", params={"clientInfo": _}):
            return True
        case _:
            return False


ENDPOINTS = (
    # The first takes everybody who means no other one.
    EndpointRow("exec", "holdfast.dialects.exec.methods", lambda text: False, healthz=False),
    EndpointRow("app", "holdfast.dialects.app.methods", _has_client_info, any_path=True),
)

AUTO = "auto"
"""The name of the endpoint for clients of all others."""


def find_row(name: str, table: Sequence[EndpointRow] = ENDPOINTS) -> EndpointRow | None:
    """The row of that name; None for ``auto``."""
    return next((row for row in table if row.name == name), None)


class AutoEndpoint:
    """Sends each client to the endpoint it means.  Implements ``dialect.Endpoint``."""

    def __init__(self, services: Services, table: Sequence[EndpointRow] = ENDPOINTS) -> None:
        self._choices = [_Choice(row, services) for row in table]
        _ = self._default  # Most clients mean it: nobody should wait for its import.

    @property
    def _default(self) -> Endpoint:
        return self._choices[0].endpoint

    @property
    def methods(self) -> Mapping[str, Method]:
        return self._default.methods

    def pick(self, text: bytes) -> Endpoint:
        for choice in self._choices:
            if choice.row.means(text):
                return choice.endpoint
        return self._default

    def greet(self, client: Client) -> Conversation:
        return self._default.greet(client)

    def load(self) -> None:
        """Make every endpoint now, so that no client waits for its import."""
        for choice in self._choices:
            _ = choice.endpoint

    def usage(self) -> Mapping[str, int]:
        return {name: used for endpoint in self._made() for name, used in endpoint.usage().items()}

    def close(self) -> None:
        for endpoint in self._made():
            endpoint.close()

    def _made(self) -> list[Endpoint]:
        return [choice.endpoint for choice in self._choices if "endpoint" in vars(choice)]


class _Choice:
    """A row, and its endpoint once somebody has meant it."""

    def __init__(self, row: EndpointRow, services: Services) -> None:
        self.row = row
        self._services = services

    @cached_property
    def endpoint(self) -> Endpoint:
        return self.row.make(self._services)
