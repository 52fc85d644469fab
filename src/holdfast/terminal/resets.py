"""What undoes the state in which a program leaves a terminal that is not its own (pure)."""

from __future__ import annotations

import re

from .sequences import Sequences

_MODES = (9, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2026, 2031, 2048, 1, 5, 69)
"""Of the mouse, the focus, pasting, synchronized output, reports, cursor keys, inverse video, margins."""

_KEYBOARD = b"\x1b[=0;1u"
"""The keyboard protocol of kitty, off."""

RESET = b"".join(
    (
        _KEYBOARD,
        b"\x1b[>4m",  # Modified keys as usual.
        *(b"\x1b[?%dl" % mode for mode in _MODES),
        b"\x1b[4l\x1b[20l",  # No insertion, no new line for a line feed.
        b"\x1b>",  # The keypad.
        b"\x1b[?7h",  # Lines wrap.
        b"\x1b]8;;\x1b\\",  # No link.
        b"\x1b[0 q",  # The usual cursor.
        b"\x1b(B\x1b)B\x0f",  # The usual characters.
        b"\x1b[!p",  # Margins, origin, attributes.
        b"\x1b7\x1b[r\x1b8",  # For those who do not know that.  To set the margins moves the cursor.
        b"\x1b[?25h",
        b"\x1b[m",
    )
)
"""Puts a terminal into its usual state; neither its screen nor its cursor moves."""

_SCREEN = re.compile(rb"\x1b\[\?([0-9;]*)([hl])")
_SCREENS = {b"1049", b"1047", b"47"}
_COLOURS = re.compile(rb"\x1b\](4|10|11|12);")


class TerminalMarks:
    """Notes what cannot be undone without knowing whether it was done: the other screen, other colours."""

    def __init__(self) -> None:
        self._sequences = Sequences()
        self._is_alternate = False
        self._colours: set[bytes] = set()
        self._is_untouched = True

    def feed(self, data: bytes) -> None:
        """Take note of what is written to the terminal."""
        for is_sequence, piece in self._sequences.feed(data):
            if not is_sequence:
                continue
            self._is_untouched = False
            if match := _SCREEN.fullmatch(piece):
                if _SCREENS.intersection(match[1].split(b";")):
                    self._is_alternate = match[2] == b"h"
            elif match := _COLOURS.match(piece):
                self._colours.add(match[1])
            elif piece == b"\x1bc":
                self._is_alternate = False

    def undo(self) -> bytes:
        """Return what puts the terminal back into its usual state; nothing, if it got nothing but text."""
        if self._is_untouched and not self._sequences.held:
            return b""
        # What breaks off a sequence that was not complete is shown by no terminal.
        back = b"\x18" if self._sequences.rest() else b""
        if self._is_alternate:
            # The keyboard protocol of kitty has a state for each screen.  The rest saves the cursor, that of
            # the usual screen is to be restored first.
            back += _KEYBOARD + b"\x1b[?1049l"
        return back + RESET + b"".join(_USUAL[colour] for colour in sorted(self._colours))


_USUAL = {
    b"4": b"\x1b]104\x1b\\",
    b"10": b"\x1b]110\x1b\\",
    b"11": b"\x1b]111\x1b\\",
    b"12": b"\x1b]112\x1b\\",
}
"""What restores the colours that a command sets."""
