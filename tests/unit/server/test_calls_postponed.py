"""Results that can be had when something has happened, which nobody waits for in a task."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.config import ConnectionLimits
from holdfast.dialects.dialect import Method, Postponed
from holdfast.errors import BadRequest
from holdfast.server.connection import Connection
from holdfast.telemetry import Silent
from tests.fakes.dialects import FakeWatch
from tests.fakes.endpoint import MemoryChannel, ToyConversation, ToyEndpoint, deliver, introduce, request
from tests.unit.server.test_calls import turn


class Talk:
    """A connection in memory with a method ``poll``, whose result is postponed."""

    def __init__(self) -> None:
        self.channel = MemoryChannel()
        self.endpoint = ToyEndpoint()
        name = self.endpoint.methods["plain"].decode
        self.endpoint.methods["poll"] = Method(name, self._poll, waits=True)
        self.tells: list[Callable[[], object]] = []
        self.watches: list[FakeWatch] = []
        self.results: list[Callable[[], Any]] = []
        """What the polls come to, one after the other."""
        self.connection = Connection(
            self.channel,
            self.endpoint,
            telemetry=Silent(),
            limits=ConnectionLimits(),
            on_end=lambda connection: None,
        )
        introduce(self.connection, self.endpoint)

    def _poll(self, talk: ToyConversation, name: str) -> Postponed:
        return self.poll()

    def poll(self) -> Postponed:
        return Postponed(self._listen, lambda: self.results.pop(0)())

    def _listen(self, tell: Callable[[], object]) -> Callable[[], None]:
        self.tells.append(tell)
        self.watches.append(FakeWatch())
        return self.watches[-1].stop

    def ask(self, number: int = 1) -> None:
        deliver(self.connection, request(number, "poll", "p"))

    @property
    def answers(self) -> list[tuple[Any, Any]]:
        numbers = [message["id"] for message in self.channel.sent]
        return list(zip(numbers, self.channel.results, strict=True))

    @property
    def waiting(self) -> int:
        return self.connection.usage()["connection.waiting_requests"]


async def test_the_answer_comes_when_it_has_happened() -> None:
    talk = Talk()
    talk.results = [lambda: "now"]

    talk.ask()
    await turn()
    before, waiting = talk.answers, talk.waiting
    talk.tells[0]()
    await turn()

    assert (before, waiting) == ([], 1)
    assert talk.answers == [(1, "now")]
    assert talk.waiting == 0


async def test_what_was_not_it_is_waited_for_again() -> None:
    talk = Talk()
    talk.results = [talk.poll, lambda: "now"]

    talk.ask()
    for tell in (0, 1):
        talk.tells[tell]()
        await turn()

    assert talk.answers == [(1, "now")]
    assert talk.waiting == 0


async def test_the_result_may_be_a_coroutine() -> None:
    talk = Talk()
    gate = asyncio.Event()

    async def later() -> str:
        await gate.wait()
        return "later"

    talk.results = [later]
    talk.ask()
    talk.tells[0]()
    await turn()
    assert (talk.answers, talk.waiting) == ([], 1)
    gate.set()
    await turn()

    assert talk.answers == [(1, "later")]
    assert talk.waiting == 0


@pytest.mark.parametrize(
    ("error", "words"),
    [(BadRequest("no such thing"), "no such thing"), (KeyError("x"), "internal error in poll")],
)
async def test_a_result_that_fails_is_an_error_of_that_request(error: Exception, words: str) -> None:
    talk = Talk()

    def fail() -> None:
        raise error

    talk.results = [fail]
    talk.ask()
    talk.tells[0]()
    await turn()

    assert talk.answers == [(1, words)]
    assert talk.waiting == 0


@pytest.mark.parametrize("told", [False, True])
async def test_a_cancelled_one_is_answered_once_and_waits_for_nothing(*, told: bool) -> None:
    """Also between what it has waited for and its answer."""
    talk = Talk()
    talk.results = [lambda: "too late"]

    talk.ask()
    if told:
        talk.tells[0]()
    found = talk.connection.cancel(1)
    await turn()

    assert found
    assert talk.answers == [(1, "the request was cancelled")]
    assert talk.watches[0].stopped
    assert talk.waiting == 0


@pytest.mark.parametrize("told", [False, True])
async def test_when_the_connection_is_gone_nothing_is_waited_for(*, told: bool) -> None:
    talk = Talk()
    talk.results = [lambda: "too late"]

    talk.ask()
    if told:
        talk.tells[0]()
    talk.connection.lost()
    await turn()

    assert talk.answers == []
    assert talk.watches[0].stopped
    assert talk.results


async def test_an_answered_one_is_freed_at_once() -> None:
    """A request may hold 64 MiB, and what is in a circle stays until somebody looks for it."""

    class Result:
        def __call__(self) -> str:
            return "now"

    talk = Talk()
    result = Result()
    seen = weakref.ref(result)
    talk.results = [result]
    del result
    gc.disable()
    try:
        talk.ask()
        talk.tells[0]()
        await turn()
        talk.tells.clear()

        assert talk.answers == [(1, "now")]
        assert seen() is None
    finally:
        gc.enable()
