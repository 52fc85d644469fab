"""Typed decoding of JSON values, and words for what does not fit (pure).

The decoder that does the work only says roughly what was wrong.  When it
refuses, the value is walked once more along its type, to name the first misfit
in the words that clients of the reference know.
"""

from __future__ import annotations

import unicodedata
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
    return _complain(value, _shape(kind), words)


@cache
def _shape(kind: type) -> inspect.Type:
    return inspect.type_info(kind)


def _complain(value: Any, shape: inspect.Type, words: Words) -> str | None:
    match shape:
        case inspect.Metadata(extra_json_schema={"title": title}):
            return _integer(value, title, words)
        case inspect.Metadata(type=inner, extra=extra) if extra:
            if not isinstance(value, str) and "expects" in extra:
                return _wrong(value, extra["expects"], words)
            check = extra.get("complain", _content)
            return _complain(value, inner, words) or check(value)
        case inspect.UnionType(types=members):
            return _union(value, [m for m in members if not isinstance(m, inspect.NoneType)], words)
        case inspect.StrType():
            return None if isinstance(value, str) else _wrong(value, "a string", words)
        case inspect.BoolType():
            return None if isinstance(value, bool) else _wrong(value, "a boolean", words)
        case inspect.NoneType():
            return None if value is None else _wrong(value, "unit", words)
        case inspect.EnumType(cls=cls):
            return _variant(value, [member.value for member in cls], words)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            if not isinstance(value, list):
                return _wrong(value, "a sequence", words)
            return _first(_complain(element, item, words) for element in value)
        case inspect.DictType(value_type=item):
            if not isinstance(value, dict):
                return _wrong(value, "a map", words)
            return _first(_complain(element, item, words) for element in value.values())
        case inspect.StructType():
            return _struct(value, shape, words)
        case _:
            return None


def _content(value: Any) -> None:
    return None


def _union(value: Any, members: list[inspect.Type], words: Words) -> str | None:
    """One type that may be null, or several that a member of theirs tells apart."""
    if value is None:
        return None
    if len(members) == 1:
        return _complain(value, members[0], words)
    tagged = {member.tag: member for member in members if isinstance(member, inspect.StructType)}
    first = next(iter(tagged.values()))
    name = first.tag_field
    if not isinstance(value, dict):
        return _wrong(value, f"internally tagged enum {getattr(first.cls, 'wire_union', '')}", words)
    if name not in value:
        return f"missing field `{name}`"
    tag = value[name]
    if not isinstance(tag, str):
        return _wrong(tag, "variant identifier", words)
    return _variant(tag, [str(each) for each in tagged], words) or _struct(value, tagged[tag], words)


def _struct(value: Any, shape: inspect.StructType, words: Words) -> str | None:
    """Members in the order they were written, then what is missing in the order of the type."""
    if not isinstance(value, dict):
        return _wrong(value, f"struct {getattr(shape.cls, 'wire_name', shape.cls.__name__)}", words)
    fields = {field.encode_name: field for field in shape.fields}
    for name, member in value.items():
        if name in fields and (complaint := _complain(member, fields[name].type, words)):
            return complaint
    for name, field in fields.items():
        if field.required and name not in value:
            return f"missing field `{name}`"
    return None


_BOUNDS = {"u16": (0, 2**16), "u64": (0, 2**64), "usize": (0, 2**64), "i64": (-(2**63), 2**63)}


def _integer(value: Any, title: str, words: Words) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _wrong(value, title, words)
    low, end = _BOUNDS[title]
    if isinstance(value, int) and low <= value < end:
        return None
    if words is Words.TERSE:
        return "invalid number"
    if isinstance(value, float):
        return _wrong(value, title, words)
    return f"invalid value: {_describe(value, words)}, expected {title}"


def _variant(value: Any, allowed: list[str], words: Words) -> str | None:
    if not isinstance(value, str):
        return _wrong(value, "string or map", words)
    if value in allowed:
        return None
    quoted = [f"`{name}`" for name in allowed]
    expected = " or ".join(quoted) if len(quoted) < 3 else "one of " + ", ".join(quoted)
    return f"unknown variant `{value}`, expected {expected}"


def _first(complaints: Any) -> str | None:
    return next(filter(None, complaints), None)


def _wrong(value: Any, expected: str, words: Words) -> str:
    return f"invalid type: {_describe(value, words)}, expected {expected}"


def _describe(value: Any, words: Words) -> str:
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
        case int() if words is Words.FULL:
            return f"integer `{value}`"
        case float() if words is Words.FULL:
            return f"floating point `{value}`"
        case _:
            return "number"


_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0"}


def quote(text: str) -> str:
    """The text in quotes, with what cannot be seen spelled out."""
    return '"' + "".join(map(_visible, text)) + '"'


def _visible(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable() and not unicodedata.combining(char):
        return char
    return f"\\u{{{ord(char):x}}}"
