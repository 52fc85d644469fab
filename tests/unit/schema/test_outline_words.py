"""What a class says of itself."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from holdfast.schema.outline import ClassDocs, plain, words


class Documented:
    """What it is,
    and ``why``.
    """

    first: int
    """The first
    member.
    """
    second = 2
    third: str
    """Not the method's."""

    def method(self) -> None:
        """No member."""


class Silent:
    member: int


def test_the_words_of_a_class_and_its_members_are_on_one_line_each() -> None:
    """They become cells of tables and comments, which do not break."""
    assert words(Documented) == ClassDocs(
        own="What it is, and `why`.",
        members={"first": "The first member.", "third": "Not the method's."},
    )


def test_a_class_that_says_nothing_has_no_words() -> None:
    """Base classes of the library must not lend theirs."""
    assert words(Silent) == ClassDocs()


def test_a_class_whose_source_is_not_there_has_no_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema without descriptions is better than none."""
    monkeypatch.setitem(sys.modules, "unwritten", ModuleType("unwritten"))
    sys.modules["unwritten"].__file__ = "/nowhere/unwritten.pyc"
    made = type("Made", (), {"__module__": "unwritten", "__doc__": "Known."})
    hidden = type("Hidden", (), {"__module__": __name__, "__doc__": "Known."})

    assert words(made) == ClassDocs()
    assert words(hidden) == ClassDocs()


def test_code_is_marked_as_in_markdown() -> None:
    assert plain("Either ``a``\n  or ``b``.") == "Either `a` or `b`."
