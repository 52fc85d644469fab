"""Regular expressions that are searched for in output, in time that grows with the output alone (pure).

What must hold:

1. A byte is looked at once, and costs at most as much as the pattern is long.
2. What is kept does not grow with the output: a bounded number of states, and the line that is being read.

The library's own expressions try one way after the other, which takes for ever if whoever wrote the pattern
wants it to.  Here all ways are gone at the same time, and each set of places in the pattern that was reached
once is remembered, with the set that follows for each byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST_CHARACTERS = 1000
"""The longest pattern."""

_MOST_PLACES = 2000
"""Places of a pattern once its repetitions are written out: ``(a{9}){9}`` has 81."""

_MOST_PARTS = 20_000
"""Parts of a pattern, counted in the same way: those without a place take time, too."""

_TOO_LARGE = "it is too large once its repetitions are written out"

_MOST_SETS = 256
"""Sets of places that are remembered; each takes 2 KiB.  Then all are forgotten."""

_MOST_DEPTH = 50
"""How deep groups may be in groups."""

LINE = 4096
"""Bytes of a line that are kept, to be told when something in it matches."""

_NEWLINE, _RETURN = 10, 13
_ALL = (1 << 256) - 1


def _bits(members: Iterable[int]) -> int:
    return sum(1 << each for each in set(members))


_DIGITS = _bits(b"0123456789")
_WORD = _bits(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_SPACE = _bits(b" \t\n\r\f\v")
_CLASSES = {
    "d": _DIGITS,
    "D": _ALL ^ _DIGITS,
    "w": _WORD,
    "W": _ALL ^ _WORD,
    "s": _SPACE,
    "S": _ALL ^ _SPACE,
}
_CONTROLS = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "a": 7, "0": 0}

_BEGIN, _END = -1, -2
"""In place of a set of bytes: the begin and the end of a line."""

# A pattern as a tree: a set of bytes, or one of the two above, or a tuple of what it is made of.
_Tree = int | tuple[str, tuple["_Tree", ...]] | tuple[str, "_Tree", int, int | None]


class _Parser:
    """Reads a pattern; refuses whatever it does not understand."""

    def __init__(self, text: str) -> None:
        self._ignores_case = text.startswith("(?i)")
        self._text = text[4:] if self._ignores_case else text
        self._at = 0
        self._depth = 0

    def parse(self) -> _Tree:
        tree = self._either()
        if self._at < len(self._text):
            raise ValueError("there is a ) without its (")
        return tree

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        char = self._peek()
        if not char:
            raise ValueError("it ends in the middle")
        self._at += 1
        return char

    def _either(self) -> _Tree:
        branches = [self._row()]
        while self._peek() == "|":
            self._at += 1
            branches.append(self._row())
        return branches[0] if len(branches) == 1 else ("either", tuple(branches))

    def _row(self) -> _Tree:
        parts: list[_Tree] = []
        while self._peek() and self._peek() not in "|)":
            parts.append(self._repeated(self._single()))
        return "row", tuple(parts)

    def _repeated(self, tree: _Tree) -> _Tree:
        found = re.compile(r"[*+?]|\{(\d{1,4})(,(\d{1,4})?)?\}").match(self._text, self._at)
        if found is None:
            return tree
        if tree in (_BEGIN, _END):
            raise ValueError("^ and $ cannot be repeated")
        self._at = found.end()
        if self._peek() and self._peek() in "*+?":
            raise ValueError(f"{found[0]}{self._peek()} is not supported: one repetition at a time")
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(found[0], (0, None))
        if found[1] is not None:
            least = int(found[1])
            most = least if found[2] is None else None if found[3] is None else int(found[3])
            if most is not None and most < least:
                raise ValueError(f"{found[0]} has a lower bound above the upper one")
        return "repeat", tree, least, most

    def _single(self) -> _Tree:
        char = self._take()
        if char == "(":
            return self._group()
        if char == "[":
            return self._set()
        if char == ".":
            return _ALL ^ (1 << _NEWLINE)
        if char == "^":
            return _BEGIN
        if char == "$":
            return _END
        if char in "*+?":
            raise ValueError(f"there is nothing that {char} could repeat")
        return self._escaped() if char == "\\" else self._literal(char)

    def _literal(self, char: str) -> _Tree:
        data = char.encode("utf-8", "surrogateescape")
        if len(data) > 1:
            return "row", tuple(1 << each for each in data)
        return self._cased(1 << data[0])

    def _cased(self, members: int) -> int:
        """A set, with the letters of the other case if that does not matter."""
        if self._ignores_case:
            for letter in range(ord("a"), ord("z") + 1):
                both = 1 << letter | 1 << (letter - 32)
                members |= both if members & both else 0
        return members

    def _group(self) -> _Tree:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise ValueError("its groups are too deep")
        if self._peek() == "?":
            if not self._text.startswith("?:", self._at):
                raise ValueError("of the groups with (? only (?:...) is supported, and (?i) at the begin")
            self._at += 2
        tree = self._either()
        if self._take() != ")":
            raise ValueError("there is a ( without its )")
        self._depth -= 1
        return tree

    def _escaped(self) -> _Tree:
        char = self._take()
        if char in _CLASSES:
            return _CLASSES[char]
        return self._cased(1 << self._control(char))

    def _control(self, char: str) -> int:
        """The byte that an escaped character means."""
        if char == "x":
            digits = self._text[self._at : self._at + 2]
            if not re.fullmatch("[0-9a-fA-F]{2}", digits):
                raise ValueError("\\x needs two hexadecimal digits")
            self._at += 2
            return int(digits, 16)
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char.isalnum() or ord(char) > 127:
            raise ValueError(f"\\{char} is not supported")
        return ord(char)

    def _set(self) -> _Tree:
        negated = self._peek() == "^"
        self._at += negated
        members, first = 0, True
        while first or self._peek() != "]":
            low = self._member()
            if self._peek() == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = self._member()
                if low.bit_count() != 1 or high.bit_count() != 1 or high < low:
                    raise ValueError("a range in [...] needs a lower and a higher character")
                low = (high << 1) - low
            members, first = members | low, False
        self._at += 1
        members = self._cased(members)
        return _ALL ^ members if negated else members

    def _member(self) -> int:
        """One character of a set, as a set."""
        char = self._take()
        if char == "\\":
            char = self._take()
            return _CLASSES[char] if char in _CLASSES else 1 << self._control(char)
        if ord(char) > 127:
            raise ValueError("[...] can have ASCII characters only; write (?:ä|ö) instead of [äö]")
        return 1 << ord(char)


_MATCH = -3
"""In place of a set of bytes: the end of the pattern."""

_FOUND: list[object] = []
"""The set of places that is reached with a match."""

_Places = frozenset[int]


class SearchPattern:
    """A pattern, ready to be searched for.

    Args:
        text: What ``re`` takes, but lookaround, backreferences, lazy repetitions and word borders.
            ``^`` and ``$`` are the begin and the end of a line.

    Raises:
        ValueError: It is not understood, too large, or found in every output.
    """

    def __init__(self, text: str) -> None:
        if len(text) > MOST_CHARACTERS:
            raise ValueError(f"it is longer than {MOST_CHARACTERS} characters")
        # The places: what is expected there, and the next ones.
        self._expected: list[int | None] = []
        self._nexts: list[list[int]] = []
        self._parts = 0
        match = self._place(_MATCH)
        self._first = self._build(_Parser(text).parse(), match)
        start = self._closure([self._first], at_begin=True)
        if self._matches(start) or self._matches(self._closure(start, at_end=True, at_begin=True)):
            raise ValueError("it is found in every output, also in none")
        self._known: dict[_Places, list[object]] = {}
        self._middle: list[object] | None = None

    # Building.

    def _place(self, expected: int | None, *nexts: int) -> int:
        if len(self._expected) >= _MOST_PLACES:
            raise ValueError(_TOO_LARGE)
        self._expected.append(expected)
        self._nexts.append(list(nexts))
        return len(self._expected) - 1

    def _build(self, tree: _Tree, then: int) -> int:
        """Add the places of ``tree``, which lead to the place ``then``; return the first."""
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise ValueError(_TOO_LARGE)
        if isinstance(tree, int):
            return self._place(tree, then)
        if len(tree) == 4:
            return self._build_repeated(tree[1], tree[2], tree[3], then)
        if tree[0] == "either":
            return self._place(None, *(self._build(branch, then) for branch in tree[1]))
        for part in reversed(tree[1]):
            then = self._build(part, then)
        return then

    def _build_repeated(self, tree: _Tree, least: int, most: int | None, then: int) -> int:
        if most is None:
            loop = self._place(None, then)
            self._nexts[loop].append(self._build(tree, loop))
            then = loop
        else:
            end = then
            for _ in range(most - least):
                then = self._place(None, self._build(tree, then), end)
        for _ in range(least):
            then = self._build(tree, then)
        return then

    # Searching.

    def _closure(self, places: Iterable[int], *, at_begin: bool = False, at_end: bool = False) -> _Places:
        """The places that are reached from these without a byte."""
        found: set[int] = set()
        left = list(places)
        while left:
            place = left.pop()
            if place in found:
                continue
            found.add(place)
            expected = self._expected[place]
            if expected is None or (expected == _BEGIN and at_begin) or (expected == _END and at_end):
                left += self._nexts[place]
        return frozenset(place for place in found if self._expected[place] is not None)

    def _matches(self, places: _Places) -> bool:
        return any(self._expected[place] == _MATCH for place in places)

    def start(self) -> list[object]:
        """What is known of the begin of an output."""
        return self._set(self._closure([self._first], at_begin=True))

    def middle(self) -> list[object]:
        """What is known in the midst of a line in which nothing of the pattern has come yet."""
        if self._middle is None:
            self._middle = self._set(self._closure([self._first]))
        return self._middle

    def _set(self, places: _Places) -> list[object]:
        """What follows a set of places for each byte, or None if not known yet; the last is the set."""
        known = self._known.get(places)
        if known is None:
            if len(self._known) >= _MOST_SETS:
                # Emptied, too: whoever has one of them would have all that it leads to.
                for old in self._known.values():
                    old[:256] = [None] * 256
                self._known = {} if self._middle is None else {self._middle[256]: self._middle}  # type: ignore[dict-item]
            self._known[places] = known = [None] * 256 + [places]
        return known

    def step(self, known: list[object], byte: int) -> list[object]:
        """What follows for a byte for which that is not known yet."""
        places: _Places = known[256]  # type: ignore[assignment]  # The last one is.
        after: list[object]
        if byte in (_NEWLINE, _RETURN):
            places = self._closure(places, at_end=True)
        if self._matches(places):
            after = _FOUND
        else:
            hit = [
                place
                for place in places
                if (expected := self._expected[place]) is not None and expected >= 0 and expected >> byte & 1
            ]
            reached = self._closure(
                [self._first, *(following for place in hit for following in self._nexts[place])],
                at_begin=byte == _NEWLINE,
            )
            after = _FOUND if self._matches(reached) else self._set(reached)
        known[byte] = after
        return after

    def matches_at_end(self, known: list[object]) -> bool:
        """Whether there is a match if nothing follows."""
        places: _Places = known[256]  # type: ignore[assignment]  # The last one is.
        return self._matches(self._closure(places, at_end=True))

    def wakes(self) -> re.Pattern[bytes]:
        """The bytes with which something of the pattern may begin, in the midst of a line."""
        middle = self.middle()
        begin = [byte for byte in range(256) if (middle[byte] or self.step(middle, byte)) is not middle]
        if not begin:
            return re.compile(rb"(?!)")
        return re.compile(b"[" + b"".join(b"\\x%02x" % byte for byte in begin) + b"]")


class Search:
    """The search for a pattern in one stream of bytes, which come in pieces."""

    def __init__(self, pattern: SearchPattern) -> None:
        self._pattern = pattern
        self._known = pattern.start()
        self._middle = pattern.middle()
        self._wakes = pattern.wakes()
        self._line = b""

    def feed(self, data: bytes) -> bytes | None:
        """Take the next bytes; return the line in which the first match ends, as far as it has come."""
        known, middle, at, size = self._known, self._middle, 0, len(data)
        while at < size:
            if known is middle:
                woken = self._wakes.search(data, at)
                if woken is None:
                    break
                at = woken.start()
            byte = data[at]
            known = known[byte] or self._pattern.step(known, byte)  # type: ignore[assignment]  # A set's.
            if known is _FOUND:
                return self._line_at(data, at)
            at += 1
        self._known = known
        begin = data.rfind(b"\n") + 1
        self._line = (data[begin:] if begin else self._line + data)[-LINE:]
        return None

    def finish(self) -> bytes | None:
        """Nothing follows; return the last line if there is a match at its end."""
        return self._line if self._pattern.matches_at_end(self._known) else None

    def _line_at(self, data: bytes, at: int) -> bytes:
        begin = data.rfind(b"\n", 0, at) + 1
        end = data.find(b"\n", at)
        line = data[begin : len(data) if end < 0 else end]
        if not begin:
            line = self._line + line
        # The match is what has to be in it, and it ends here.
        over = max(0, len(line) - LINE)
        return line[over:].rstrip(b"\r")
