"""From a request to its answer: who waits for whom, who does not, and what is bounded."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from holdfast.config import ConnectionLimits
from holdfast.errors import BadRequest
from holdfast.server.connection import Connection
from holdfast.telemetry import Silent, Tally, Telemetry
from tests.fakes.endpoint import MemoryChannel, ToyConversation, ToyEndpoint, deliver, introduce, request


class Talk:
    """A connection in memory with a toy dialect."""

    def __init__(self, *, limits: ConnectionLimits | None = None, telemetry: Telemetry | None = None) -> None:
        self.channel = MemoryChannel()
        endpoint = ToyEndpoint()
        self.connection = Connection(
            self.channel,
            endpoint,
            telemetry=telemetry or Silent(),
            limits=limits or ConnectionLimits(),
            on_end=lambda connection: None,
        )
        self.toy: ToyConversation = introduce(self.connection, endpoint)
        self._count = 0

    def ask(self, method: str, params: Any = None) -> None:
        self._count += 1
        deliver(self.connection, request(self._count, method, params))

    @property
    def answers(self) -> list[tuple[int, Any]]:
        """Identifier and result, in the order of the answers."""
        numbers = [message["id"] for message in self.channel.sent]
        return list(zip(numbers, self.channel.results, strict=True))


async def turn() -> None:
    """Let everything run that is ready to run, and what becomes ready by it."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_request_that_need_not_wait_is_answered_before_the_next_is_looked_at() -> None:
    """No task, no round of the loop."""
    talk = Talk()

    talk.ask("plain", "a")
    talk.ask("at once", "b")

    assert talk.answers == [(1, "plain a"), (2, "at once b")]


async def test_a_request_that_waits_holds_up_nobody() -> None:
    """Its answer comes when it is there, after those of later requests."""
    talk = Talk()

    talk.ask("wait", "a")
    talk.ask("wait", "b")
    talk.ask("plain", "c")
    await turn()
    talk.toy.open("b", "b is done")
    await turn()
    talk.toy.open("a", "a is done")
    await turn()

    assert talk.answers == [(3, "plain c"), (2, "b is done"), (1, "a is done")]


async def test_requests_about_a_starting_process_wait_for_it_in_their_order() -> None:
    """And nobody else does."""
    talk = Talk()

    talk.ask("start", "p")
    talk.ask("about", "p")
    talk.ask("wait about", "p")
    talk.ask("about", "p")
    talk.ask("about", "q")
    talk.ask("plain", "p")
    await turn()
    before = talk.answers
    talk.toy.open("p", "started")
    await turn()
    talk.toy.open("p", "waited")
    await turn()

    assert before == [(5, "plain q"), (6, "plain p")]
    assert talk.answers[2:] == [(1, "started"), (2, "plain p"), (4, "plain p"), (3, "waited")]


async def test_requests_behind_a_start_are_bounded_whatever_they_ask_for() -> None:
    """Also those that need not wait otherwise: a start may take as long as a dead disk."""
    talk = Talk(limits=ConnectionLimits(waiting_requests=3))

    for method in ("start", "about", "about", "about", "plain"):
        talk.ask(method, "p")
    await turn()
    before = talk.answers
    talk.toy.open("p", "started")
    await turn()
    talk.ask("about", "p")

    assert before == [(4, "limit reached: requests waiting for an answer (3)"), (5, "plain p")]
    assert talk.answers[2:] == [(1, "started"), (2, "plain p"), (3, "plain p"), (6, "plain p")]


async def test_what_waited_for_a_failed_start_runs_all_the_same() -> None:
    """It finds out for itself that there is no process."""
    talk = Talk()

    talk.ask("start", "p")
    talk.ask("about", "p")
    await turn()
    talk.toy.open("p", BadRequest("no such program"))
    await turn()

    assert talk.answers == [(1, "no such program"), (2, "plain p")]


async def test_what_waited_for_a_start_is_refused_if_its_time_is_over() -> None:
    """The client may have closed its session behind it."""
    talk = Talk()
    talk.ask("start", "p")
    talk.ask("about", "p")
    await turn()

    talk.toy.shut = True
    talk.toy.open("p")
    await turn()

    assert talk.answers == [(1, "done"), (2, "not now")]


