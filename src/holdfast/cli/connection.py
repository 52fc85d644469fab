"""Whether a command has its connection to the server at the moment, and what a user who leaves is told."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Callable

OnChange = Callable[[bool], None]
"""Is told that the connection was lost, with False, or that it is back."""


class ConnectionState:
    """The connection of a command to its server; what runs in this process has one that is never lost."""

    def __init__(self, server: str | None) -> None:
        """``server`` is its URL or name, as the user gave it."""
        self.server = server
        self.is_lost = False
        self._is_left = False
        self._listeners: list[OnChange] = []

    def listen(self, listener: OnChange) -> None:
        """Call ``listener`` with each change from now on, and now if the connection is lost."""
        self._listeners.append(listener)
        if self.is_lost:
            listener(False)

    def on_change(self, connected: bool) -> None:  # noqa: FBT001  (a callback with one fact)
        """Take note that the connection was lost or is back; may be called again with the same fact."""
        if self._is_left:
            return
        self.is_lost = not connected
        for listener in self._listeners:
            listener(connected)

    def leave(self) -> None:
        """Take no more notes: what ends the connection from now on is the end of the command itself."""
        self._is_left = True


def come_back(arguments: argparse.Namespace, name: str, *verb: str) -> str:
    """Return the command line that does ``verb`` for a process, on the same server, quoted for a shell."""
    server = ["-H", arguments.url] if arguments.url else []
    token = ["--token-file", arguments.token_file] if arguments.token_file else []
    mark = ["--"] if name.startswith("-") else []
    return shlex.join(["holdfast", *verb, *server, *token, *mark, name])


def left(name: str, back: str, connection: ConnectionState | None = None) -> str:
    """Say that a process is left running, and how to come back to it."""
    if connection is None or not connection.is_lost:
        return f"left {name} running; '{back}' comes back"
    return f"no connection to {connection.server}; {name} is left running there; '{back}' comes back"
