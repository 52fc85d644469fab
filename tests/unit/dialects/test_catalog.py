"""What an endpoint offers, as a list."""

from __future__ import annotations

from functools import partial

from holdfast.dialects.catalog import Call, Notice, call, notice
from holdfast.dialects.dialect import Method
from holdfast.dialects.shapes import Nothing
from tests.fakes.catalog import Drawn, DrawParams


def draw(colour: str, talk: object, params: object) -> None:
    """Draw something,
    at once.

    Nobody needs to know how.
    """


def be_silent(talk: object, params: object) -> None: ...


def a_method(handle: object) -> dict[str, Method]:
    assert callable(handle)
    return {"draw": Method(decode=lambda value: value, handle=handle)}


def test_the_summary_of_a_call_is_what_its_handler_says_of_itself() -> None:
    """A second text beside the docstring would grow old on its own."""
    found = call(a_method(draw), "draw", DrawParams, Nothing)

    assert found == Call("draw", DrawParams, Nothing, "Draw something, at once.")


def test_a_handler_is_found_behind_what_was_given_to_it_beforehand() -> None:
    """Handlers that two families share are bound to one of them in the table."""
    found = call(a_method(partial(partial(draw), "red")), "draw", None, Nothing)

    assert found.summary == "Draw something, at once."


def test_a_given_summary_wins_over_the_handlers() -> None:
    """Some handlers say nothing of themselves, or not what a client wants to know."""
    assert call(a_method(draw), "draw", None, Nothing, "Paint.").summary == "Paint."
    assert call(a_method(be_silent), "draw", None, Nothing).summary == ""


def test_the_summary_of_a_notification_is_what_its_params_say_of_themselves() -> None:
    assert notice("drawn", Drawn) == Notice("drawn", Drawn, "Something was drawn.")
