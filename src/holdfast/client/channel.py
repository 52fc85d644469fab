"""The bytes' side of a link: what a connection to a server offers, whatever it is made of (pure)."""

from __future__ import annotations

from typing import Protocol


class Listener(Protocol):
    """Whoever is told what comes from the server."""

    def received(self, message: bytes | memoryview) -> None:
        """One whole message.  What is a view becomes something else once this returns."""

    def broke(self, reason: str) -> None:
        """The connection is gone.  Told once; nothing follows."""


class Channel(Protocol):
    """One connection to a server, until it breaks."""

    @property
    def heard(self) -> float:
        """When something came last, whatever it was, in loop time."""

    def send(self, message: bytes) -> None:
        """Send one message.  Never waits; the order of calls is kept.  Does nothing once it is broken."""

    async def room(self) -> None:
        """Wait while so much is unsent that more should not be added."""

    def ping(self) -> None:
        """Ask for a sign of life, if there can be doubt about it."""

    def cut(self, reason: str) -> None:
        """Break it from our side, at once.  The listener is told before this returns."""

    async def aclose(self) -> None:
        """Say goodbye; return when it is gone, soon."""


class NoConnection(Exception):
    """A connection cannot be made; ``str`` of this says why."""

    def __init__(self, reason: str, *, final: bool = False, reached: bool = False) -> None:
        super().__init__(reason)
        self.final = final
        """Whether trying again is of no use."""
        self.reached = reached
        """Whether there was somebody, and only the talk broke off."""
