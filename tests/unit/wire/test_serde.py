"""The words for values that do not have the type asked for."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

import msgspec
import pytest

from holdfast.wire.serde import Misfit, Words, complain, fit, quote


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


class Tagged(msgspec.Struct, tag_field="type"):
    wire_union = "WireUnion"


class Circle(Tagged, tag="circle"):
    radius: Annotated[int, msgspec.Meta(ge=0, le=65_535, title="u16")] = 1


class Square(Tagged, tag="square"):
    flag: bool
    colour: Colour = Colour.RED


Path = Annotated[
    str,
    msgspec.Meta(
        pattern="^/",
        extra={"expects": "path string", "complain": lambda path: None if path[:1] == "/" else "relative"},
    ),
]


class Drawing(msgspec.Struct):
    wire_name = "WireDrawing"

    shape: Circle | Square | None = None
    place: Path | None = None
    count: Annotated[int, msgspec.Meta(title="i64")] | msgspec.UnsetType | None = msgspec.UNSET
    labels: dict[str, str | None] = {}


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


# Full words.


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (1, "integer `1`"),
        (-1, "integer `-1`"),
        (2**64, "integer `18446744073709551616`"),
        (-1.5, "floating point `-1.5`"),
        (1.0, "floating point `1.0`"),
        (1e16, "floating point `1e+16`"),
        (True, "boolean `true`"),
        (None, "null"),
        ("x", 'string "x"'),
        ([], "sequence"),
    ],
)
def test_full_words_tell_the_number_that_was_found(value: Any, found: str) -> None:
    for kind, expected in (
        (dict[str, str], "a map"),
        (Renamed, "struct WireRenamed"),
        (Pair, "string or map"),
    ):
        if kind is Pair and isinstance(value, str):
            continue
        assert complain(value, kind, Words.FULL) == f"invalid type: {found}, expected {expected}"


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (-1, "invalid value: integer `-1`, expected u64"),
        (1.5, "invalid type: floating point `1.5`, expected u64"),
        (1.0, "invalid type: floating point `1.0`, expected u64"),
        (True, "invalid type: boolean `true`, expected u64"),
        ("1", 'invalid type: string "1", expected u64'),
    ],
)
def test_full_words_tell_a_value_out_of_range_from_one_of_a_wrong_type(size: Any, words: str) -> None:
    assert complain({"size": size}, Inner, Words.FULL) == words
    with pytest.raises(Misfit) as caught:
        fit({"size": size}, Inner, Words.FULL)
    assert str(caught.value) == words


# Unions that a member tells apart.

UNION = "internally tagged enum WireUnion"


@pytest.mark.parametrize(
    ("shape", "words"),
    [
        (1, f"invalid type: integer `1`, expected {UNION}"),
        ("circle", f'invalid type: string "circle", expected {UNION}'),
        ({}, "missing field `type`"),
        ({"radius": "x"}, "missing field `type`"),
        ({"type": None}, "invalid type: null, expected variant identifier"),
        ({"type": True}, "invalid type: boolean `true`, expected variant identifier"),
        ({"type": "Circle"}, "unknown variant `Circle`, expected `circle` or `square`"),
        ({"type": "square"}, "missing field `flag`"),
        ({"type": "square", "flag": 1}, "invalid type: integer `1`, expected a boolean"),
        ({"flag": None, "type": "square"}, "invalid type: null, expected a boolean"),
        ({"type": "square", "colour": 1, "flag": 1}, "invalid type: integer `1`, expected string or map"),
        ({"type": "circle", "radius": 65_536}, "invalid value: integer `65536`, expected u16"),
    ],
)
def test_a_misfit_of_a_union_is_told_by_the_member_that_tells_them_apart(shape: Any, words: str) -> None:
    assert complain({"shape": shape}, Drawing, Words.FULL) == words
    with pytest.raises(Misfit) as caught:
        fit({"shape": shape}, Drawing, Words.FULL)
    assert str(caught.value) == words


@pytest.mark.parametrize(
    ("shape", "read"),
    [
        (None, None),
        ({"type": "circle", "flag": 1}, Circle()),
        ({"colour": "blue", "flag": True, "type": "square"}, Square(True, Colour.BLUE)),
    ],
)
def test_a_union_is_read_as_what_its_member_says(shape: Any, read: object) -> None:
    assert complain({"shape": shape}, Drawing) is None
    assert fit({"shape": shape}, Drawing).shape == read


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"place": 1}, "invalid type: number, expected path string"),
        ({"place": "x"}, "relative"),
        ({"count": "x"}, 'invalid type: string "x", expected i64'),
        ({"count": 2**63}, "invalid number"),
        ({"labels": {"a": None, "b": 1}}, "invalid type: number, expected a string"),
    ],
)
def test_text_may_have_a_check_and_words_of_its_own(value: Any, words: str) -> None:
    """And what may be absent or null is told as what it is otherwise."""
    assert complain(value, Drawing) == words


def test_what_may_be_absent_or_null_is_taken_as_either() -> None:
    assert fit({}, Drawing) == Drawing()
    assert fit({"count": None, "place": None, "labels": {"a": None}}, Drawing) == Drawing(
        count=None, labels={"a": None}
    )
    assert fit({"count": -5, "place": "/"}, Drawing) == Drawing(count=-5, place="/")


def test_a_long_text_is_quoted_in_part() -> None:
    """What cannot be seen is looked for character by character, and a message may be 64 MiB long."""
    assert quote("x" * 4096) == '"' + "x" * 4096 + '"'
    assert quote("\x7f" * 5000) == '"' + "\\u{7f}" * 4096 + '"...'


SEEN: list[str] = []


class Texts(msgspec.Struct):
    """Texts whose check remembers them."""

    texts: list[Annotated[str, msgspec.Meta(extra={"complain": SEEN.append})]]
    last: int


def test_checks_of_texts_are_given_so_much_for_one_complaint() -> None:
    """They run on the loop: a client must not have millions of characters looked at for its mistake."""
    SEEN.clear()

    found = complain({"texts": ["x" * 1000] * 1000, "last": "no number"}, Texts)

    assert sum(map(len, SEEN)) == 65_000
    assert found is None  # What is wrong behind that is told in the decoder's own words.
    with pytest.raises(Misfit, match=r"Expected `int`, got `str` - at `\$.last`"):
        fit({"texts": ["x" * 1000] * 1000, "last": "no number"}, Texts)


@pytest.mark.parametrize("holder", ["ports", "labels"])
def test_so_many_elements_are_looked_at_for_one_complaint(holder: str) -> None:
    """The first misfit is named in our words if it is among them, and in the decoder's if it is not."""

    def words(at: int) -> str:
        good: Any = 1 if holder == "ports" else "x"
        elements = [*[good] * at, None, *[good] * 10]
        value = elements if holder == "ports" else {str(key): each for key, each in enumerate(elements)}
        with pytest.raises(Misfit) as caught:
            fit({"someName": "x", "inner": {"size": 1}, holder: value}, Outer)
        return str(caught.value)

    assert words(4095).startswith("invalid type: null, expected ")
    assert words(4096).startswith("Expected ")
