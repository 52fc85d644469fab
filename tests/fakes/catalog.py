"""A small endpoint that has one of everything a schema has to tell apart."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.dialects.dialect import Catalog, ListedMethod, Notice
from holdfast.protocol.shapes import I64, U16, U64, Nothing, Shape


class Colour(Enum):
    """What it looks like."""

    RED = "red"
    BLUE = "blue"


class Round(Shape, tag_field="type", tag="round"):
    radius: U16


class Square(Shape, tag_field="type", tag="square"):
    """Four equal sides."""

    side: I64 = 1


class DrawParams(Shape):
    """What to draw.

    And more than a summary needs.
    """

    name: str
    """Either ``a|b``
    or */ whatever.
    """
    path: Annotated[str, Meta(pattern="^/")]
    form: Round | Square | None = None
    colour: Colour = Colour.RED
    fills: list[str | None] = msgspec.field(default_factory=list)
    labels: dict[str, str] | None = None
    data: str | None = None
    count: U64 | UnsetType | None = UNSET
    """Ten if absent."""


class Hole(Shape):
    """What is missing."""

    depth: U64 | None
    """Null if it has none."""


class DrawResult(Shape):
    size: U64
    parts: list[Colour]
    done: bool = True
    note: str | UnsetType = UNSET
    hole: Hole | UnsetType | None = UNSET
    """Told if there is one."""
    keepers: dict[str, str] | UnsetType = UNSET
    main: Colour | UnsetType = UNSET


class Drawn(Shape):
    """Something was drawn."""

    data: str


CATALOG = Catalog(
    name="sample",
    title="A sample",
    calls=(
        ListedMethod("draw", DrawParams, DrawResult, "Draw ``it``."),
        ListedMethod("draw/stop", None, Nothing, "Draw no more."),
    ),
    client_notifications=(Notice("seen", None, "It was seen."),),
    server_notifications=(Notice("drawn", Drawn, "Something was drawn."),),
    base64=frozenset({"data"}),
    stamped=True,
)
