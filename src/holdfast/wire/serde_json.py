"""Finds what is wrong with JSON text, and where (pure).

The fast decoder only says that a text is bad, and lets repeated keys pass.  This
reads the text once more, token by token, and names the first fault in the words
and with the position that clients of the exec dialect know.  Also the judge of
the limits on values and nesting.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice
from typing import Any

import msgspec

MOST_VALUES = 262_144
"""JSON values per message; each scalar, array and object counts, keys do not."""

MOST_NESTED = 127
"""Arrays and objects inside each other."""

_BLANK = re.compile(rb"[ \t\n\r]*")
# One call for the whole of a string: millions of escapes must not be as many steps of ours.  Possessive
# throughout, or the matcher would keep a note of each of them.
_SOUND = re.compile(
    rb'(?:[^"\\\x00-\x1f]*+\\(?:["\\/bfnrt]|u(?:[0-9a-cA-CefEF][0-9a-fA-F]{3}|[dD][0-7][0-9a-fA-F]{2}'
    rb'|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})))*+[^"\\\x00-\x1f]*+'
)
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_NUMBER_START = re.compile(rb"-?(?:(?:0|[1-9][0-9]*)(?:\.(?:[0-9]+(?:[eE][+-]?)?)?|[eE][+-]?)?)?")
# Members of arrays and objects in which nothing can be wrong; the only comma in each is the first.
_SIMPLE = (
    rb"(?:-?+(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+|true|false|null|\[\]|\{\}"
    rb'|"[^",\\\x00-\x1f\x80-\xff]*+")'
)
_ELEMENTS = re.compile(rb"(?:[ \t\n\r]*+,[ \t\n\r]*+%b(?=[ \t\n\r,\]])){1,1000}+" % _SIMPLE)
_KEY = re.compile(rb'[ \t\n\r]*+"([^"\\\x00-\x1f\x80-\xff]*+)"[ \t\n\r]*+:')
_MEMBER = re.compile(rb"[ \t\n\r]*+,%b[ \t\n\r]*+%b(?=[ \t\n\r,}])" % (_KEY.pattern, _SIMPLE))
_text = msgspec.json.Decoder(str).decode
_WORDS = {0x6E: b"null", 0x74: b"true", 0x66: b"false"}


class Malformed(Exception):
    """The message is not one; ``str`` of this says why."""


class _Scanner:
    """One pass over one text."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.at = 0
        self.values = 0

    # Faults.

    def fault(self, what: str, at: int) -> Malformed:
        """``at`` bytes of the text had been taken when the fault showed."""
        line_start = self.text.rfind(b"\n", 0, at) + 1
        line = self.text.count(b"\n", 0, at) + 1
        return Malformed(f"{what} at line {line} column {at - line_start}")

    def unexpected(self, what: str, container: str) -> Malformed:
        """The byte at hand is wrong, or missing."""
        if self.at >= len(self.text):
            return self.fault(f"EOF while parsing {container}", self.at)
        return self.fault(what, self.at + 1)

    # Tokens.

    def peek(self) -> int:
        """The next byte that is not blank, or -1."""
        match = _BLANK.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return self.text[self.at] if self.at < len(self.text) else -1

    def scalar(self, first: int) -> None:
        if first == 0x22:
            self.string()
        elif first in _WORDS:
            self.word(_WORDS[first])
        elif first == 0x2D or 0x30 <= first <= 0x39:
            self.number()
        else:
            raise self.unexpected("expected value", "a value")

    def word(self, word: bytes) -> None:
        for byte in word:
            if self.at >= len(self.text) or self.text[self.at] != byte:
                raise self.unexpected("expected ident", "a value")
            self.at += 1

    def number(self) -> None:
        match = _NUMBER.match(self.text, self.at)
        if match is not None and not self._number_goes_on(match.end()):
            self.at = match.end()
            return
        start = _NUMBER_START.match(self.text, self.at)
        assert start is not None
        self.at = start.end()
        raise self.unexpected("invalid number", "a value")

    def _number_goes_on(self, end: int) -> bool:
        """Whether the number is followed by what only a number could need."""
        rest = self.text[end : end + 1]
        taken = self.text[self.at : end]
        if rest.isdigit():
            return True  # After a leading zero.
        has_exponent = b"e" in taken or b"E" in taken
        return (rest == b"." and b"." not in taken and not has_exponent) or (
            rest in (b"e", b"E") and not has_exponent
        )

    def string(self) -> bytes:
        """Read a string; return it as it was written, between its quotation marks."""
        text = self.text
        start = self.at + 1
        match = _SOUND.match(text, start)
        assert match is not None
        self.at = match.end()
        if self.at >= len(text):
            raise self.fault("EOF while parsing a string", self.at)
        byte = text[self.at]
        self.at += 1
        if byte == 0x5C:
            raise self.bad_escape()
        if byte != 0x22:
            raise self.fault("control character (\\u0000-\\u001F) found while parsing a string", self.at)
        written = match.group()
        try:
            written.decode()
        except UnicodeDecodeError:
            raise self.fault("invalid unicode code point", self.at) from None
        return written

    def bad_escape(self) -> Malformed:
        """What is wrong with the escape whose backslash was just taken."""
        if self.at >= len(self.text):
            return self.fault("EOF while parsing a string", self.at)
        self.at += 1
        if self.text[self.at - 1] != 0x75:
            return self.fault("invalid escape", self.at)
        if 0xDC00 <= self.hex4() <= 0xDFFF:
            return self.fault("lone leading surrogate in hex escape", self.at)
        for wanted in b"\\u":
            if self.at >= len(self.text):
                return self.fault("EOF while parsing a string", self.at)
            self.at += 1
            if self.text[self.at - 1] != wanted:
                return self.fault("unexpected end of hex escape", self.at)
        self.hex4()
        return self.fault("lone leading surrogate in hex escape", self.at)

    def hex4(self) -> int:
        digits = self.text[self.at : self.at + 4]
        if len(digits) < 4:
            raise self.fault("EOF while parsing a string", len(self.text))
        self.at += 4
        if not re.fullmatch(rb"[0-9a-fA-F]{4}", digits):
            raise self.fault("invalid escape", self.at)
        return int(digits, 16)

    # Structure.

    def value(self) -> None:
        """Read one value, whatever is inside it, without recursion."""
        open_keys: list[set[bytes] | None] = []  # An object's keys so far; None for an array.
        while True:
            closed = self.begin(open_keys)
            while closed:
                if not open_keys:
                    return
                closed = self.follow(open_keys)

    def begin(self, open_keys: list[set[bytes] | None]) -> bool:
        """Read the start of a value; say whether that was all of it."""
        first = self.peek()
        self.values += 1
        if self.values > MOST_VALUES:
            raise self.fault(f"JSON-RPC message exceeds the limit of {MOST_VALUES} JSON values", self.at)
        if first not in (0x5B, 0x7B):
            self.scalar(first)
            return True
        self.at += 1
        if len(open_keys) >= MOST_NESTED:
            raise self.fault("recursion limit exceeded", self.at)
        if first == 0x5B:
            open_keys.append(None)
            byte = self.peek()
            if byte == -1:
                raise self.fault("EOF while parsing a list", self.at)
            if byte != 0x5D:
                return False
        else:
            open_keys.append(set())
            byte = self.peek()
            if byte != 0x7D:
                self.key(open_keys, "an object")
                return False
        self.at += 1
        open_keys.pop()
        return True

    def follow(self, open_keys: list[set[bytes] | None]) -> bool:
        """After a value in a container: read up to the next one, or the container's end."""
        keys = open_keys[-1]
        if len(open_keys) < MOST_NESTED:
            self.skip_simple(keys)
        end, container = (0x5D, "a list") if keys is None else (0x7D, "an object")
        byte = self.peek()
        if byte == end:
            self.at += 1
            open_keys.pop()
            return True
        if byte != 0x2C:
            raise self.unexpected(f"expected `,` or `{chr(end)}`", container)
        self.at += 1
        if self.peek() == end:
            raise self.fault("trailing comma", self.at + 1)
        if keys is not None:
            self.key(open_keys, "a value")
        elif self.at >= len(self.text):
            raise self.fault("EOF while parsing a value", self.at)
        return False

    def skip_simple(self, keys: set[bytes] | None) -> None:
        """Read on over simple members, as far as none is there twice and there may be more values."""
        text, at = self.text, self.at
        if keys is None:
            if (match := _ELEMENTS.match(text, at)) is not None:
                count = text.count(b",", at, match.end())
                if self.values + count <= MOST_VALUES:
                    self.values += count
                    self.at = match.end()
            return
        while self.values < MOST_VALUES and (match := _MEMBER.match(text, self.at)) is not None:
            name = match[1]
            if name in keys:
                return
            keys.add(name)
            self.values += 1
            self.at = match.end()

    def key(self, open_keys: list[set[bytes] | None], container: str) -> None:
        """Read a member's key and its colon."""
        keys = open_keys[-1]
        assert keys is not None
        match = _KEY.match(self.text, self.at)
        if match is not None and match[1] not in keys:
            keys.add(match[1])
            self.at = match.end()
            return
        if self.peek() != 0x22:
            raise self.unexpected("key must be a string", container)
        written = self.string()
        name = _text(b'"%b"' % written).encode() if b"\\" in written else written
        byte = self.peek()
        if name in keys:
            words = f"duplicate JSON object key `{name.decode()}`"
            raise self.fault(words, self.at + (byte == 0x7D))
        keys.add(name)
        if byte != 0x3A:
            raise self.unexpected("expected `:`", "an object")
        self.at += 1


