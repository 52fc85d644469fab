"""The interface of places whose processes have names: the engine in this program, or a server.

The library stands on this, and knows no other difference between near and far.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from .backend import Backend, Process
from .inspection import Inspected
from .model import CurrentUsage, Listing, Spec
from .process_events import EventSink
from .ranges import Ranged
from .screens import ScreenSource
from .value import value


@value
class Naming:
    """How a process can be found at its place, and for how long."""

    name: str | None = None
    """What people call it; by default the place chooses something."""
    keep: bool = False
    """Whether it outlives its client, and can be found for a while after its end."""
    retain: int | None = None
    """Bytes of output to keep for later readers."""
    idempotent: bool = False
    """Whether the process may be one that the same request has started before under this name."""
    auto_remove: bool = False
    """Whether it is in no list once it has ended."""
    notify: str | None = None
    """The URL that the place tells of its end."""


UNNAMED = Naming()


class NamedProcess(Process, ScreenSource, Inspected, Ranged, Protocol):
    """A process that can be found by its name, and by its identifier."""

    @property
    def name(self) -> str:
        """What people call it.  Another process may have this name once it has ended."""

    @property
    def identifier(self) -> str:
        """What no other process at its place is ever called."""

    @property
    def can_end_stdin(self) -> bool:
        """Whether its stdin can be closed; servers of other makers may not support it."""

    def release(self) -> None:
        """Let the process go on even if nobody reads its output.  Does not wait."""

    async def remove(self) -> None:
        """Forget the process, which has ended, and its output.

        Raises:
            StillRunning: It has not ended.
        """


class EventSource(Protocol):
    """Where events of all processes come from."""

    async def subscribe(self, sink: EventSink) -> None:
        """Tell ``sink`` all events from now on.

        Raises:
            Unsupported: The server does not tell any.
        """

    def unsubscribe(self, sink: EventSink) -> None:
        """Tell ``sink`` nothing more.  May be called twice."""


class Place(Backend, Protocol):
    """A backend whose processes have names: the engine in this program, or a server."""

    @property
    def events(self) -> EventSource:
        """Tells what happens to its processes."""

    async def start(self, spec: Spec, naming: Naming = UNNAMED) -> NamedProcess:
        """Start a process, as ``Backend.start`` does.

        Raises:
            NameTaken: A process with this name runs.
        """

    async def find(self, name: str) -> NamedProcess:
        """Return the process with this name; of several, the one that runs, or was started last.

        Args:
            name: Its name, its identifier, or the beginning that no other identifier has.

        Raises:
            UnknownProcess: There is none.
            NameAmbiguous: Several identifiers begin like this.
        """

    async def restart(self, name: str, *, grace: float = 0.0) -> NamedProcess:
        """End the process that ``find`` finds, which was kept, and start the same under its name.

        Raises:
            Unsupported: The request for it is not remembered.
            StillRunning: Something of it could not be ended.
        """

    async def describe(self, name: str) -> Listing:
        """Return what ``list`` says of the process that ``find`` finds."""

    async def list(self, *, inspect: bool = False) -> Sequence[Listing]:
        """Return the processes that can be found, the oldest first; ``inspect``: and who waits for input."""

    async def usage(self, names: Sequence[str] | None = None) -> Sequence[CurrentUsage]:
        """Return what processes that can be found use now; those of which nobody is left are left out.

        Args:
            names: Of these only: names or whole identifiers.  One that means no process is left out, too.
        """
