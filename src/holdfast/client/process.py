"""A process on a server: told to those who watch it, and controlled by requests.

What must hold:

1. A watcher is told every number once and in order, over any number of connections, or is told of the gap.
2. Nothing is told before whoever started the process could watch it, nor after ``closed`` or a loss.
3. Nothing is asked of another session about a process of ours: there its name may mean another's process.

Which number comes next, and what has to be asked for, is the cursor's to know.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
from collections.abc import Callable
from enum import Enum
from typing import TypeVar

import msgspec

from holdfast.allowance import Reservation
from holdfast.backend import Valve, Watcher
from holdfast.config import KIB
from holdfast.errors import (
    HoldfastError,
    LinkLost,
    OutputGap,
    ProcessLost,
    SessionUnknown,
    SignalFailed,
    StillRunning,
    UnknownProcess,
)
from holdfast.model import Chunk, Ended, Exit, Page, Size, Stream, WriteStatus
from holdfast.protocol import base64, events
from holdfast.protocol.processes import (
    ACK,
    CLOSE_STDIN,
    READ,
    REMOVE,
    RESIZE,
    SIGNAL,
    SIGNAL_NUMBERS,
    TERMINATE,
    WAIT,
    WRITE,
    AckParams,
    CloseStdinParams,
    ReadParams,
    RemoveProcessParams,
    ResizeParams,
    SignalName,
    SignalParams,
    TerminateParams,
    WaitParams,
    WriteAnswer,
    WriteParams,
    WriteResult,
)
from holdfast.protocol.screen import SNAPSHOT, SnapshotParams, read_snapshot
from holdfast.protocol.shapes import Signature
from holdfast.protocol.start import TerminalSize
from holdfast.screens import ScreenSnapshot

from .calls import Answer, Within
from .cursor import PULL_MS, Closed, Cursor, Event, Exited
from .link import Link
from .verbs import RemoteVerbs

_log = logging.getLogger(__name__)

_PIECE = 256 * KIB
"""Bytes of stdin in one message: others get their turn in between."""

_SIGNALS: dict[int, SignalName] = {number: word for word, number in SIGNAL_NUMBERS.items()}

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")


class Telling(Enum):
    """Whether events are passed on to the watchers."""

    HELD = "not yet: whoever started the process has not had the chance to watch it"
    FLOWING = "as long as their valves are open"
    HURRIED = "all of it: the end was asked for and has come"


class RemoteWatch:
    """One watcher's hold on one process.  Implements ``backend.Watch``."""

    __slots__ = ("_process", "valve", "watcher")

    def __init__(self, process: RemoteProcess, watcher: Watcher, valve: Valve | None) -> None:
        self._process = process
        self.watcher = watcher
        self.valve = valve

    def stop(self) -> None:
        self._process.drop(self)


