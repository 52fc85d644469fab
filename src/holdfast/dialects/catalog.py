"""What an endpoint offers, as a list from which schemas and reference pages are written (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from .dialect import Method
from .shapes import Shape


@dataclass(frozen=True, slots=True)
class Call:
    """A method that a client may call."""

    name: str
    params: type[Shape] | None
    """None for a method that takes none."""
    result: type[Shape]
    summary: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A notification."""

    name: str
    params: type[Shape] | None
    """None if whatever is there is ignored."""
    summary: str


@dataclass(frozen=True, slots=True)
class Catalog:
    """Everything that may be said at one endpoint, in the order in which it is best read."""

    name: str
    """The endpoint's, as on the command line."""
    title: str
    calls: tuple[Call, ...]
    heard: tuple[Notice, ...]
    """What the client may tell."""
    told: tuple[Notice, ...]
    """What the server tells."""
    base64: frozenset[str]
    """Members that are bytes, in base64, wherever they occur."""
    stamped: bool = False
    """Whether the server's notifications say when they were sent."""


def call(
    methods: Mapping[str, Method],
    name: str,
    params: type[Shape] | None,
    result: type[Shape],
    summary: str = "",
) -> Call:
    """A method of the table; what its handler says of itself is the summary, unless one is given."""
    return Call(name, params, result, summary or _first_words(_function(methods[name].handle)))


def notice(name: str, params: type[Shape]) -> Notice:
    """A notification; what its params say of themselves is the summary."""
    return Notice(name, params, _first_words(params))


def _function(handle: Any) -> Any:
    return _function(handle.func) if isinstance(handle, partial) else handle


def _first_words(documented: Any) -> str:
    """The first paragraph of a docstring, as one line."""
    return " ".join((documented.__doc__ or "").partition("\n\n")[0].split())
