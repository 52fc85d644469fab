"""The table of ``top``, for a terminal of any width, and what it says in one line of text (pure)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence

from holdfast.value import value

from .top_sample import ProcessRow

_GAP = 2
"""Spaces between two columns."""


@value
class Column:
    """A column of the table."""

    title: str
    width: int
    """Cells at least; the last column of a line takes what is left."""
    text: Callable[[ProcessRow], str]
    right: bool = False
    """Whether its text stands at the right, as numbers do."""
    most: int = 0
    """Cells at most, if its longest text is longer than ``width``; 0: never more than ``width``."""


COLUMNS = (
    Column("NAME", 8, lambda row: row.name, most=24),
    Column("STATE", 8, lambda row: row.state),
    Column("CPU%", 5, lambda row: percent(row.cpu), right=True),
    Column("MEM", 5, lambda row: short_size(row.memory), right=True),
    Column("OUT/S", 5, lambda row: short_size(row.rate), right=True),
    Column("AGE", 4, lambda row: short_time(row.age), right=True),
    Column("COMMAND", 10, lambda row: row.command),
)

_DISPENSABLE = ("OUT/S", "COMMAND", "AGE", "MEM", "STATE", "CPU%")
"""What a narrow terminal does without, in this order."""


def columns_for(width: int) -> list[Column]:
    """Return the columns for which a line of that many cells has room: at least the name."""
    shown = list(COLUMNS)
    for title in _DISPENSABLE:
        if sum(column.width for column in shown) + _GAP * (len(shown) - 1) <= width:
            break
        shown = [column for column in shown if column.title != title]
    return shown


def table_lines(rows: Sequence[ProcessRow], width: int | None) -> list[str]:
    """Return the head and a line for each row.

    Args:
        width: Cells of a line; None for as many as there are.
    """
    columns = list(COLUMNS) if width is None else columns_for(width)
    texts = [[column.text(row) for column in columns] for row in rows]
    widths = [column.width for column in columns]
    room = None if width is None else width - sum(widths) - _GAP * (len(widths) - 1)
    for index, column in enumerate(columns[:-1]):
        longest = max((cells(line[index]) for line in texts), default=0)
        more = min(longest, column.most) - column.width if width is not None else longest - column.width
        more = max(0, more if room is None else min(more, room))
        widths[index] += more
        room = None if room is None else room - more
    if width is None:
        widths[-1] = max((cells(line[-1]) for line in texts), default=0)
    else:
        widths[-1] = max(1, width - sum(widths[:-1]) - _GAP * (len(widths) - 1))
    head = [column.title for column in columns]
    return [
        (" " * _GAP)
        .join(
            fit(text, size, right=column.right)
            for text, size, column in zip(line, widths, columns, strict=True)
        )
        .rstrip()
        for line in [head, *texts]
    ]


# Figures in few characters.


def percent(share: float | None) -> str:
    """Return a share of one processor: ``0.0``, ``99.5``, ``1600``."""
    if share is None:
        return "-"
    return f"{share:.1f}" if share < 1000 else f"{share:.0f}"


def short_size(size: float | None) -> str:
    """Return a number of bytes in at most five characters: ``0``, ``999``, ``1.5K``, ``512M``."""
    if size is None:
        return "-"
    for unit in ("", "K", "M", "G"):
        if size < 999.5:
            return f"{size:.0f}{unit}" if unit == "" or size >= 9.95 else f"{size:.1f}{unit}"
        size /= 1024
    return f"{size:.1f}T"


def short_time(seconds: float) -> str:
    """Return a time in at most four characters: ``59s``, ``59m``, ``23h``, ``364d``."""
    for unit, size in (("s", 60), ("m", 60), ("h", 24)):
        if seconds < size:
            return f"{int(seconds)}{unit}"
        seconds /= size
    return f"{int(seconds)}d"


# Text in cells.


def cells(text: str) -> int:
    """Return how many cells of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_cell, text))


def _cell(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Return a text as wide as that: cut, with a mark at its end, or with blanks around it."""
    if cells(text) > width:
        kept, room = "", width - 1
        for char in text:
            room -= _cell(char)
            if room < 0:
                break
            kept += char
        text = f"{kept}~" if width > 0 else ""
    blanks = " " * (width - cells(text))
    return blanks + text if right else text + blanks
