"""The screen that ``top`` draws on: taken from the terminal, changed line by line, and given back."""

from __future__ import annotations

import os
from collections.abc import Sequence

from .top_view import COLOURS, Line, Style

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[H\x1b[2J"
"""Another screen, without a cursor, empty."""

_LEAVE = "\x1b[0m\x1b[?25h\x1b[?1049l"

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Around what a terminal should show at once; those that do not know it ignore it."""


class TableScreen:
    """A terminal, as far as ``top`` draws on it.

    Only lines that have changed are written, and all of them at once: nothing flickers.
    """

    def __init__(self, fd: int, *, colours: bool, encoding: str = "utf-8") -> None:
        self._fd = fd
        self._colours = colours
        self._encoding = encoding
        self._shown: list[Line] = []
        self._entered = False

    def enter(self) -> None:
        """Take the screen.  May be called twice."""
        if not self._entered:
            self._entered = True
            self._shown = []
            self._write(_ENTER)

    def leave(self) -> None:
        """Give the screen back as it was.  May be called twice."""
        if self._entered:
            self._entered = False
            self._write(_LEAVE)

    def forget(self) -> None:
        """Draw everything anew the next time: the terminal has another size, or others have written to it."""
        self._shown = []
        self._write("\x1b[2J")

    def draw(self, lines: Sequence[Line]) -> None:
        """Show these lines, and nothing else.  Does nothing while the screen is not ours."""
        if not self._entered:
            return
        changed = []
        for number in range(max(len(lines), len(self._shown))):
            line = lines[number] if number < len(lines) else Line("")
            if number >= len(self._shown) or self._shown[number] != line:
                changed.append(f"\x1b[{number + 1};1H{self._styled(line)}\x1b[K")
        self._shown = list(lines)
        if changed:
            self._write(f"{_BEGIN}{''.join(changed)}{_END}")

    def _styled(self, line: Line) -> str:
        style = line.style
        if style is Style.PLAIN or (style in COLOURS and not self._colours):
            return line.text
        return f"\x1b[{style.value}m{line.text}\x1b[0m"

    def _write(self, text: str) -> None:
        data = text.encode(self._encoding, "replace")
        while data:
            data = data[os.write(self._fd, data) :]
