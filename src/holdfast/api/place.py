"""The interface of whatever a ``Host`` runs its processes on (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from holdfast.backend import Backend, Process
from holdfast.model import Listing, Spec


class NamedProcess(Process, Protocol):
    """A process that can be found again."""

    @property
    def name(self) -> str:
        """What it is called at its place."""

    @property
    def can_end_stdin(self) -> bool:
        """Whether its host has a word for the end of stdin."""

    def release(self) -> None:
        """Let it go on, whether or not anybody reads what it says.  Does not wait."""


class Place(Backend, Protocol):
    """A backend whose processes have names: the engine in this program, or a server."""

    async def start(
        self, spec: Spec, *, name: str | None = None, keep: bool = False, retain: int | None = None
    ) -> NamedProcess:
        """Start a process, as ``Backend.start`` does.

        Args:
            name: What to call it; without one, it is given one.
            keep: Whether it outlives this client, and can be found for a while after its end.
            retain: Bytes of output to keep for those who come later.

        Raises:
            NameTaken: There is a process of this name.
        """

    async def find(self, name: str) -> NamedProcess:
        """The process of this name.

        Raises:
            UnknownProcess: There is none.
        """

    async def list(self) -> Sequence[Listing]:
        """The processes that can be found, the oldest first."""
