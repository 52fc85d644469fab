"""An endpoint for clients of any dialect: the first message decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.wire import jsonrpc
from holdfast.wire.jsonrpc import Malformed, Request

from .dialect import Client, Conversation, Endpoint, Method


class AutoEndpoint:
    """Sends each client to the endpoint it means.  Implements ``dialect.Endpoint``."""

    def __init__(self, *, exec_endpoint: Endpoint, app_endpoint: Callable[[], Endpoint]) -> None:
        """``app_endpoint`` gives the same one each time; it is asked when the first client means it."""
        self._exec = exec_endpoint
        self._app = app_endpoint
        self._met: list[Endpoint] = [exec_endpoint]

    @property
    def methods(self) -> Mapping[str, Method]:
        return self._exec.methods

    def pick(self, text: bytes) -> Endpoint:
        """Only the app dialects begin with a ``clientInfo``; everything else is the exec dialect's."""
        try:
            message = jsonrpc.decode_loosely(text)
        except Malformed:
            return self._exec
        match message:
            case Request(method="initialize", params={"clientInfo": _}):
                endpoint = self._app()
                if endpoint not in self._met:
                    self._met.append(endpoint)
                return endpoint
            case _:
                return self._exec

    def greet(self, client: Client) -> Conversation:
        return self._exec.greet(client)

    def usage(self) -> Mapping[str, int]:
        return {name: used for endpoint in self._met for name, used in endpoint.usage().items()}
