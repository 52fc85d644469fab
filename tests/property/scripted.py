"""A process whose child is played by a script over real pipes, and which is written down now and then."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pty
import tty
from collections import deque
from dataclasses import dataclass
from typing import Any, cast

from holdfast.backend import Valve
from holdfast.config import EngineLimits
from holdfast.engine.children import NO_CHILD
from holdfast.engine.process import LocalProcess
from holdfast.engine.recorder import EngineParts
from holdfast.engine.ring import Budget, Ring
from holdfast.errors import HoldfastError
from holdfast.model import Cause, Chunk, Exit, Kind, ProcessTerms, Stream
from holdfast.poller import Poller
from holdfast.reports import News, Report
from holdfast.value import replace
from tests.fakes.dialects import HandLoop, HandTimer

LIMITS = EngineLimits(stdin_chunks=3, stdin_bytes=300_000, write_ids=4)

_ALONE, _BY_SIGNAL = 2, 1


class ClockTimer(HandTimer):
    """May be cancelled after its time, as those of an event loop."""

    def cancel(self) -> None:
        with contextlib.suppress(ValueError):
            super().cancel()


class Clock(HandLoop):
    """A clock moved by hand, as the engine needs it."""

    def call_at(self, when: float, callback: Any) -> HandTimer:
        timer = ClockTimer(self, when, callback)
        self.timers.append(timer)
        return timer

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    def call_later(self, seconds: float, callback: Any) -> HandTimer:
        return self.call_at(self.now + seconds, callback)


class ScriptedChild(type(NO_CHILD)):  # type: ignore[misc]  # What a process needs of a child, and does not get here.
    """Implements ``children.Child``: does what a script says, over pipes that are real."""

    pid = 7

    def __init__(self, *, terminal: bool = False) -> None:
        self._news: deque[Report] = deque()
        self._event = os.eventfd(0, os.EFD_SEMAPHORE | os.EFD_NONBLOCK)
        self.stdin: int | None
        if terminal:
            master, peer = pty.openpty()
            tty.setraw(peer)
            self._input, self.stdin = os.dup(peer), os.dup(master)
            self._outputs = {Stream.PTY: (master, peer)}
        else:
            self._input, self.stdin = os.pipe()
            self._outputs = {stream: os.pipe() for stream in (Stream.STDOUT, Stream.STDERR)}
        os.set_blocking(self._input, False)
        for reader, _ in self._outputs.values():
            os.set_blocking(reader, False)
        self.outputs = tuple((stream, reader) for stream, (reader, _) in self._outputs.items())
        self.has_exited = False
        self.orders: list[str] = []

    def fileno(self) -> int:
        return self._event

    def receive(self) -> Report | None:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._event)
        return self._news.popleft() if self._news else None

    def hand_over(self) -> None:
        self.stdin, self.outputs = None, ()

    def _order(self, what: str) -> None:
        if what not in self.orders:  # An order that is given again is no other order.
            self.orders.append(what)

    def release(self) -> None:
        self._order("release")

    def retire(self) -> None:
        self._order("retire")

    def close(self) -> None:
        self._order("close")

    def kill(self) -> None:
        self._order("kill")
        self.end(9, by_signal=True, alone=True)

    def signal(self, number: int) -> None:
        self.orders.append(f"signal {number}")

    def signal_tree(self, number: int, look: Any = None, *, partly: bool = True) -> bool:
        self._order(f"signal {number} to all")
        return True

    def has_ended(self) -> bool:
        return self.has_exited

    # By the hand of a script.

    def _of(self, stream: Stream) -> Stream:
        return Stream.PTY if Stream.PTY in self._outputs else stream

    def say(self, stream: Stream, data: bytes) -> None:
        writer = self._outputs[self._of(stream)][1]
        if writer >= 0:
            with contextlib.suppress(BrokenPipeError):  # Nobody wants to read it any more.
                os.write(writer, data)

    def hear_input(self) -> bytes:
        if self._input < 0:
            return b"(closed)"
        with contextlib.suppress(BlockingIOError):
            return os.read(self._input, 1 << 20)
        return b"(nothing)"

    def let_go(self, stream: Stream) -> None:
        """Close an output.  A terminal is closed with its input: nobody has it open then."""
        stream = self._of(stream)
        reader, writer = self._outputs[stream]
        if stream is Stream.PTY and self._input >= 0:
            os.close(self._input)
            self._input = -1
        if writer >= 0:
            os.close(writer)
            self._outputs[stream] = reader, -1

    def end(self, code: int, *, by_signal: bool = False, alone: bool = True) -> None:
        if self.has_exited:
            return
        self.has_exited = True
        if alone:
            for stream in self._outputs:
                self.let_go(stream)
        self._tell(Report(News.EXITED, code, _BY_SIGNAL * by_signal | _ALONE * alone))

    def empty(self) -> None:
        """The last of its tree has gone, after its exit."""
        if self.has_exited and "release" in self.orders and "retire" not in self.orders:
            self._tell(Report(News.EMPTY))

    def _tell(self, report: Report) -> None:
        self._news.append(report)
        os.eventfd_write(self._event, 1)

    def bury(self) -> None:
        """Close what is still open."""
        for stream in self._outputs:
            self.let_go(stream)
        if self._input >= 0:
            os.close(self._input)
        os.close(self._event)


@dataclass(frozen=True)
class Deed:
    """One thing that is done, or happens."""

    what: str
    number: int = 0
    flag: bool = False


class Life:
    """One process, and a ledger of everything that can be seen of it."""

    def __init__(self, terms: ProcessTerms, *, suspends: bool, terminal: bool = False) -> None:
        self._suspends = suspends
        self._terms = terms
        self._clock = Clock()
        self._poller = Poller()
        self.child = ScriptedChild(terminal=terminal)
        self._valve = Valve()
        self._ended: list[str] = []
        self.ledger: list[Any] = []
        self._poller.add(self.child.fileno(), _Nobody())
        self.process = self._make(Ring(limit=50, chunks=10, budget=Budget(10**9)))

    def _make(self, ring: Ring, **more: Any) -> LocalProcess:
        process = LocalProcess(
            more.pop("child", self.child),
            ring,
            EngineParts(self._clock.loop, self._poller, cast("Any", None), LIMITS),
            owner=self,
            terms=self._terms,
            **more,
        )
        process.watch(self, self._valve)
        return process

    # Implements ``backend.Watcher`` and ``life.Owner``, which share names: the first fact tells them apart.

    def output(self, chunk: Chunk) -> None:
        self.ledger.append(("output", chunk.seq, chunk.stream, chunk.data))

    def ended(self, stream: Stream) -> None:
        self._ended.append(stream.value)

    def adopted(self, process: LocalProcess, audit: str | None) -> None: ...

    def exited(self, who: Any, exit: Exit | None = None) -> None:  # noqa: A002
        self.ledger.append(("exited", who, exit) if exit is not None else "owner: exited")

    def closed(self, who: Any) -> None:
        self.ledger.append(("closed", who) if isinstance(who, int) else "owner: closed")

    def gone(self, process: LocalProcess) -> None:
        self.ledger.append("owner: gone")

    # What happens.

    def do(self, deed: Deed) -> None:
        self.ledger.append(deed)
        self.ledger.append(self._do(deed))
        self.settle()
        process = self.process
        self.ledger.append(
            (process.exit, process.closed, process.next_seq, process.retained(), process.has_leftovers)
        )
        self.ledger.append(list(self.child.orders))
        # Two streams that end together do so in no promised order.
        self.ledger.append(sorted(self._ended))

    def settle(self) -> None:
        """Have everything told that there is to tell."""
        for _ in range(20):
            events = self._poller.epoll.poll(0)
            if not events:
                return
            self._poller.dispatch(events)

    def _do(self, deed: Deed) -> Any:
        number, process = deed.number, self.process
        match deed.what:
            case "say":
                # What two streams have said before they are read comes in no promised order.
                is_stderr = deed.flag and self._valve.is_open
                self.child.say(Stream.STDERR if is_stderr else Stream.STDOUT, b"x" * number)
            case "write":
                key = f"w{number % 7}" if deed.flag else None
                try:
                    return process.try_write(bytes([number]) * 50_000, write_id=key)
                except HoldfastError as error:
                    return str(error)
            case "hear":
                return self.child.hear_input()
            case "finish":
                return process.close_stdin_now(write_id=f"w{number % 7}" if deed.flag else None)
            case "exit":
                self.child.end(number % 256, alone=deed.flag)
            case "let go" if self.child.has_exited:
                self.child.let_go(Stream.STDERR if deed.flag else Stream.STDOUT)
            case "empty":
                self.child.empty()
            case "end":
                return process.end_for(Cause(Kind.TERMINATED, "client"), number / 10 if deed.flag else 0.0)
            case "read":
                return process.try_read(after=number, limit=number * 3 if deed.flag else None)
            case "retain":
                process.retain(1 + number)
            case "valve":
                (self._valve.open if deed.flag else self._valve.shut)()
            case "wait":
                self._clock.move(number / 10)
            case "restart" if self._suspends:
                self.restart()
        return None

    def restart(self, **changes: Any) -> None:
        """Write the process down, with ``changes`` of that, and go on with another object."""
        is_gone = self.process.tree.gone
        snapshot = replace(self.process.snapshot(), **changes)
        descriptors = self.process.let_go()
        child: Any = NO_CHILD
        if not is_gone:
            child = self.child
            child.stdin, child.outputs = descriptors.stdin, descriptors.outputs
            self._poller.add(child.fileno(), _Nobody())
        else:
            child = _Remains(descriptors.stdin, descriptors.outputs)
        ring = Ring.resume(snapshot.ring, chunks=10, budget=Budget(10**9))
        self.process = self._make(ring, child=child, snapshot=snapshot)

    def bury(self) -> None:
        self.process.forget()
        self.settle()
        self.child.bury()


class _Remains(type(NO_CHILD)):  # type: ignore[misc]  # As above.
    """The descriptors of a process whose tree is gone."""

    pid = 7

    def __init__(self, stdin: int | None, outputs: tuple[tuple[Stream, int], ...]) -> None:
        self.stdin = stdin
        self.outputs = outputs


class _Nobody:
    def on_ready(self, events: int = 0) -> None: ...
