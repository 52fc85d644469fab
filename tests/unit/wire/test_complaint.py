"""The words for values that do not have the type asked for."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

import msgspec
import pytest

from holdfast.wire.complaint import Misfit, complain, fit, quote


class Colour(Enum):
    RED = "red"
    BLUE = "blue"
    GREEN = "green"


class Pair(Enum):
    LEFT = "left"
    RIGHT = "right"


class Only(Enum):
    ONE = "one"


class Inner(msgspec.Struct):
    size: Annotated[int, msgspec.Meta(ge=0, title="u64")]


class Outer(msgspec.Struct, rename="camel"):
    some_name: str
    inner: Inner
    ports: list[Annotated[int, msgspec.Meta(ge=0, le=65_535, title="u16")]] = []
    maybe: Inner | None = None
    labels: dict[str, str] = {}
    colour: Colour = Colour.RED


class Renamed(msgspec.Struct):
    wire_name = "WireRenamed"

    flag: bool


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (1, "number"),
        (-1.5, "number"),
        (True, "boolean `true`"),
        (False, "boolean `false`"),
        (None, "null"),
        ("x", 'string "x"'),
        ([], "sequence"),
        ({}, "map"),
    ],
)
def test_the_found_type_is_named(value: Any, found: str) -> None:
    for kind, expected in ((Only, "string or map"), (Renamed, "struct WireRenamed"), (Inner, "struct Inner")):
        if kind is Only and isinstance(value, str):
            continue
        if kind is not Only and isinstance(value, dict):
            continue
        assert complain(value, kind) == f"invalid type: {found}, expected {expected}"


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (1, str, "invalid type: number, expected a string"),
        (1, bool, "invalid type: number, expected a boolean"),
        (1, type(None), "invalid type: number, expected unit"),
        ({}, list[str], "invalid type: map, expected a sequence"),
        ([], dict[str, str], "invalid type: sequence, expected a map"),
        (["a", None], list[str], "invalid type: null, expected a string"),
        ({"a": "x", "b": 1}, dict[str, str], "invalid type: number, expected a string"),
        ("x", Only, "unknown variant `x`, expected `one`"),
        ("", Pair, "unknown variant ``, expected `left` or `right`"),
        ("Red", Colour, "unknown variant `Red`, expected one of `red`, `blue`, `green`"),
        ({}, Outer, "missing field `someName`"),
        ({"someName": "x"}, Outer, "missing field `inner`"),
        ({"inner": {}}, Outer, "missing field `size`"),
        ({"some_name": "x"}, Outer, "missing field `someName`"),
        ({"inner": {"size": -1}, "someName": 1}, Outer, "invalid number"),
        ({"someName": 1, "inner": {"size": -1}}, Outer, "invalid type: number, expected a string"),
        ({"colour": 1}, Outer, "invalid type: number, expected string or map"),
        ({"ports": [1, 65_536]}, Outer, "invalid number"),
        ({"ports": ["1"]}, Outer, 'invalid type: string "1", expected u16'),
        ({"maybe": {"size": "1"}}, Outer, 'invalid type: string "1", expected u64'),
        ({"maybe": 5}, Outer, "invalid type: number, expected struct Inner"),
    ],
)
def test_the_first_misfit_is_named(value: Any, kind: type, words: str) -> None:
    """In the order of the text; what is missing comes last, in the order of the type."""
    assert complain(value, kind) == words
    with pytest.raises(Misfit) as caught:
        fit(value, kind)
    assert str(caught.value) == words


@pytest.mark.parametrize("size", [-1, 1.0, 1.5, 2**64, 1e23, float("inf")])
def test_an_integer_out_of_range_or_with_a_fraction_is_an_invalid_number(size: float) -> None:
    assert complain({"size": size}, Inner) == "invalid number"


@pytest.mark.parametrize("size", [True, "1", None, [], {}])
def test_what_is_no_number_is_of_a_wrong_type_for_an_integer(size: Any) -> None:
    words = complain({"size": size}, Inner)

    assert words is not None
    assert words.startswith("invalid type: ")
    assert words.endswith(", expected u64")


def test_a_value_that_fits_is_converted() -> None:
    value = {"someName": "x", "inner": {"size": 2**64 - 1}, "maybe": None, "colour": "blue", "unknown": [1]}

    assert complain(value, Outer) is None
    assert fit({**value, "inner": {"size": 5}}, Outer) == Outer("x", Inner(5), [], None, {}, Colour.BLUE)


def test_a_type_without_words_is_left_to_the_decoder() -> None:
    """Better its rough words than none."""
    assert complain("x", float) is None
    with pytest.raises(Misfit, match="Expected `float`"):
        fit("x", float)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("", '""'),
        ("a 'b'", "\"a 'b'\""),
        ("a\nb\r\té", '"a\\nb\\r\\té"'),
        ('"\\', '"\\"\\\\"'),
        ("\0\x1b\x7f", '"\\0\\u{1b}\\u{7f}"'),
        ("\u200b\u0301\u00a0\u2028", '"\\u{200b}\\u{301}\\u{a0}\\u{2028}"'),
        ("😀", '"😀"'),
    ],
)
def test_a_quoted_text_shows_what_cannot_be_seen(text: str, quoted: str) -> None:
    assert quote(text) == quoted
