"""Typed decoding of JSON values, and words for what does not fit (pure).

The decoder that does the work only says roughly what was wrong.  When it
refuses, the value is walked once more along its type, to name the first misfit
in the words that clients of the reference know.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

T = TypeVar("T")


class Misfit(Exception):
    """A value does not have the type that is asked for; ``str`` of this says why."""


class Words(Enum):
    """How much is said about a number that does not fit; the dialects differ in it."""

    TERSE = 1
    """``invalid number``."""
    FULL = 2
    """The number, and what it should have been."""


def fit(value: Any, kind: type[T], words: Words = Words.TERSE) -> T:
    """``value`` as a ``kind``.

    Raises:
        Misfit: It is none.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Misfit(complain(value, kind, words) or str(error)) from None


def complain(value: Any, kind: type, words: Words = Words.TERSE) -> str | None:
    """What keeps ``value`` from being a ``kind``; None if nothing does.

    Text may carry a check of its own, and words for what is expected in its place:
    ``Annotated[str, Meta(extra={"complain": check, "expects": "path string"})]``.
    """
    return _complain(value, _shape(kind), _Look(words))


_MOST_CHECKED = 64 << 10
"""Characters that the checks of texts are given for one complaint: they are slow, and run on the loop."""

_MOST_VISITED = 4096
"""Elements of lists and maps that are looked at for one complaint.  What is wrong further on is told in
the decoder's own words, which are found out faster."""


class _Look:
    """One walk through a value."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self._left = _MOST_CHECKED
        self._visits = _MOST_VISITED

    def at(self, elements: Iterable[Any]) -> Iterator[Any]:
        """The elements, as far as there is time for them."""
        for element in elements:
            self._visits -= 1
            if self._visits < 0:
                return
            yield element

    def check(self, text: str, check: Any) -> str | None:
        """What a check says of a text; nothing any more after too much of it."""
        self._left -= len(text)
        found: str | None = check(text) if self._left >= 0 else None
        return found


@cache
def _shape(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


def _complain(value: Any, shape: inspect.Type, look: _Look) -> str | None:
    match shape:
        case inspect.Metadata(extra_json_schema={"title": title}):
            return _integer(value, title, look)
        case inspect.Metadata(type=inner, extra=extra) if extra:
            if not isinstance(value, str) and "expects" in extra:
                return _wrong(value, extra["expects"], look)
            check = extra.get("complain", _content)
            return _complain(value, inner, look) or look.check(value, check)
        case inspect.UnionType(types=members):
            return _union(value, [m for m in members if not isinstance(m, inspect.NoneType)], look)
        case inspect.StrType():
            return None if isinstance(value, str) else _wrong(value, "a string", look)
        case inspect.BoolType():
            return None if isinstance(value, bool) else _wrong(value, "a boolean", look)
        case inspect.NoneType():
            return None if value is None else _wrong(value, "unit", look)
        case inspect.EnumType(cls=cls):
            return _variant(value, [member.value for member in cls], look)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            if not isinstance(value, list):
                return _wrong(value, "a sequence", look)
            return _first(_complain(element, item, look) for element in look.at(value))
        case inspect.DictType(value_type=item):
            if not isinstance(value, dict):
                return _wrong(value, "a map", look)
            return _first(_complain(element, item, look) for element in look.at(value.values()))
        case inspect.StructType():
            return _struct(value, shape, look)
        case _:
            return None


def _content(value: Any) -> None:
    return None


def _union(value: Any, members: list[inspect.Type], look: _Look) -> str | None:
    """One type that may be null, or several that a member of theirs tells apart."""
    if value is None:
        return None
    if len(members) == 1:
        return _complain(value, members[0], look)
    tagged = {member.tag: member for member in members if isinstance(member, inspect.StructType)}
    first = next(iter(tagged.values()))
    name = first.tag_field
    if not isinstance(value, dict):
        return _wrong(value, f"internally tagged enum {getattr(first.cls, 'wire_union', '')}", look)
    if name not in value:
        return f"missing field `{name}`"
    tag = value[name]
    if not isinstance(tag, str):
        return _wrong(tag, "variant identifier", look)
    return _variant(tag, [str(each) for each in tagged], look) or _struct(value, tagged[tag], look)


def _struct(value: Any, shape: inspect.StructType, look: _Look) -> str | None:
    """Members in the order they were written, then what is missing in the order of the type."""
    if not isinstance(value, dict):
        return _wrong(value, f"struct {getattr(shape.cls, 'wire_name', shape.cls.__name__)}", look)
    fields = {field.encode_name: field for field in shape.fields}
    for name, member in value.items():
        if name in fields and (complaint := _complain(member, fields[name].type, look)):
            return complaint
    for name, field in fields.items():
        if field.required and name not in value:
            return f"missing field `{name}`"
    return None


_BOUNDS = {"u16": (0, 2**16), "u64": (0, 2**64), "usize": (0, 2**64), "i64": (-(2**63), 2**63)}


def _integer(value: Any, title: str, look: _Look) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _wrong(value, title, look)
    low, end = _BOUNDS[title]
    if isinstance(value, int) and low <= value < end:
        return None
    if look.words is Words.TERSE:
        return "invalid number"
    if isinstance(value, float):
        return _wrong(value, title, look)
    return f"invalid value: {_describe(value, look)}, expected {title}"


def _variant(value: Any, allowed: list[str], look: _Look) -> str | None:
    if not isinstance(value, str):
        return _wrong(value, "string or map", look)
    if value in allowed:
        return None
    quoted = [f"`{name}`" for name in allowed]
    expected = " or ".join(quoted) if len(quoted) < 3 else "one of " + ", ".join(quoted)
    return f"unknown variant `{value}`, expected {expected}"


def _first(complaints: Any) -> str | None:
    return next(filter(None, complaints), None)


def _wrong(value: Any, expected: str, look: _Look) -> str:
    return f"invalid type: {_describe(value, look)}, expected {expected}"


def _describe(value: Any, look: _Look) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return f"boolean `{str(value).lower()}`"
        case str():
            return f"string {quote(value)}"
        case list():
            return "sequence"
        case dict():
            return "map"
        case int() if look.words is Words.FULL:
            return f"integer `{value}`"
        case float() if look.words is Words.FULL:
            return f"floating point `{value}`"
        case _:
            return "number"


_MOST_QUOTED = 4096
"""Characters of a text that an error repeats where they have to be looked at one by one."""

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def quote(text: str) -> str:
    """The text in quotes, with what cannot be seen spelled out; a long one is cut."""
    shown = "".join(map(_visible, text[:_MOST_QUOTED]))
    return f'"{shown}"' if len(text) <= _MOST_QUOTED else f'"{shown}"...'


def _visible(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable() and not unicodedata.combining(char):
        return char
    return f"\\u{{{ord(char):x}}}"
