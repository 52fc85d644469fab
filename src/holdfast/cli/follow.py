"""A process followed by its user: its output to ours, our input to its, signals and sizes, to its end.

One loop for ``run``, ``exec`` and ``attach``, near and far.

What must hold:

1. Standard output and standard error carry what the process said and nothing else.
2. Nothing is read ahead of what the other side takes: neither output nor input gathers here.
3. Whichever way it ends, the tasks have ended before ``follow`` returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import TYPE_CHECKING, NamedTuple

from holdfast.errors import OutputGap, StdinFailed
from holdfast.model import Chunk, Outcome, Size

from . import describe, terminal
from .codes import code_of, remark
from .failure import BROKEN_PIPE, OWN
from .inlet import Inlet
from .keys import Scan
from .report import say
from .sink import Sink

if TYPE_CHECKING:
    from holdfast.api.handle import Handle

_AGAIN = 2.0
"""Seconds within which a second ^C means that the first was not enough."""

_LINGER = 2.0
"""Seconds of silence after the exit that end the wait for output which somebody else holds open."""

_REDRAWN = 0.3
"""Seconds in which a program draws its screen for another size, if it ever does."""

_DRAWN = 0.05
"""Seconds of silence after which a screen is complete; who draws may overlook what happens meanwhile."""

_ENDS = (signal.SIGTERM, signal.SIGHUP)


class Manner(NamedTuple):
    """How a process is followed.  No dataclass: to make one takes milliseconds of each start."""

    stdin: bool = False
    """Pass on what comes on standard input."""
    raw: bool = False
    """It has a terminal, and so have we: pass on each key, and the size."""
    keys: bytes = b""
    """What leaves it, if it is kept."""
    kept: bool = False
    """Whether it can be left."""
    ours: bool = True
    """Whether it ends when we are told to end."""
    redraw: int | None = None
    """Once the output up to this number was seen, have what is on its terminal drawn anew."""
    grace: float = 5.0
    """Seconds it has to end, once it is asked to."""
    json: bool = False
    quiet: bool = False


async def follow(handle: Handle, manner: Manner, first: Iterable[Chunk] = ()) -> int:
    """Follow a process until it has ended, or is left; give the exit code.

    Args:
        first: What is to be seen before anything else.

    Raises:
        HoldfastError: It cannot be followed any further.
    """
    following = Following(handle, manner, asyncio.get_running_loop(), first)
    try:
        if not manner.raw:
            return await following.to_end(None)
        with terminal.raw(0) as screen:
            return await following.to_end(screen)
    finally:
        following.close()
        if following.last_words and not manner.quiet:
            say(following.last_words)


class Following:
    """One process, while it is followed."""

    def __init__(
        self, handle: Handle, manner: Manner, loop: asyncio.AbstractEventLoop, first: Iterable[Chunk]
    ) -> None:
        self._handle = handle
        self._manner = manner
        self._loop = loop
        self._screen: terminal.Terminal | None = None
        self._first = first
        self._sink = Sink(loop, json=manner.json)
        self._heard = 0  # Pieces of output.
        self._heard_more = asyncio.Event()
        self._missing: str | None = None  # Words about output that nobody has any more.
        self._incomplete = False  # Whether that is a failure.
        self._told: asyncio.Future[None] = loop.create_future()  # Its output has ended.
        self._done: asyncio.Future[int] = loop.create_future()
        self._tasks: set[asyncio.Task[None]] = set()
        self._signals: asyncio.Queue[int] = asyncio.Queue()
        self._asked = 0  # How often we were told to end.
        self._asked_at = float("-inf")
        self.last_words: str | None = None
        """What to tell once the terminal is as it was."""

    async def to_end(self, screen: terminal.Terminal | None) -> int:
        """Follow it; ``screen`` is our terminal, if it is raw."""
        self._screen = screen
        caught = [signal.SIGINT, signal.SIGQUIT, *_ENDS]
        if screen is not None:
            caught += [signal.SIGWINCH, signal.SIGCONT]
        for number in caught:
            self._loop.add_signal_handler(number, self._signals.put_nowait, number)
        try:
            self._begin(self._pass_output())
            self._begin(self._await_end())
            self._begin(self._obey())
            if self._manner.stdin:
                self._begin(self._pass_input())
            return await self._done
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            for number in caught:
                self._loop.remove_signal_handler(number)

    def close(self) -> None:
        """Let go of what was opened here."""
        self._sink.close()

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_finished)

    def _on_finished(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not self._done.done():
            self._done.set_exception(error)

    def _finish(self, code: int, words: str | None = None) -> None:
        if not self._done.done():
            self.last_words = words
            self._done.set_result(code)

    # Output.

    async def _pass_output(self) -> None:
        try:
            for chunk in self._first:
                await self._sink.pass_on(chunk)
            redraw = self._manner.redraw if self._screen is not None else None
            if redraw == 0:
                self._begin(self._redraw())
            async for chunk in self._chunks():
                self._heard += 1
                self._heard_more.set()
                await self._sink.pass_on(chunk)
                if redraw and chunk.seq >= redraw:
                    redraw = None
                    self._begin(self._redraw())
        except BrokenPipeError:
            if self._manner.ours:
                await self._handle.end()
            self._finish(BROKEN_PIPE)
        else:
            self._told.set_result(None)

    async def _chunks(self) -> AsyncIterator[Chunk]:
        """What it says, past what is missing: that is told at the end."""
        while True:
            try:
                async for chunk in self._handle.chunks():
                    yield chunk
            except OutputGap as gap:
                self._missing = str(gap)
                # Whoever comes later finds the beginning gone, as a rule.
                self._incomplete = self._incomplete or self._manner.ours or self._heard > 0
            else:
                return

    async def _await_end(self) -> None:
        outcome = await self._handle.wait()
        words = None
        while not self._told.done():
            heard = self._heard
            done, _ = await asyncio.wait((self._told,), timeout=_LINGER)
            if not done and heard == self._heard and not self._sink.busy:
                words = "its output is held open by others whom it has started; they are not waited for"
                break
        code = OWN if self._incomplete else code_of(outcome)
        if self._manner.json:
            await self._tell_end(outcome)
            words = words or self._missing
        else:
            words = self._missing or remark(outcome) or words
        self._finish(code, words)

    async def _tell_end(self, outcome: Outcome) -> None:
        document = {
            "name": self._handle.name,
            "exitCode": code_of(outcome),
            "outcome": describe.outcome(outcome),
            "usage": describe.usage(self._handle.usage),
        }
        try:
            await self._sink.tell(document)
        except BrokenPipeError:
            self._finish(BROKEN_PIPE)

    # Input.

    async def _pass_input(self) -> None:
        stdin = self._handle.stdin
        if stdin is None:
            return
        inlet = Inlet(0, self._loop)
        scan = Scan(self._manner.keys if self._manner.raw else b"", listens=not self._manner.kept)
        try:
            while data := await inlet.read():
                passed, found = scan.feed(data)
                if passed:
                    stdin.write(passed)
                    await stdin.drain()
                if found:
                    self._leave()
            if rest := scan.rest():
                stdin.write(rest)
            stdin.write_eof()
            await stdin.wait_closed()
        except (BrokenPipeError, StdinFailed):
            pass  # It takes no more; that is its affair, and its end will be told.

    def _leave(self) -> None:
        name = self._handle.name
        if self._manner.kept:
            self._finish(0, f"left {name} running; 'holdfast attach {name}' comes back")
        else:
            os.write(2, b"\r\nholdfast: there is nothing to detach from: the process ends with this one\r\n")

    # Signals.

    async def _obey(self) -> None:
        if self._screen is not None:
            await self._resize()  # It may have changed since the start.
        while True:
            number = await self._signals.get()
            if number == signal.SIGWINCH:
                await self._resize()
            elif number == signal.SIGCONT:
                assert self._screen is not None
                self._screen.raw()  # Whoever was in front meanwhile may have changed it.
                await self._resize()
            elif number == signal.SIGQUIT:
                self._begin(self._handle.send_signal(number))
            elif number == signal.SIGINT:
                self._interrupt()
            elif not self._manner.ours or (number == signal.SIGHUP and self._manner.kept):
                self._finish(128 + number)
            else:
                self._stop(number)

    async def _resize(self) -> None:
        size = terminal.screen_size()
        if size is not None:
            await self._handle.resize(Size(*size))

    async def _redraw(self) -> None:
        """Have a full-screen program draw everything: one that draws nothing is not disturbed.

        Programs are told of a size only if it is another one, and some draw only if it
        still is when they look: it stays another one until they have drawn for it.
        """
        size = terminal.screen_size()
        if size is None:
            return
        rows, cols = size
        await self._handle.resize(Size(rows - 1 if rows > 1 else rows + 1, cols))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REDRAWN):
                silence = _REDRAWN
                while await self._speaks(silence):
                    silence = _DRAWN
        await self._resize()

    async def _speaks(self, seconds: float) -> bool:
        """Whether it says something within that time."""
        self._heard_more.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._heard_more.wait()
        return False

    def _interrupt(self) -> None:
        """^C: pass it on; a second one soon after ends the process, a third one does not wait for that."""
        now = self._loop.time()
        if now - self._asked_at > _AGAIN:
            self._asked = 0
        self._asked_at = now
        self._asked += 1
        if self._asked == 1:
            self._begin(self._handle.send_signal(signal.SIGINT))
        elif self._asked == 2:
            self._begin(self._end(self._manner.grace))
        else:
            self._finish(128 + signal.SIGINT)

    def _stop(self, number: int) -> None:
        """Asked to end: so is the process; again, and it is not asked; a third time, and we do not wait."""
        self._asked += 1
        if self._asked > 2:
            self._finish(128 + number)
        else:
            self._begin(self._end(self._manner.grace if self._asked == 1 else 0.0))

    async def _end(self, grace: float) -> None:
        await self._handle.end(grace)
