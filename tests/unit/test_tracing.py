"""Spans without a word of who records them."""

from __future__ import annotations

import pytest

from holdfast.tracing import LONGEST, begin, current, share, span
from tests.fakes.tracing import KeptSpan, traced


def test_nothing_is_made_while_nothing_is_traced() -> None:
    """That is the rule, and has to cost next to nothing: not even an object."""
    first, second = span("a", {"x": 1}), span("b")

    share("key", "value")
    with first:
        pass

    assert first is second
    assert begin("c") is None


def test_a_block_is_a_child_of_the_request_and_ends_with_it() -> None:
    with traced() as request, span("work", {"x": 1}):
        [work] = request.children
        assert (work.told, current.get()) == (("work", {"x": 1}, 0), request)

    assert work.told == ("work", {"x": 1}, 1)


def test_a_block_that_fails_ends_its_span() -> None:
    with traced() as request, pytest.raises(ValueError, match="no"), span("work"):
        raise ValueError("no")

    assert [child.ends for child in request.children] == [1]


def test_what_is_shared_is_on_every_child_that_follows() -> None:
    """Whoever makes them further down need not know a process by its name."""
    with traced() as request:
        begin("before")
        share("process.id", "p" * 1000)
        begin("after", {"x": True}, client=True)

    assert [(each.name, each.kind, each.attributes) for each in request.children] == [
        ("before", "internal", {}),
        ("after", "client", {"process.id": "p" * LONGEST, "x": True}),
    ]
    assert request.attributes == {}


def test_spans_are_told_apart_by_what_they_are() -> None:
    """They are kept in tables."""
    assert len({KeptSpan("a", "server"), KeptSpan("a", "server")}) == 2
