"""The interface of what can say what a terminal shows."""

from __future__ import annotations

from typing import Protocol

from .model import ScreenSnapshot


class ScreenSource(Protocol):
    """A process that may have a terminal, on this host or another."""

    async def snapshot(self) -> ScreenSnapshot:
        """Return what its terminal shows.

        Raises:
            NoTerminal: It has none.
            Unsupported: Nobody there knows, or it is too large.
        """


class HostedScreen(Protocol):
    """A process of this host that may have a terminal; nothing here waits."""

    def try_snapshot(self, until: int) -> ScreenSnapshot | None:
        """Draw for a moment; return what its terminal shows, up to number ``until`` at least.

        None if there was not enough time: others should have their turn before this is called again.

        Raises:
            NoTerminal: It has none.
            Unsupported: Screens are not kept, or it is too large.
        """
