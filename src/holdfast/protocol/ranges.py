"""Output by place, on the wire (pure)."""

from __future__ import annotations

from holdfast.errors import BadRequest
from holdfast.model import Stream
from holdfast.ranges import OutputRange

from . import base64
from .shapes import U64, Base64Text, Params, Shape, Signature, within_u64


class ReadRangeParams(Params):
    wire_name = "ReadRangeParams"

    process_id: str
    offset: U64 | None = None
    """The place in the stream: how many of its bytes come before; null is 0."""
    length: U64 | None = None
    """How many bytes at the most; null: as many as one answer has."""
    stream: Stream | None = None
    """Null: the terminal, if there is one, and else ``stdout``."""

    def __post_init__(self) -> None:
        within_u64(self.offset, self.length)


class ReadRangeResult(Shape):
    stream: Stream
    offset: U64
    """As it was asked for."""
    data: Base64Text
    """What is there, in base64; empty if it is no longer kept, or does not exist yet."""
    next: U64
    """Where to go on: behind ``data``, or at ``firstOffset`` if what was asked for is no longer kept."""
    total: U64
    """How many bytes this stream had when it was looked at."""
    first_offset: U64
    """The place of the oldest byte that is kept; ``total`` if none is."""
    ended: bool
    """Whether nothing more will come in this stream."""

    def __post_init__(self) -> None:
        within_u64(self.offset, self.next, self.total, self.first_offset)


READ_RANGE = Signature("process/readRange", ReadRangeParams, ReadRangeResult)


def range_result(found: OutputRange) -> ReadRangeResult:
    """What a server tells of a range."""
    return ReadRangeResult(
        found.stream,
        found.offset,
        base64.encode(found.data).decode(),
        found.next,
        found.total,
        found.first_offset,
        found.ended,
    )


def read_range(told: ReadRangeResult) -> OutputRange:
    """What a client is told of a range.

    Raises:
        ValueError: It is not base64.
    """
    try:
        data = base64.decode(told.data)
    except BadRequest as error:
        raise ValueError(str(error)) from None
    return OutputRange(
        told.stream, told.offset, data, told.next, told.total, told.first_offset, ended=told.ended
    )
