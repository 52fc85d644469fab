"""How a terminal that is attached to begins."""

from __future__ import annotations

from holdfast.api.opening import Opening
from holdfast.model import Chunk, Size, Stream
from holdfast.screens import ScreenSnapshot

SHOWN = ScreenSnapshot(
    7, Size(), b"drawn", 1, 1, cursor_visible=True, title="", alternate=False, complete=True
)


def test_a_known_screen_comes_first_and_nothing_else_is_changed() -> None:
    opening = Opening(SHOWN)
    later = Chunk(8, Stream.PTY, b"a\x1b[6nb\x1b[")

    assert opening.first() == Chunk(7, Stream.PTY, b"drawn")
    assert opening.old(later) == later
    assert opening.rest(8) is None


def test_old_output_is_shown_without_its_questions() -> None:
    opening = Opening()

    assert opening.first() is None
    assert opening.old(Chunk(1, Stream.PTY, b"a\x1b[6")) == Chunk(1, Stream.PTY, b"a")
    assert opening.old(Chunk(2, Stream.PTY, b"nb\x1b[3")) == Chunk(2, Stream.PTY, b"b")
    assert opening.rest(2) == Chunk(2, Stream.PTY, b"\x1b[3")
    assert opening.rest(2) is None


def test_what_comes_from_pipes_is_no_business_of_terminals() -> None:
    chunk = Chunk(1, Stream.STDOUT, b"a\x1b[6nb")

    assert Opening().old(chunk) == chunk