async def test_a_second_start_of_the_same_name_is_next_in_line_and_the_rest_waits_for_it() -> None:
    """The order of the requests is the order of their effects, whatever they are."""
    talk = Talk()

    talk.ask("start", "p")
    talk.ask("start", "p")
    talk.ask("about", "p")
    await turn()
    talk.toy.open("p", "first")
    await turn()
    between = talk.answers
    talk.toy.open("p", "second")
    await turn()

    assert between == [(1, "first")]
    assert talk.answers == [(1, "first"), (2, "second"), (3, "plain p")]


async def test_the_empty_name_is_a_name() -> None:
    """Clients may choose it."""
    talk = Talk()

    talk.ask("start", "")
    talk.ask("about", "")
    talk.ask("plain", "x")
    await turn()
    before = talk.answers
    talk.toy.open("", "started")
    await turn()

    assert before == [(3, "plain x")]
    assert talk.answers[1:] == [(1, "started"), (2, "plain ")]


async def test_a_request_that_must_be_alone_keeps_the_others_waiting() -> None:
    """What follows a handshake relies on its outcome."""
    talk = Talk()

    talk.ask("alone", "a")
    talk.ask("plain", "b")
    talk.ask("wait", "c")
    await turn()
    before = talk.answers
    talk.toy.open("a", "handshake")
    await turn()
    talk.toy.open("c")
    await turn()

    assert before == []
    assert talk.answers == [(1, "handshake"), (2, "plain b"), (3, "done")]
    assert talk.channel.held == [True, False]


# Answers to what goes wrong.


@pytest.mark.parametrize(
    ("method", "params", "words", "kind"),
    [
        ("nope", "x", "unknown method 'nope'", "UnknownMethod"),
        ("plain", 5, "a name is needed", "BadRequest"),
        ("closed", "x", "not now", "OutOfTurn"),
        ("refused", "x", "no x", "BadRequest"),
    ],
)
async def test_a_refusal_is_explained_by_the_dialect(method: str, params: Any, words: str, kind: str) -> None:
    """Code, words and data are the dialect's."""
    talk = Talk()

    talk.ask(method, params)

    assert talk.channel.sent == [{"id": 1, "error": {"code": -2, "message": words, "data": {"kind": kind}}}]


