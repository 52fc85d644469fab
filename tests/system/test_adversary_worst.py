"""The worst legal messages of every method, and a neighbour who is served all the same.

The messages are made from the catalog's shapes: a method that is added is attacked without
anybody thinking of it.  How long the server was held by one message is judged by what it takes
to read that message at all, measured on the same machine in the same run.

``HOLDFAST_LONG=1`` sends messages eight times as long, and sandboxes with every method.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from holdfast.dialects.app import methods as app_methods
from holdfast.dialects.app.methods import METHODS as APP_METHODS
from holdfast.dialects.dialect import Catalog, ListedMethod
from holdfast.dialects.exec import methods as exec_methods
from holdfast.dialects.exec.methods import METHODS as EXEC_METHODS
from tests.fakes import fence
from tests.fakes.backends import LONG
from tests.fakes.client import Message
from tests.fakes.frames import Wire
from tests.fakes.server import PATIENCE, SETTLE, serving
from tests.fakes.walled import walled
from tests.fakes.worst import ORDINARY, Case, Growth, cases, has_digits

pytestmark = [
    pytest.mark.slow,
    pytest.mark.stress,
    pytest.mark.timeout(1800 if LONG else 300),
]

SIZE = (4 << 20) if LONG else (512 << 10)
"""Bytes of a message."""

TIMES = 60
"""How much longer than reading a message, by the standard library, the server may take to handle it.

Between a decoder in C and one in Python there is a factor of a hundred, and one in Python over all
of a message is what must not be.
"""

SMALL_TIMES = 20
"""The same for what a request costs that is not in its length: compared with a status, and with a look
at the figures, which is in every measurement."""

_LEAST = 0.0002
"""Seconds that a status takes on any machine: what is left of less was taken off by the processor's queue."""

LOOKS = 5
"""Times that something is tried before it counts as slow: others on this machine slow it down, too."""

CATALOGS = {each.name: each for each in (exec_methods.CATALOG, app_methods.CATALOG)}
CALLS = [(catalog, call) for catalog in CATALOGS.values() for call in catalog.calls]

_LONGEST = re.compile(rb"^holdfast_loop_longest_seconds (\S+)$", re.MULTILINE)


def test_every_method_of_both_endpoints_has_its_case() -> None:
    """A method that is added without one would never be attacked."""
    for name, methods in (("exec", EXEC_METHODS), ("app", APP_METHODS)):
        offered = {call.name for call in CATALOGS[name].calls}

        assert set(ORDINARY[name]("/x")) == offered
        assert offered <= set(methods)


# The server, and those who talk to it.


@dataclass(frozen=True)
class Scene:
    pid: int
    url: str
    growth: Growth

    def waited(self) -> float:
        """Seconds that the thread of the loop has waited for a processor, in all."""
        with suppress(FileNotFoundError):  # Not every kernel counts it.
            pid = serving(self.pid)
            return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[1]) / 1e9
        return 0.0

    async def longest(self) -> float:
        """The longest hold of the loop since the last look."""
        wire = await Wire.dial(self.url)
        wire.writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        page = await wire.reader.read()
        wire.abort()
        found = _LONGEST.search(page)
        assert found is not None
        return float(found[1])


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    with walled("--metrics", "--command-sandbox=danger-full-access") as server:
        root = server.base / "tree"
        root.mkdir()
        root.joinpath("f").write_bytes(b"x")
        server.give()
        time.sleep(SETTLE)
        yield Scene(server.program.pid, server.url, Growth(SIZE, str(root)))


class Talk:
    """One connection that asks one thing after the other."""

    def __init__(self, wire: Wire, *, passes_over: bool = False) -> None:
        """``passes_over``: the server says nothing to what is no JSON to it."""
        self._wire = wire
        self._passes_over = passes_over
        self._numbers = itertools.count(1)

    @classmethod
    @asynccontextmanager
    async def open(cls, scene: Scene, catalog: Catalog, *, greets: bool) -> AsyncIterator[Talk]:
        talk = cls(await Wire.open(scene.url), passes_over=catalog.name == "app")
        greeting = ORDINARY[catalog.name](scene.growth.root)["initialize"]
        if greets and catalog.name == "app":
            greeting = {**greeting, "capabilities": {"experimentalApi": True}}
        try:
            if greets:
                await talk.ask("initialize", greeting)
                talk._wire.send_text(b'{"method":"initialized"}')
            yield talk
        finally:
            talk._wire.abort()

    async def ask(self, method: str, params: Any) -> Message:
        """The whole answer; what is told meanwhile is passed over."""
        number = self._send(method, params)
        last = number
        if self._passes_over and has_digits(params):
            last = self._send("nothing/known", None)  # Its answer comes when the message was read.
        async with asyncio.timeout(3 * PATIENCE):
            while True:
                message: Message = msgspec.json.decode(await self._whole())
                if message.get("id") in (number, last, -1):  # Or what was sent was no message to them.
                    return message

    def _send(self, method: str, params: Any) -> int:
        number = next(self._numbers)
        self._wire.send_text(msgspec.json.encode({"id": number, "method": method, "params": params}))
        return number

    async def _whole(self) -> bytes:
        parts = []
        while (frame := await self._wire.receive()) is not None:
            if frame.op in (0, 1):
                parts.append(frame.payload)
                if frame.final:
                    return b"".join(parts)
        raise ConnectionError("the server has ended the connection")


