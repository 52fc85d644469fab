"""What can be measured and looked up of a process of this host, while it runs and afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.model import UNLIMITED, Stream
from holdfast.ranges import OutputRange, chosen
from holdfast.reports import Load

from .offsets import read_range

if TYPE_CHECKING:
    from holdfast.model import ProcessTerms

    from .output import Outputs
    from .ring import Ring
    from .tree import Tree


class MeasuredProcess:
    """Mixed into ``LocalProcess``: what ``backend.HostedProcess`` has for figures.  It changes nothing."""

    __slots__ = ()

    _ring: Ring
    _terms: ProcessTerms
    has_terminal: bool
    outputs: Outputs
    tree: Tree

    def limits_enforced(self) -> dict[str, str]:
        return {} if self._terms.limits is UNLIMITED else self.tree.enforcers()

    def look_at_holders(self, tell: Callable[[bool], None]) -> None:
        self.tree.pulse(self.outputs, tell)

    def look_at_load(self, tell: Callable[[Load | None, float], None]) -> None:
        self.tree.usage(tell)

    def retained(self) -> int:
        return self._ring.total

    def output_bytes(self) -> int:
        dropped = self._ring.gap(0)
        return self._ring.total + (0 if dropped is None else dropped.size or 0)

    def try_read_range(
        self, stream: Stream | None, offset: int, length: int, *, until: int
    ) -> OutputRange | None:
        stream = chosen(stream, terminal=self.has_terminal)
        ended = all(output.stream is not stream for output in self.outputs)
        return read_range(self._ring, stream, offset, length, until=until, ended=ended)
