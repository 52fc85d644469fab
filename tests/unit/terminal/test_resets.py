"""How a terminal is put back into its usual state."""

from __future__ import annotations

import pytest

from holdfast.model import Size
from holdfast.terminal.emulator import Emulator
from holdfast.terminal.resets import RESET, TerminalMarks

MESS = (
    b"\x1b[?1h\x1b=\x1b[?1000h\x1b[?1006h\x1b[?2004h\x1b[?1004h\x1b[?25l"
    b"\x1b[2;4r\x1b[4h\x1b[31m\x1b(0\x1b[>5u\x1b[?7l"
)


def drawn(*pieces: bytes) -> bytes:
    emulator = Emulator(Size(6, 20))
    for piece in pieces:
        emulator.feed(piece)
    return emulator.snapshot(1, complete=True).data


def test_all_modes_are_undone_and_nothing_moves() -> None:
    assert drawn(b"text\r\n", MESS, b"\x1b(B\x1b[m\x1b[2Hmore\x1b(0", RESET, b".\x1b7") == drawn(
        b"text\r\nmore.\x1b7"
    )


def test_the_other_screen_is_left() -> None:
    marks = TerminalMarks()
    output = [b"text\x1b[?10", b"49h", MESS]

    for piece in output:
        marks.feed(piece)

    assert drawn(*output, marks.undo(), b".\x1b7") == drawn(b"text.\x1b7")


def test_after_mere_text_there_is_nothing_to_undo() -> None:
    marks = TerminalMarks()
    marks.feed(b"text\r\n")

    assert marks.undo() == b""


@pytest.mark.parametrize("output", [b"\x1b[m", b"\x1b[?1049h\x1b[?1049l", b"\x1b[?1049h\x1bc"])
def test_a_screen_that_was_not_entered_is_not_left(output: bytes) -> None:
    """That would move the cursor to where it was saved, or to nowhere."""
    marks = TerminalMarks()
    marks.feed(output)

    assert b"1049" not in marks.undo()


def test_colours_are_undone_if_they_were_changed() -> None:
    marks = TerminalMarks()
    marks.feed(b"\x1b]4;1;#123456\x07\x1b]11;#000000\x1b\\")

    assert marks.undo() == RESET + b"\x1b]111\x1b\\\x1b]104\x1b\\"


def test_a_sequence_that_was_not_complete_is_broken_off() -> None:
    marks = TerminalMarks()
    marks.feed(b"text\x1b]0;title")

    assert marks.undo() == b"\x18" + RESET
