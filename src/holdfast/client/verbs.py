"""What a server is asked of a process beyond its life and its output."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from holdfast.conditions import Condition, Waited
from holdfast.errors import Unsupported
from holdfast.inspection import Inspection
from holdfast.model import Stream
from holdfast.protocol.inspecting import INSPECT, InspectParams, ListParams, read_inspected
from holdfast.protocol.ranges import READ_RANGE, ReadRangeParams
from holdfast.protocol.ranges import read_range as read_told
from holdfast.protocol.waiting import WAIT_FOR, read_waited, wait_for_params

if TYPE_CHECKING:
    from holdfast.protocol.shapes import Signature
    from holdfast.ranges import OutputRange

    from .link import Link

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")


def list_params(link: Link, *, inspect: bool) -> ListParams:
    """What a list is asked for with; ``inspect``: and who waits for input.

    Raises:
        Unsupported: The server does not tell that.
    """
    if "list" not in link.features:
        raise Unsupported("a list of processes")
    if inspect and "inspect" not in link.features:
        raise Unsupported("whether processes wait for input")
    return ListParams(inspect=True) if inspect else ListParams()


class RemoteVerbs:
    """Mixed into ``RemoteProcess``."""

    identifier: str
    _link: Link

    def _need(self, feature: str, what: str) -> None:
        """Raise ``Unsupported`` for ``what`` unless the server has this feature."""
        if feature not in self._link.features:
            raise Unsupported(what)

    if TYPE_CHECKING:

        async def _ask(
            self, signature: Signature[P, R], params: P, into: Callable[[R], T], *, repeat: bool = True
        ) -> T: ...

    async def inspect(self) -> Inspection:
        self._need("inspect", "whether a process waits for input")
        return await self._ask(INSPECT, InspectParams(self.identifier), read_inspected)

    async def wait_for(self, condition: Condition, seconds: float) -> Waited:
        self._need("waitFor", f"waiting for {condition}")
        return await self._ask(WAIT_FOR, wait_for_params(self.identifier, condition, seconds), read_waited)

    async def read_range(self, stream: Stream | None, offset: int, length: int) -> OutputRange:
        self._need("readRange", "a range of output")
        return await self._ask(
            READ_RANGE, ReadRangeParams(self.identifier, offset, length, stream), read_told
        )