@pytest.mark.parametrize("method", ["broken", "broken later", "broken before"])
async def test_a_mistake_of_ours_is_logged_answered_and_harms_nobody_else(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The client gets its one answer; the traceback stays here."""
    talk = Talk()
    with caplog.at_level(logging.ERROR):
        talk.ask(method, "a")
        await turn()
        if talk.toy.gates:
            talk.toy.open("a")
            await turn()
        talk.ask("plain", "b")

    assert talk.channel.sent[0]["error"] == {
        "code": -32603,
        "message": f"internal error in {method}",
        "data": {"kind": "internalError"},
    }
    assert talk.answers[1] == (2, "plain b")
    assert "a mistake of ours" in caplog.text


# Bounds.


async def test_the_number_of_waiting_requests_is_bounded() -> None:
    """Requests that need not wait still get through, and a place is free again after an answer."""
    talk = Talk(limits=ConnectionLimits(waiting_requests=2))

    for name in ("a", "b", "c"):
        talk.ask("wait", name)
    talk.ask("plain", "d")
    await turn()
    talk.toy.open("a")
    await turn()
    talk.ask("wait", "e")
    await turn()
    talk.toy.open("e")
    talk.toy.open("b")
    await turn()

    assert talk.channel.sent[0]["error"]["data"] == {"kind": "LimitReached"}
    assert [number for number, _ in talk.answers] == [3, 4, 1, 5, 2]


async def test_the_bytes_of_waiting_requests_are_bounded() -> None:
    """Held requests count as much as running ones."""
    talk = Talk(limits=ConnectionLimits(waiting_bytes=200))

    talk.ask("start", "p")
    talk.ask("wait about", "p")
    talk.ask("wait", "x" * 200)
    await turn()
    refused = talk.answers
    talk.toy.open("p", "started")
    await turn()
    talk.toy.open("p", "waited")
    await turn()
    talk.ask("wait", "y" * 100)
    await turn()
    talk.toy.open("y" * 100)
    await turn()

    assert [number for number, _ in refused] == [3]
    assert talk.answers[1:] == [(1, "started"), (2, "waited"), (4, "done")]


# Figures.


async def test_every_request_is_counted_once_under_its_name_and_result() -> None:
    """An unknown method is counted, but not under a name the client makes up."""
    tally = Tally()
    talk = Talk(telemetry=tally)

    talk.ask("plain", "a")
    talk.ask("refused", "a")
    talk.ask("nope")
    talk.ask("wait", "a")
    talk.ask("start", "p")
    talk.ask("about", "p")
    await turn()
    talk.toy.open("a")
    talk.toy.open("p")
    await turn()

    requests = {
        key[1:]: count for key, count in tally.counts.items() if key[0] == "exec_server_requests_total"
    }
    assert requests == {
        ("plain", "success"): 1,
        ("refused", "error"): 1,
        ("unknown", "error"): 1,
        ("wait", "success"): 1,
        ("start", "success"): 1,
        ("about", "success"): 1,
    }


# What follows an answer.


async def test_what_follows_an_answer_follows_it() -> None:
    """The answer does not wait for it, and others wait for neither."""
    talk = Talk()

    talk.ask("sequel", "a")
    await turn()
    talk.toy.open("a", "answer")
    await turn()
    talk.ask("plain", "b")
    assert talk.answers == [(1, "answer"), (2, "plain b")]
    assert talk.toy.told == ["wait a", "wait a again", "plain b"]

    talk.toy.open("a again", "rest")
    await turn()
    assert talk.toy.told[-1] == "rest"
    assert len(talk.answers) == 2


async def test_what_follows_an_answer_counts_as_a_request_that_waits() -> None:
    talk = Talk(limits=ConnectionLimits(waiting_requests=1))

    talk.ask("sequel", "a")
    await turn()
    talk.toy.open("a", "answer")
    await turn()
    talk.ask("wait", "b")
    talk.toy.open("a again")
    await turn()
    talk.ask("wait", "c")
    await turn()
    talk.toy.open("c")
    await turn()

    assert talk.answers == [
        (1, "answer"),
        (2, "limit reached: requests waiting for an answer (1)"),
        (3, "done"),
    ]


async def test_what_follows_an_answer_ends_with_the_connection() -> None:
    talk = Talk()

    talk.ask("sequel", "a")
    await turn()
    talk.toy.open("a", "answer")
    await turn()
    talk.connection.lost()
    await talk.connection.finished()

    assert talk.toy.told[-1] == "cancelled a again"


async def test_a_failure_of_what_follows_is_logged_and_no_second_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    talk = Talk()

    talk.ask("sequel", "a")
    await turn()
    talk.toy.open("a", "answer")
    await turn()
    talk.toy.open("a again", RuntimeError("a mistake of ours"))
    await turn()

    assert talk.answers == [(1, "answer")]
    assert "a request's task failed" in caplog.text


# Limits.


async def test_a_request_that_a_limit_refuses_is_counted_under_that_limit() -> None:
    tally = Tally()
    talk = Talk(limits=ConnectionLimits(waiting_requests=1), telemetry=tally)

    talk.ask("wait", "a")
    await turn()
    talk.ask("wait", "b")

    assert tally.counts["holdfast_limit_refusals_total", "connection.waiting_requests"] == 1
    talk.toy.open("a")
    await turn()


async def test_whoever_looks_for_stalls_knows_which_method_is_worked_on() -> None:
    """When it comes, and when it goes on after a wait.  What we do not have is the client's own word."""
    telemetry = Silent()
    talk = Talk(telemetry=telemetry)
    seen = []

    for method in ("plain", "x" * 1000, "wait"):
        telemetry.stalls.doing = ""
        talk.ask(method, "a")
        seen.append(telemetry.stalls.doing)
    telemetry.stalls.doing = ""
    talk.toy.open("a", "done")
    await turn()

    assert [*seen, telemetry.stalls.doing] == ["plain", "", "wait", "wait"]
