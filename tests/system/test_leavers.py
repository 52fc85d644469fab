"""Clients that leave in the middle of everything: the server is as it was before they came."""

from __future__ import annotations

import asyncio
import importlib
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.soaking.gauges import Watched
from tests.fakes.backends import LONG
from tests.fakes.client import client
from tests.fakes.file_talk import uri
from tests.fakes.leavers import LIMITS, Leaver
from tests.fakes.limits import figures
from tests.fakes.server import eventually
from tests.fakes.web import Visit, web

ROUNDS = 100 if LONG else 12
AT_ONCE = 6

COUNTED = [
    "dialects.app.conversation.Run",
    "dialects.exec.entries.Entry",
    "dialects.exec.scopes.Session",
    "dialects.exec.path_locks.PathLock",
    "dialects.exec.path_locks._Node",
    "engine.children.PendingStart",
    "engine.files.LocalFile",
    "engine.http.HostResponse",
    "engine.process.LocalProcess",
    "engine.files.LocalFileWatch",
    "engine.workers._Arrival",
    "engine.workers._Job",
    "server.connection.Connection",
    "server.calls.Call",
    "server.eager.Rest",
    "server.websocket.WebSocketChannel",
]
"""Classes whose objects belong to somebody who may leave."""


def test_what_is_counted_exists() -> None:
    """A class that has another name by now would be counted as gone."""
    for name in COUNTED:
        module, _, kind = name.rpartition(".")
        assert hasattr(importlib.import_module(f"holdfast.{module}"), kind), name


STAYING = {
    "connection.connections": 1.0,
    "connection.undecided": 1.0,
    "session.sessions": 1.0,
    "session.principals": 1.0,
}
"""What one client uses that does nothing, and whoever asks for these figures."""


@dataclass(frozen=True)
class Holding:
    """What a server has at one moment."""

    files: Counter[str]
    family: int
    tasks: int
    objects: Counter[str]

    @classmethod
    def of(cls, server: Watched) -> Holding:
        sample, objects = server.sample(), server.census()
        kept = Counter({name: objects.get(f"holdfast.{name}", 0) for name in COUNTED})
        return cls(server.files(), sample.family - sample.zombies, sample.tasks, kept)

    def within(self, other: Holding) -> bool:
        return (
            self.files <= other.files
            and self.family <= other.family
            and self.tasks <= other.tasks
            and self.objects <= other.objects
        )


async def endless(visit: Visit) -> None:
    """A response that begins, and goes on until the client leaves."""
    await visit.send(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n" + bytes(1000))
    await visit.left()


@pytest.mark.slow
@pytest.mark.stress
@pytest.mark.timeout(600 if LONG else 120)
@pytest.mark.parametrize("turn", ["5ms", "0ms"])
async def test_nothing_is_left_of_clients_that_leave_in_the_middle(
    turn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever had begun for them ends: files, writes that wait, responses, processes, tasks."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    limits = [f"--limit={limit}" for limit in (*LIMITS, f"connection.turn_seconds={turn}")]
    limits.append("--command-sandbox=danger-full-access")
    seed = random.SystemRandom().randrange(2**32) if LONG else 1
    chance = random.Random(seed)  # noqa: S311  (it need not be secret)
    with Watched("--listen", "ws://127.0.0.1:0", "--metrics", *limits) as server:
        url = server.read_url()
        async with web(endless=endless) as other:
            leaver = Leaver(url, f"{other.url}/endless", tmp_path, chance)
            async with client(url) as staying:
                # What is made at first use is not left of anybody.
                for _ in range(3):
                    await leaver.visit()
                await staying.start("once", "true")
                await staying.closed("once")
                missing = [uri(tmp_path / "never")]
                await staying.call("fs/watchMissing", {"watchId": 1, "missing": missing})
                before = await settled(server)
                for _ in range(ROUNDS):
                    await asyncio.gather(*(leaver.visit() for _ in range(AT_ONCE)))
                    await staying.call("environment/status")
                now = before

                def is_back() -> bool:
                    nonlocal now
                    now = Holding.of(server)
                    return now.within(before)

                try:
                    await eventually(is_back)
                except AssertionError as error:
                    raise AssertionError(f"seed {seed}: before {before}, now {now}") from error
                used = (await figures(url)).used

    assert "Traceback" not in server.said()
    assert {name: amount for name, amount in used.items() if amount} == STAYING


async def settled(server: Watched) -> Holding:
    """What the server has when the last ones have gone: it is the same for a while."""
    seen: list[Holding] = []

    def same() -> bool:
        seen.append(Holding.of(server))
        return len(seen) > 5 and all(each == seen[-1] for each in seen[-5:])

    await eventually(same)
    return seen[-1]
