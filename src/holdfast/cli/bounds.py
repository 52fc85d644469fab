"""``holdfast serve --limit NAME=VALUE``: every bound of the server by its name."""

from __future__ import annotations

import argparse
from typing import Any, get_type_hints

from holdfast.config import Limits
from holdfast.value import replace

from .durations import duration
from .sizes import byte_count, positive

_PARTS = get_type_hints(Limits)


def configure(parser: argparse.ArgumentParser) -> None:
    """The option."""
    parser.add_argument(
        "--limit",
        metavar="NAME=VALUE",
        action="append",
        type=_setting,
        default=[],
        help="change a bound, for example connection.connections=100, engine.retained_bytes=512m or"
        " session.detached_seconds=5m; may be repeated; the documentation lists them all",
    )


def names() -> list[str]:
    """All there are."""
    return [f"{part}.{field}" for part, kind in _PARTS.items() for field in _bounds(kind)]


def values(limits: Limits) -> dict[str, float]:
    """All that are set, by their names."""
    parts = {part: getattr(limits, part) for part in _PARTS}
    found = {
        f"{part}.{field}": getattr(group, field)
        for part, group in parts.items()
        for field in _bounds(type(group))
    }
    return {name: value for name, value in found.items() if value is not None}


def _bounds(kind: type) -> dict[str, Any]:
    """Those that are numbers; with other settings they share their classes only."""
    hints = get_type_hints(kind)
    return {name: hint for name, hint in hints.items() if hint is not str}


def _setting(text: str) -> tuple[str, str, float | None]:
    name, equals, value = text.partition("=")
    part, _, field = name.partition(".")
    if not equals or part not in _PARTS or field not in _bounds(_PARTS[part]):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE with the name of a limit")
    return part, field, _value(field, value)


def _value(field: str, text: str) -> float | None:
    """A number in the unit that the name of the limit tells."""
    if field.endswith("_quiet_seconds"):
        return duration(text) or None  # No silence at all would end everything at once.
    if field.endswith("_seconds"):
        return duration(text)
    if field.endswith(("_bytes", "buffered_total")):
        return byte_count(text)
    return positive(text)


def apply(limits: Limits, settings: list[tuple[str, str, float | None]]) -> Limits:
    """The limits with these changes; of two for one limit the last one counts."""
    for part, field, value in settings:
        limits = replace(limits, **{part: replace(getattr(limits, part), **{field: value})})
    return limits
