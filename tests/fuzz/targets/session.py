"""A client whose server says whatever it likes: messages in any number and order, to everybody who waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from typing import Any

from holdfast.client.process import RemoteProcess
from holdfast.client.remote import RemoteBackend
from holdfast.errors import HoldfastError, OutputGap
from holdfast.model import Chunk, Exit, HttpRequest, Stream
from holdfast.protocol.files import GetMetadataResult, MissingChanged, ReadFileResult
from holdfast.protocol.http import HttpBodyDelta, HttpRequestResult
from holdfast.protocol.processes import (
    ProcessClosed,
    ProcessExited,
    ProcessOutput,
    ReadResult,
    WaitResult,
    WriteResult,
)
from holdfast.protocol.subscribing import EventNotice
from holdfast.wire.jsonrpc import ErrorBody

from .draw import Draw

SEEDS = (
    *(bytes((count,)) + b"\x01\x05\x01\x05\x01" * 20 for count in range(8)),
    *(bytes((6, kind)) + bytes(range(2, 120)) for kind in range(10)),
)

TOLD: tuple[tuple[str, type], ...] = (
    ("process/output", ProcessOutput),
    ("process/exited", ProcessExited),
    ("process/closed", ProcessClosed),
    ("http/request/bodyDelta", HttpBodyDelta),
    ("fs/missingChanged", MissingChanged),
    ("events/event", EventNotice),
    ("other", ReadResult),
)
ANSWERS = (
    ReadResult,
    WriteResult,
    WaitResult,
    ReadFileResult,
    GetMetadataResult,
    HttpRequestResult,
    ErrorBody,
)
DEEP = b"[" * 3000 + b"]" * 3000
OUTPUT = '{"method":"process/output","params":{"processId":"p","seq":%d,"stream":"%s","chunk":"%s"}}'


class Told:
    """Implements ``backend.Watcher``: nothing comes twice, out of turn, or behind the end."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        """What should not have been told.  Not raised: a watcher that raises is only removed."""
        self._last = 0
        self._over = False

    def _note(self, what: str, seq: int, least: int) -> None:
        if self._over or seq < least:
            self.wrong.append(f"{what} {seq} after {self._last}")
        self._last = seq

    def output(self, chunk: Chunk) -> None:
        self._note("output", chunk.seq, self._last + 1)

    def ended(self, stream: Stream) -> None:
        self._note("end of stream", self._last, self._last)

    def exited(self, seq: int, exit: Exit) -> None:  # noqa: A002  (what it is called everywhere)
        self._note("exit", seq, self._last)

    def closed(self, seq: int) -> None:
        self._note("close", seq, self._last + 1)
        self._over = True

    def lost(self, error: HoldfastError) -> None:
        last = error.last if isinstance(error, OutputGap) else self._last
        self._note(str(error), last, self._last)


class Client:
    """One that waits for everything that can be waited for."""

    def __init__(self) -> None:
        self.backend = RemoteBackend("ws://127.0.0.1:9")
        self.link = self.backend._link
        self.link._loop = asyncio.get_running_loop()
        self.told, self.kept = Told(), Told()
        self.process = RemoteProcess(
            self.link, "p", on_over=self.backend._closed, held=self.backend._ahead.grant(0)
        )
        self.backend._processes["p"] = self.backend._keys[b"p"] = self.process
        self.process.watch(self.told)
        self.process.started(missed=False)
        files, kept = self.backend.files, self._kept()
        kept.watch(self.kept)
        self.waiting = [
            *(self._ask(self.process.write(b"x")), self._ask(kept.read()), self._ask(kept.wait(0))),
            *(
                self._ask(files.read("/x", at_once=9)),
                self._ask(files.watch_missing(["/x"], None, lambda: None)),
            ),
            *(self._ask(files.list("/x")), self._ask(self._fetch())),
        ]

    def _kept(self) -> RemoteProcess:
        return RemoteProcess(self.link, "k", pulled=True, held=self.backend._ahead.grant(0))

    def _ask(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[object]:
        return self.link.own(work)

    async def _fetch(self) -> None:
        response = await self.backend.http.request(HttpRequest("GET", "http://x/"))
        while await response.read():
            pass

    async def end(self) -> None:
        for task in self.waiting:
            task.cancel()
        for error in await asyncio.gather(*self.waiting, return_exceptions=True):
            assert not isinstance(error, BaseException) or isinstance(
                error, HoldfastError | asyncio.CancelledError
            ), repr(error)
        await self.backend.aclose()


async def _talk(data: bytes) -> None:
    draw = Draw(data)
    client = Client()
    await asyncio.sleep(0)
    for _ in range(draw.below(12)):
        client.link.received(_damaged(draw, _message(draw)))
        if draw.below(2):
            await asyncio.sleep(0)
    await client.end()
    assert client.told.wrong == []
    assert client.kept.wrong == []


def _message(draw: Draw) -> bytes:
    match draw.below(10):
        case 0 | 1:
            return (
                OUTPUT % (draw.below(20), draw.pick(("stdout", "stderr", "pty", "x")), draw.text())
            ).encode()
        case 2 | 3 | 4:
            method, kind = draw.pick(TOLD)
            params = draw.like(kind)
            if isinstance(params, dict) and draw.byte() < 220:
                params |= {"processId": "p"} if "processId" in params else {}
                params |= {"seq": draw.below(20)} if "seq" in params else {}
            return json.dumps({"method": method, "params": params}).encode()
        case 5 | 6 | 7:
            name = "result" if draw.byte() < 200 else "error"
            kind = draw.pick(ANSWERS) if name == "result" else ErrorBody
            return json.dumps({"id": draw.below(16), name: draw.like(kind)}).encode()
        case 8:
            return json.dumps(draw.value()).encode()
        case _:
            return draw.some(60)


def _damaged(draw: Draw, text: bytes) -> bytes:
    """The same, as some servers would send it."""
    kind = draw.byte()
    if kind < 200:
        return text
    if kind < 240:
        at, piece = draw.below(len(text) + 1), draw.some(4)
        return text[:at] + piece + text[at + len(piece) :]
    return text[:-1] + b',"deep":' + DEEP + text[-1:]


_LOOP = asyncio.new_event_loop()


def check(data: bytes) -> None:
    _LOOP.run_until_complete(_talk(data))
