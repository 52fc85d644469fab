"""The part of YAML in which people describe skills: maps, lists, texts; no types or references (pure)."""

# Every expression here takes time in proportion to the text: what is read may be anybody's.

from __future__ import annotations

import re
from typing import Any

_DEEPEST = 16
_QUOTED = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^']|'')*')"""
_START = r"""(?:[^\s"'\[\]{},:#&*!|>%@`-]|-(?=[^\s:#]))"""
_KEY = re.compile(rf"({_QUOTED}|{_START}(?:[^:#]*[^\s:#])?)\s*:(?:\s+(.*))?")
_BLOCK = re.compile(r"([|>])([+-]?)\s*(?:#.*)?")
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", '"': '"', "\\": "\\", "/": "/", " ": " "}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)")
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"(?:\s+#.*)?')
_SINGLE = re.compile(r"'((?:[^']|'')*)'(?:\s+#.*)?")
_FLOW = re.compile(
    rf"\s*([\[\]{{}},]|:(?=\s)|{_QUOTED}|[^\s\[\]{{}},:\"'][^\[\]{{}},]*?(?=\s*(?:[\[\]{{}},]|:\s|$)))"
)
_LONGEST_FLOW = 1000
"""In brackets: the one expression whose time grows faster than its text."""

Node = Any
"""A text, None, a list of nodes, or a map from texts to nodes."""


def read(text: str) -> Node:
    """Return what a text says; every scalar is a text, or None if there is none.

    What looks like a list, a map or a quoted text, and is none, is taken as the text that it is.

    Raises:
        ValueError: It is none of this, or uses what is not read here.
    """
    reader = _YamlLines(text)
    node = reader.node(0, 0)
    if reader.peek() is not None:
        raise ValueError(f"line {reader.at + 1} does not belong to what is above it")
    return node


class _YamlLines:
    """Goes through the lines of a text."""

    def __init__(self, text: str) -> None:
        self._lines = [line.rstrip() for line in text.split("\n")]
        self.at = 0

    def peek(self) -> tuple[int, str] | None:
        """Return how far the next line is indented, and what it says; comments are passed over."""
        while self.at < len(self._lines):
            line = self._lines[self.at]
            said = line.lstrip(" ")
            if said and not said.startswith("#"):
                if said.startswith("\t"):
                    raise ValueError(f"line {self.at + 1} is indented by a tab")
                return len(line) - len(said), said
            self.at += 1
        return None

    def node(self, least: int, depth: int) -> Node:
        """Read what begins with the next line, if that is indented by at least so much."""
        found = self.peek()
        if found is None or found[0] < least:
            return None
        if depth > _DEEPEST:
            raise ValueError(f"line {self.at + 1} is nested too deeply")
        indent, said = found
        if said == "-" or said.startswith("- "):
            return self._list(indent, depth)
        if _KEY.fullmatch(said):
            return self._map(indent, depth)
        self.at += 1
        return self._scalar(said, indent - 1, depth)

    def _list(self, indent: int, depth: int) -> list[Node]:
        items = []
        while (found := self.peek()) is not None and found[0] == indent and re.match(r"-(\s|$)", found[1]):
            rest = found[1][1:].lstrip(" ")
            # What follows the dash is read as a line of its own, indented by as much as it is.
            width = indent + len(found[1]) - len(rest)
            self._lines[self.at] = " " * width + rest
            items.append(self.node(indent + 1, depth + 1))
        return items

    def _map(self, indent: int, depth: int) -> dict[str, Node]:
        items: dict[str, Node] = {}
        while (found := self.peek()) is not None and found[0] == indent:
            match = _KEY.fullmatch(found[1])
            if match is None:
                raise ValueError(f"line {self.at + 1} has no key")
            key = _quoted(match[1])
            key = match[1] if key is None else key
            if key in items:
                raise ValueError(f"line {self.at + 1} has a key that is there already")
            self.at += 1
            items[key] = self._value(match[2] or "", indent, depth)
        return items

    def _value(self, said: str, indent: int, depth: int) -> Node:
        if _bare(said):
            return self._scalar(said, indent, depth)
        found = self.peek()
        is_list = found is not None and found[0] == indent and re.match(r"-(\s|$)", found[1])
        return self.node(indent if is_list else indent + 1, depth + 1)

    def _scalar(self, said: str, indent: int, depth: int) -> Node:
        if block := _BLOCK.fullmatch(said):
            return self._block(block[1], block[2], indent)
        if said[0] in "&*!%@`":
            raise ValueError(f"line {self.at} uses what is not read here")
        parts = [said]
        while (found := self.peek()) is not None and found[0] > indent:
            parts.append(found[1])
            self.at += 1
        text = " ".join(parts)
        if (quoted := _quoted(text)) is not None:
            return quoted
        if said[0] in "[{":
            try:
                return _flow(_bare(text))
            except ValueError:
                return text
        plain = " ".join(cut for part in parts if (cut := _bare(part)))
        return None if plain in ("~", "null") else plain

    def _block(self, style: str, chomping: str, indent: int) -> str:
        lines: list[str] = []
        width = 0
        while self.at < len(self._lines):
            line = self._lines[self.at]
            own = len(line) - len(line.lstrip(" "))
            if line and own <= indent:
                break
            width = width or own
            lines.append(line[width:])
            self.at += 1
        while lines and not lines[-1]:
            lines.pop()
        text = "\n".join(lines)
        if style == ">":
            text = re.sub(r"(?<!\n)\n(?!\n)", " ", text)
        return text if chomping == "-" or not text else text + "\n"


def _bare(text: str) -> str:
    """Return a line without its comment."""
    return _COMMENT.sub("", text).rstrip()


def _quoted(text: str) -> str | None:
    """Return what is between quotes; None if the text is not a quoted one."""
    if (double := _DOUBLE.fullmatch(text)) is not None:
        return _ESCAPE.sub(_unescaped, double[1])
    if (single := _SINGLE.fullmatch(text)) is not None:
        return single[1].replace("''", "'")
    return None


def _unescaped(match: re.Match[str]) -> str:
    if match[1][0] in "ux" and len(match[1]) > 1:
        if 0xD800 <= (code := int(match[1][1:], 16)) < 0xE000:
            raise ValueError("half of a character")
        return chr(code)
    return _ESCAPES.get(match[1], match[0])


def _flow(text: str) -> Node:
    """Return a list or a map that is written in brackets.

    Raises:
        ValueError: It is none.
    """
    if len(text) > _LONGEST_FLOW:
        raise ValueError("too long")
    words, at = [], 0
    while at < len(text):
        word = _FLOW.match(text, at)
        if word is None:
            raise ValueError("not a list or a map")
        words.append(word[1])
        at = word.end()
    words.reverse()
    node = _flow_node(words, 0)
    if words:
        raise ValueError("more than a list or a map")
    return node


def _flow_node(words: list[str], depth: int) -> Node:
    if not words or depth > _DEEPEST:
        raise ValueError("not closed, or nested too deeply")
    word = words.pop()
    if word in "[{":
        closing, items, pairs = "]}"["[{".index(word)], [], {}
        while words and words[-1] != closing:
            item = _flow_node(words, depth + 1)
            if word == "{":
                if not isinstance(item, str) or not words or words.pop() != ":":
                    raise ValueError("a key without a value")
                pairs[item] = _flow_node(words, depth + 1)
            items.append(item)
            if words and words[-1] == ",":
                words.pop()
            elif not words or words[-1] != closing:
                raise ValueError("not separated")
        if not words:
            raise ValueError("not closed")
        words.pop()
        return items if word == "[" else pairs
    if word in "]},:":
        raise ValueError("nothing there")
    quoted = _quoted(word)
    return word.strip() if quoted is None else quoted
