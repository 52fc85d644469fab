"""PendingCalls and their answers, by number."""

from __future__ import annotations

import msgspec
import pytest

from holdfast.client.calls import Answer, PendingCalls, Within
from holdfast.errors import (
    BadRequest,
    FileRefused,
    HoldfastError,
    LinkLost,
    OutcomeUnknown,
    SessionUnknown,
)
from holdfast.wire.jsonrpc import ErrorBody, Incoming


class Heard:
    """What one call was told."""

    def __init__(self) -> None:
        self.answers: list[object] = []

    def __call__(self, answer: Answer) -> None:
        self.answers.append(
            (type(answer), *answer.args) if isinstance(answer, HoldfastError) else bytes(answer)
        )


def test_a_call_is_a_message_with_a_number_of_its_own() -> None:
    calls = PendingCalls()
    numbers = [calls.enter("m", {"a": number}, Heard(), repeat=True) for number in range(2)]

    assert [calls.send(number) for number in numbers] == [
        b'{"method":"m","params":{"a":0},"id":1}',
        b'{"method":"m","params":{"a":1},"id":2}',
    ]
    assert len(calls) == 2


def test_an_answer_is_passed_on_once() -> None:
    calls, heard = PendingCalls(), Heard()
    calls.send(calls.enter("m", None, heard, repeat=True))

    for _ in range(2):
        calls.answer(Incoming(id=1, result=msgspec.Raw(b"7")))

    assert heard.answers == [b"7"]
    assert len(calls) == 0


def test_an_error_is_passed_on_in_the_light_of_its_method() -> None:
    calls, heard = PendingCalls(), Heard()
    calls.send(calls.enter("fs/copy", None, heard, repeat=True))

    calls.answer(Incoming(id=1, error=ErrorBody(-32600, "no")))

    assert heard.answers == [(FileRefused, "no")]


@pytest.mark.parametrize("number", [2, "1", None])
def test_an_answer_to_nobody_is_passed_over(number: int | str | None) -> None:
    calls, heard = PendingCalls(), Heard()
    calls.enter("m", None, heard, repeat=True)

    calls.answer(Incoming(id=number, result=msgspec.Raw(b"7")))

    assert (heard.answers, len(calls)) == ([], 1)


def test_a_forgotten_call_is_neither_sent_nor_answered() -> None:
    calls, heard = PendingCalls(), Heard()
    number = calls.enter("m", None, heard, repeat=True)

    calls.forget(number)
    calls.forget(number)
    calls.answer(Incoming(id=number))

    assert list(calls.unsent()) == []
    assert heard.answers == []


def test_after_a_break_what_may_be_repeated_waits_in_its_old_place() -> None:
    calls = PendingCalls()
    heard = [Heard() for _ in range(4)]
    calls.send(calls.enter("a", None, heard[0], repeat=True))
    calls.send(calls.enter("b", None, heard[1], repeat=False))
    calls.enter("c", None, heard[2], repeat=False)
    calls.enter("d", None, heard[3], repeat=True)

    calls.broke()

    assert [msgspec.json.decode(text)["method"] for text in calls.unsent()] == ["a", "c", "d"]
    assert list(calls.unsent()) == []
    assert [each.answers for each in heard] == [[], [(OutcomeUnknown, "b")], [], []]


def test_a_call_made_while_others_are_told_of_a_break_is_kept() -> None:
    """Whoever is told may try again at once."""
    calls, heard = PendingCalls(), Heard()
    calls.send(
        calls.enter("a", None, lambda answer: calls.enter("b", None, heard, repeat=False), repeat=False)
    )

    calls.broke()

    assert len(list(calls.unsent())) == 1


def test_at_the_end_everybody_has_an_error_of_their_own() -> None:
    """What is raised twice collects both histories."""
    calls = PendingCalls()
    found: list[Answer] = []
    for _ in range(2):
        calls.enter("a", None, found.append, repeat=True)

    calls.end(lambda: LinkLost("gone"))

    assert [str(error) for error in found] == ["the connection is lost: gone"] * 2
    assert found[0] is not found[1]
    assert len(calls) == 0


def test_a_text_that_is_none_is_refused_and_leaves_nothing() -> None:
    calls = PendingCalls()

    with pytest.raises(BadRequest):
        calls.enter("a", {"x": "\udcff"}, Heard(), repeat=True)

    assert len(calls) == 0


# PendingCalls that are given up.


def test_a_call_that_was_never_sent_is_given_up_for_good() -> None:
    calls, heard = PendingCalls(), Heard()
    number = calls.enter("m", None, heard, repeat=True)

    assert not calls.stop_repeating(number)
    assert (list(calls.unsent()), heard.answers, len(calls)) == ([], [], 0)


def test_a_call_on_its_way_is_given_up_and_its_answer_heard() -> None:
    calls, heard = PendingCalls(), Heard()
    number = calls.enter("m", None, heard, repeat=True)
    calls.send(number)

    assert calls.stop_repeating(number)
    calls.answer(Incoming(id=number, result=msgspec.Raw(b"7")))

    assert heard.answers == [b"7"]
    assert calls.stop_repeating(number)  # It was answered.


def test_a_call_that_was_given_up_is_not_sent_again() -> None:
    calls, heard = PendingCalls(), Heard()
    number = calls.enter("m", None, heard, repeat=True)
    calls.send(number)
    calls.stop_repeating(number)

    calls.broke()

    assert heard.answers == [(OutcomeUnknown, "m")]
    assert list(calls.unsent()) == []


def test_a_call_given_up_between_two_connections_has_no_known_outcome() -> None:
    calls, heard = PendingCalls(), Heard()
    number = calls.enter("m", None, heard, repeat=True)
    calls.send(number)
    calls.broke()

    assert calls.stop_repeating(number)

    assert heard.answers == [(OutcomeUnknown, "m")]
    assert list(calls.unsent()) == []


# Sessions.


@pytest.mark.parametrize(
    ("within", "sent", "told"),
    [
        (Within.ANY, True, []),
        (Within.ANY, False, []),
        (Within.ONE, True, [(OutcomeUnknown, "m")]),
        (Within.ONE, False, []),
        (Within.OWN, True, [(SessionUnknown, "s")]),
        (Within.OWN, False, [(SessionUnknown, "s")]),
    ],
)
def test_a_call_is_repeated_in_another_session_only_if_it_means_the_same_there(
    within: Within,
    sent: bool,  # noqa: FBT001
    told: list[object],
) -> None:
    calls, heard = PendingCalls(), Heard()
    number = calls.enter("m", None, heard, repeat=True, within=within)
    if sent:
        calls.send(number)
        calls.broke()

    calls.forgotten("s")

    assert heard.answers == told
    assert len(list(calls.unsent())) == (not told)
