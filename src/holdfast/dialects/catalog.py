"""What an endpoint offers, as a list from which schemas and reference pages are written (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from holdfast.protocol.shapes import Shape

from .dialect import Method


@dataclass(frozen=True, slots=True)
class ListedMethod:
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
    calls: tuple[ListedMethod, ...]
    heard: tuple[Notice, ...]
    """What the client may tell."""
    told: tuple[Notice, ...]
    """What the server tells."""
    base64: frozenset[str]
    """Members that are bytes, in base64, wherever they occur."""
    stamped: bool = False
    """Whether the server's notifications say when they were sent."""


def listed(methods: Mapping[str, Method]) -> tuple[ListedMethod, ...]:
    """The methods of an endpoint's table, in its order, except those that have no signature."""
    return tuple(
        ListedMethod(
            each.signature.name,
            each.signature.params,
            each.signature.result,
            each.summary or _first_words(_function(each.handle)),
        )
        for each in methods.values()
        if each.signature is not None
    )


def notice(name: str, params: type[Shape]) -> Notice:
    """A notification; what its params say of themselves is the summary."""
    return Notice(name, params, _first_words(params))


def _function(handle: Any) -> Any:
    return _function(handle.func) if isinstance(handle, partial) else handle


def _first_words(documented: Any) -> str:
    """The first paragraph of a docstring, as one line."""
    return " ".join((documented.__doc__ or "").partition("\n\n")[0].split())
