"""The table of ``top`` as a person steers it: what is chosen, what keys do, what is on the screen (pure).

What must hold:

1. The choice stays with its process when the order changes, and is on the screen.
2. Nothing is ended unless exactly the process that was asked about is confirmed.
3. Every line fits the width of the screen, and there are as many as it has rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from holdfast.value import value

from .explain import LIVE_STATES
from .top_sample import SORT_KEYS, ProcessRow, ordered
from .top_table import fit, percent, short_size, table_lines

_HELP = "enter attach  l log  k end  s sort  / filter  q quit"
_HELP_SHORT = "q quit  k end  l log"

_MARK = "> "
"""In front of the row that is chosen: reverse colours alone are not seen by everybody."""


class Verb(Enum):
    """What a key can ask for, beyond the table itself."""

    ATTACH = "attach"
    LOG = "logs"
    END = "kill"
    LEAVE = "leave"
    INTERRUPT = "interrupt"
    REDRAW = "redraw"


_VERBS = {"enter": Verb.ATTACH, "a": Verb.ATTACH, "l": Verb.LOG, "k": Verb.END}
"""What keys ask for that are about the process that is chosen."""


@value
class Wish:
    """What a person wants to be done."""

    verb: Verb
    identifier: str = ""
    """The process, if it is about one."""
    name: str = ""
    """What it is called, to be shown."""


class Style(Enum):
    """How a line looks; the value is what a terminal is sent before it."""

    PLAIN = ""
    HEAD = "1"
    CHOSEN = "7"
    DIM = "2"
    WAITING = "33"
    WARNING = "31"


COLOURS = (Style.WAITING, Style.WARNING)
"""Styles that are left out where no colours are wanted."""


@value
class Line:
    """One line of the screen."""

    text: str
    style: Style = Style.PLAIN


class View:
    """The table between two keys and two samples."""

    def __init__(self, *, sort: str = "cpu", words: str = "", ended: bool = False, where: str = "") -> None:
        """
        Args:
            sort: One of ``SORT_KEYS``.
            words: Only rows with these words are shown.
            ended: Whether processes that have ended are shown, too.
            where: The server, for the first line.
        """
        self.sort = sort
        self.backwards = False
        self.words = words
        self.ended = ended
        self.notice = ""
        """A message that stands in the place of the sums, until it is set anew."""
        self._where = where
        self._all: Sequence[ProcessRow] | None = None
        self._shown: list[ProcessRow] = []
        self._chosen: str | None = None
        self._first = 0
        self._page = 1
        self._typing: str | None = None  # The words before, while others are typed.
        self._asking: Wish | None = None  # The end that is to be confirmed.

    def update(self, rows: Sequence[ProcessRow]) -> None:
        """Take the rows of another sample."""
        self._all = rows
        self._arrange()

    def _arrange(self) -> None:
        place = self._place()
        self._shown = ordered(self._all or (), self.sort, backwards=self.backwards, words=self.words)
        if all(row.listing.identifier != self._chosen for row in self._shown):
            # It has ended, or is filtered out: choose the row that is in its place now.
            self._choose(place)

    def _place(self) -> int:
        known = [row.listing.identifier for row in self._shown]
        return known.index(self._chosen) if self._chosen in known else 0

    def _choose(self, place: int) -> None:
        place = max(0, min(place, len(self._shown) - 1))
        self._chosen = self._shown[place].listing.identifier if self._shown else None

    # Keys.

    def press(self, key: str) -> Wish | None:
        """Do what a key stands for; return what is left for others to do."""
        if key == "interrupt":
            return Wish(Verb.INTERRUPT)
        if self._asking is not None:
            wish, self._asking = self._asking, None
            return wish if key in ("y", "Y") else None
        if self._typing is not None:
            self._type(key)
            return None
        return self._command(key)

    def _type(self, key: str) -> None:
        match key:
            case "enter":
                self._typing = None
            case "escape":
                self.words, self._typing = "", None
            case "delete":
                self.words = self.words[:-1]
            case "delete all":
                self.words = ""
            case _ if len(key) == 1:
                self.words += key
        self._arrange()

    def _command(self, key: str) -> Wish | None:
        moves = {
            "up": self._place() - 1,
            "down": self._place() + 1,
            "page up": self._place() - self._page,
            "page down": self._place() + self._page,
            "home": 0,
            "end": len(self._shown) - 1,
        }
        if key in moves:
            self._choose(moves[key])
        elif key in ("q", "Q"):
            return Wish(Verb.LEAVE)
        elif key == "redraw":
            return Wish(Verb.REDRAW)
        elif key in ("s", "r", "e", "/", "escape"):
            self._change(key)
        elif key in _VERBS and self._chosen is not None:
            wish = Wish(_VERBS[key], self._chosen, self._shown[self._place()].name)
            if wish.verb is not Verb.END:
                return wish
            self._asking = wish
        return None

    def _change(self, key: str) -> None:
        match key:
            case "s":
                keys = list(SORT_KEYS)
                self.sort = keys[(keys.index(self.sort) + 1) % len(keys)]
            case "r":
                self.backwards = not self.backwards
            case "e":
                self.ended = not self.ended
            case "/":
                self._typing = self.words
            case "escape":
                self.words = ""
        self._arrange()

    # The screen.

    def lines(self, rows: int, cols: int) -> list[Line]:
        """Return what is to be seen on a screen of this size."""
        above = [Line(self._title(cols), Style.HEAD), self._second()] if rows >= 7 else []
        below = [self._last(cols)] if rows >= 3 else []
        self._page = max(1, rows - len(above) - len(below) - 1)
        place = self._place()
        self._first = max(0, min(self._first, place, len(self._shown) - self._page))
        self._first = max(self._first, place - self._page + 1)
        visible = self._shown[self._first : self._first + self._page]
        head, *table = table_lines(visible, max(1, cols - len(_MARK)))
        body = [Line(" " * len(_MARK) + head, Style.HEAD)]
        for row, text in zip(visible, table, strict=True):
            is_chosen = row.listing.identifier == self._chosen
            body.append(
                Line((_MARK if is_chosen else " " * len(_MARK)) + text, _style(row, is_chosen=is_chosen))
            )
        body += [Line("")] * (rows - len(above) - len(body) - len(below))
        shown = [*above, *body, *below][:rows]
        return [Line(fit(line.text, cols).rstrip(), line.style) for line in shown]

    def _title(self, cols: int) -> str:
        order = f"by {self.sort}{', backwards' if self.backwards else ''}"
        words = f", with {self.words!r}" if self.words and self._typing is None else ""
        text = f"holdfast top {order}{words}"
        room = cols - len(text) - 2
        return f"{text}  {self._where}" if len(self._where) <= room else text

    def _second(self) -> Line:
        if self.notice:
            return Line(self.notice, Style.WARNING)
        if self._all is None:
            return Line("asking the server...")
        count = f"{len(self._shown)} of {len(self._all)}" if self.words else f"{len(self._shown)}"
        noun = "process" if count == "1" else "processes"
        cpu = sum(row.cpu or 0.0 for row in self._shown)
        memory = sum(row.memory or 0 for row in self._shown)
        return Line(f"{count} {noun}  CPU {percent(cpu)}%  MEM {short_size(memory)}")

    def _last(self, cols: int) -> Line:
        if self._asking is not None:
            name = self._asking.name
            question = f"end {name} and everything it has started? (y/n)"
            # The name may be long, the question must be whole.
            if len(question) > cols:
                question = f"{fit(f'end {name}', max(1, cols - 8)).rstrip()}? (y/n)"
            return Line(question, Style.CHOSEN)
        if self._typing is not None:
            return Line(f"/{self.words}_", Style.CHOSEN)
        return Line(_HELP if len(_HELP) <= cols else _HELP_SHORT, Style.DIM)


def _style(row: ProcessRow, *, is_chosen: bool) -> Style:
    if is_chosen:
        return Style.CHOSEN
    if row.listing.state not in LIVE_STATES:
        return Style.DIM
    return Style.WAITING if row.state == "waiting" else Style.PLAIN
