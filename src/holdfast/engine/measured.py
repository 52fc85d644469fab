"""What can be measured of a process of this host, while it runs and afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.model import UNLIMITED
from holdfast.reports import Load

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
