"""Recordings of terminals that a host writes itself: what is asked for (pure)."""

from __future__ import annotations

from .sandbox import Sandbox
from .value import value

RECORDING_MOST = 64 << 20
"""Bytes of a recording, unless it is said how many: a day of work, or a minute of a flood."""


@value
class HostRecording:
    """A recording of a terminal, as asciicast, that its host writes to a file of its own.

    It begins with the process and ends with it, whoever is connected.  The file is made for it, and only its
    owner may read it; it is refused if there is something of that name.
    """

    path: str
    """An absolute path on the host."""
    input: bool = False
    """Record what is typed, too, passwords included."""
    max_bytes: int = RECORDING_MOST
    """How long the file may get.  A mark says that the recording ends there, and the process goes on."""
    sandbox: Sandbox | None = None
    """What may be written to; by default everything that the client may write to."""