def reading(params: Any) -> float:
    """Seconds that it takes to read a message, usually."""
    text = msgspec.json.encode(params)
    took = []
    for _ in range(LOOKS):
        began = time.perf_counter()
        json.loads(text, parse_int=float)
        took.append(time.perf_counter() - began)
    return statistics.median(took)


# The attack.

_GROWN_ELSEWHERE = "sandbox"


def attacks(catalog: Catalog, call: ListedMethod, growth: Growth) -> Iterator[Case]:
    ordinary = ORDINARY[catalog.name](growth.root)[call.name]
    whole = LONG or call.name in ("process/start", "fs/getMetadata")
    for case in cases(call, ordinary, growth):
        if whole or not case.name.startswith(_GROWN_ELSEWHERE):
            yield case


def named(params: Any, number: int) -> Any:
    """With a name of its own, unless that is what has grown: one that is taken ends everything early."""
    for key in ("processId", "processHandle"):
        if isinstance(params, dict) and params.get(key) == "p":
            params = {**params, key: f"p{number}"}
    return params


@pytest.mark.parametrize(("catalog", "call"), CALLS, ids=[f"{c.name} {call.name}" for c, call in CALLS])
async def test_the_worst_messages_of_a_method_hold_up_nobody(
    scene: Scene, catalog: Catalog, call: ListedMethod
) -> None:
    """Each is answered, so is the neighbour behind it, and the loop was not held much longer than
    it takes to read the message."""
    shakes = call.name in ("initialize", "session/takeOver")
    slow = []
    async with Talk.open(scene, CATALOGS["exec"], greets=True) as neighbour:
        usual = max(
            _LEAST,
            statistics.median(
                [await _held(scene, neighbour, neighbour, "environment/status", None) for _ in range(20)]
            ),
        )
        for number, case in enumerate(attacks(catalog, call, scene.growth)):
            params = {key: value for key, value in (case.params or {}).items() if key != "url"}
            assert not list(fence.leaving(_plain(params), scene.growth.root))
            held: list[float] = []
            most = 0.0
            while not held or (held[-1] > most and len(held) < LOOKS):
                # Measured anew each time: a processor that others use, too, is slow for both.
                most = TIMES * reading(case.params) + SMALL_TIMES * usual
                async with Talk.open(scene, catalog, greets=not shakes) as adversary:
                    asked = named(case.params, number * LOOKS + len(held))
                    held.append(await _held(scene, neighbour, adversary, call.name, asked))
            if held[-1] > most:
                slow.append(f"{case.name}: {min(held):.3f} s, expected less than {most:.3f} s")

    assert slow == []


async def _held(scene: Scene, neighbour: Talk, adversary: Talk, method: str, params: Any) -> float:
    """How long the loop was held at the most while a message was handled, and a neighbour's behind it.

    What it waited for a processor is nobody's fault here, and is left out.
    """
    await scene.longest()
    before = scene.waited()
    if adversary is neighbour:
        await neighbour.ask(method, params)
        return await scene.longest() - (scene.waited() - before)
    answer, status = await asyncio.gather(
        adversary.ask(method, params), neighbour.ask("environment/status", None)
    )
    assert "result" in status
    assert "internal error" not in str(answer.get("error", {}).get("message", ""))[:100]
    return await scene.longest() - (scene.waited() - before)


def _plain(value: Any) -> Any:
    """Without what is JSON already: numbers, which lead nowhere."""
    match value:
        case msgspec.Raw():
            return 0
        case dict():
            return {key: _plain(each) for key, each in value.items()}
        case list():
            # Most are the same one many times, which need not be looked at again.
            return [_plain(each) for each in {id(each): each for each in value}.values()]
    return value
