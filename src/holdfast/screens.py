"""What a terminal shows, and the interfaces of what can say it."""

from __future__ import annotations

from typing import Protocol

from .cursors import CursorShape
from .model import Size
from .value import value


@value
class ScreenSnapshot:
    """What a terminal shows, and the bytes that draw it on another one."""

    seq: int
    """The last number that is drawn: what is behind it goes on from here."""
    size: Size
    data: bytes
    """Puts any terminal of this size into the same state, whatever it showed before."""
    row: int
    """Where the cursor is, counted from 1."""
    col: int
    cursor_visible: bool
    title: str
    alternate: bool
    """Whether a full-screen program has the alternate screen."""
    complete: bool
    """Whether all output was drawn; if not, some was no longer kept."""
    cursor_shape: CursorShape = CursorShape.DEFAULT
    cursor_blinking: bool = False


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
