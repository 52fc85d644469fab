"""Whoever has processes on a server, as the link to it sees them (pure)."""

from __future__ import annotations

from typing import Protocol

import msgspec

from holdfast.errors import LinkLost


class Follower(Protocol):
    """Whoever has processes on the server."""

    def broke(self, reason: str) -> None:
        """The connection is gone; what was bound to it is too."""

    def resumed(self) -> None:
        """There is a new connection to the same session; what was told in between was missed."""

    def forgotten(self, reason: str) -> None:
        """There is a new connection, but the session is a new one as well."""

    def over(self, error: LinkLost) -> None:
        """There will be no more connections."""

    def output(self, message: bytes | memoryview) -> bool:
        """Take a message if it is output; say whether it was."""

    def notified(self, method: str, params: msgspec.Raw) -> None:
        """Take any other notification."""
