"""What processes use at this moment, on the wire (pure)."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from holdfast.model import CurrentUsage

from .shapes import U64, Params, Shape, Signature, within_u64


class UsageParams(Params):
    wire_name = "UsageParams"

    names: list[str] | None = None
    """Of these only: names or identifiers.  Null: of all that ``process/list`` has."""


class MeasuredUsage(Shape):
    """What a process and everything it has started use."""

    process_id: str
    cpu_ms: U64
    """Processor time since it began, that of those who have ended included."""
    resident_bytes: U64
    """Memory of all of them together; what several of them share counts several times."""
    processes: U64
    """How many of them there are."""
    output_bytes: U64
    """Bytes of output up to now, of all that was kept at some time."""
    age_ms: U64
    """How long ago this was seen: who asks often, or about a large tree, is told the same again."""
    name: str | UnsetType = UNSET
    """What people call it, if it was given a name."""

    def __post_init__(self) -> None:
        within_u64(self.cpu_ms, self.resident_bytes, self.processes, self.output_bytes, self.age_ms)


class UsageResult(Shape):
    processes: list[MeasuredUsage]
    """As many as fit, without those of whom nobody is left."""
    more: bool | UnsetType = UNSET
    """Told if there are more, which did not fit."""


USAGE = Signature("process/usage", UsageParams, UsageResult)


def told(found: CurrentUsage) -> MeasuredUsage:
    """Return what is sent of it."""
    return MeasuredUsage(
        found.identifier,
        found.cpu_us // 1000,
        found.resident_bytes,
        found.processes,
        found.output_bytes,
        int(found.age * 1000),
        UNSET if found.name == found.identifier else found.name,
    )


def read_usage(told: MeasuredUsage) -> CurrentUsage:
    """Return what a server has sent of it."""
    return CurrentUsage(
        told.name or told.process_id,
        told.process_id,
        told.cpu_ms * 1000,
        told.resident_bytes,
        told.processes,
        told.output_bytes,
        told.age_ms / 1000,
    )
