"""What a terminal shows, on the wire and back."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.cursors import CursorShape
from holdfast.model import Size
from holdfast.protocol.screen import SNAPSHOT, read_snapshot, snapshot_result
from holdfast.screens import ScreenSnapshot

SHOWN = ScreenSnapshot(
    5,
    Size(2, 3),
    b"\x1b[m\xff",
    1,
    3,
    cursor_visible=False,
    title="a",
    alternate=True,
    complete=False,
    cursor_shape=CursorShape.BAR,
    cursor_blinking=True,
)


def test_a_snapshot_comes_back_as_it_was() -> None:
    text = msgspec.json.encode(snapshot_result(SHOWN))

    assert read_snapshot(msgspec.json.decode(text, type=SNAPSHOT.result)) == SHOWN


def test_what_is_no_base64_is_refused() -> None:
    found = snapshot_result(SHOWN)
    found.data = "!"

    with pytest.raises(ValueError, match="Invalid"):
        read_snapshot(found)
