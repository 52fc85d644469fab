"""What a process does at this moment, on the wire (pure)."""

from __future__ import annotations

from holdfast.inspection import Inspection

from .processes import ListResult
from .shapes import Params, Shape, Signature


class ListParams(Params):
    wire_name = "ListParams"

    inspect: bool | None = None
    """Tell of each running process whether it waits for input; for clients that know the extensions."""


class InspectParams(Params):
    wire_name = "InspectParams"

    process_id: str


class InspectResult(Shape):
    waiting_for_input: bool | None = None
    """Whether one of its tree is blocked in a call that input would wake; null: the kernel does not tell."""
    echo: bool | None = None
    """Whether its terminal shows what is typed; null without a terminal."""
    canonical: bool | None = None
    """Whether its terminal hands over whole lines; null without a terminal."""


LIST = Signature("process/list", ListParams, ListResult)
INSPECT = Signature("process/inspect", InspectParams, InspectResult)


def inspected(found: Inspection) -> InspectResult:
    """What a server tells of a process that it has looked at."""
    return InspectResult(found.waiting_for_input, found.echo, found.canonical)


def read_inspected(found: InspectResult) -> Inspection:
    """What a client is told of a process."""
    return Inspection(found.waiting_for_input, found.echo, found.canonical)
