"""The interface of whatever a ``Host`` runs its processes on (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.backend import Backend, Process
from holdfast.model import Listing, Spec


class NamedProcess(Process, Protocol):
    """A process with a name, by which it can be found."""

    @property
    def name(self) -> str:
        """Its name, unique at its place."""

    @property
    def can_end_stdin(self) -> bool:
        """Whether its stdin can be closed; servers of other makers may not support it."""

    def release(self) -> None:
        """Let the process go on even if nobody reads its output.  Does not wait."""


class Place(Backend, Protocol):
    """A backend whose processes have names: the engine in this program, or a server."""

    async def start(
        self, spec: Spec, *, name: str | None = None, keep: bool = False, retain: int | None = None
    ) -> NamedProcess:
        """Start a process, as ``Backend.start`` does.

        Args:
            name: Its name; by default the place chooses one.
            keep: Whether it outlives this client, and can be found for a while after its end.
            retain: Bytes of output to keep for later readers.

        Raises:
            NameTaken: There is a process with this name.
        """

    async def find(self, name: str) -> NamedProcess:
        """Return the process with this name.

        Raises:
            UnknownProcess: There is none.
        """

    async def list(self) -> Sequence[Listing]:
        """Return the processes that can be found, the oldest first."""
