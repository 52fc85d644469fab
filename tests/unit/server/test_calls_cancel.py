"""Requests that are cancelled by the identifier their client gave them."""

from __future__ import annotations

from tests.fakes.endpoint import deliver, request
from tests.unit.server.test_calls import Talk, turn


async def test_a_waiting_request_is_cancelled_by_its_identifier_and_answered() -> None:
    """The handler cleans up, the client gets exactly one answer, and nobody else is affected."""
    talk = Talk()

    talk.ask("wait", "a")
    talk.ask("wait", "b")
    found = talk.connection.cancel(1)
    await turn()
    talk.toy.open("b", "b is done")
    await turn()

    assert found
    assert talk.answers == [(1, "the request was cancelled"), (2, "b is done")]
    assert "cancelled a" in talk.toy.told
    assert talk.connection.usage()["connection.waiting_requests"] == 0


async def test_a_request_that_waits_for_a_start_is_cancelled_without_ever_running() -> None:
    talk = Talk()

    talk.ask("start", "p")
    talk.ask("about", "p")
    talk.ask("about", "p")
    await turn()
    found = talk.connection.cancel(2)
    talk.toy.open("p", "started")
    await turn()

    assert found
    assert talk.answers == [(2, "the request was cancelled"), (1, "started"), (3, "plain p")]
    assert talk.toy.told == ["wait p", "plain p"]


async def test_a_start_is_cancelled_even_before_its_task_has_run_a_step() -> None:
    """A task that is cancelled before its first step runs no clean-up, and would answer nobody."""
    talk = Talk()

    talk.ask("start", "p")
    talk.ask("about", "p")
    talk.connection.cancel(1)
    await turn()

    assert talk.answers == [(1, "the request was cancelled"), (2, "plain p")]


async def test_only_requests_that_wait_can_be_cancelled() -> None:
    talk = Talk()

    talk.ask("plain", "a")
    talk.ask("wait", "b")
    found = [talk.connection.cancel(key) for key in (1, 3, "2")]
    talk.toy.open("b")
    await turn()

    assert found == [False, False, False]
    assert talk.answers == [(1, "plain a"), (2, "done")]


async def test_requests_with_the_same_identifier_are_both_answered() -> None:
    """The protocol does not forbid it; a cancellation means the first of them."""
    talk = Talk()

    deliver(talk.connection, request(7, "wait", "a"), request(7, "wait", "b"))
    await turn()
    talk.connection.cancel(7)
    await turn()
    talk.toy.open("b", "b is done")
    await turn()

    assert talk.answers == [(7, "the request was cancelled"), (7, "b is done")]


async def test_a_handler_that_completes_in_spite_of_its_cancellation_is_answered_with_its_result() -> None:
    talk = Talk()

    talk.ask("wait", "a")
    talk.toy.open("a", "done just before")
    talk.connection.cancel(1)
    await turn()

    assert [number for number, _ in talk.answers] == [1]