class RemoteProcess(RemoteVerbs):
    """A process on a server.  Implements ``backend.Process``."""

    def __init__(
        self,
        link: Link,
        identifier: str,
        *,
        name: str | None = None,
        terminal: bool = False,
        seen: int = 0,
        window: int = 0,
        held: Reservation,
        pulled: bool = False,
        on_over: Callable[[RemoteProcess], object] = lambda process: None,
    ) -> None:
        """
        Args:
            identifier: What the server knows it by.  ``name``, if given, is what people call it.
            seen: The last number that is no news.
            window: How far ahead of us the server goes; 0 if it does not wait for anybody.
            held: Of what all processes of the client may hold together: the window, if there is one.
            pulled: Whether output has to be asked for, because the process is not of our session.
            on_over: Called when nothing more can be told of this process.
        """
        self.identifier = identifier
        self.name = name or identifier
        self.pid: int | None = None
        self.exit: Exit | None = None
        self.closed = False
        self.lost: LinkLost | None = None
        """Why nothing more is known of it, once that is so."""
        self.within = Within.ANY if pulled else Within.OWN
        """In which session its name means this process: what is pulled is there for all of them."""
        self.watches: tuple[RemoteWatch, ...] = ()
        self._link = link
        self._loop = asyncio.get_running_loop()
        self._held = held
        self._cursor = Cursor(seen=seen, window=window, pulled=pulled, held=held)
        self._delivery = Telling.FLOWING if pulled else Telling.HELD
        self._on_over = on_over
        self._streams = (Stream.PTY,) if terminal else (Stream.STDOUT, Stream.STDERR)
        self._waiting: set[asyncio.Future[None]] = set()
        self._nonce = os.urandom(8).hex()
        self._write_ids = itertools.count(1)

    # What the server says.

    def started(self, *, missed: bool) -> None:
        """The server says that it runs; ``missed`` if it may have said more that did not get here."""
        self._cursor.started(missed=missed)
        self._advance()
        self._loop.call_soon(self._release_delivery)

    def resumed(self) -> None:
        """There is a new connection to the same session."""
        self._cursor.resumed()
        self._advance()

    def said(self, chunk: Chunk) -> None:
        """Take a piece of output that the server has pushed."""
        if self._can_tell() and self._cursor.skips_queue(chunk):
            # The hot path: nothing is missing and nobody has to wait.
            self._tell_output(chunk)
            if self._cursor.window:
                self._acknowledge()
        else:
            self.happened(chunk)

    def happened(self, event: Chunk | Exited | Closed) -> None:
        """The server pushed an event."""
        self._cursor.pushed(event)
        self._advance()

    def lose(self, error: LinkLost) -> None:
        """Take note that no more events will come, because of ``error``."""
        self._cursor.lost(error)
        self._advance()

    def _release_delivery(self) -> None:
        if self._delivery is Telling.HELD:
            self._delivery = Telling.FLOWING
        self._advance()

    def _on_page(self, answer: Answer) -> None:
        if isinstance(answer, HoldfastError):
            self._cursor.lost(self._loss(answer))
        else:
            try:
                page = events.read_page(READ.read(answer))
            except (msgspec.DecodeError, ValueError, HoldfastError) as error:
                reason = f"the server's answer about process {self.name!r} makes no sense: {error}"
                self._cursor.lost(LinkLost(reason))
            else:
                self._cursor.answered(page)
        self._advance()

    def _loss(self, error: HoldfastError) -> LinkLost:
        """Make a new error for another raise: one that is raised twice collects both tracebacks."""
        if isinstance(error, UnknownProcess | SessionUnknown):
            return ProcessLost(self.name, "the server does not know it any more")
        if isinstance(error, ProcessLost):
            return ProcessLost(self.name, error.reason)
        return error.copy() if isinstance(error, LinkLost) else LinkLost(str(error))

    # What is told.

    def _advance(self) -> None:
        """Tell what can be told, let the server go on, and ask for what comes next."""
        cursor = self._cursor
        while self._can_tell() and (event := cursor.next()) is not None:
            self._tell(event)
        self._acknowledge()
        # Those who were told may watch no longer, or have shut their valves.
        ask = cursor.ask(wanted=bool(self.watches) and self._can_tell())
        if ask is not None:
            params = ReadParams(self.identifier, ask.after, ask.limit, ask.wait_ms)
            self._link.ask(READ, params, self._on_page, within=self.within)

    def _can_tell(self) -> bool:
        """Whether whoever watches can be told; if a valve is shut, its opening goes on from here."""
        if self._delivery is not Telling.FLOWING:
            return self._delivery is Telling.HURRIED
        for watch in self.watches:
            if watch.valve is not None and not watch.valve.is_open:
                watch.valve.wait(self._advance)
                return False
        return True

    def _acknowledge(self) -> None:
        number = self._cursor.acknowledge()
        if number is not None:
            self._link.post(ACK, AckParams(self.identifier, number), within=self.within)

    def _tell(self, event: Event) -> None:
        if isinstance(event, Chunk):
            self._tell_output(event)
            return
        match event:
            case Exited(seq, end):
                self.exit = end
                for watch in self.watches:
                    self._call(watch, watch.watcher.exited, seq, end)
            case Closed(seq):
                self.closed = True
                for watch in self.watches:
                    # Servers do not tell when a single stream ends.
                    for stream in self._streams:
                        self._call(watch, watch.watcher.ended, stream)
                    self._call(watch, watch.watcher.closed, seq)
                self._end()
            case OutputGap():
                self._tell_loss(event)
            case LinkLost():
                self.lost = event
                self._tell_loss(event)
                self._end()
        self._wake()

    def _tell_output(self, chunk: Chunk) -> None:
        for watch in self.watches:
            try:
                watch.watcher.output(chunk)
            except Exception:  # noqa: BLE001  (a watcher that fails is nobody else's trouble)
                self._remove(watch)

    def _call(self, watch: RemoteWatch, event: Callable[..., None], *facts: object) -> None:
        try:
            event(*facts)
        except Exception:  # noqa: BLE001  (a watcher that fails is nobody else's trouble)
            self._remove(watch)

    def _remove(self, watch: RemoteWatch) -> None:
        _log.exception("a watcher of process %s failed and is removed", self.name)
        watch.stop()

    def _tell_loss(self, error: HoldfastError) -> None:
        """Tell those who want to know; ``lost`` is what a watcher of remote processes may have."""
        for watch in self.watches:
            lost = getattr(watch.watcher, "lost", None)
            if lost is not None:
                self._call(watch, lost, error)

    def _end(self) -> None:
        self.watches = ()
        self._held.resize(0)
        self._on_over(self)

    # Those who watch.

    def watch(self, watcher: Watcher, valve: Valve | None = None) -> RemoteWatch:
        watch = RemoteWatch(self, watcher, valve)
        self.watches = (*self.watches, watch)
        if self.lost is not None:
            self._loop.call_soon(self._tell_loss, self.lost)
        elif self._cursor.pulled:
            self._loop.call_soon(self._advance)
        return watch

    def drop(self, watch: RemoteWatch) -> None:
        """Tell this watch nothing more."""
        self.watches = tuple(other for other in self.watches if other is not watch)
        if self._delivery is not Telling.HELD:
            self._loop.call_soon(self._advance)

    async def _next_event(self, seconds: float) -> None:
        waiting: asyncio.Future[None] = self._loop.create_future()
        self._waiting.add(waiting)
        try:
            await asyncio.wait((waiting,), timeout=seconds)
        finally:
            self._waiting.discard(waiting)

    def _wake(self) -> None:
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    # Implements ``backend.Process``.

    @property
    def exit_code(self) -> int | None:
        return None if self.exit is None else self.exit.code

    @property
    def next_seq(self) -> int:
        return self._cursor.delivered + 1

    @property
    def can_end_stdin(self) -> bool:
        return "closeStdin" in self._link.features

    async def read(self, *, after: int = 0, limit: int | None = None, wait: float = 0.0) -> Page:
        params = ReadParams(self.identifier, after, limit, int(wait * 1000) if wait > 0 else None)
        return await self._ask(READ, params, events.read_page)

    async def wait(self, seconds: float) -> Exit | None:
        deadline = self._loop.time() + seconds
        while self.exit is None:
            if self.lost is not None:
                raise self._loss(self.lost)
            remaining = deadline - self._loop.time()
            if self._cursor.pulled and not self.watches:
                milliseconds = max(0, min(int(remaining * 1000), PULL_MS))
                found = await self._ask(WAIT, WaitParams(self.identifier, milliseconds), _itself)
                if found.exited:
                    self.exit = events.read_exit(found)
            if self.exit is not None or remaining <= 0:
                return self.exit
            if not self._cursor.pulled or self.watches:
                await self._next_event(remaining)
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
        params = WriteParams(self.identifier, base64.encode(data).decode(), key)
        return await self._ask(WRITE, params, self._status)

    def _status(self, result: WriteResult) -> WriteStatus:
        if result.status == WriteAnswer.UNKNOWN_PROCESS:
            raise ProcessLost(self.name, "the server does not know it any more")
        return WriteStatus(result.status)

    async def close_stdin(self, *, write_id: str | None = None) -> WriteStatus:
        self._need("closeStdin", "the end of stdin")
        params = CloseStdinParams(self.identifier, write_id or self._write_id())
        return await self._ask(CLOSE_STDIN, params, self._status)

    async def resize(self, size: Size) -> None:
        self._need("resize", "another size of a terminal")
        params = ResizeParams(self.identifier, TerminalSize(size.rows, size.cols))
        await self._ask(RESIZE, params, _itself)

    async def snapshot(self) -> ScreenSnapshot:
        self._need("snapshot", "a snapshot of a terminal")
        return await self._ask(SNAPSHOT, SnapshotParams(self.identifier), read_snapshot)

    async def signal(self, number: int, *, tree: bool = False) -> None:
        word = _SIGNALS.get(number)
        if word is None:
            raise SignalFailed(f"the protocol has no word for signal {number}")
        if self.exit is not None and not tree:
            return  # Not asked: once the server has forgotten it, the name may be another's.
        if word is not SignalName.INTERRUPT or tree:
            self._need("signals", f"the signal {word.value!r}")
        params = SignalParams(self.identifier, word, tree or None)
        await self._ask(SIGNAL, params, _itself, repeat=False)

    async def end(self, *, grace: float = 0.0, by: str = "client") -> Ended:
        milliseconds = int(grace * 1000) if "grace" in self._link.features else None
        answer = await self._ask(TERMINATE, TerminateParams(self.identifier, milliseconds), _itself)
        # It is over: whoever watches is told the rest, ready or not.
        self._delivery = Telling.HURRIED
        self._advance()
        return Ended(answer.running, tuple(answer.survivors), exact=answer.tree_exact)

    def release(self) -> None:
        """Let the process go on even if nobody reads its output.  Does not wait."""
        if self._cursor.window:
            self._cursor.window = 0
            self._link.post(ACK, AckParams(self.identifier, release=True), within=self.within)

    async def remove(self) -> None:
        self._need("remove", "to forget a process")
        try:
            await self._ask(REMOVE, RemoveProcessParams(self.identifier), _itself)
        except StillRunning:
            raise StillRunning(self.name) from None

    async def _ask(
        self, signature: Signature[P, R], params: P, into: Callable[[R], T], *, repeat: bool = True
    ) -> T:
        if self.lost is not None:
            raise self._loss(self.lost)
        try:
            return await self._link.call(signature, params, into, repeat=repeat, within=self.within)
        except (UnknownProcess, SessionUnknown):
            raise ProcessLost(self.name, "the server does not know it any more") from None


def _itself(result: R) -> R:
    return result