def scan(text: bytes) -> int:
    """Where the first value of ``text`` ends.

    Raises:
        Malformed: It has a fault, a repeated key, or too much in it.
    """
    scanner = _Scanner(text)
    scanner.value()
    return scanner.at


def trailing(text: bytes, end: int) -> None:
    """Check that nothing but blanks comes after ``end``."""
    scanner = _Scanner(text)
    scanner.at = end
    if scanner.peek() != -1:
        raise scanner.fault("trailing characters", scanner.at + 1)


# What a fast decoder read.

_MARK = re.compile(rb'[\[{,](?:[^"\[{,]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
"""A bracket that opens or a comma, and all up to the next one that is in no string."""


def is_too_much(text: bytes) -> bool:
    """Whether there are certainly too many values: told before memory is taken for all of them.

    At least half of these marks stand for a value each, so twice the limit is over it.
    """
    most = 2 * MOST_VALUES
    return (
        len(text) > most
        and text.count(b"{") + text.count(b"[") + text.count(b",") > most
        and next(islice(_MARK.finditer(text), most, None), None) is not None
    )


def is_whole(text: bytes, tree: Any) -> bool:
    """Whether the fast decoder's result can be trusted to be all there was.

    It drops the first of two equal keys.  Every string of the text has two
    quotation marks, so a text with more of them than the strings of the result
    account for has lost some.
    """
    openings = text.count(b"{") + text.count(b"[")
    return (
        _quotation_marks(text) == 2 * strings(tree)
        and (openings <= MOST_NESTED or not is_deep(tree))
        and (openings + text.count(b",") < MOST_VALUES or _values(tree) <= MOST_VALUES)
    )


def _quotation_marks(text: bytes) -> int:
    """How many there are, without those that are escaped inside a string."""
    if b"\\" not in text:
        return text.count(b'"')
    # Backslashes are in strings only, and a run of them is read in pairs from its beginning.
    rest = text.replace(b"\\\\", b"")
    return rest.count(b'"') - rest.count(b'\\"')


def strings(tree: Any) -> int:
    """Keys and string values in ``tree``; takes any depth."""
    line, count = [tree], 0
    while line:
        node = line.pop()
        if type(node) is dict:
            count += len(node)
            node = node.values()
        elif type(node) is str:
            count += 1
            continue
        elif type(node) is not list:
            continue
        if len(node) <= _FEW or (leaves := _leaves(node)) is None:
            line += node
        else:
            count += leaves.count(str)
    return count


def _values(tree: Any) -> int:
    """Values in ``tree``, itself and all arrays and objects included."""
    line, count = [tree], 1
    while line:
        node = line.pop()
        if type(node) is dict:
            node = node.values()
        elif type(node) is not list:
            continue
        count += len(node)
        if len(node) <= _FEW or _leaves(node) is None:
            line += node
    return count


_FEW = 16
"""Children that are looked at one by one.  Each of many takes three times as long that way."""


def _leaves(children: Collection[Any]) -> list[type] | None:
    """The types of the children; None if one of them has children of its own."""
    kinds = list(map(type, children))
    return None if dict in kinds or list in kinds else kinds


def is_deep(tree: Any) -> bool:
    """Whether arrays and objects are nested too deeply; takes any depth."""
    level, depth = [tree], 0
    while level and depth <= MOST_NESTED:
        nodes = [node for node in level if isinstance(node, dict | list)]
        level = [child for node in nodes for child in (node.values() if isinstance(node, dict) else node)]
        depth += bool(nodes)
    return depth > MOST_NESTED
