"""What a terminal shows, on the wire (pure)."""

from __future__ import annotations

from holdfast.cursors import CursorShape
from holdfast.errors import BadRequest
from holdfast.model import Size
from holdfast.screens import ScreenSnapshot

from . import base64
from .shapes import U64, Base64Text, Params, Shape, Signature, within_u64


class SnapshotParams(Params):
    wire_name = "SnapshotParams"

    process_id: str


class ScreenSize(Shape):
    """Rows and columns of characters."""

    rows: U64
    cols: U64


class CursorPlace(Shape):
    """Where a cursor is, counted from 1, and what it looks like."""

    row: U64
    col: U64
    visible: bool
    shape: CursorShape = CursorShape.DEFAULT
    """As a program has chosen it; ``default`` if none has."""
    blinking: bool = False


class SnapshotResult(Shape, kw_only=True):
    seq: U64
    """The last number that is drawn: ``process/read`` behind it goes on from here."""
    size: ScreenSize
    data: Base64Text
    """Escape sequences, in base64, that put any terminal of this size into the same state."""
    cursor: CursorPlace
    title: str
    alternate_screen: bool
    """Whether a full-screen program has the alternate screen."""
    complete: bool
    """Whether all output was drawn; if not, some was no longer kept."""

    def __post_init__(self) -> None:
        within_u64(self.seq)


SNAPSHOT = Signature("process/snapshot", SnapshotParams, SnapshotResult)


def snapshot_result(found: ScreenSnapshot) -> SnapshotResult:
    """What a server tells of a screen."""
    return SnapshotResult(
        seq=found.seq,
        size=ScreenSize(found.size.rows, found.size.cols),
        data=base64.encode(found.data).decode(),
        cursor=CursorPlace(
            found.row, found.col, found.cursor_visible, found.cursor_shape, found.cursor_blinking
        ),
        title=found.title,
        alternate_screen=found.alternate,
        complete=found.complete,
    )


def read_snapshot(found: SnapshotResult) -> ScreenSnapshot:
    """What a client knows of a screen.

    Raises:
        ValueError: It is not base64.
    """
    try:
        data = base64.decode(found.data)
    except BadRequest as error:
        raise ValueError(str(error)) from None
    return ScreenSnapshot(
        seq=found.seq,
        size=Size(found.size.rows, found.size.cols),
        data=data,
        row=found.cursor.row,
        col=found.cursor.col,
        cursor_visible=found.cursor.visible,
        title=found.title,
        alternate=found.alternate_screen,
        complete=found.complete,
        cursor_shape=found.cursor.shape,
        cursor_blinking=found.cursor.blinking,
    )
