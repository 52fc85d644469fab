"""What the cursor of a terminal looks like (pure)."""

from __future__ import annotations

from enum import Enum


class CursorShape(Enum):
    """The shape of a cursor, as programs choose it."""

    DEFAULT = "default"
    """None was chosen: that of the viewer's terminal."""
    BLOCK = "block"
    UNDERLINE = "underline"
    BAR = "bar"
