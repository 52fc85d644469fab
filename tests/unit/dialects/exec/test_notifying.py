"""Ends of processes, sent to a real web server that answers as a test wants."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from docs.examples.webhook import is_genuine
from holdfast.backend import HostedBackend
from holdfast.dialects.exec.notifying import WebhookSender
from holdfast.errors import BadRequest
from holdfast.telemetry import Tally
from holdfast.webhooks import WebhookPolicy, prefix
from tests.fakes.dialects import FakeBackend, FakeProcess
from tests.fakes.exec_talk import START, ExecTalk, ready, started
from tests.fakes.process import PATIENCE
from tests.fakes.server import eventually
from tests.fakes.web import HI, Visit, Web, host_http, redirect, web

SECRET = b"s" * 32
REFUSED = b"HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n"
BUSY = b"HTTP/1.1 503 X\r\ncontent-length: 0\r\n\r\n"


class Posting(FakeBackend):
    """A backend of which the HTTP requests are real."""

    http: Any = None


class Scene:
    """A sender, and a process that has asked for it."""

    def __init__(self, served: Web, sender: WebhookSender, tally: Tally) -> None:
        self.served = served
        self.sender = sender
        self._tally = tally

    async def end(self, path: str) -> None:
        """The end of a process whose client wants this path told."""
        _, process = await self.started(path)
        process.exit_with(3)

    async def started(self, path: str) -> tuple[ExecTalk, FakeProcess]:
        process = FakeProcess()
        talk = await ready(process)
        talk.endpoint.webhooks = self.sender
        await talk.call("process/start", {**START, "name": "web", "notifyUrl": f"{self.served.url}{path}"})
        return talk, process

    @property
    def counts(self) -> dict[str, int]:
        return {
            key[1]: count for key, count in self._tally.counts.items() if key[0] == "holdfast_webhooks_total"
        }

    async def until(self, **counts: int) -> None:
        await eventually(lambda: self.counts == counts)


@contextlib.asynccontextmanager
async def sending(*, most: int = 9, **routes: Any) -> AsyncIterator[Scene]:
    async with web(**routes) as served, host_http() as http:
        backend = Posting()
        backend.http = http
        policy = WebhookPolicy((prefix(served.url),), SECRET)
        tally = Tally()
        sender = WebhookSender(policy, cast("HostedBackend", backend), tally, delays=(0.0, 0.0), most=most)
        yield Scene(served, sender, tally)
        sender.close()


async def test_an_end_is_sent_once_and_signed() -> None:
    async with sending() as scene:
        await scene.end("/hook")
        await scene.until(delivered=1)

        (visit,) = scene.served.visits
        headers = dict(visit.headers)
        sent = json.loads(visit.body)
        proof = headers["holdfast-signature"]
        assert visit.line == "POST /hook HTTP/1.1"
        assert headers["content-type"] == "application/json"
        assert (sent["kind"], sent["processId"], sent["name"], sent["exitCode"]) == ("exited", "p", "web", 3)
        assert is_genuine(SECRET, proof, visit.body, now=int(proof[2:].partition(",")[0]))


async def test_a_receiver_that_is_busy_is_told_again_with_the_same_identifier() -> None:
    async with sending(hook=BUSY) as scene:
        served = scene.served

        def answer_the_third() -> None:
            if len(served.visits) == 3:
                served.routes["/hook"] = HI

        served.on_visit = answer_the_third
        await scene.end("/hook")
        await scene.until(retried=2, delivered=1)

        assert len({json.loads(visit.body)["deliveryId"] for visit in scene.served.visits}) == 1


async def test_one_that_stays_busy_is_given_up() -> None:
    async with sending(hook=BUSY) as scene:
        await scene.end("/hook")
        await scene.until(retried=2, failed=1)

        assert len(scene.served.visits) == 3


@pytest.mark.parametrize("answer", [REFUSED, redirect(302, "/elsewhere"), redirect(307, "/elsewhere")])
async def test_a_refusal_and_a_redirect_are_the_end_of_it(answer: bytes) -> None:
    """Where a redirect leads the operator has not allowed."""
    async with sending(hook=answer) as scene:
        await scene.end("/hook")
        await scene.until(failed=1)

        assert [visit.line for visit in scene.served.visits] == ["POST /hook HTTP/1.1"]


async def test_a_connection_that_breaks_is_tried_again() -> None:
    async with sending(hook=b"") as scene:
        await scene.end("/hook")
        await scene.until(retried=2, failed=1)


async def test_what_waits_is_bounded_and_the_rest_is_counted() -> None:
    answering = asyncio.Event()

    async def slow(visit: Visit) -> None:
        await answering.wait()
        await visit.send(HI)

    async with sending(hook=slow, most=2) as scene:
        for _ in range(3):
            await scene.end("/hook")
        await scene.until(dropped=1)
        answering.set()
        await scene.until(dropped=1, delivered=2)
        await scene.end("/hook")
        await scene.until(dropped=1, delivered=3)


async def test_closing_gives_up_what_is_under_way_and_what_waits() -> None:
    """A server that stops does not wait for anybody."""
    reached = asyncio.Event()

    async def silent(visit: Visit) -> None:
        reached.set()
        await visit.left()

    async with sending(hook=silent, busy=BUSY) as scene:
        await scene.end("/hook")
        async with asyncio.timeout(PATIENCE):
            await reached.wait()
        scene.sender.close()
        await scene.end("/hook")
        await eventually(lambda: scene.served.open == 0)

        assert scene.counts == {}


# What a client asks for.


async def test_a_url_is_refused_where_the_operator_has_allowed_none() -> None:
    scene = await ready()

    refusal = await scene.refusal(
        "process/start",
        {**START, "notifyUrl": "http://h/"},
    )

    assert isinstance(refusal, BadRequest)
    assert "--webhook-allow" in str(refusal)
    assert refusal.field == "notifyUrl"


async def test_the_end_of_a_process_is_sent_if_its_client_has_asked_and_no_other() -> None:
    async with sending() as scene:
        talk, process = await started(processId="quiet")
        talk.endpoint.webhooks = scene.sender
        process.exit_with(0)
        talk, process = await scene.started("/hook")
        process.exit_with(4)
        await scene.until(delivered=1)

        assert json.loads(scene.served.visits[0].body)["exitCode"] == 4


async def test_a_process_that_is_ended_with_its_session_is_told_to_be_forgotten() -> None:
    async with sending() as scene:
        talk, _ = await scene.started("/hook")
        talk.talk.ended()
        talk.loop.move(talk.limits.detached_seconds + 1)
        await scene.until(delivered=1)

        assert json.loads(scene.served.visits[0].body)["kind"] == "forgotten"
