"""The types that a catalog leads to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import NODEFAULT

from holdfast.cli.schema import CATALOGS
from holdfast.dialects.dialect import Catalog, ListedMethod
from holdfast.protocol.shapes import Nothing, Shape
from holdfast.schema.outline import (
    Choice,
    Constant,
    Either,
    Entries,
    Integer,
    Items,
    Member,
    NamedType,
    Outline,
    RecordType,
    Simple,
    Text,
)
from tests.fakes.catalog import CATALOG, DrawParams, DrawResult, Hole


class Both(Shape):
    word: str = ""


class Strange(Shape):
    number: float


def test_types_come_in_the_order_in_which_they_are_met() -> None:
    """A reader goes from what is asked for to what it is made of, and two runs give the same text."""
    assert list(Outline(CATALOG).types) == [
        "DrawParams",
        "Round",
        "Square",
        "Colour",
        "DrawResult",
        "Hole",
        "Nothing",
        "Drawn",
        "TraceContext",
        "ErrorBody",
    ]


def test_what_a_client_sends_may_leave_out_what_has_a_default() -> None:
    record = Outline(CATALOG).record(DrawParams)

    null = Simple.NULL
    assert record.members == (
        Member("name", Text(), required=True, words="Either `a|b` or */ whatever."),
        Member("path", Text(pattern="^/"), required=True),
        Member("form", Either((NamedType("Round"), NamedType("Square"), null)), required=False, default=None),
        Member("colour", NamedType("Colour"), required=False, default="red"),
        Member("fills", Items(Either((Text(), null))), required=False, default=[]),
        Member("labels", Either((Entries(Text()), null)), required=False, default=None),
        Member("data", Either((Text(base64=True), null)), required=False, default=None),
        Member("count", Either((Integer("u64"), null)), required=False, words="Ten if absent."),
    )


def test_what_the_server_sends_is_complete_but_for_what_may_be_absent() -> None:
    """A default is filled in before a result is sent: a client can rely on the member."""
    record = Outline(CATALOG).record(DrawResult)

    assert record.members == (
        Member("size", Integer("u64"), required=True),
        Member("parts", Items(NamedType("Colour")), required=True),
        Member("done", Simple.BOOLEAN, required=True),
        Member("note", Text(), required=False),
        Member(
            "hole", Either((NamedType("Hole"), Simple.NULL)), required=False, words="Told if there is one."
        ),
        Member("keepers", Entries(Text()), required=False),
        Member("main", NamedType("Colour"), required=False),
    )
    assert Outline(CATALOG).record(Hole).members == (
        Member("depth", Either((Integer("u64"), Simple.NULL)), required=True, words="Null if it has none."),
    )


def test_a_member_that_tells_types_apart_is_a_constant() -> None:
    types = Outline(CATALOG).types

    assert types["Square"] == RecordType(
        "Square",
        (
            Member("type", Constant("square"), required=True),
            Member("side", Integer("i64"), required=False, default=1),
        ),
        "Four equal sides.",
    )


def test_a_choice_keeps_the_order_of_its_values() -> None:
    """The order means something to people, so it is not that of the alphabet."""
    assert Outline(CATALOG).types["Colour"] == Choice("Colour", ("red", "blue"), "What it looks like.")


def calling(params: type[Shape], result: type[Shape]) -> Catalog:
    return replace(CATALOG, calls=(ListedMethod("draw", params, result, ""),), server_notifications=())


def test_a_type_that_goes_both_ways_is_refused() -> None:
    """Which of its members may be left out depends on the way."""
    with pytest.raises(ValueError, match="Both stands for two types, or goes both ways"):
        Outline(calling(Both, Both))
    assert Outline(calling(Nothing, Nothing)).record(Nothing).members == ()


def test_two_types_of_one_name_are_refused() -> None:
    """One of them would silently stand for the other."""
    other = type("Both", (Shape,), {"__annotations__": {"number": int}, "__module__": __name__})

    with pytest.raises(ValueError, match="Both stands for two types"):
        Outline(calling(other, Both))


def test_a_type_that_no_format_can_say_is_refused() -> None:
    """Whoever first needs it adds it everywhere."""
    with pytest.raises(TypeError, match="no words for FloatType"):
        Outline(calling(Strange, Nothing))


@pytest.mark.parametrize("name", CATALOGS)
def test_every_default_of_an_endpoint_is_a_value_that_json_has(name: str) -> None:
    for each in Outline(CATALOGS[name]).types.values():
        for member in each.members if isinstance(each, RecordType) else ():
            assert member.default is NODEFAULT or isinstance(member.default, bool | str | list | None)
