"""Tables for people: columns as wide as what is in them (pure)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_GAP = "   "

_LEAST = 8
"""Characters that a last column keeps on a narrow terminal."""


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int | None = None,
    paint: Callable[[int, str], str] | None = None,
) -> list[str]:
    """The lines, without their ends.

    Args:
        width: Cut the last column so that lines are no longer than this.
        paint: Puts colour around a cell, by the number of its column; colour has no width.
    """
    lines = [head, *([plain(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    if width is not None:
        before = sum(widths[:-1]) + len(_GAP) * (len(widths) - 1)
        widths[-1] = min(widths[-1], max(_LEAST, width - before))
    last = len(widths) - 1
    shown = []
    for number, line in enumerate(lines):
        cells = []
        for column, cell in enumerate(line):
            text = cut(cell, widths[column])
            padding = "" if column == last else " " * (widths[column] - len(text))
            painted = text if paint is None or number == 0 else paint(column, text)
            cells.append(painted + padding)
        shown.append(_GAP.join(cells).rstrip())
    return shown


def cut(text: str, width: int) -> str:
    """The text, or as much of its beginning as fits with three dots behind it."""
    return text if len(text) <= width else text[: max(0, width - 3)] + "..."


def plain(text: str) -> str:
    """The text without anything that could move the cursor or break the line."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape", "backslashreplace").decode()
        for each in text
    )
