"""What a terminal shows, drawn on another one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cursors import CursorShape
from holdfast.model import Size
from holdfast.screens import ScreenSnapshot
from holdfast.terminal.emulator import Emulator, is_available, is_loaded
from holdfast.terminal.queries import QueryFilter
from holdfast.terminal.resets import RESET

SIZE = Size(6, 20)

STALE = b"\x1b[?1049h\x1b[?1000h\x1b[?2004h\x1b[?25l\x1b[3;5r\x1b[?6h\x1b[4h\x1b[31mold\x1b(0\x1b[?7l"


def shown(*pieces: bytes, size: Size = SIZE) -> ScreenSnapshot:
    emulator = Emulator(size)
    for piece in pieces:
        emulator.feed(piece)
    return emulator.snapshot(7, complete=True)


def test_the_facts_of_a_screen_are_told() -> None:
    found = shown(b"\x1b]0;a title\x07one\r\n\x1b[?25ltwo")

    assert is_loaded()  # Whoever starts a terminal asks this, and not a thread.
    assert found.size == SIZE
    assert (found.row, found.col, found.cursor_visible) == (2, 4, False)
    assert (found.title, found.alternate) == ("a title", False)
    assert (found.seq, found.complete) == (7, True)


def test_the_other_screen_is_told() -> None:
    assert shown(b"shell\x1b[?1049hvim").alternate
    assert not shown(b"shell\x1b[?1049hvim\x1b[?1049l").alternate


SHAPES = {
    b"": (CursorShape.DEFAULT, False),
    b"\x1b[0 q": (CursorShape.DEFAULT, False),
    b"\x1b[1 q": (CursorShape.BLOCK, True),
    b"\x1b[2 q": (CursorShape.BLOCK, False),
    b"\x1b[3 q": (CursorShape.UNDERLINE, True),
    b"\x1b[4 q": (CursorShape.UNDERLINE, False),
    b"\x1b[5 q": (CursorShape.BAR, True),
    b"\x1b[6 q": (CursorShape.BAR, False),
    b"\x1b[6 q\x1b[ q": (CursorShape.DEFAULT, False),
    b"\x1b[6 q\x1bc": (CursorShape.DEFAULT, False),
    b"\x1b[?12h": (CursorShape.DEFAULT, True),
}


@pytest.mark.parametrize("chosen", SHAPES)
@pytest.mark.parametrize("before", [b"", b"\x1b[5 q", b"\x1b[4 q"])
@pytest.mark.parametrize("screen", [b"", b"\x1b[?1049h"])
def test_the_shape_of_the_cursor_is_told_and_drawn(chosen: bytes, before: bytes, screen: bytes) -> None:
    """An editor shows by it what a key would do: a bar inserts, a block commands."""
    found = shown(screen, chosen)
    again = shown(before, found.data)

    assert (found.cursor_shape, found.cursor_blinking) == SHAPES[chosen]
    assert (again.cursor_shape, again.cursor_blinking) == SHAPES[chosen]


def test_the_screen_below_keeps_the_shape_of_its_cursor() -> None:
    """As in terminals that have one for each screen."""
    stream, leave = b"\x1b[4 q\x1b[?1049h\x1b[6 q", b"\x1b[?1049l"

    back = shown(shown(stream).data, leave)

    assert back.cursor_shape is shown(stream, leave).cursor_shape is CursorShape.UNDERLINE


def test_the_usual_cursor_comes_back() -> None:
    assert shown(b"\x1b[5 q", RESET).cursor_shape is CursorShape.DEFAULT


SCREENS = {
    "a cursor": b"\x1b[3 qx",
    "text": b"one\r\ntwo",
    "colours": b"\x1b[1;31mred\x1b[48;5;200mback\x1b[38;2;1;2;3mtrue",
    "modes": b"\x1b[?1h\x1b=\x1b[?1002h\x1b[?1006h\x1b[?2004h\x1b[?1004h\x1b[?25l",
    "the other screen": b"$ vim\r\n\x1b[?1049h\x1b[2J\x1b[3;4Hin it",
    "the other screen, the old way": b"$ vim\x1b7\x1b[?47h\x1b[2J\x1b[3;4Hin it",
    "a region": b"\x1b[2;4r\x1b[2;1Ha\nb\nc\nd",
    "an origin": b"\x1b[2;4r\x1b[?6h\x1b[2;3Hx",
    "a saved cursor": b"abc\x1b[31m\x1b7\x1b[m\r\ndef",
    "a full line": b"x" * 20,
    "a full wide line": "漢".encode() * 10,
    "an unfinished sequence": b"a\x1b[3",
    "an unfinished character": b"a" + "漢".encode()[:2],
    "an unfinished title": b"a\x1b]0;tit",
    "tabulators": b"\x1b[3g\x1b[5G\x1bH\ra\tb",
    "line drawing": b"\x1b(0lqqk",
    "a colour of the palette": b"\x1b]4;1;#123456\x07\x1b[31mx",
    "the keyboard": b"\x1b[>5u\x1b[>4;2m",
}

ENDS = [
    b"",
    b"1mx\r\n",
    b"\x1b8y",
    b"\x1b[?1049l.",
    b"\x1b[?47l.",
    "\u0308z".encode(),
    b"\r\n\n\n\n\n\n.",
    b"le\x07\ty",
    b"\xa2",
]


@pytest.mark.parametrize("follows", ENDS, ids=repr)
@pytest.mark.parametrize("name", SCREENS)
def test_a_snapshot_and_what_follows_show_what_the_whole_output_shows(name: str, follows: bytes) -> None:
    before = SCREENS[name]

    again = shown(STALE, shown(before).data, follows)

    assert again.data == shown(before, follows).data


MOVES = [
    b"\x1b[m",
    b"\x1b[H",
    b"\x1b[2J",
    b"\x1b[K",
    b"\x1b[3;9H",
    b"\x1b[2L",
    b"\x1b[P",
    b"\x1bM",
    b"\r\n",
    b"\t",
]
OTHERS = [b"\x08", b"text", b"\x1b[7m", "é漢".encode(), b"\x1b[A", b"\x1b[?1049l", b"\x1b[r", b"\x1bc"]
pieces = st.sampled_from([*SCREENS.values(), *MOVES, *OTHERS])


@settings(max_examples=200, deadline=None)
@given(st.lists(pieces, max_size=8).map(b"".join), st.integers(0, 200))
def test_wherever_it_is_taken_nothing_is_lost(stream: bytes, cut: int) -> None:
    before, after = stream[:cut], stream[cut:]

    again = shown(shown(before).data, after)
    whole = shown(stream)

    assert (again.row, again.col, again.title) == (whole.row, whole.col, whole.title)
    assert (again.alternate, again.cursor_visible) == (whole.alternate, whole.cursor_visible)
    assert (again.cursor_shape, again.cursor_blinking) == (whole.cursor_shape, whole.cursor_blinking)


@given(st.lists(pieces, max_size=8).map(b"".join))
def test_a_snapshot_asks_nothing(stream: bytes) -> None:
    """It is drawn on the terminals of people, whose answers would be typed into the program."""
    data = shown(stream).data
    queries = QueryFilter()

    assert queries.feed(data) + queries.rest() == data


def test_a_sequence_that_is_too_long_is_not_shown_as_text() -> None:
    emulator = Emulator(SIZE)
    emulator.feed(b"before\x1bPq" + b"#" * 100_000)

    found = emulator.snapshot(1, complete=True)
    again = shown(found.data, b"##\x1b\\after")

    assert not found.complete
    assert b"#" not in found.data
    assert b"beforeafter" in again.data


def test_a_snapshot_is_as_large_as_a_screen() -> None:
    emulator = Emulator(Size(24, 80))
    for _ in range(200):
        emulator.feed(b"\x1b[31mline of output\x1b[m\r\n" * 1000)

    assert len(emulator.snapshot(1, complete=True).data) < len(RESET) + 24 * 80 * 4


def test_a_terminal_can_be_resized() -> None:
    emulator = Emulator(SIZE)
    emulator.feed(b"one\r\ntwo")

    emulator.resize(Size(3, 10))

    assert emulator.snapshot(1, complete=True).size == Size(3, 10)


def test_the_library_is_found_without_loading_it() -> None:
    assert is_available()
