"""What an endpoint offers, as a list."""

from __future__ import annotations

from functools import partial

from holdfast.dialects.dialect import ListedMethod, Method, Notice, listed, notice
from holdfast.protocol.shapes import Nothing, Signature
from tests.fakes.catalog import Drawn, DrawParams


def draw(colour: str, talk: object, params: object) -> None:
    """Draw something,
    at once.

    Nobody needs to know how.
    """


def be_silent(talk: object, params: object) -> None: ...


def table(handle: object, summary: str = "") -> dict[str, Method]:
    assert callable(handle)
    signature = Signature("draw", DrawParams, Nothing)
    return {"draw": Method(lambda value: value, handle, signature=signature, summary=summary)}


def test_the_summary_of_a_method_is_what_its_handler_says_of_itself() -> None:
    """A second text beside the docstring would grow old on its own."""
    assert listed(table(draw)) == (ListedMethod("draw", DrawParams, Nothing, "Draw something, at once."),)


def test_a_handler_is_found_behind_what_was_given_to_it_beforehand() -> None:
    """Handlers that two families share are bound to one of them in the table."""
    (found,) = listed(table(partial(partial(draw), "red")))

    assert found.summary == "Draw something, at once."


def test_a_given_summary_wins_over_the_handlers() -> None:
    """Some handlers say nothing of themselves, or not what a client wants to know."""
    assert [each.summary for each in listed(table(draw, "Paint."))] == ["Paint."]
    assert [each.summary for each in listed(table(be_silent))] == [""]


def test_a_method_without_a_signature_is_not_listed() -> None:
    """Such as one of the protocol that is refused by name."""
    assert listed({"draw": Method(lambda value: value, be_silent)}) == ()


def test_the_summary_of_a_notification_is_what_its_params_say_of_themselves() -> None:
    assert notice("drawn", Drawn) == Notice("drawn", Drawn, "Something was drawn.")
