"""A process on a server: the same interface, far away."""

from __future__ import annotations

import itertools
import os
import signal as signals
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from holdfast.config import KIB
from holdfast.dialects import base64
from holdfast.errors import (
    ProcessLost,
    SessionUnknown,
    SignalFailed,
    UnknownProcess,
    Unsupported,
)
from holdfast.model import Ended, Exit, Page, Size, WriteStatus

from . import answers as a
from . import reading
from .following import PULL_MS, Following
from .link import Link

_PIECE = 256 * KIB
"""Bytes of stdin in one message: others get their turn in between."""

_SIGNALS: dict[int, str] = {
    signals.SIGINT: "interrupt",
    signals.SIGTERM: "terminate",
    signals.SIGKILL: "kill",
    signals.SIGHUP: "hangup",
    signals.SIGQUIT: "quit",
    signals.SIGUSR1: "user1",
    signals.SIGUSR2: "user2",
    signals.SIGSTOP: "stop",
    signals.SIGCONT: "continue",
}

T = TypeVar("T")


class RemoteProcess(Following):
    """A process on a server.  Implements ``backend.Process``."""

    def __init__(self, link: Link, name: str, **traits: Any) -> None:
        """``traits`` are those of ``Following``."""
        super().__init__(link, name, **traits)
        self._nonce = os.urandom(8).hex()
        self._write_ids = itertools.count(1)

    # Implements ``backend.Process``.

    @property
    def exit_code(self) -> int | None:
        return None if self.exit is None else self.exit.code

    @property
    def next_seq(self) -> int:
        return self._told + 1

    async def read(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Page:
        params = self.about(afterSeq=after)
        if limit is not None:
            params["maxBytes"] = limit
        if wait > 0:
            params["waitMs"] = int(wait * 1000)
        return await self._ask("process/read", params, lambda raw: reading.page(reading.read_result(raw)))

    async def wait(self, seconds: float) -> Exit | None:
        deadline = self.loop.time() + seconds
        while self.exit is None:
            if self.lost is not None:
                raise self.loss(self.lost)
            remaining = deadline - self.loop.time()
            if self.pulled and not self.watches:
                milliseconds = max(0, min(int(remaining * 1000), PULL_MS))
                found = await self._ask("process/wait", self.about(waitMs=milliseconds), _wait_result)
                if found.exited:
                    self.exit = reading.ending(found)
            if self.exit is not None or remaining <= 0:
                return self.exit
            if not self.pulled or self.watches:
                await self.next_event(remaining)
        return self.exit

    async def write(self, data: bytes, *, write_id: str | None = None) -> WriteStatus:
        key = write_id or self._write_id()
        if len(data) <= _PIECE:
            return await self._write(data, key)
        status = WriteStatus.ACCEPTED
        for start in range(0, len(data), _PIECE):
            status = await self._write(data[start : start + _PIECE], f"{key}+{start}")
            if status is not WriteStatus.ACCEPTED:
                break
        return status

    def _write_id(self) -> str:
        """One that nobody else uses who writes to this process."""
        return f"{self._nonce}.{next(self._write_ids)}"

    async def _write(self, data: bytes, key: str) -> WriteStatus:
        params = self.about(chunk=base64.encode(data).decode(), writeId=key)
        return await self._ask("process/write", params, self._status)

    def _status(self, raw: msgspec.Raw) -> WriteStatus:
        answer = _write_result(raw)
        if answer.status == "unknownProcess":
            raise ProcessLost(self.name, "the server does not know it any more")
        return WriteStatus(answer.status)

    async def close_stdin(self, *, write_id: str | None = None) -> WriteStatus:
        self._need("closeStdin", "the end of stdin")
        params = self.about(writeId=write_id or self._write_id())
        return await self._ask("process/closeStdin", params, self._status)

    async def resize(self, size: Size) -> None:
        self._need("resize", "another size of a terminal")
        await self._ask("process/resize", self.about(size={"rows": size.rows, "cols": size.cols}), bytes)

    async def signal(self, number: int, *, tree: bool = False) -> None:
        word = _SIGNALS.get(number)
        if word is None:
            raise SignalFailed(f"the protocol has no word for signal {number}")
        if self.exit is not None and not tree:
            return  # Not asked: once the server has forgotten it, the name may be another's.
        if word != "interrupt" or tree:
            self._need("signals", f"the signal {word!r}")
        params = self.about(signal=word)
        if tree:
            params["tree"] = True
        await self._ask("process/signal", params, bytes, repeat=False)

    async def terminate(self, *, grace: float = 0.0, by: str = "client") -> Ended:
        params = self.about()
        if "grace" in self.link.features:
            params["graceMs"] = int(grace * 1000)
        answer = await self._ask("process/terminate", params, _terminate_result)
        self.hurry()
        return Ended(answer.running, tuple(answer.survivors), exact=answer.tree_exact)

    @property
    def can_end_stdin(self) -> bool:
        return "closeStdin" in self.link.features

    def release(self) -> None:
        """Let the process go on, whether or not anybody reads what it says.  Does not wait."""
        if self.window:
            self.window = 0
            self.link.post("process/ack", self.about(release=True), within=self.within)

    # Questions.

    def _need(self, feature: str, what: str) -> None:
        if feature not in self.link.features:
            raise Unsupported(what)

    async def _ask(
        self, method: str, params: object, kind: Callable[[msgspec.Raw], T], *, repeat: bool = True
    ) -> T:
        if self.lost is not None:
            raise self.loss(self.lost)
        try:
            return await self.link.call(method, params, kind, repeat=repeat, within=self.within)
        except (UnknownProcess, SessionUnknown):
            raise ProcessLost(self.name, "the server does not know it any more") from None


_wait_result = a.reader(a.WaitResult)
_write_result = a.reader(a.WriteResult)
_terminate_result = a.reader(a.TerminateResult)
