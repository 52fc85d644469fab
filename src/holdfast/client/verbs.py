"""What a server is asked of a process beyond its life and its output."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from holdfast.errors import Unsupported
from holdfast.inspection import Inspection
from holdfast.protocol.inspecting import INSPECT, InspectParams, read_inspected

if TYPE_CHECKING:
    from holdfast.protocol.shapes import Signature

    from .link import Link

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")


class RemoteVerbs:
    """Mixed into ``RemoteProcess``."""

    identifier: str
    _link: Link

    def _need(self, feature: str, what: str) -> None:
        """Raise ``Unsupported`` for ``what`` unless the server has this feature."""
        if feature not in self._link.features:
            raise Unsupported(what)

    async def _ask(
        self, signature: Signature[P, R], params: P, into: Callable[[R], T], *, repeat: bool = True
    ) -> T:
        raise NotImplementedError

    async def inspect(self) -> Inspection:
        self._need("inspect", "whether a process waits for input")
        return await self._ask(INSPECT, InspectParams(self.identifier), read_inspected)
