"""Small values: what ``dataclasses`` promises, of which the rest of the program relies on this."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Generic, TypeVar

import pytest

from holdfast.value import record, replace, value


@value
class Point:
    """Where."""

    x: int
    y: int = 2

    @property
    def sum(self) -> int:
        return self.x + self.y


@record
class Box:
    inside: list[int]
    label: str | None = None


@value
class Single:
    only: str


@value
class Empty:
    pass


T = TypeVar("T")


@value
class Pair(Generic[T]):
    first: T
    second: T


def test_fields_are_given_by_place_or_name_and_may_have_defaults() -> None:
    assert (Point(1).x, Point(1).y, Point(x=1, y=3).y, Point(1, 3).sum) == (1, 2, 3, 4)
    assert Empty() == Empty()
    with pytest.raises(TypeError):
        Point()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Point(1, z=3)  # type: ignore[call-arg]


def test_a_value_may_be_generic() -> None:
    assert Pair[int](1, 2) == Pair(1, 2)
    assert pickle.loads(pickle.dumps(Pair("a", "b"))) == Pair("a", "b")  # noqa: S301  (our own bytes)


def test_equal_fields_make_equal_values_of_one_class() -> None:
    assert Point(1, 2) == Point(1)
    assert Point(1) != Point(2)
    others: list[object] = ["a", Point(1)]
    assert Single("a") not in others
    assert {Point(1), Point(1, 2), Single("a")} == {Point(1), Single("a")}


def test_a_value_cannot_be_changed() -> None:
    point = Point(1)

    with pytest.raises(AttributeError, match="Point cannot be changed: x"):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError, match="Point cannot be changed: x"):
        del point.x
    with pytest.raises(AttributeError):
        point.z = 2  # type: ignore[attr-defined]


def test_a_record_can_be_changed_and_is_no_key() -> None:
    box = Box([1])
    box.label = "full"

    assert box == Box([1], "full")
    with pytest.raises(TypeError):
        hash(box)
    with pytest.raises(AttributeError):
        box.other = 1  # type: ignore[attr-defined]


def test_it_shows_what_is_in_it() -> None:
    assert (repr(Point(1)), repr(Box([])), repr(Empty())) == (
        "Point(x=1, y=2)",
        "Box(inside=[], label=None)",
        "Empty()",
    )


def test_it_is_taken_apart_by_patterns() -> None:
    match Point(1, 5):
        case Point(x, y=5):
            assert x == 1
        case _:
            pytest.fail("no match")


def test_it_keeps_its_name_and_its_words() -> None:
    """Errors, logs and pages of the reference are made of these."""
    assert (Point.__name__, Point.__qualname__, Point.__module__) == ("Point", "Point", __name__)
    assert Point.__doc__ == "Where."
    assert Point.__init__.__qualname__ == "Point.__init__"


@pytest.mark.parametrize("thing", [Point(1, 3), Box([1], "x"), Single("a"), Empty()])
def test_it_travels(thing: object) -> None:
    assert pickle.loads(pickle.dumps(thing)) == copy.copy(thing) == copy.deepcopy(thing) == thing  # noqa: S301


def test_another_one_is_made_with_other_fields() -> None:
    assert replace(Point(1, 3), x=2) == dataclasses.replace(Point(1, 3), x=2) == Point(2, 3)


def test_the_tools_for_dataclasses_work_on_it() -> None:
    assert dataclasses.is_dataclass(Point)
    assert [(field.name, field.type, field.default) for field in dataclasses.fields(Point)] == [
        ("x", "int", dataclasses.MISSING),
        ("y", "int", 2),
    ]
    assert dataclasses.asdict(Box([1])) == {"inside": [1], "label": None}
