"""Patterns of names, matched in time that grows with the length of the name and of the patterns (pure).

A regular expression with several ``.*`` tries every way to divide a name among
them, which takes for ever if whoever wrote the pattern wants it to.  Here a pattern
is a row of characters to come, and a set of bits says after how many of them we may
be.  Each character of a name moves all the bits at once, those of all patterns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from .value import value

STAR = "*"
"""Patterns in which ``*`` is any run of characters, and everything else is itself."""

STAR_AND_ONE = "*?"
"""``*`` for any characters, and ``?`` for any single one."""

STAR_ONE_AND_SETS = "*?["
"""``*``, ``?``, ``[a-z]`` for a character out of a set, and ``[!a-z]`` for one that is not in it."""


class Wildcards:
    """Some patterns, each for a whole name."""

    __slots__ = ("_any", "_done", "_ends", "_ignore_case", "_last", "_loops", "_masks", "_sets", "_starts")

    def __init__(
        self, patterns: Iterable[str], *, special: str = STAR_AND_ONE, ignore_case: bool = False
    ) -> None:
        """
        Args:
            special: Which characters of a pattern stand for others.
            ignore_case: Take letters that differ in their case only for the same.
        """
        self._ignore_case = ignore_case
        self._starts = self._loops = self._any = 0
        self._masks: dict[str, int] = {}
        self._sets: list[tuple[int, _Set]] = []
        self._ends: list[int] = []
        at = 1  # The bit of "nothing of it has come yet".
        for pattern in patterns:
            self._starts |= at
            for token in _tokens(pattern, special):
                if token is _RUN:
                    self._loops |= at
                    continue
                at <<= 1
                self._expect(token, at)
            self._ends.append(at)
            at <<= 1
        for char in self._masks:
            self._masks[char] |= self._any
        self._last = sum(self._ends)
        self._done = self._last & self._loops

    def _expect(self, token: str | _Set, at: int) -> None:
        """What has to come for this bit to be set."""
        if token is _ONE:
            self._any |= at
        elif isinstance(token, _Set):
            self._sets.append((at, token))
        else:
            char = fold(token) if self._ignore_case else token
            self._masks[char] = self._masks.get(char, 0) | at

    def matches(self, name: str) -> bool:
        """Whether one of the patterns is about this name."""
        if self._sets:
            return bool(self._run(name) & self._last)
        # The same as below, for the most frequent question: it ends as soon as the answer is known.
        masks, rest, loops, done = self._masks, self._any, self._loops, self._done
        bits = self._starts
        for char in fold(name) if self._ignore_case else name:
            if bits & done:
                return True
            bits = ((bits << 1) & masks.get(char, rest)) | (bits & loops)
            if not bits:
                return False
        return bool(bits & self._last)

    def which(self, name: str) -> list[int]:
        """Which of the patterns are about this name, by their places."""
        bits = self._run(name) & self._last
        return [place for place, end in enumerate(self._ends) if bits & end] if bits else []

    def _run(self, name: str) -> int:
        bits = self._starts
        for char in fold(name) if self._ignore_case else name:
            mask = self._masks.get(char, self._any)
            for at, characters in self._sets:
                if characters.has(char):
                    mask |= at
            bits = ((bits << 1) & mask) | (bits & self._loops)
            if not bits:
                break
        return bits


@lru_cache(maxsize=1024)
def _fold_char(char: str) -> str:
    upper = char.upper()
    # One for one: a letter that becomes two ones stays what it is, or `?` would count differently.
    return (upper if len(upper) == 1 else char).lower()[0]


def fold(name: str) -> str:
    """The name with each character replaced by the one that stands for all its cases."""
    return name.lower() if name.isascii() else "".join(map(_fold_char, name))


# Reading a pattern.

_RUN = "run"
_ONE = "one"
"""Longer than any character, and so none."""


@value
class _Set:
    """The characters between two brackets."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool

    def has(self, char: str) -> bool:
        return any(first <= char <= last for first, last in self.ranges) is not self.negated


def _tokens(pattern: str, special: str) -> Iterator[str | _Set]:
    """The characters of a pattern, and what stands for others; a bracket that nothing closes is itself."""
    at = 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char not in special:
            yield char
        elif char == "*":
            yield _RUN
        elif char == "?":
            yield _ONE
        elif (end := _end_of_set(pattern, at)) < 0:
            yield char
        else:
            yield _set(pattern[at:end])
            at = end + 1


def _end_of_set(pattern: str, at: int) -> int:
    """Where the bracket is that closes a set; one at its very beginning belongs to it."""
    if pattern.startswith("!", at):
        at += 1
    return pattern.find("]", at + 1)


def _set(text: str) -> _Set:
    negated = text.startswith("!")
    text = text.removeprefix("!")
    ranges, at = [], 0
    while at < len(text):
        is_range = text[at + 1 : at + 2] == "-" and at + 2 < len(text)
        last = text[at + 2] if is_range else text[at]
        ranges.append((text[at], last))
        at += 3 if is_range else 1
    return _Set(tuple(ranges), negated)
