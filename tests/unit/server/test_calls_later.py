"""Starts whose answer comes when what they started is over: who waits for what meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.config import ConnectionLimits
from holdfast.dialects.dialect import Method
from holdfast.errors import BadRequest
from holdfast.server.connection import Connection
from holdfast.telemetry import Silent
from tests.fakes.endpoint import MemoryChannel, ToyConversation, ToyEndpoint, deliver, introduce, request


class DeferringEndpoint(ToyEndpoint):
    """Has a start whose answer is a future: the process runs, and its result comes when it is over."""

    def __init__(self) -> None:
        super().__init__()
        self.results: dict[str, asyncio.Future[str]] = {}
        name = self.methods["start"].decode
        self.methods["run"] = Method(name, self._run, name_of=name, starts=True, waits=True)

    async def _run(self, talk: ToyConversation, name: str) -> asyncio.Future[str]:
        await talk.passed(name)
        self.results[name] = asyncio.get_running_loop().create_future()
        return self.results[name]


class Talk:
    """A connection in memory whose commands are answered when they are over."""

    def __init__(
        self, endpoint: DeferringEndpoint | None = None, *, limits: ConnectionLimits | None = None
    ) -> None:
        self.channel = MemoryChannel()
        self.endpoint = endpoint or DeferringEndpoint()
        self.connection = Connection(
            self.channel,
            self.endpoint,
            telemetry=Silent(),
            limits=limits or ConnectionLimits(),
            on_end=lambda connection: None,
        )
        self.toy: ToyConversation = introduce(self.connection, self.endpoint)
        self._count = 0

    async def ask(self, *requests: tuple[str, str]) -> None:
        """Send requests together, and let everything run that is ready to run."""
        for method, name in requests:
            self._count += 1
            deliver(self.connection, request(self._count, method, name))
        await turn()

    async def start(self, name: str) -> asyncio.Future[str]:
        """Let a start of that name succeed; give the future of its answer."""
        self.toy.open(name)
        await turn()
        return self.endpoint.results[name]

    @property
    def answers(self) -> list[tuple[int, Any]]:
        """Identifier and result, in the order of the answers."""
        numbers = [message["id"] for message in self.channel.sent]
        return list(zip(numbers, self.channel.results, strict=True))


async def turn() -> None:
    """Let everything run that is ready to run, and what becomes ready by it."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_what_runs_can_be_talked_to_before_its_answer_comes() -> None:
    """Requests wait for the start, in their order, and not for the result."""
    talk = Talk()
    await talk.ask(("run", "p"), ("about", "p"), ("about", "q"), ("about", "p"))
    starting = talk.answers
    result = await talk.start("p")
    running = talk.answers
    await talk.ask(("about", "p"))
    result.set_result("over")
    await turn()

    assert starting == [(3, "plain q")]
    assert running == [*starting, (2, "plain p"), (4, "plain p")]
    assert talk.answers == [*running, (5, "plain p"), (1, "over")]


class QuickEndpoint(DeferringEndpoint):
    """What it runs is over at once."""

    async def _run(self, talk: ToyConversation, name: str) -> asyncio.Future[str]:
        future = await super()._run(talk, name)
        future.set_result("over")
        return future


async def test_a_result_that_is_there_with_the_start_comes_after_what_waited_for_the_start() -> None:
    """A request behind a command that ends at once was still sent before its answer."""
    talk = Talk(QuickEndpoint())
    await talk.ask(("run", "p"), ("about", "p"))

    await talk.start("p")

    assert talk.answers == [(2, "plain p"), (1, "over")]


async def test_a_second_start_behind_a_deferred_one_has_its_own_line() -> None:
    talk = Talk()
    await talk.ask(("run", "p"), ("run", "p"), ("about", "p"))

    first = await talk.start("p")
    between = talk.answers
    second = await talk.start("p")
    after = talk.answers
    second.set_result("second")
    await turn()
    first.set_result("first")
    await turn()

    assert (between, after) == ([], [(3, "plain p")])
    assert talk.answers == [(3, "plain p"), (2, "second"), (1, "first")]


@pytest.mark.parametrize("failure", [BadRequest("no"), RuntimeError("a mistake of ours")])
async def test_a_deferred_answer_may_be_a_failure(failure: Exception) -> None:
    """The client gets its one answer, and what is about the process is not held up any more."""
    talk = Talk()
    await talk.ask(("run", "p"))
    result = await talk.start("p")

    result.set_exception(failure)
    await turn()
    await talk.ask(("about", "p"))

    words = "no" if isinstance(failure, BadRequest) else "internal error in run"
    assert talk.answers == [(1, words), (2, "plain p")]


async def test_a_start_that_fails_before_there_is_a_future_lets_go_of_what_waited() -> None:
    talk = Talk()
    await talk.ask(("run", "p"), ("about", "p"))

    talk.toy.open("p", BadRequest("no such program"))
    await turn()

    assert talk.answers == [(1, "no such program"), (2, "plain p")]


async def test_a_request_whose_answer_is_deferred_counts_as_waiting_until_it_has_come() -> None:
    talk = Talk(limits=ConnectionLimits(waiting_requests=1))
    await talk.ask(("run", "p"))
    result = await talk.start("p")

    await talk.ask(("wait", "a"))
    refused = list(talk.channel.sent)
    result.set_result("over")
    await turn()
    await talk.ask(("wait", "b"))
    talk.toy.open("b")
    await turn()

    assert [message["error"]["data"] for message in refused] == [{"kind": "LimitReached"}]
    assert talk.answers[1:] == [(1, "over"), (3, "done")]


async def test_a_deferred_answer_that_is_given_up_with_the_connection_leaves_no_task() -> None:
    """As when a dialect ends what a lost client had started; what waited for it never runs."""
    talk = Talk()
    before = asyncio.all_tasks()
    await talk.ask(("run", "p"), ("run", "q"), ("about", "q"))
    result = await talk.start("p")
    waiting = asyncio.all_tasks() - before

    talk.connection.lost()
    result.cancel()
    talk.toy.gates["q"].cancel()
    async with asyncio.timeout(10):
        await talk.connection.finished()

    assert len(waiting) == 2
    assert asyncio.all_tasks() == before
    assert talk.channel.sent == []
    assert "plain q" not in talk.toy.told
