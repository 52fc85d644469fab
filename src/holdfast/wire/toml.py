"""TOML as it is written: what Python's own reader gives, as text that reads the same (pure)."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from typing import Any

Table = dict[str, Any]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_SPECIAL = re.compile(r'["\\\x00-\x1f\x7f]')


def written(table: Table) -> str:
    """Return a table as TOML: values first, then the tables in it, each in the order it is given."""
    return "\n".join(part for part in _parts(table, (), "")).lstrip("\n")


def _parts(table: Table, names: tuple[str, ...], header: str) -> Iterator[str]:
    """Yield blocks of lines: the values of a table under its header, then each table in it."""
    inner = {name: value for name, value in table.items() if _is_block(value)}
    lines = [f"{_key(name)} = {_value(value)}\n" for name, value in table.items() if name not in inner]
    if header and (lines or not inner or header.startswith("[[")):
        lines.insert(0, f"{header}\n")
    if lines:
        yield "".join(lines)
    for name, value in inner.items():
        path = (*names, name)
        told = ".".join(map(_key, path))
        if isinstance(value, dict):
            yield from _parts(value, path, f"[{told}]")
        else:
            for each in value:
                yield from _parts(each, path, f"[[{told}]]")


def _is_block(value: object) -> bool:
    """Whether a value has a header of its own: a table, or a list of nothing but tables."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(each, dict) for each in value)
    return isinstance(value, dict)


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _text(value)
        case list():
            return f"[{', '.join(map(_value, value))}]"
        case dict():
            pairs = ", ".join(f"{_key(name)} = {_value(each)}" for name, each in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
        case datetime.datetime():
            return value.isoformat().removesuffix("+00:00") + ("" if value.utcoffset() else _zone(value))
        case datetime.date() | datetime.time():
            return value.isoformat()
    return repr(value)  # Numbers, which are written as Python writes them: also "inf" and "nan".


def _zone(moment: datetime.datetime) -> str:
    return "" if moment.tzinfo is None else "Z"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    return f'"{_SPECIAL.sub(_escaped, text)}"'


def _escaped(found: re.Match[str]) -> str:
    return _SHORT.get(found[0]) or f"\\u{ord(found[0]):04X}"
